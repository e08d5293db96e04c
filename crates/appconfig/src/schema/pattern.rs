//! Builds the regular expression by which a JSON Schema checks a duration.

/// Returns a pattern for durations such as `1h30m`. No single part may be longer than `most` seconds, and not all parts
/// may be zero. A pattern cannot compute a sum, so only the reader of a config refuses a duration whose parts are too
/// long together.
pub(super) fn duration(most: u32) -> String {
    let parts = [(3600, 'h'), (60, 'm'), (1, 's')].map(|(secs, unit)| format!("{}{unit}", up_to(most / secs)));
    format!("^(?=.*[1-9])({})+$", parts.join("|"))
}

/// Returns a pattern for the whole numbers up to `most`. Leading zeros are allowed.
fn up_to(most: u32) -> String {
    let digits: Vec<u32> = most.to_string().chars().filter_map(|c| c.to_digit(10)).collect();
    let mut choices: Vec<String> = Vec::new();
    if digits.len() > 1 {
        choices.push(format!("[0-9]{{1,{}}}", digits.len() - 1));
    }
    let mut same = String::new();
    for (at, digit) in digits.iter().enumerate() {
        let last = at + 1 == digits.len();
        let below = if last { Some(*digit) } else { digit.checked_sub(1) };
        if let Some(below) = below {
            choices.push(format!("{same}[0-{below}]{}", "[0-9]".repeat(digits.len() - at - 1)));
        }
        same.push_str(&digit.to_string());
    }
    format!("0*({})", choices.join("|"))
}
