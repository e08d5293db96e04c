//! The days of a bill, in UTC, as AWS counts them.

use clap::Args;
use freehold_protocol::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;

use crate::error::{Error, Result};

/// The options that choose the days.
#[derive(Debug, Clone, Args)]
pub(crate) struct Days {
    /// First day that counts, such as `2026-11-01`, in UTC; by default the first day of the month of the last day.
    #[arg(long, value_name = "DATE", value_parser = date)]
    since: Option<Date>,
    /// Last day that counts, in UTC; by default yesterday, because AWS adds to the cost of a day until it is over.
    #[arg(long, value_name = "DATE", value_parser = date)]
    until: Option<Date>,
}

/// The days from `since` to `until`, both included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Period {
    pub(crate) since: Date,
    pub(crate) until: Date,
    /// The day after the last one, with which AWS ends a period.
    pub(crate) end: Date,
    pub(crate) starts_at: Timestamp,
    pub(crate) ends_at: Timestamp,
}

impl Days {
    /// Returns the days that the options choose.
    pub(crate) fn period(&self) -> Result<Period> {
        self.period_on(jiff::Timestamp::now().to_zoned(TimeZone::UTC).date())
    }

    /// Returns the days between two days, for tests.
    #[cfg(test)]
    pub(crate) fn between(since: &str, until: &str) -> Period {
        let days = Self { since: date(since).ok(), until: date(until).ok() };
        days.period_on(until.parse().unwrap()).unwrap()
    }

    fn period_on(&self, today: Date) -> Result<Period> {
        let until = match self.until {
            Some(until) if until > today => {
                let wrong =
                    Error::invalid(format!("`--until` is {until}, and today is {today} (UTC): it has no bill yet"));
                return Err(wrong.or("name a day that has begun, or leave `--until` out"));
            }
            Some(until) => until,
            None => today.yesterday().map_err(|_| out_of_range(today))?,
        };
        let since = self.since.unwrap_or_else(|| until.first_of_month());
        if since > until {
            let wrong = Error::invalid(format!("`--since` is {since}, which is after the last day, {until}"));
            return Err(wrong.or("name an earlier day, or a later one as `--until`"));
        }
        let end = until.tomorrow().map_err(|_| out_of_range(until))?;
        Ok(Period { since, until, end, starts_at: midnight(since)?, ends_at: midnight(end)? })
    }
}

impl Period {
    /// Returns the number of days.
    pub(crate) fn days(&self) -> u64 {
        let days = self.end.duration_since(self.since).as_hours() / 24;
        u64::try_from(days).unwrap_or_default().max(1)
    }

    /// Returns whether something at this time happened in the period.
    pub(crate) fn contains(&self, at: Timestamp) -> bool {
        self.starts_at <= at && at < self.ends_at
    }

    /// Returns the days for people: `2026-11-01 to 2026-11-29`.
    pub(crate) fn text(&self) -> String {
        format!("{} to {}", self.since, self.until)
    }
}

/// Returns the time at which a day begins.
fn midnight(date: Date) -> Result<Timestamp> {
    let at = date.to_zoned(TimeZone::UTC).ok().map(|zoned| zoned.timestamp().as_millisecond());
    let millis = at.and_then(|millis| u64::try_from(millis).ok());
    millis.map(Timestamp::from_millis).ok_or_else(|| out_of_range(date))
}

fn out_of_range(date: Date) -> Error {
    Error::invalid(format!("AWS has no bill of {date}")).or("name a day of the last 14 months")
}

/// Parses a day.
fn date(text: &str) -> Result<Date, String> {
    let is_day = text.len() == 10 && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-');
    let parsed = is_day.then(|| text.parse().ok()).flatten();
    parsed.ok_or_else(|| format!("`{text}` is not a day; write one such as `2026-11-01`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn period(since: Option<&str>, until: Option<&str>, today: &str) -> Result<Period> {
        let day = |text: &str| date(text).unwrap();
        Days { since: since.map(day), until: until.map(day) }.period_on(day(today))
    }

    #[test]
    fn by_default_the_month_of_yesterday_counts() {
        let days = |today: &str| {
            let period = period(None, None, today).unwrap();
            (period.text(), period.days())
        };

        assert_eq!(days("2026-11-30"), ("2026-11-01 to 2026-11-29".to_owned(), 29));
        assert_eq!(days("2026-11-02"), ("2026-11-01 to 2026-11-01".to_owned(), 1));
        assert_eq!(days("2026-12-01"), ("2026-11-01 to 2026-11-30".to_owned(), 30));
        assert_eq!(days("2026-01-01"), ("2025-12-01 to 2025-12-31".to_owned(), 31));
    }

    #[test]
    fn the_last_day_counts_and_aws_gets_the_day_after_it() {
        let period = period(Some("2026-02-27"), Some("2026-03-01"), "2026-03-01").unwrap();

        assert_eq!((period.end.to_string(), period.days()), ("2026-03-02".to_owned(), 3));
        let at = |text: &str| {
            let at: jiff::Timestamp = text.parse().unwrap();
            period.contains(Timestamp::from_millis(u64::try_from(at.as_millisecond()).unwrap()))
        };
        assert!(at("2026-02-27T00:00:00Z") && at("2026-03-01T23:59:59Z"));
        assert!(!at("2026-02-26T23:59:59Z") && !at("2026-03-02T00:00:00Z"));
    }

    #[test]
    fn days_that_cannot_be_billed_are_refused() {
        let error = |since, until| {
            let error = period(since, until, "2026-11-30").unwrap_err();
            assert_eq!(error.kind().exit_code(), 2);
            error.to_string()
        };

        insta::assert_snapshot!(error(None, Some("2026-12-01")), @"`--until` is 2026-12-01, and today is 2026-11-30 (UTC): it has no bill yet; name a day that has begun, or leave `--until` out");
        insta::assert_snapshot!(error(Some("2026-11-30"), None), @"`--since` is 2026-11-30, which is after the last day, 2026-11-29; name an earlier day, or a later one as `--until`");
        insta::assert_snapshot!(error(Some("1969-12-31"), None), @"AWS has no bill of 1969-12-31; name a day of the last 14 months");
    }

    #[test]
    fn what_is_not_a_day_is_refused_by_its_name() {
        for wrong in
            ["", "2026-13-01", "2026-02-30", "2026-11", "20261101", "yesterday", "2026-11-01T00:00", "+26-11-01x"]
        {
            assert_eq!(date(wrong).unwrap_err(), format!("`{wrong}` is not a day; write one such as `2026-11-01`"));
        }
    }
}
