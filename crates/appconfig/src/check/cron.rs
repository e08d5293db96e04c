//! Checks cron expressions of five fields: minute, hour, day of the month, month, day of the week.

const MONTHS: [&str; 12] = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const DAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

/// What one field may hold.
struct Field {
    name: &'static str,
    least: u32,
    most: u32,
    /// Words for the numbers from `least` on.
    words: &'static [&'static str],
}

const FIELDS: [Field; 5] = [
    Field { name: "minute", least: 0, most: 59, words: &[] },
    Field { name: "hour", least: 0, most: 23, words: &[] },
    Field { name: "day of the month", least: 1, most: 31, words: &[] },
    Field { name: "month", least: 1, most: 12, words: &MONTHS },
    // 7 is Sunday too.
    Field { name: "day of the week", least: 0, most: 7, words: &DAYS },
];

/// Where and why an expression is not valid.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct NotCron {
    pub(crate) offset: usize,
    pub(crate) length: usize,
    pub(crate) message: String,
}

/// Checks an expression such as `*/5 8-18 * * mon-fri`.
pub(crate) fn check(text: &str) -> Result<(), NotCron> {
    let fields: Vec<&str> = text.split_whitespace().collect();
    if fields.len() != FIELDS.len() {
        let s = if fields.len() == 1 { "" } else { "s" };
        let message = format!("the schedule has {} field{s} instead of 5", fields.len());
        return Err(NotCron { offset: 0, length: text.len(), message });
    }
    for (field, word) in FIELDS.iter().zip(fields) {
        if let Err(why) = field.check(word) {
            let offset = word.as_ptr() as usize - text.as_ptr() as usize;
            let message = format!("the {} `{word}` {why}", field.name);
            return Err(NotCron { offset, length: word.len(), message });
        }
    }
    Ok(())
}

impl Field {
    fn check(&self, word: &str) -> Result<(), String> {
        word.split(',').try_for_each(|part| self.part(part))
    }

    /// Checks `*`, `5`, `5-9`, and each with `/3`.
    fn part(&self, part: &str) -> Result<(), String> {
        let (range, step) = part.split_once('/').map_or((part, None), |(range, step)| (range, Some(step)));
        if let Some(step) = step
            && !step.parse::<u32>().is_ok_and(|step| (1..=self.most).contains(&step))
        {
            return Err(format!("has a step that is not 1 to {}", self.most));
        }
        if range == "*" {
            return Ok(());
        }
        match range.split_once('-') {
            None => self.number(range).map(drop),
            Some((from, to)) => {
                if self.number(from)? <= self.number(to)? {
                    Ok(())
                } else {
                    Err("ends before it begins".to_owned())
                }
            }
        }
    }

    fn number(&self, word: &str) -> Result<u32, String> {
        let lower = word.to_ascii_lowercase();
        if let Some(at) = self.words.iter().position(|known| *known == lower) {
            return Ok(self.least + u32::try_from(at).unwrap_or_default());
        }
        let digits = !word.is_empty() && word.len() <= 4 && word.bytes().all(|b| b.is_ascii_digit());
        match word.parse() {
            Ok(number) if digits && (self.least..=self.most).contains(&number) => Ok(number),
            _ => Err(format!("is not {} to {}", self.least, self.most)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        assert_eq!(mistake("60 * * * *"), (0, "the minute `60` is not 0 to 59".to_owned()));
        assert_eq!(mistake("0 9-8 * * *"), (2, "the hour `9-8` ends before it begins".to_owned()));
        assert_eq!(mistake("0 * * * funday"), (8, "the day of the week `funday` is not 0 to 7".to_owned()));
        assert_eq!(mistake("*/0 * * * *"), (0, "the minute `*/0` has a step that is not 1 to 59".to_owned()));
        assert_eq!(mistake("0 0 +1 * *").0, 4);
    }
}
