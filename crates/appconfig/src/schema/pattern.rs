//! Regular expressions of texts with a form of their own.

/// Returns a pattern of lengths of time, such as `1h30m`: no part alone is longer than `most` seconds, and not all parts
/// are zero. A pattern cannot add: the code that reads a config refuses parts that are too long only together.
pub(super) fn duration(most: u32) -> String {
    let parts = [(3600, 'h'), (60, 'm'), (1, 's')].map(|(secs, unit)| format!("{}{unit}", up_to(most / secs)));
    format!("^(?=.*[1-9])({})+$", parts.join("|"))
}

/// Returns a pattern of the whole numbers up to `most`, with zeros before them or not.
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
