//! Checks JSON documents that contain templates.

/// A syntax error: its offset in bytes, and the reason.
#[derive(Debug)]
pub(crate) struct NotJson {
    pub(crate) offset: usize,
    pub(crate) message: String,
}

/// Checks that `text` is JSON after each template action (`{{ ... }}`) is replaced by a value.
///
/// A text with blocks (`if`, `range`, `with`) is accepted, because only rendering shows whether it is JSON.
pub(crate) fn check(text: &str) -> Result<(), NotJson> {
    let plain = without_actions(text);
    match serde_json::from_str::<serde::de::IgnoredAny>(&plain) {
        Ok(_) => Ok(()),
        Err(_) if has_blocks(text) => Ok(()),
        Err(error) => {
            let before: usize = plain.split_inclusive('\n').take(error.line().saturating_sub(1)).map(str::len).sum();
            let text_of_error = error.to_string();
            let message = text_of_error.split(" at line ").next().unwrap_or_default().to_owned();
            Err(NotJson { offset: (before + error.column().saturating_sub(1)).min(plain.len()), message })
        }
    }
}

/// Replaces each template action with digits of the same length. Digits are valid JSON inside and outside of strings,
/// and offsets stay the same.
pub(crate) fn without_actions(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, action)) = rest.split_once("{{") {
        out.push_str(before);
        let end = action.find("}}").map_or(action.len(), |at| at + 2);
        out.extend(std::iter::repeat_n('1', end + 2));
        rest = action.get(end..).unwrap_or_default();
    }
    out.push_str(rest);
    out
}

fn has_blocks(text: &str) -> bool {
    text.split("{{").skip(1).any(|action| {
        let word = action.trim_start_matches('-').trim_start();
        ["if ", "range ", "with "].iter().any(|block| word.starts_with(block))
    })
}
