//! Replaces the characters of a text that control a terminal. Reasons, logs, outputs and hosts come from runners, and
//! names from configs.

use std::borrow::Cow;

/// The character that replaces a character that is not printed.
const SHOWN: char = '?';
/// The maximum length of a colour code that is printed, in characters between `ESC [` and `m`.
const CODE_CHARS: usize = 16;

/// Returns a text for a terminal. Line breaks, tabs and the codes for colour and font weight stay; a carriage return
/// becomes a line break, so that no line overwrites another one.
pub(super) fn printable(text: &str) -> Cow<'_, str> {
    if !text.contains(|c: char| is_control(c) && !matches!(c, '\n' | '\t')) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let (mut rest, mut is_open) = (text, false);
    while let Some(c) = rest.chars().next() {
        let after = rest.get(c.len_utf8()..).unwrap_or_default();
        let kept = colour_code(rest);
        match c {
            '\u{1b}' if !kept.is_empty() => {
                is_open = !matches!(kept.trim_end_matches('m').rsplit(['[', ';']).next(), Some("" | "0" | "00"));
                out.push_str(kept);
            }
            '\r' if after.starts_with('\n') => {}
            '\r' => out.push('\n'),
            '\n' | '\t' => out.push(c),
            c if is_control(c) => out.push(SHOWN),
            c => out.push(c),
        }
        rest = rest.get(kept.len().max(c.len_utf8())..).unwrap_or_default();
    }
    // A colour that a text does not reset would also colour, or hide, the output after the text.
    if is_open {
        out.push_str("\u{1b}[0m");
    }
    Cow::Owned(out)
}

/// Returns JSON in which the characters that control a terminal are escaped. Such a character can only be in a string.
pub(super) fn printable_json(json: &str) -> Cow<'_, str> {
    let is_raw = |c: char| is_control(c) && c != '\n';
    if !json.contains(is_raw) {
        return Cow::Borrowed(json);
    }
    json.chars().map(|c| if is_raw(c) { format!("\\u{:04x}", u32::from(c)) } else { c.to_string() }).collect()
}

/// Returns whether a character moves the cursor, starts a sequence, or changes the direction of the text after it.
pub(super) fn is_control(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{061c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Returns the code at the beginning of a text that sets the colour or the font weight (ECMA-48, "SGR"), or an empty
/// text if there is no such code. Codes that hide characters or set the background colour are left out.
fn colour_code(text: &str) -> &str {
    let Some(codes) = text.strip_prefix("\u{1b}[") else { return "" };
    let Some(end) = codes.find('m').filter(|end| *end <= CODE_CHARS) else { return "" };
    let is_plain = |code: &str| {
        let number = if code.is_empty() { Some(0) } else { code.parse::<u8>().ok() };
        number.is_some_and(|number| matches!(number, 0..=4 | 22..=24 | 31..=37 | 39 | 90..=97))
    };
    let codes = codes.get(..end).unwrap_or_default();
    if codes.split(';').all(is_plain) { text.get(..end + 3).unwrap_or_default() } else { "" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_controls_a_terminal_is_shown_and_not_done() {
        for (text, expected) in [
            ("plain\ttext\n", "plain\ttext\n"),
            ("\u{1b}[31mfailed\u{1b}[0m", "\u{1b}[31mfailed\u{1b}[0m"),
            ("\u{1b}[1;94m--> \u{1b}[m", "\u{1b}[1;94m--> \u{1b}[m"),
            ("title \u{1b}]0;x\u{7}", "title ?]0;x?"),
            ("clear \u{1b}[2J\u{1b}[H", "clear ?[2J?[H"),
            ("hidden \u{1b}[8mx", "hidden ?[8mx"),
            ("open \u{1b}[31mx", "open \u{1b}[31mx\u{1b}[0m"),
            ("black \u{1b}[30mx", "black ?[30mx"),
            ("on black \u{1b}[30;40mx", "on black ?[30;40mx"),
            ("copy \u{1b}]52;c;Y3VybA==\u{7}", "copy ?]52;c;Y3VybA==?"),
            ("c1 \u{9b}2J", "c1 ?2J"),
            ("cut \u{1b}", "cut ?"),
            ("cut \u{1b}[3", "cut ?[3"),
            ("one\r\ntwo\rthree", "one\ntwo\nthree"),
            ("back\u{8}\u{8}\u{7f}", "back???"),
            ("turned \u{202e}txt", "turned ?txt"),
        ] {
            assert_eq!(printable(text), expected, "{text:?}");
        }
    }

    #[test]
    fn json_says_the_same_in_characters_that_do_nothing() {
        let value = serde_json::json!({ "reason": "\u{9b}2J \u{202e} \u{1b} \n é" });

        let text = serde_json::to_string_pretty(&value).unwrap();
        let json = printable_json(&text);

        assert!(!json.contains(|c| is_control(c) && c != '\n'), "{json}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&json).unwrap(), value);
    }

    #[test]
    fn no_text_of_a_few_characters_leaves_anything_but_colours() {
        let pieces = ["\u{1b}", "[", "3", "8", "m", ";", "\r", "\u{9b}", "a"];
        let mut texts = vec![String::new()];
        for _ in 0..5 {
            texts = texts.iter().flat_map(|text| pieces.iter().map(move |piece| format!("{text}{piece}"))).collect();
        }

        for text in texts {
            let output = printable(&text);
            let starts = output.match_indices('\u{1b}').map(|(at, _)| output.get(at..).unwrap());
            assert!(starts.map(colour_code).all(|code| !code.is_empty()), "{text:?}");
            assert!(!output.contains(|c| is_control(c) && !matches!(c, '\n' | '\u{1b}')), "{text:?}");
            assert_eq!(printable(&output), output, "twice is once");
        }
    }
}
