//! Schedules as cron expressions of five fields in UTC: minute, hour, day of the month, month, day of the week.

use freehold_protocol::Timestamp;
use freehold_protocol::time::civil;

use crate::plural::plural;

/// The length of a minute, in milliseconds.
const MINUTE: u64 = 60_000;
/// The length of a day, in minutes.
const DAY: u64 = 24 * 60;
/// How far ahead to search for the next due minute, in days. The rarest date, 29 February, is at most eight years away.
const HORIZON: u64 = 366 * 8 + 3;

const MONTHS: [&str; 12] = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const DAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

/// One of the five fields of an expression, and the numbers and names that it accepts.
struct Field {
    name: &'static str,
    least: u32,
    most: u32,
    /// The names of the numbers, beginning with `least`, such as `jan`; empty when the field accepts only numbers.
    words: &'static [&'static str],
}

const FIELDS: [Field; 5] = [
    Field { name: "minute", least: 0, most: 59, words: &[] },
    Field { name: "hour", least: 0, most: 23, words: &[] },
    Field { name: "day of the month", least: 1, most: 31, words: &[] },
    Field { name: "month", least: 1, most: 12, words: &MONTHS },
    // Both 0 and 7 mean Sunday.
    Field { name: "day of the week", least: 0, most: 7, words: &DAYS },
];

/// A mistake in an expression: the place of the wrong part, in bytes, and a message.
#[derive(Debug, PartialEq, Eq)]
pub struct NotCron {
    pub offset: usize,
    pub length: usize,
    pub message: String,
}

/// A parsed cron expression. Each field is a set of numbers, one bit for each number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schedule {
    minutes: u64,
    hours: u64,
    days: u64,
    months: u64,
    weekdays: u64,
    /// Whether both the day of the month and the day of the week are restricted. A day is then due when one of the two
    /// matches, as in cron.
    either_day: bool,
}

impl Schedule {
    /// Parses an expression such as `*/5 8-18 * * mon-fri`.
    ///
    /// # Errors
    /// [`NotCron`] for the first mistake.
    pub fn parse(text: &str) -> Result<Self, NotCron> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let [minutes, hours, days, months, weekdays] = words.as_slice() else {
            let message = format!("the schedule has {} instead of 5", plural(words.len() as u64, "field"));
            return Err(NotCron { offset: 0, length: text.len(), message });
        };
        let read = |field: &Field, word: &str| {
            field.set(word).map_err(|why| {
                let offset = word.as_ptr() as usize - text.as_ptr() as usize;
                NotCron { offset, length: word.len(), message: format!("the {} `{word}` {why}", field.name) }
            })
        };
        let [minute, hour, day, month, weekday] = &FIELDS;
        let found = Self {
            minutes: read(minute, minutes)?,
            hours: read(hour, hours)?,
            days: read(day, days)?,
            months: read(month, months)?,
            weekdays: read(weekday, weekdays)?,
            either_day: !days.starts_with('*') && !weekdays.starts_with('*'),
        };
        // Both 0 and 7 mean Sunday.
        let sunday = found.weekdays >> 7 & 1;
        Ok(Self { weekdays: found.weekdays | sunday, ..found })
    }

    /// Returns whether the schedule is due in the minute of `at`.
    pub fn is_due(&self, at: Timestamp) -> bool {
        let minute = at.as_millis() / MINUTE;
        self.has_day(minute / DAY) && has(self.hours, minute % DAY / 60) && has(self.minutes, minute % 60)
    }

    /// Returns whether at least an hour passes between any two due minutes: the schedule names only one minute of the
    /// hour.
    pub const fn is_at_most_hourly(&self) -> bool {
        self.minutes.count_ones() <= 1
    }

    /// Returns the first due minute after the minute of `after`; `None` when the date does not exist, such as 30
    /// February.
    pub fn next_after(&self, after: Timestamp) -> Option<Timestamp> {
        let first = after.as_millis() / MINUTE + 1;
        let days = first / DAY..=first / DAY + HORIZON;
        days.filter(|day| self.has_day(*day)).find_map(|day| {
            let minutes = first.max(day * DAY)..(day + 1) * DAY;
            let mut due = minutes.filter(|minute| has(self.hours, minute % DAY / 60) && has(self.minutes, minute % 60));
            due.next().map(|minute| Timestamp::from_millis(minute * MINUTE))
        })
    }

    /// Returns whether the schedule is due on the day that is `days` days after the epoch. The epoch was a Thursday.
    fn has_day(&self, days: u64) -> bool {
        let (_, month, day) = civil(days);
        let (of_month, of_week) = (has(self.days, day), has(self.weekdays, (days + 4) % 7));
        has(self.months, month) && if self.either_day { of_month || of_week } else { of_month && of_week }
    }
}

const fn has(set: u64, number: u64) -> bool {
    set >> number & 1 == 1
}

impl Field {
    /// Returns the numbers that the text of this field names, one bit for each number.
    fn set(&self, word: &str) -> Result<u64, String> {
        word.split(',').try_fold(0, |set, part| Ok(set | self.part(part)?))
    }

    /// Reads one part of the field: `*`, `5`, `5-9`, or one of these with a step such as `/3`. A single number with a
    /// step means the range from this number to the largest number of the field.
    fn part(&self, part: &str) -> Result<u64, String> {
        let (range, step) = part.split_once('/').map_or((part, None), |(range, step)| (range, Some(step)));
        let step = match step.map(str::parse::<u32>) {
            None => None,
            Some(Ok(step)) if (1..=self.most).contains(&step) => Some(step),
            Some(_) => return Err(format!("has a step that is not between 1 and {}", self.most)),
        };
        let (from, to) = match range.split_once('-') {
            _ if range == "*" => (self.least, self.most),
            None => {
                let number = self.number(range)?;
                (number, if step.is_some() { self.most } else { number })
            }
            Some((from, to)) => (self.number(from)?, self.number(to)?),
        };
        if from > to {
            return Err("ends before it begins".to_owned());
        }
        let numbers = (from..=to).step_by(usize::try_from(step.unwrap_or(1)).unwrap_or(1));
        Ok(numbers.fold(0, |set, number| set | 1 << number))
    }

    fn number(&self, word: &str) -> Result<u32, String> {
        let lower = word.to_ascii_lowercase();
        if let Some(at) = self.words.iter().position(|known| *known == lower) {
            return Ok(self.least + u32::try_from(at).unwrap_or_default());
        }
        let digits = !word.is_empty() && word.len() <= 4 && word.bytes().all(|b| b.is_ascii_digit());
        match word.parse() {
            Ok(number) if digits && (self.least..=self.most).contains(&number) => Ok(number),
            _ => Err(format!("is not a number from {} to {}", self.least, self.most)),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(text: &str) -> Result<(), NotCron> {
        Schedule::parse(text).map(drop)
    }

    /// Returns the next minutes after 2026-11-22T14:54Z, a Sunday, as month, day, hour and minute.
    fn next(text: &str, count: usize) -> Vec<(u64, u64, u64, u64)> {
        let schedule = Schedule::parse(text).unwrap();
        let mut at = Timestamp::from_millis(1_795_359_240_000);
        let mut found = Vec::new();
        for _ in 0..count {
            at = schedule.next_after(at).unwrap();
            let minute = at.as_millis() / MINUTE;
            let (_, month, day) = civil(minute / DAY);
            found.push((month, day, minute % DAY / 60, minute % 60));
        }
        found
    }

    #[test]
    fn expressions_of_five_fields_are_accepted() {
        for text in ["* * * * *", "*/5 * * * *", "0 */6 * * *", "0,30 8-18/2 1 jan-Mar mon-FRI", " 59 23 31 12 7 "] {
            assert_eq!(check(text), Ok(()), "{text}");
        }
    }

    #[test]
    fn what_is_wrong_is_named_with_its_place() {
        let mistake = |text: &str| check(text).map_err(|found| (found.offset, found.message)).unwrap_err();

        assert_eq!(mistake("* * * *"), (0, "the schedule has 4 fields instead of 5".to_owned()));
        assert_eq!(mistake("60 * * * *"), (0, "the minute `60` is not a number from 0 to 59".to_owned()));
        assert_eq!(mistake("0 9-8 * * *"), (2, "the hour `9-8` ends before it begins".to_owned()));
        assert_eq!(
            mistake("0 * * * funday"),
            (8, "the day of the week `funday` is not a number from 0 to 7".to_owned())
        );
        assert_eq!(mistake("*/0 * * * *"), (0, "the minute `*/0` has a step that is not between 1 and 59".to_owned()));
        assert_eq!(mistake("0 0 +1 * *").0, 4);
    }

    #[test]
    fn the_next_minutes_are_those_of_the_calendar() {
        assert_eq!(next("* * * * *", 2), [(11, 22, 14, 55), (11, 22, 14, 56)]);
        assert_eq!(next("54 14 * * *", 1), [(11, 23, 14, 54)]);
        assert_eq!(next("*/20 8-18/5 * * *", 4), [(11, 22, 18, 0), (11, 22, 18, 20), (11, 22, 18, 40), (11, 23, 8, 0)]);
        assert_eq!(next("0 0 1 * *", 2), [(12, 1, 0, 0), (1, 1, 0, 0)]);
        assert_eq!(next("30 6 * * mon", 1), [(11, 23, 6, 30)]);
        assert_eq!(next("0 0 * * 7", 1), [(11, 29, 0, 0)]);
        assert_eq!(next("0 12 29 2 *", 1), [(2, 29, 12, 0)]);
        assert_eq!(next("50/5 * * * *", 2), [(11, 22, 14, 55), (11, 22, 15, 50)]);
    }

    #[test]
    fn of_two_restricted_days_one_is_enough() {
        assert_eq!(next("0 0 25 * mon", 3), [(11, 23, 0, 0), (11, 25, 0, 0), (11, 30, 0, 0)]);
        assert_eq!(next("0 0 */2 * mon", 1), [(11, 23, 0, 0)]);
    }

    #[test]
    fn a_schedule_with_one_minute_is_at_most_hourly() {
        let hourly = |text: &str| Schedule::parse(text).unwrap().is_at_most_hourly();

        for text in ["0 * * * *", "7 3 * * mon", "59 */2 1 jan *", "50/10 * * * *", "5,5 * * * *"] {
            assert!(hourly(text), "{text}");
        }
        for text in ["* * * * *", "*/30 * * * *", "0,59 3 1 1 *", "1-2 * * * *"] {
            assert!(!hourly(text), "{text}");
        }
    }

    #[test]
    fn a_date_that_no_year_has_is_never_due() {
        assert_eq!(Schedule::parse("0 0 30 2 *").unwrap().next_after(Timestamp::default()), None);
    }

    proptest! {
        #[test]
        fn the_next_minute_is_due_and_none_before_it_is(
            minute in 0_u64..60, step in 1_u64..30, hour in 0_u64..24, start in 0_u64..4_000_000_000_000,
        ) {
            let schedule = Schedule::parse(&format!("{minute},*/{step} {hour} * * *")).unwrap();
            let start = Timestamp::from_millis(start);

            let next = schedule.next_after(start).unwrap();

            prop_assert!(schedule.is_due(next) && next > start && next.as_millis().is_multiple_of(MINUTE));
            let between = (start.as_millis() / MINUTE + 1)..(next.as_millis() / MINUTE);
            prop_assert!(between.into_iter().all(|minute| !schedule.is_due(Timestamp::from_millis(minute * MINUTE))));
        }
    }
}
