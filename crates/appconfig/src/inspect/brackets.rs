//! Finds a bracket in HCL that is never closed. The parser often reports such a bracket far from its place.

/// Returns the last bracket that is never closed, with its position in bytes. A heredoc without an end counts as the
/// bracket `<`. Returns `None` when brackets are balanced or badly nested.
pub(super) fn unclosed(text: &str) -> Option<(usize, char)> {
    let mut open: Vec<(usize, char)> = Vec::new();
    let mut at = 0;
    while let Some(c) = text.get(at..).and_then(|rest| rest.chars().next()) {
        let rest = text.get(at..).unwrap_or_default();
        // A heredoc without an end continues to the end of the text.
        if matches!(open.last(), Some((_, '<'))) {
            break;
        }
        let quoted = matches!(open.last(), Some((_, '"')));
        at += if quoted { in_string(rest, at, &mut open) } else { in_code(rest, at, c, &mut open)? };
    }
    open.pop()
}

/// Returns the bracket that closes `open`.
pub(super) const fn closing(open: char) -> char {
    match open {
        '{' => '}',
        '[' => ']',
        '(' => ')',
        same => same,
    }
}

/// Reads one character or escape sequence inside of a string. Returns its length in bytes.
fn in_string(rest: &str, at: usize, open: &mut Vec<(usize, char)>) -> usize {
    let escaped = ["$${", "%%{"].iter().any(|start| rest.starts_with(start));
    match rest.chars().next() {
        _ if escaped => 3,
        Some('\\') => 1 + rest.chars().nth(1).map_or(0, char::len_utf8),
        Some('"' | '\n') => {
            open.pop();
            1
        }
        Some('$' | '%') if rest.chars().nth(1) == Some('{') => {
            open.push((at + 1, '{'));
            2
        }
        Some(other) => other.len_utf8(),
        None => 1,
    }
}

/// Reads one token outside of strings. Returns its length in bytes, or `None` at a closing bracket that does not match
/// the last open one.
fn in_code(rest: &str, at: usize, c: char, open: &mut Vec<(usize, char)>) -> Option<usize> {
    let line = || rest.find('\n').unwrap_or(rest.len());
    if c == '#' || rest.starts_with("//") {
        return Some(line());
    }
    if rest.starts_with("/*") {
        return Some(rest.find("*/").map_or(rest.len(), |end| end + 2));
    }
    if let Some(after) = rest.strip_prefix("<<") {
        let length = heredoc(after);
        if length == Heredoc::Open {
            open.push((at, '<'));
        }
        return Some(2 + if let Heredoc::Closed(length) = length { length } else { 0 });
    }
    match c {
        '{' | '[' | '(' | '"' => open.push((at, c)),
        '}' | ']' | ')' if open.pop().is_none_or(|(_, before)| closing(before) != c) => return None,
        _ => {}
    }
    Some(c.len_utf8())
}

/// The text after `<<`.
#[derive(PartialEq, Eq)]
enum Heredoc {
    /// A heredoc, with its length in bytes up to the end of its last line.
    Closed(usize),
    /// A heredoc without an end.
    Open,
    /// Not a heredoc.
    None,
}

fn heredoc(after: &str) -> Heredoc {
    let Some((first, rest)) = after.split_once('\n') else { return Heredoc::None };
    let word = first.trim_start_matches('-').trim();
    if word.is_empty() || !word.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '-') {
        return Heredoc::None;
    }
    let mut length = first.len() + 1;
    for line in rest.split_inclusive('\n') {
        length += line.len();
        if line.trim() == word {
            return Heredoc::Closed(length);
        }
    }
    Heredoc::Open
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_comments_and_heredocs_hold_no_brackets() {
        for text in [
            "a = \"{[(\" # {\n// [\n/* ( */\n",
            "a = \"${f(\"}\")}\"\n",
            "a = \"$${ %%{ \\\"{ \"\n",
            "a = <<-EOT\n  { [ (\n  EOT\n",
            "a { b = [(1)] }\n",
            "é",
        ] {
            assert_eq!(unclosed(text), None, "{text}");
        }
    }

    #[test]
    fn the_last_bracket_that_is_open_is_found() {
        assert_eq!(unclosed("a {\n  b = [1,\n"), Some((10, '[')));
        assert_eq!(unclosed("a {\n  b = 1\n"), Some((2, '{')));
        assert_eq!(unclosed("a = \"${b\"\n"), Some((6, '{')));
        assert_eq!(unclosed("a = [}\n"), None);
        assert_eq!(unclosed("<<"), None);
        assert_eq!(unclosed("a = <<EOT\n  { \n"), Some((4, '<')));
    }
}
