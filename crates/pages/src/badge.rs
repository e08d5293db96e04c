//! Badges of states. The text says the state and the colour repeats it, so that nobody has to see colours.

use maud::{Markup, html};

/// The kind of a message or of a state. It chooses the colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tone {
    Neutral,
    Good,
    Busy,
    Warning,
    Bad,
}

impl Tone {
    /// Returns the class in the stylesheet.
    pub const fn class(self) -> &'static str {
        match self {
            Self::Neutral => "neutral",
            Self::Good => "good",
            Self::Busy => "busy",
            Self::Warning => "warning",
            Self::Bad => "bad",
        }
    }
}

/// Returns the tone of a state of an install, a workflow, a job, a check or a part, as the API names it.
pub fn tone_of(state: &str) -> Tone {
    // `failed: ...` and `succeeded (2 skipped)` have the tone of their first word.
    match state.split([':', ' ', '(']).next().unwrap_or_default() {
        "ready" | "succeeded" | "healthy" | "in_sync" | "connected" | "online" | "passed" | "done" => Tone::Good,
        "running" | "active" | "provisioning" | "deploying" | "queued" | "tearing" | "forgetting" | "building" => {
            Tone::Busy
        }
        "waiting"
        | "waiting_for_runner"
        | "waiting_for_window"
        | "waiting_for_approval"
        | "waiting_for_checks"
        | "drifted"
        | "degraded"
        | "progressing"
        | "unknown"
        | "interrupted"
        | "blocked" => Tone::Warning,
        "failed" | "lost" | "refused" | "unhealthy" | "offline" | "disabled" | "revoked" | "silent" | "missing" => {
            Tone::Bad
        }
        _ => Tone::Neutral,
    }
}

/// Returns the badge of a state, with `_` as a space.
pub fn badge(state: &str) -> Markup {
    html! { span class={ "badge " (tone_of(state).class()) } { (state.replace('_', " ")) } }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_badge_says_its_state_in_words() {
        assert_eq!(
            badge("waiting_for_approval").into_string(),
            "<span class=\"badge warning\">waiting for approval</span>"
        );
        assert_eq!(badge("<i>").into_string(), "<span class=\"badge neutral\">&lt;i&gt;</span>");
    }

    #[test]
    fn the_first_word_of_a_state_decides_its_tone() {
        assert_eq!(tone_of("failed: no such image"), Tone::Bad);
        assert_eq!(tone_of("tearing down"), Tone::Busy);
        assert_eq!(tone_of(""), Tone::Neutral);
    }
}
