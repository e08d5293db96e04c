//! Texts of the vendor's in the install stack: on one line, in quotes that nothing in them can end.

/// The longest descriptions and titles that are shown, in characters.
pub(crate) const DESCRIPTION_CHARS: usize = 500;
pub(crate) const TITLE_CHARS: usize = 120;

/// Returns a text for people on one line, without what cannot be printed, and not longer than `most` characters.
pub(crate) fn shown(text: &str, most: usize) -> String {
    let printable: String = text.chars().map(|c| if is_printable(c) { c } else { ' ' }).collect();
    // What looks like a substitution is none here, but linters take it for one.
    let line = printable.split_whitespace().collect::<Vec<_>>().join(" ").replace("${", "$ {");
    if line.chars().count() <= most {
        return line;
    }
    let kept: String = line.chars().take(most.saturating_sub(1)).collect();
    format!("{}…", kept.trim_end())
}

/// Returns `text` as a double-quoted scalar (YAML 1.1, section 5.6 and 9.2.1), which nothing in it can end.
pub(crate) fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            c if is_printable(c) => quoted.push(c),
            c => quoted.push_str(&format!("\\U{:08X}", u32::from(c))),
        }
    }
    quoted.push('"');
    quoted
}

/// Returns whether a character may stand in a YAML document as it is, and breaks no line.
fn is_printable(c: char) -> bool {
    !c.is_control() && !matches!(c, '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}')
}
