//! The rules about changes, which the parameters of an install stack define.

use std::collections::BTreeMap;

use freehold_protocol::Timestamp;
use freehold_protocol::order::{AskedBy, Work};
use freehold_protocol::report::FreeActions;
use jiff::Timestamp as Utc;

use crate::calendar::{Calendar, HORIZON_DAYS, instant, later, timestamp};
use crate::decision::{Closed, Decision, Opening, Openings, Why};
use crate::freezes::{self};
use crate::hours::Windows;
use crate::passes::{self, Caller};
use crate::text::{Piece, RulesError};

/// The parameters of the install stack.
pub const WINDOWS: &str = "ChangeWindows";
pub const FREEZES: &str = "ChangeFreezes";
pub const HELD: &str = "ChangesHeld";
pub const NOW_BY: &str = "ChangesNowBy";
pub const ACTIONS: &str = "ActionsAnyTime";
pub const PARAMETERS: [&str; 5] = [WINDOWS, FREEZES, HELD, NOW_BY, ACTIONS];

/// When changes may start in an install, and who may start them at other times.
#[derive(Debug, Clone)]
pub struct Rules {
    calendar: Calendar,
    held: bool,
    now_by: Vec<Caller>,
    free: FreeActions,
}

impl Rules {
    /// Reads the rules from the parameters of an install stack. A parameter that is absent restricts nothing, as in a stack
    /// of an earlier version.
    ///
    /// # Errors
    /// A [`RulesError`] that names the parameter, the place in it, and what to write.
    pub fn of_parameters(parameters: &BTreeMap<String, String>) -> Result<Self, RulesError> {
        let text = |name: &'static str| Piece::of(name, parameters.get(name).map_or("", String::as_str));
        let held = text(HELD);
        let held = match held.text() {
            "" | "false" => false,
            "true" => true,
            _ => return Err(held.wrong(format!("{} is not `true` or `false`", held.quoted()))),
        };
        let calendar = Calendar { windows: Windows::parse(text(WINDOWS))?, freezes: freezes::parse(text(FREEZES))? };
        let (now_by, free) = (passes::callers(text(NOW_BY))?, passes::free_actions(text(ACTIONS))?);
        Ok(Self { calendar, held, now_by, free })
    }

    /// Returns whether changes may start at any time.
    pub fn is_unlimited(&self) -> bool {
        !self.held && self.calendar.windows.all.is_empty() && self.calendar.freezes.is_empty()
    }

    /// Returns whether the customer holds all changes.
    pub const fn is_held(&self) -> bool {
        self.held
    }

    /// Returns whether changes may start at `now`.
    pub fn at(&self, now: Timestamp) -> Decision {
        let now = instant(now);
        if self.held {
            return Decision::Closed(Closed { until: None, why: Why::Held, wall: String::new() });
        }
        if self.is_unlimited() {
            return Decision::Open { until: None };
        }
        let horizon = later(now, HORIZON_DAYS);
        if self.calendar.is_open(now) {
            return Decision::Open { until: self.calendar.next(now, false, horizon).map(timestamp) };
        }
        let until = self.calendar.next(now, true, horizon);
        let why = self.calendar.freeze(now).map_or(Why::OutsideWindows, Why::Frozen);
        let wall = until.map(|until| self.wall(until)).unwrap_or_default();
        Decision::Closed(Closed { until: until.map(timestamp), why, wall })
    }

    /// Returns at most `most` openings from `now` on, within `days`. While the customer holds all changes, there is none.
    pub fn openings(&self, now: Timestamp, days: i64, most: usize) -> Openings {
        let now = instant(now);
        let horizon = later(now, days);
        let mut found = Openings { all: Vec::new(), known_until: timestamp(horizon) };
        if self.held {
            return found;
        }
        let mut from = if self.calendar.is_open(now) { Some(now) } else { self.calendar.next(now, true, horizon) };
        while let Some(begin) = from {
            if found.all.len() == most {
                found.known_until = timestamp(begin);
                break;
            }
            // An opening that has begun may end after the horizon.
            let end = self.calendar.next(begin, false, later(begin, HORIZON_DAYS));
            found.all.push(Opening { from: timestamp(begin), until: end.map(timestamp) });
            from = end.and_then(|end| self.calendar.next(end, true, horizon));
        }
        found
    }

    /// Returns whether the caller may start changes with `--now` while the windows are closed or during a freeze.
    /// Nobody may start changes during a hold.
    pub fn lets_pass(&self, by: Option<&AskedBy>) -> bool {
        !self.held && by.is_some_and(|by| passes::may_pass(&self.now_by, by))
    }

    /// Returns the actions that may run at any time, because the customer has named them as actions that change nothing.
    pub const fn free_actions(&self) -> &FreeActions {
        &self.free
    }

    /// Returns a time as the customer's clock shows it.
    pub fn shown(&self, at: Timestamp) -> String {
        self.wall(instant(at))
    }

    fn wall(&self, at: Utc) -> String {
        format!("{} {}", self.calendar.wall(at).strftime("%a %Y-%m-%d %H:%M"), self.calendar.windows.zone_name)
    }
}

/// Returns whether the work changes something in the customer's account, so that it waits for a window. What the steps of an
/// action do is not known, so an action counts as a change unless it is in `free`.
pub fn is_change(work: &Work, free: &FreeActions) -> bool {
    match work {
        Work::ContainerImage(_)
        | Work::TerraformModule(_)
        | Work::Sandbox(_)
        | Work::Pulumi(_)
        | Work::PulumiSandbox(_)
        | Work::CloudformationStack(_)
        | Work::HelmChart(_)
        | Work::KubernetesManifest(_)
        | Work::KubernetesJob(_)
        | Work::CopySecrets(_)
        | Work::Upgrade(_)
        | Work::Remove(_) => true,
        Work::Action(run) => !free.contains(&run.action),
        Work::Build(_) | Work::Preflight(_) | Work::Leftovers(_) | Work::DetectDrift(_) | Work::Health(_) => false,
    }
}
