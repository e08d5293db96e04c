//! Finds the times at which windows and freezes begin and end in a time zone, also when its clocks are changed.
//!
//! A time is in a window if the local time is in the window's hours. So hours that the local time skips are in no
//! window, and hours that it repeats are in the window both times. Nothing changes between two successive times of
//! [`Calendar::bounds`].

use freehold_protocol::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::{AmbiguousOffset, TimeZone};
use jiff::{SignedDuration, Timestamp as Utc, ToSpan as _};

use crate::freezes::Freeze;
use crate::hours::Windows;

/// The number of days within which the next opening is searched.
pub(crate) const HORIZON_DAYS: i64 = 400;
/// The number of days that one step of a search covers. Most searches end in their first step.
const SEARCH_DAYS: i64 = 9;

/// Windows and freezes in their time zone.
#[derive(Debug, Clone)]
pub(crate) struct Calendar {
    pub(crate) windows: Windows,
    pub(crate) freezes: Vec<Freeze>,
}

impl Calendar {
    pub(crate) fn wall(&self, at: Utc) -> DateTime {
        self.windows.zone.to_datetime(at)
    }

    pub(crate) fn freeze(&self, at: Utc) -> Option<Freeze> {
        let date = self.wall(at).date();
        self.freezes.iter().find(|freeze| freeze.contains(date)).copied()
    }

    pub(crate) fn is_open(&self, at: Utc) -> bool {
        self.freeze(at).is_none() && self.windows.contain(self.wall(at))
    }

    /// Returns the first time after `at` from which changes may start, or may not; `None` if there is none before
    /// `horizon`.
    pub(crate) fn next(&self, at: Utc, open: bool, horizon: Utc) -> Option<Utc> {
        let mut from = at;
        while from < horizon {
            let until = later(from, SEARCH_DAYS).min(horizon);
            let found = self.bounds(from, until).into_iter().find(|bound| self.is_open(*bound) == open);
            if found.is_some() {
                return found;
            }
            from = until;
        }
        None
    }

    /// Returns the times after `from` and until `until` at which a window or a freeze may begin or end, in their order.
    fn bounds(&self, from: Utc, until: Utc) -> Vec<Utc> {
        let zone = &self.windows.zone;
        let mut bounds = Vec::new();
        // A window of the day before may end within this time, and the local time is up to a day ahead or behind.
        let mut date = self.wall(from).date().checked_sub(2.days()).ok();
        let last = self.wall(until).date();
        while let Some(day) = date.filter(|day| *day <= last) {
            bounds.extend(self.windows.bounds(day).flat_map(|wall| instants(zone, wall)));
            date = day.tomorrow().ok();
        }
        bounds.extend(self.freezes.iter().flat_map(Freeze::bounds).flat_map(|wall| instants(zone, wall)));
        bounds.extend(zone.following(from).map(|change| change.timestamp()).take_while(|at| *at <= until));
        bounds.retain(|bound| (from < *bound) && (*bound <= until));
        bounds.sort_unstable();
        bounds.dedup();
        bounds
    }
}

/// Returns the times at which the local time of the zone is `wall`: none, one or two.
fn instants(zone: &TimeZone, wall: DateTime) -> impl Iterator<Item = Utc> + use<> {
    let offsets = match zone.to_ambiguous_timestamp(wall).offset() {
        AmbiguousOffset::Unambiguous { offset } => [Some(offset), None],
        // The clock jumps over this time. The jump itself is also a bound.
        AmbiguousOffset::Gap { .. } => [None, None],
        AmbiguousOffset::Fold { before, after } => [Some(before), Some(after)],
    };
    offsets.into_iter().flatten().filter_map(move |offset| offset.to_timestamp(wall).ok())
}

/// Returns the time `days` of 24 hours after `at`.
pub(crate) fn later(at: Utc, days: i64) -> Utc {
    at.checked_add(SignedDuration::from_hours(days * 24)).unwrap_or(Utc::MAX)
}

/// Converts a [`Timestamp`] to a time of `jiff`'s calendar. A time after the year 9999 becomes the last time of that
/// year.
pub(crate) fn instant(at: Timestamp) -> Utc {
    i64::try_from(at.as_millis()).ok().and_then(|millis| Utc::from_millisecond(millis).ok()).unwrap_or(Utc::MAX)
}

/// Converts a time of `jiff`'s calendar to a [`Timestamp`].
pub(crate) fn timestamp(at: Utc) -> Timestamp {
    Timestamp::from_millis(u64::try_from(at.as_millisecond()).unwrap_or_default())
}
