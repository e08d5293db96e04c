//! The decision whether a change may start now, and if not, when it may start.

use std::fmt;

use freehold_protocol::Timestamp;

use crate::calendar::HORIZON_DAYS;
use crate::freezes::Freeze;

/// Whether changes may start at a time.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub enum Decision {
    /// Changes may start until this time; `None` if no end was found.
    Open {
        until: Option<Timestamp>,
    },
    Closed(Closed),
}

/// The reason why no change may start, and the time from which a change may start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Closed {
    /// The time of the next opening; `None` if none was found.
    pub until: Option<Timestamp>,
    pub why: Why,
    /// The time `until` in the local time of the time zone, with the name of the zone; empty if `until` is `None`.
    pub(crate) wall: String,
}

/// The reason why no change may start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Why {
    /// The customer holds all changes.
    Held,
    /// Today is a day of a freeze.
    Frozen(Freeze),
    /// No window is open.
    OutsideWindows,
}

impl Closed {
    /// Returns the reason as a sentence for people, with the way out.
    pub fn sentence(&self) -> String {
        let why = match &self.why {
            Why::Held => {
                return "the customer holds all changes; they continue when the customer has lifted the hold \
                        (`freehold customer lift-hold`)"
                    .to_owned();
            }
            Why::Frozen(freeze) => format!("the customer's freeze `{freeze}` permits no change"),
            Why::OutsideWindows => "the customer's change windows are closed".to_owned(),
        };
        if self.until.is_some() {
            return format!("{why} until {}", self.wall);
        }
        format!(
            "{why}, and no window opens within {HORIZON_DAYS} days; the customer has to change `ChangeWindows` or \
             `ChangeFreezes` of the install stack"
        )
    }
}

impl fmt::Display for Closed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.sentence())
    }
}

/// The time from which changes may start, and the time until which they may start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Opening {
    pub from: Timestamp,
    /// The end; `None` if none was found.
    pub until: Option<Timestamp>,
}

/// The next openings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Openings {
    /// The openings in their order. The first one may have begun.
    pub all: Vec<Opening>,
    /// The time until which there are no other openings.
    pub known_until: Timestamp,
}
