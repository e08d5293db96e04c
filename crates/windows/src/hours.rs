//! Change windows: weekdays with hours, in the local time of a time zone.

use jiff::civil::{Date, DateTime, Time, Weekday};
use jiff::tz::TimeZone;

use crate::text::{Piece, RulesError};

/// The names of weekdays in texts.
const DAYS: [(&str, Weekday); 7] = [
    ("Mon", Weekday::Monday),
    ("Tue", Weekday::Tuesday),
    ("Wed", Weekday::Wednesday),
    ("Thu", Weekday::Thursday),
    ("Fri", Weekday::Friday),
    ("Sat", Weekday::Saturday),
    ("Sun", Weekday::Sunday),
];
const DAY: i16 = 24 * 60;
/// The largest number of windows in one parameter.
const MAX_WINDOWS: usize = 50;

/// The time zone, and the windows in it. Without a window, changes may start at any time.
#[derive(Debug, Clone)]
pub(crate) struct Windows {
    pub(crate) zone: TimeZone,
    /// The name of the zone as the text has it.
    pub(crate) zone_name: String,
    pub(crate) all: Vec<Window>,
}

/// Some hours of some weekdays. Hours that end before they begin continue until the next day.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Window {
    /// The weekdays on which the window begins, by their number from Monday.
    days: [bool; 7],
    /// Minutes from midnight: from 0 to 1439.
    from: i16,
    /// Minutes from midnight: from 1 to 1440.
    to: i16,
}

impl Windows {
    /// Reads `ZONE`, or `ZONE: DAYS HOURS; DAYS HOURS`, such as `Europe/Berlin: Mon-Fri 22:00-04:00; Sat,Sun 00:00-24:00`.
    pub(crate) fn parse(text: Piece<'_>) -> Result<Self, RulesError> {
        let text = text.trimmed();
        if text.text().is_empty() {
            return Ok(Self { zone: TimeZone::UTC, zone_name: "UTC".to_owned(), all: Vec::new() });
        }
        let (zone, windows) = match text.split_once(": ") {
            Some((zone, windows)) => (zone, Some(windows)),
            None => (text, None),
        };
        let name = zone.text();
        let found = TimeZone::get(name).map_err(|_| {
            zone.wrong(format!(
                "{} is not a time zone; begin with a name of the IANA time zone database and a colon, such as \
                 `Europe/Berlin: Mon-Fri 22:00-04:00`",
                zone.quoted()
            ))
        })?;
        let mut all = Vec::new();
        for one in windows.into_iter().flat_map(|windows| windows.split(';')) {
            all.extend(window(one)?);
            if all.len() > MAX_WINDOWS {
                return Err(one.wrong(format!("there are more than {MAX_WINDOWS} windows; join some of them")));
            }
        }
        Ok(Self { zone: found, zone_name: name.to_owned(), all })
    }

    /// Returns whether a window contains this local time.
    pub(crate) fn contain(&self, wall: DateTime) -> bool {
        self.all.is_empty() || self.all.iter().any(|window| window.contains(wall))
    }

    /// Returns the local times at which windows that begin on `date` begin and end.
    pub(crate) fn bounds(&self, date: Date) -> impl Iterator<Item = DateTime> {
        let begun = self.all.iter().filter(move |window| window.begins_on(date));
        begun.flat_map(move |window| [at(date, window.from), window.end(date)]).flatten()
    }
}

impl Window {
    fn begins_on(&self, date: Date) -> bool {
        let day = usize::try_from(date.weekday().to_monday_zero_offset()).unwrap_or_default();
        self.days.get(day).is_some_and(|is_one| *is_one)
    }

    const fn is_over_midnight(&self) -> bool {
        self.to <= self.from
    }

    fn end(&self, date: Date) -> Option<DateTime> {
        if self.is_over_midnight() { at(date.tomorrow().ok()?, self.to) } else { at(date, self.to) }
    }

    fn contains(&self, wall: DateTime) -> bool {
        let minute = i16::from(wall.hour()) * 60 + i16::from(wall.minute());
        let today = self.begins_on(wall.date());
        if !self.is_over_midnight() {
            return today && (self.from..self.to).contains(&minute);
        }
        let since_yesterday = wall.date().yesterday().is_ok_and(|before| self.begins_on(before));
        (today && minute >= self.from) || (since_yesterday && minute < self.to)
    }
}

/// Returns the local time `minutes` after midnight.
fn at(date: Date, minutes: i16) -> Option<DateTime> {
    if minutes == DAY {
        return Some(date.tomorrow().ok()?.to_datetime(Time::midnight()));
    }
    let (hour, minute) = (i8::try_from(minutes / 60).ok()?, i8::try_from(minutes % 60).ok()?);
    Some(date.to_datetime(Time::new(hour, minute, 0, 0).ok()?))
}

/// Reads `DAYS HOURS` or `DAYS HOURS,HOURS`.
fn window(text: Piece<'_>) -> Result<Vec<Window>, RulesError> {
    let Some((days, hours)) = text.split_once(" ") else {
        return Err(text.wrong(format!(
            "{} is not a window; write weekdays, a space and hours, such as `Mon-Fri 22:00-04:00`",
            text.quoted()
        )));
    };
    let days = weekdays(days)?;
    hours.split(',').map(|hours| self::hours(hours).map(|(from, to)| Window { days, from, to })).collect()
}

fn weekdays(text: Piece<'_>) -> Result<[bool; 7], RulesError> {
    let mut days = [false; 7];
    if text.text().eq_ignore_ascii_case("daily") {
        return Ok([true; 7]);
    }
    for part in text.split(',') {
        let (first, last) = match part.split_once("-") {
            Some((first, last)) => (weekday(first)?, weekday(last)?),
            None => (weekday(part)?, weekday(part)?),
        };
        let mut day = first;
        loop {
            let index = usize::try_from(day.to_monday_zero_offset()).unwrap_or_default();
            if let Some(marked) = days.get_mut(index) {
                *marked = true;
            }
            if day == last {
                break;
            }
            day = day.next();
        }
    }
    Ok(days)
}

fn weekday(text: Piece<'_>) -> Result<Weekday, RulesError> {
    let found = DAYS.iter().find(|(name, _)| text.text().eq_ignore_ascii_case(name));
    found.map(|(_, day)| *day).ok_or_else(|| {
        text.wrong(format!(
            "{} is not a weekday; write Mon, Tue, Wed, Thu, Fri, Sat or Sun, a range such as Mon-Fri, or daily",
            text.quoted()
        ))
    })
}

fn hours(text: Piece<'_>) -> Result<(i16, i16), RulesError> {
    let Some((from, to)) = text.split_once("-") else {
        return Err(text.wrong(format!("{} is not a range of hours; write `22:00-04:00`", text.quoted())));
    };
    let (begin, end) = (minutes(from)?, minutes(to)?);
    if begin == end {
        return Err(
            text.wrong(format!("the window {} has no length; for a whole day write `00:00-24:00`", text.quoted()))
        );
    }
    if begin == DAY {
        return Err(from.wrong("a window cannot begin at 24:00; write 00:00 of the next weekday"));
    }
    // 00:00 as an end is the midnight at the end of the day.
    Ok((begin, if end == 0 { DAY } else { end }))
}

fn minutes(text: Piece<'_>) -> Result<i16, RulesError> {
    let wrong = || {
        let what = format!("{} is not a time of day; write hours and minutes from 00:00 to 24:00", text.quoted());
        text.wrong(what)
    };
    let number = |digits: &str| {
        let is_number = digits.len() == 2 && digits.bytes().all(|digit| digit.is_ascii_digit());
        digits.parse::<i16>().ok().filter(|_| is_number)
    };
    let (hour, minute) = text.text().split_once(':').ok_or_else(wrong)?;
    let (hour, minute) = (number(hour).ok_or_else(wrong)?, number(minute).ok_or_else(wrong)?);
    let all = hour * 60 + minute;
    if minute < 60 && all <= DAY { Ok(all) } else { Err(wrong()) }
}
