//! When checks of an install are due: at a fixed offset (0 to 59 minutes) after the minutes of a cron schedule. The
//! offset depends on the install, so that not all installs of a tenant are checked in the same minute.

use freehold_protocol::{Digest, InstallId, Timestamp};

use crate::cron::Schedule;

/// The length of a minute, in milliseconds.
const MINUTE: u64 = 60_000;
/// The number of minutes over which the installs are spread.
const SPREAD: u64 = 60;

/// Returns the offset of an install's checks from the scheduled minute, in milliseconds: 0 to 59 minutes.
fn delay(install: &InstallId) -> u64 {
    let digest = Digest::of(format!("drift {install}").as_bytes());
    let number = digest.hex().get(..8).and_then(|text| u64::from_str_radix(text, 16).ok()).unwrap_or_default();
    number % SPREAD * MINUTE
}

/// Returns the first minute after `after` at which a check of the install is due by the schedule.
pub fn next_check(schedule: &Schedule, install: &InstallId, after: Timestamp) -> Option<Timestamp> {
    let delay = delay(install);
    let next = schedule.next_after(Timestamp::from_millis(after.as_millis().saturating_sub(delay)))?;
    Some(Timestamp::from_millis(next.as_millis() + delay))
}

/// Returns whether a check of the install is due by the schedule in the minute of `at`.
pub fn is_due(schedule: &Schedule, install: &InstallId, at: Timestamp) -> bool {
    at.as_millis().checked_sub(delay(install)).is_some_and(|earlier| schedule.is_due(Timestamp::from_millis(earlier)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// 2026-11-22T14:54Z, a Sunday.
    const NOW: u64 = 1_795_359_240_000;

    fn install(number: u32) -> InstallId {
        format!("install-{number}").parse().unwrap()
    }

    #[test]
    fn a_thousand_installs_start_over_the_whole_hour() {
        let schedule = Schedule::parse("0 3 * * *").unwrap();
        let mut minutes = [0_u32; 60];
        for number in 0..1000 {
            let due = next_check(&schedule, &install(number), Timestamp::from_millis(NOW)).unwrap();
            let minute = due.as_millis() / MINUTE;
            assert_eq!(minute % (24 * 60) / 60, 3, "within the hour of the schedule");
            minutes[usize::try_from(minute % 60).unwrap()] += 1;
        }

        assert!(minutes.iter().all(|count| (3..=45).contains(count)), "{minutes:?}");
    }

    proptest! {
        #[test]
        fn the_next_check_is_due_and_none_is_due_before_it(number in 0_u32..500, ahead in 0_u64..3000, every in 1_u32..59) {
            let (schedule, install) = (Schedule::parse(&format!("*/{every} * * * *")).unwrap(), install(number));
            let now = Timestamp::from_millis(NOW + ahead * 1000);

            let next = next_check(&schedule, &install, now).unwrap();

            prop_assert!(next > now && is_due(&schedule, &install, next));
            let first = now.as_millis() / MINUTE + 1;
            for minute in first..next.as_millis() / MINUTE {
                prop_assert!(!is_due(&schedule, &install, Timestamp::from_millis(minute * MINUTE)));
            }
        }
    }
}
