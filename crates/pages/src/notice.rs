//! Messages, and what stands at the place of an empty list.

use maud::{Markup, Render, html};

use crate::badge::Tone;

/// Returns a message. Assistive technology announces a bad one at once.
pub fn notice(tone: Tone, message: impl Render) -> Markup {
    let role = if tone == Tone::Bad { "alert" } else { "status" };
    html! { div class={ "notice " (tone.class()) } role=(role) { (message) } }
}

/// Returns the text at the place of an empty list: what is absent, and how to get it.
pub fn empty(message: impl Render) -> Markup {
    html! { p .empty { (message) } }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bad_message_is_an_alert_and_its_text_is_escaped() {
        assert_eq!(notice(Tone::Bad, "<x>").into_string(), "<div class=\"notice bad\" role=\"alert\">&lt;x&gt;</div>");
        assert!(notice(Tone::Good, "done").into_string().contains("role=\"status\""));
        assert_eq!(empty("none").into_string(), "<p class=\"empty\">none</p>");
    }
}
