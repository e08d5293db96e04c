//! The one stylesheet. Its path has the digest of its text, so that a browser may keep it for ever.

use freehold_protocol::Digest;

/// The text of the stylesheet.
pub const STYLE: &str = include_str!("style.css");
/// The content type of the stylesheet.
pub const STYLE_TYPE: &str = "text/css; charset=utf-8";

/// Returns the path of the stylesheet, such as `/assets/style-0123456789abcdef.css`.
pub fn style_path() -> String {
    let digest = Digest::of(STYLE.as_bytes());
    format!("/assets/style-{}.css", digest.hex().get(..16).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stylesheet_is_small_and_loads_nothing() {
        assert!(STYLE.len() < 8_000, "the stylesheet has {} bytes", STYLE.len());
        for word in ["url(", "@import", "http", "expression"] {
            assert!(!STYLE.contains(word), "the stylesheet has `{word}`");
        }
    }

    #[test]
    fn the_stylesheet_has_both_schemes_a_visible_focus_and_a_form_for_print() {
        for part in ["color-scheme: light dark", "prefers-color-scheme: dark", ":focus-visible", "@media print"] {
            assert!(STYLE.contains(part), "the stylesheet lacks `{part}`");
        }
        assert!(style_path().starts_with("/assets/style-") && style_path().len() == 34, "{}", style_path());
    }
}
