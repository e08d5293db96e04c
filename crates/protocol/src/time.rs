//! Points in time. This module does not read a clock: callers pass times in.

use serde::{Deserialize, Serialize};

/// Milliseconds since 1970-01-01T00:00:00Z, on the control plane's clock unless the description of a field names
/// another clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, Default)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct Timestamp(u64);

impl Timestamp {
    /// Returns the time `millis` milliseconds after the epoch.
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis)
    }

    /// Returns the milliseconds since the epoch.
    pub const fn as_millis(self) -> u64 {
        self.0
    }

    /// Returns the whole seconds since the epoch, the unit of a DynamoDB TTL attribute.
    pub const fn as_secs(self) -> u64 {
        self.0 / 1000
    }

    /// Returns the time `secs` seconds after this time.
    pub const fn plus_secs(self, secs: u64) -> Self {
        Self(self.0.saturating_add(secs.saturating_mul(1000)))
    }

    /// Returns the milliseconds from `earlier` to this time, or zero when `earlier` is not before this time.
    pub const fn since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

/// Returns the year, month and day of the date that is `days` days after the epoch, in the Gregorian calendar. The
/// calculation lets a year begin in March, so that a leap day is its last day; 400 years have 146,097 days.
pub const fn civil(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let shifted = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let january = if month <= 2 { 1 } else { 0 };
    (era * 400 + year + january, month, day)
}

/// Times as text in UTC with milliseconds, such as `2026-11-21T14:54:06.123Z` (RFC 3339 section 5.6), for documents in
/// standard formats such as in-toto. The reader accepts only the form that the writer produces.
pub mod rfc3339 {
    use serde::de::Error as _;
    use serde::ser::Error as _;
    use serde::{Deserialize as _, Deserializer, Serializer};

    use super::{Timestamp, civil};

    const DAY: u64 = 86_400_000;
    /// The first time that has no four-digit year: 10000-01-01T00:00:00Z.
    const END: u64 = 253_402_300_800_000;

    /// Writes a time before the year 10000.
    ///
    /// # Errors
    /// For a later time, or when the serializer fails.
    pub fn serialize<S: Serializer>(time: &Timestamp, serializer: S) -> Result<S::Ok, S::Error> {
        let text = text(*time).ok_or_else(|| S::Error::custom("the time is after the year 9999"))?;
        serializer.serialize_str(&text)
    }

    /// Parses the form that [`serialize`] writes.
    ///
    /// # Errors
    /// When the text has another form, or the deserializer fails.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Timestamp, D::Error> {
        let given = String::deserialize(deserializer)?;
        let wrong = || D::Error::custom("a time does not have the form `2026-11-21T14:54:06.123Z`");
        read(&given).filter(|time| text(*time).as_ref() == Some(&given)).ok_or_else(wrong)
    }

    /// Returns the text of a time; `None` for a time after the year 9999.
    pub fn text(time: Timestamp) -> Option<String> {
        let millis = time.as_millis();
        let (year, month, day) = civil(millis / DAY);
        let rest = millis % DAY;
        let (hour, minute, second) = (rest / 3_600_000, rest / 60_000 % 60, rest / 1000 % 60);
        let milli = rest % 1000;
        (millis < END).then(|| format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{milli:03}Z"))
    }

    /// Parses the digits at their fixed places and ignores the other characters, which the caller checks.
    fn read(given: &str) -> Option<Timestamp> {
        let number = |from: usize, to: usize| given.get(from..to)?.parse::<u64>().ok();
        let days = days(number(0, 4)?, number(5, 7)?, number(8, 10)?)?;
        let seconds = number(11, 13)?.checked_mul(3600)? + number(14, 16)? * 60 + number(17, 19)?;
        Some(Timestamp::from_millis(days.checked_mul(DAY)? + seconds * 1000 + number(20, 23)?))
    }

    /// Returns the number of days from the epoch to a date; the inverse of [`civil`].
    fn days(year: u64, month: u64, day: u64) -> Option<u64> {
        let year = if month <= 2 { year.checked_sub(1)? } else { year };
        let shifted = if month > 2 { month.checked_sub(3)? } else { month + 9 };
        let of_year = (153 * shifted + 2) / 5 + day.checked_sub(1)?;
        let of_era = (year % 400) * 365 + year % 400 / 4 - year % 400 / 100 + of_year;
        ((year / 400) * 146_097 + of_era).checked_sub(719_468)
    }
}
