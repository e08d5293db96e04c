//! Freezes: whole days on which no change may start.

use std::fmt;

use jiff::civil::{Date, DateTime, Time};

use crate::text::{Piece, RulesError};

/// The largest number of freezes in one parameter.
const MAX_FREEZES: usize = 100;

/// Whole days on which no change may start, the first and the last one included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Freeze {
    first: Date,
    last: Date,
}

impl fmt::Display for Freeze {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.first == self.last { write!(f, "{}", self.first) } else { write!(f, "{}..{}", self.first, self.last) }
    }
}

impl Freeze {
    pub(crate) fn contains(&self, date: Date) -> bool {
        (self.first..=self.last).contains(&date)
    }

    /// Returns the local times at which the freeze begins and ends. A freeze that lasts for ever has no end.
    pub(crate) fn bounds(&self) -> impl Iterator<Item = DateTime> {
        let midnight = |date: Date| date.to_datetime(Time::midnight());
        [Some(midnight(self.first)), self.last.tomorrow().ok().map(midnight)].into_iter().flatten()
    }
}

/// Reads days and ranges of days, such as `2026-12-20..2027-01-02, 2027-05-01`.
pub(crate) fn parse(text: Piece<'_>) -> Result<Vec<Freeze>, RulesError> {
    if text.trimmed().text().is_empty() {
        return Ok(Vec::new());
    }
    let mut all = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once("..").unwrap_or((part, part));
        let freeze = Freeze { first: date(first)?, last: date(last)? };
        if freeze.last < freeze.first {
            return Err(part.wrong(format!("the freeze {} ends before it begins; exchange its days", part.quoted())));
        }
        all.push(freeze);
        if all.len() > MAX_FREEZES {
            return Err(part.wrong(format!("there are more than {MAX_FREEZES} freezes; remove those that are over")));
        }
    }
    Ok(all)
}

fn date(text: Piece<'_>) -> Result<Date, RulesError> {
    let wrong = || {
        let what =
            format!("{} is not a day; write it as `2026-12-24`, or a range as `2026-12-20..2027-01-02`", text.quoted());
        text.wrong(what)
    };
    let looks_right = text.text().len() == 10 && text.text().bytes().all(|byte| byte.is_ascii_digit() || byte == b'-');
    text.text().parse().ok().filter(|_| looks_right).ok_or_else(wrong)
}
