//! The smallest parts of a text in Rego.

/// Returns the length of the text in quotes, the comment or the character at the start of `text`.
pub(crate) fn token(text: &str) -> usize {
    match text.chars().next() {
        Some('#') => text.find('\n').unwrap_or(text.len()),
        Some('`') => text.get(1..).and_then(|body| body.find('`')).map_or(text.len(), |end| end + 2),
        Some('"') => quoted(text),
        Some(c) => c.len_utf8(),
        None => 0,
    }
}

/// Returns the length of the quoted text at the start of `text`, with its quotation marks.
fn quoted(text: &str) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            '"' | '\n' if !escaped => return at + 1,
            '\\' => escaped = !escaped,
            _ => escaped = false,
        }
    }
    text.len()
}
