//! Writes texts in colours.

use console::Style;

/// Returns `text` in a style, or unchanged if it may not have colours.
pub(crate) fn styled(text: &str, style: Style, colours: bool) -> String {
    style.force_styling(colours).apply_to(text).to_string()
}
