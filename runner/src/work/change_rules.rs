//! The customer's rules about changes, as the install stack has them now. They decide whether the work of an order may start, and
//! this runner announces them. The rules come from the customer's stack, and the time comes from AWS, so that nobody else decides.
//! The switches of the install's roles are parameters of the same stack, and are announced too.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use freehold_protocol::approval::{APPROVE_CHANGES, ApproveChanges};
use freehold_protocol::order::{Mode, Order};
use freehold_protocol::report::{ChangeTimes, FreeActions, OpenTime};
use freehold_protocol::{RoleKey, Timestamp};
use freehold_windows::{Decision, FREEZES, Rules, WINDOWS, is_change};
use tokio::sync::Notify;
use tokio::time::Instant;
use tracing::info;

use crate::config::Config;
use crate::identity::denial::{StackState, Standing};
use crate::work::role_switches::role_switches;

/// The time after which the rules are read again. So a hold takes effect at most this much later.
const FRESH: Duration = Duration::from_secs(60);
/// The days ahead for which a runner announces openings, and their maximum number. It announces them again every hour.
const AHEAD_DAYS: i64 = 35;
const MOST_OPENINGS: usize = 32;

/// The reason why the work of an order does not start now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptBack {
    pub reason: String,
    /// The time from which the work may start; `None` if it is not known.
    pub until: Option<Timestamp>,
}

/// The rules of the install stack, which are read from time to time.
#[derive(Debug, Default)]
pub struct ChangeRules {
    last: Mutex<Option<(Instant, Arc<StackRules>)>>,
    kept_back: Notify,
}

/// The rules as the stack had them at one moment.
#[derive(Debug)]
pub struct StackRules {
    /// Whether the stack does not exist, or is being deleted. Its roles are deleted with it, unless they were kept.
    is_gone: bool,
    /// Whether the last change of the stack has not ended, or has failed.
    is_changing: bool,
    parameters: BTreeMap<String, String>,
    /// The rules, or what is wrong with their texts.
    rules: Result<Rules, String>,
}

impl ChangeRules {
    /// Returns the rules. Reads them from the stack if they were not read within the last minute.
    ///
    /// # Errors
    /// The reason why the stack cannot be read.
    pub async fn read(&self, standing: &Standing) -> Result<Arc<StackRules>, String> {
        let known = self.last.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some((at, rules)) = known
            && at.elapsed() < FRESH
        {
            return Ok(rules);
        }
        let (parameters, is_changing) = match standing.stack().await {
            StackState::Launched(parameters) => (parameters, false),
            StackState::Changing(parameters) => (parameters, true),
            StackState::Gone => return Ok(Arc::new(StackRules::without_stack())),
            StackState::Unreadable(reason) => {
                return Err(format!(
                    "install stack `{}`, which states when changes may start, cannot be read: {reason}",
                    standing.stack_name()
                ));
            }
        };
        let rules = Arc::new(StackRules { is_changing, ..StackRules::of(parameters) });
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Some((Instant::now(), rules.clone()));
        Ok(rules)
    }

    /// Lets the runner announce the rules at once, because the control plane sent an order that the rules keep back.
    pub fn keeps_back(&self) {
        self.kept_back.notify_one();
    }

    /// Waits until an order was kept back.
    pub async fn has_kept_back(&self) {
        self.kept_back.notified().await;
    }
}

impl StackRules {
    fn of(parameters: BTreeMap<String, String>) -> Self {
        let rules = Rules::of_parameters(&parameters).map_err(|error| error.to_string());
        Self { is_gone: false, is_changing: false, parameters, rules }
    }

    fn without_stack() -> Self {
        Self { is_gone: true, ..Self::of(BTreeMap::new()) }
    }

    /// Returns whether the order is a change, and no stack exists that has rules about it.
    pub fn say_nothing_of(&self, order: &Order) -> bool {
        self.is_gone && is_change(&order.work, &FreeActions::default())
    }

    /// Returns why the work of the order does not start at `now`; `None` if it may.
    pub fn kept_back(&self, order: &Order, now: Timestamp) -> Option<KeptBack> {
        if is_break_glass(order) {
            return None;
        }
        let rules = match &self.rules {
            Ok(rules) => rules,
            Err(problem) => {
                let reason =
                    format!("no change starts while the customer's rules about changes cannot be read: {problem}");
                return is_change(&order.work, &FreeActions::default()).then_some(KeptBack { reason, until: None });
            }
        };
        let Decision::Closed(closed) = rules.at(now) else { return None };
        if !is_change(&order.work, rules.free_actions()) {
            return None;
        }
        let asker = order.asked_by().filter(|_| order.now);
        if rules.lets_pass(asker) {
            info!(job.id = %order.job, "Job `{}` starts with `--now`, although {closed}", order.job);
            return None;
        }
        let refused = asker.filter(|_| !rules.is_held()).map(|by| {
            format!(
                "; the customer does not let `{by}` pass with `--now` (parameter `ChangesNowBy` of the install stack)"
            )
        });
        Some(KeptBack { reason: format!("{closed}{}", refused.unwrap_or_default()), until: closed.until })
    }

    /// Returns which plans of the order wait for the customer's approval. Work that changes nothing does not wait, nor does work
    /// under break-glass rights, which the customer has switched on.
    ///
    /// # Errors
    /// The reason, when no stack could be read.
    pub fn approve_changes(&self, order: &Order) -> Result<ApproveChanges, String> {
        let free = self.rules.as_ref().map(|rules| rules.free_actions().clone()).unwrap_or_default();
        if !is_change(&order.work, &free) || is_break_glass(order) {
            return Ok(ApproveChanges::None);
        }
        if self.is_gone {
            return Err(format!("no install stack states which plans wait for an approval (`{APPROVE_CHANGES}`)"));
        }
        Ok(ApproveChanges::of(self.parameters.get(APPROVE_CHANGES).map(String::as_str)))
    }

    /// Returns what the runner announces; `None` if changes may start at any time.
    pub fn announced(&self, now: Timestamp) -> Option<ChangeTimes> {
        let text = |name: &str| self.parameters.get(name).cloned().unwrap_or_default();
        let times = ChangeTimes { windows: text(WINDOWS), freezes: text(FREEZES), ..ChangeTimes::default() };
        let rules = match &self.rules {
            Ok(rules) if rules.is_unlimited() => return None,
            Ok(rules) => rules,
            Err(problem) => return Some(ChangeTimes { problem: Some(problem.clone()), ..times }),
        };
        let found = rules.openings(now, AHEAD_DAYS, MOST_OPENINGS);
        let openings = found.all.iter().map(|one| OpenTime { from: one.from, until: one.until }).collect();
        let (held, free_actions) = (rules.is_held(), rules.free_actions().clone());
        Some(ChangeTimes { held, openings, known_until: found.known_until, free_actions, ..times })
    }

    /// Returns the roles of the install of `config`, each with whether the customer has switched it on; `None` for a stack
    /// that has no switches, and while the roles may not follow the switches, because the stack is being changed.
    pub fn role_switches(&self, config: &Config, now: Timestamp) -> Option<BTreeMap<RoleKey, bool>> {
        let switches = role_switches(&self.parameters, config, now);
        (!self.is_changing && !switches.is_empty()).then_some(switches)
    }
}

/// Returns whether two announcements have the same rules. Their times may differ.
pub fn is_same_rule(one: Option<&ChangeTimes>, other: Option<&ChangeTimes>) -> bool {
    let rules =
        |times: &ChangeTimes| ChangeTimes { openings: Vec::new(), known_until: Timestamp::default(), ..times.clone() };
    one.map(rules) == other.map(rules)
}

/// Returns whether the order is for a role for emergencies, which exists only while the customer has switched it on.
/// The role that the order names decides this, because the work runs under it. The mode counts only in an order that
/// names no role, since only the vendor sets the mode.
fn is_break_glass(order: &Order) -> bool {
    order.role.as_ref().map_or(order.mode == Mode::BreakGlass, RoleKey::is_break_glass)
}
