//! Decides when a component has been checked for long enough.

use std::time::Duration;

/// Follows the checks of one component. The watch passes when the component was healthy for the whole time `hold`.
#[derive(Debug)]
pub(super) struct Watch {
    hold: Duration,
    limit: Duration,
    /// The time of the first of the consecutive checks that found the component healthy.
    since: Option<Duration>,
}

/// The decision after a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The component is healthy.
    Passed,
    /// The time limit has passed, and the component is not healthy, or has not been healthy for long enough.
    GivenUp,
    /// Check again, at the latest after this time.
    Again(Duration),
}

impl Watch {
    /// Returns a watch that gives up after `limit`.
    pub(super) const fn new(hold: Duration, limit: Duration) -> Self {
        Self { hold, limit, since: None }
    }

    /// Records a check at the time `at`, counted from the first check.
    #[must_use]
    pub(super) fn on(&mut self, at: Duration, is_healthy: bool) -> Verdict {
        self.since = is_healthy.then(|| self.since.unwrap_or(at));
        let held = self.since.map(|since| at.saturating_sub(since));
        match held {
            Some(held) if held >= self.hold => Verdict::Passed,
            Some(_) | None if at >= self.limit => Verdict::GivenUp,
            Some(held) => Verdict::Again(self.hold.saturating_sub(held).min(self.limit.saturating_sub(at))),
            None => Verdict::Again(self.limit.saturating_sub(at)),
        }
    }

    /// Returns how long the component has been healthy; `None` while it is not healthy.
    pub(super) fn healthy_for(&self, at: Duration) -> Option<Duration> {
        self.since.map(|since| at.saturating_sub(since))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const fn secs(secs: u64) -> Duration {
        Duration::from_secs(secs)
    }

    #[test]
    fn a_component_has_to_stay_healthy_for_the_whole_time() {
        let mut watch = Watch::new(secs(10), secs(20));

        assert_eq!(watch.on(secs(0), true), Verdict::Again(secs(10)));
        assert_eq!(watch.on(secs(5), false), Verdict::Again(secs(15)));
        assert_eq!(watch.on(secs(10), true), Verdict::Again(secs(10)));
        assert_eq!(watch.healthy_for(secs(15)), Some(secs(5)));
        assert_eq!(watch.on(secs(20), true), Verdict::Passed);
    }

    #[test]
    fn one_look_decides_without_a_time() {
        assert_eq!(Watch::new(secs(0), secs(0)).on(secs(0), true), Verdict::Passed);
        assert_eq!(Watch::new(secs(0), secs(0)).on(secs(0), false), Verdict::GivenUp);
    }

    proptest! {
        /// The watch passes at the first look that ends an uninterrupted time `hold`, gives up at the first look at or after
        /// the limit that does not, and asks for another look until then.
        #[test]
        fn it_passes_only_after_the_whole_time_in_a_row(
            hold in 0_u64..30,
            limit in 0_u64..60,
            looks in proptest::collection::vec((1_u64..8, any::<bool>()), 1..40),
        ) {
            let mut watch = Watch::new(secs(hold), secs(limit));
            let (mut at, mut seen) = (0, Vec::new());
            for (step, is_healthy) in looks {
                seen.push((at, is_healthy));
                let row = seen.iter().rev().take_while(|(_, healthy)| *healthy).last().map(|(at, _)| *at);
                let held = row.is_some_and(|since| at - since >= hold);
                match watch.on(secs(at), is_healthy) {
                    Verdict::Passed => {
                        prop_assert!(held);
                        break;
                    }
                    Verdict::GivenUp => {
                        prop_assert!(!held && at >= limit);
                        break;
                    }
                    Verdict::Again(wait) => prop_assert!(!held && at < limit && wait > secs(0) && secs(at) + wait <= secs(limit)),
                }
                at += step;
            }
        }
    }
}
