//! The customer's change windows, as far as the control plane knows them. They decide whether an order that changes
//! something is sent now. The runner decides whether the work starts.

use freehold_protocol::Timestamp;
use freehold_protocol::report::ChangeTimes;

/// Whether changes may start, as the runner announced it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub enum Gate {
    /// Changes may start until this time. Without a time, the end is not known, and the runner decides.
    Open { until: Option<Timestamp> },
    /// No change may start before this time. Without a time, the end is not known.
    Closed { until: Option<Timestamp>, reason: String },
}

impl Gate {
    /// Returns what the runner announced for the time `now`. After `known_until`, the gate is open, and the runner
    /// decides.
    pub fn at(times: &ChangeTimes, now: Timestamp) -> Self {
        if let Some(problem) = &times.problem {
            let reason = format!(
                "no change starts, since the runner cannot read when the customer permits changes: {problem}; the customer has \
                 to correct the parameter of the install stack"
            );
            return Self::Closed { until: None, reason };
        }
        if times.held {
            let reason =
                "the customer holds all changes; they continue when the customer has lifted the hold".to_owned();
            return Self::Closed { until: None, reason };
        }
        let next = times.openings.iter().find(|opening| opening.until.is_none_or(|until| now < until));
        match next {
            Some(opening) if opening.from <= now => Self::Open { until: opening.until },
            Some(opening) => Self::Closed { until: Some(opening.from), reason: closed(times) },
            None if now >= times.known_until => Self::Open { until: None },
            None => {
                let reason = format!("{}, and no window opens soon; ask the customer", closed(times));
                Self::Closed { until: Some(times.known_until), reason }
            }
        }
    }
}

/// Newer openings are stored only if they reach at least this many milliseconds further than the stored ones.
const FURTHER_MS: u64 = 7 * 24 * 60 * 60 * 1000;

/// Returns whether the stored times `known` can stay although a runner sent `new`: both have the same rules, and the
/// openings of `new` reach less than a week further.
pub fn is_still_true(known: &ChangeTimes, new: &ChangeTimes) -> bool {
    let rules =
        |times: &ChangeTimes| ChangeTimes { openings: Vec::new(), known_until: Timestamp::default(), ..times.clone() };
    rules(known) == rules(new) && new.known_until.since(known.known_until) < FURTHER_MS
}

fn closed(times: &ChangeTimes) -> String {
    let named = |what: &str, text: &str| if text.is_empty() { String::new() } else { format!(" {what} `{text}`") };
    let (windows, freezes) = (named("windows", &times.windows), named("freezes", &times.freezes));
    format!("the customer lets no change start now:{windows}{freezes}")
}

#[cfg(test)]
mod tests {
    use freehold_protocol::report::OpenTime;

    use super::*;

    fn at(secs: u64) -> Timestamp {
        Timestamp::from_millis(secs * 1000)
    }

    fn times(openings: &[(u64, Option<u64>)]) -> ChangeTimes {
        let openings =
            openings.iter().map(|(from, until)| OpenTime { from: at(*from), until: until.map(at) }).collect();
        ChangeTimes {
            windows: "UTC: Mon 22:00-23:00".into(),
            openings,
            known_until: at(1000),
            ..ChangeTimes::default()
        }
    }

    fn until(gate: &Gate) -> (bool, Option<Timestamp>) {
        match gate {
            Gate::Open { until } => (true, *until),
            Gate::Closed { until, .. } => (false, *until),
        }
    }

    #[test]
    fn changes_may_start_within_the_announced_times_and_not_between_them() {
        let known = times(&[(10, Some(20)), (50, Some(60))]);

        let found: Vec<_> = [5, 10, 19, 20, 55, 60].map(|now| until(&Gate::at(&known, at(now)))).to_vec();

        assert_eq!(
            found,
            [
                (false, Some(at(10))),
                (true, Some(at(20))),
                (true, Some(at(20))),
                (false, Some(at(50))),
                (true, Some(at(60))),
                (false, Some(at(1000))),
            ]
        );
    }

    #[test]
    fn the_same_rules_are_stored_again_once_a_week() {
        let known = times(&[(10, Some(20))]);
        let later =
            |secs: u64| ChangeTimes { known_until: known.known_until.plus_secs(secs), ..times(&[(50, Some(60))]) };

        assert!(is_still_true(&known, &later(3600)));
        assert!(!is_still_true(&known, &later(7 * 24 * 3600)));
        assert!(!is_still_true(&known, &ChangeTimes { held: true, ..known.clone() }));
    }

    #[test]
    fn the_runner_decides_about_times_that_it_has_not_announced() {
        assert_eq!(Gate::at(&times(&[(10, Some(20))]), at(1000)), Gate::Open { until: None });
    }

    #[test]
    fn a_hold_and_a_text_that_the_runner_cannot_read_close_without_an_end() {
        let held = ChangeTimes { held: true, ..times(&[(0, None)]) };
        let problem =
            ChangeTimes { problem: Some("parameter `ChangeWindows`, column 1: ...".into()), ..times(&[(0, None)]) };

        for closed in [held, problem] {
            assert_eq!(until(&Gate::at(&closed, at(5))), (false, None));
        }
        assert_eq!(until(&Gate::at(&times(&[(0, None)]), at(5))), (true, None));
    }
}
