//! Cron expressions of five fields: minute, hour, day of the month, month, day of the week; in UTC.

/// Names of months and days, which stand for numbers.
const MONTHS: [&str; 12] = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const DAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

/// Words that stand for a whole expression.
const WORDS: [&str; 7] = ["@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"];

struct Field {
    what: &'static str,
    least: u32,
    most: u32,
    names: &'static [&'static str],
}

const FIELDS: [Field; 5] = [
    Field { what: "minute", least: 0, most: 59, names: &[] },
    Field { what: "hour", least: 0, most: 23, names: &[] },
    Field { what: "day of the month", least: 1, most: 31, names: &[] },
    Field { what: "month", least: 1, most: 12, names: &MONTHS },
    Field { what: "day of the week", least: 0, most: 7, names: &DAYS },
];

/// Says why `text` is no cron expression.
pub(crate) fn misfit(text: &str) -> Option<String> {
    let text = text.trim();
    if WORDS.contains(&text) {
        return None;
    }
    let parts: Vec<&str> = text.split_whitespace().collect();
    if parts.len() != FIELDS.len() {
        return Some(format!("it has {} fields instead of five", parts.len()));
    }
    FIELDS.iter().zip(parts).find_map(|(field, part)| {
        let fits = part.split(',').all(|item| field.takes(item));
        (!fits).then(|| format!("`{part}` is no {} ({} to {})", field.what, field.least, field.most))
    })
}

impl Field {
    fn takes(&self, item: &str) -> bool {
        let (range, step) = item.split_once('/').map_or((item, None), |(range, step)| (range, Some(step)));
        let step_fits = step.is_none_or(|step| step.parse::<u32>().is_ok_and(|step| (1..=self.most).contains(&step)));
        let range_fits = match range.split_once('-') {
            _ if range == "*" || range == "?" => true,
            Some((from, to)) => match (self.number(from), self.number(to)) {
                (Some(from), Some(to)) => from <= to,
                _ => false,
            },
            None => self.number(range).is_some(),
        };
        step_fits && range_fits
    }

    fn number(&self, word: &str) -> Option<u32> {
        if let Some(at) = self.names.iter().position(|name| name.eq_ignore_ascii_case(word)) {
            return u32::try_from(at).ok().map(|at| at + self.least);
        }
        let digits = !word.is_empty() && word.bytes().all(|b| b.is_ascii_digit());
        word.parse().ok().filter(|number| digits && (self.least..=self.most).contains(number))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usual_expressions_are_taken() {
        for text in ["*/5 * * * *", "0 */6 * * *", "0 0 1,15 * MON-FRI", "59 23 31 dec 7", "@daily", " 0  0 * * 0 "] {
            assert_eq!(misfit(text), None, "{text}");
        }
    }

    #[test]
    fn what_is_no_expression_is_explained() {
        let said = ["", "* * * *", "60 * * * *", "* 5-1 * * *", "*/0 * * * *", "* * 0 * *", "* * * foo *"].map(misfit);

        insta::assert_debug_snapshot!(said.map(Option::unwrap), @r#"
        [
            "it has 0 fields instead of five",
            "it has 4 fields instead of five",
            "`60` is no minute (0 to 59)",
            "`5-1` is no hour (0 to 23)",
            "`*/0` is no minute (0 to 59)",
            "`0` is no day of the month (1 to 31)",
            "`foo` is no month (1 to 12)",
        ]
        "#);
    }
}
