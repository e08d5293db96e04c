//! The lock that S3 puts on each audit record, and its length: the parameters `AuditLock` and `AuditLockDays` of the
//! install stack.

use std::str::FromStr;

use freehold_protocol::Timestamp;

/// The most days that the install stack accepts.
const MOST_DAYS: u32 = 3650;
const DAY_MILLIS: u64 = 24 * 60 * 60 * 1000;

/// Object Lock of each audit record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AuditLock {
    pub mode: LockMode,
    /// The days from a record's write to the end of its lock.
    pub days: u32,
}

/// Who can end a lock before its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LockMode {
    /// Whoever has `s3:BypassGovernanceRetention`.
    Governance,
    /// Nobody can end the lock.
    Compliance,
}

/// The reason why a text is not an [`AuditLock`].
#[derive(Debug, thiserror::Error)]
#[error("`{0}` is not a lock of audit records, such as `COMPLIANCE 365`, with 1 to {MOST_DAYS} days")]
pub struct NotALock(String);

impl AuditLock {
    /// Returns the end of the lock of an object that is written at `now`.
    #[must_use]
    pub fn end(self, now: Timestamp) -> Timestamp {
        Timestamp::from_millis(now.as_millis().saturating_add(u64::from(self.days) * DAY_MILLIS))
    }
}

impl FromStr for AuditLock {
    type Err = NotALock;

    fn from_str(text: &str) -> Result<Self, NotALock> {
        let (mode, days) = text.split_once(' ').ok_or_else(|| NotALock(text.to_owned()))?;
        let mode = match mode {
            "GOVERNANCE" => LockMode::Governance,
            "COMPLIANCE" => LockMode::Compliance,
            _ => return Err(NotALock(text.to_owned())),
        };
        let days = days.parse().ok().filter(|days| (1..=MOST_DAYS).contains(days));
        days.map(|days| Self { mode, days }).ok_or_else(|| NotALock(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_has_a_mode_and_days_within_ten_years() {
        let read = |text: &str| text.parse::<AuditLock>().ok().map(|lock| (lock.mode, lock.days));

        assert_eq!(read("GOVERNANCE 1"), Some((LockMode::Governance, 1)));
        assert_eq!(read("COMPLIANCE 3650"), Some((LockMode::Compliance, 3650)));
        for wrong in ["COMPLIANCE", "COMPLIANCE 0", "COMPLIANCE 3651", "COMPLIANCE -1", "compliance 3", "x 3", ""] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_lock_ends_whole_days_after_the_write() {
        let lock: AuditLock = "COMPLIANCE 30".parse().unwrap();

        assert_eq!(lock.end(Timestamp::from_millis(5)).as_millis(), 30 * 86_400_000 + 5);
    }
}
