//! The colours of states.

use console::Style;

use super::style::styled;

/// Returns the name of a state in its colour.
pub(super) fn coloured(word: &str) -> String {
    let style = match word {
        "succeeded" | "ready" | "connected" | "built" | "deployed" | "ok" | "pass" | "in_sync" | "healthy" => {
            Style::new().green()
        }
        "failed" | "fail" | "broken" | "disabled" | "lost" | "interrupted" | "refused" | "blocked" | "timed_out"
        | "cut_off" | "unhealthy" => Style::new().red(),
        "running"
        | "active"
        | "building"
        | "provisioning"
        | "deploying"
        | "tearing down"
        | "pending"
        | "queued"
        | "dispatched"
        | "warn"
        | "waiting_for_runner"
        | "waiting_for_window"
        | "waiting_for_approval"
        | "waiting_for_checks"
        | "drifted"
        | "unknown"
        | "paused"
        | "silent" => Style::new().yellow(),
        // Not bright black, which `console` writes as one of 256 colours: the output does not pass on such a code.
        "skipped" | "waiting" | "cancelled" | "idle" | "acknowledged" | "unchecked" => Style::new().dim(),
        word if word.ends_with("FAILED") || word.contains("ROLLBACK") => Style::new().red(),
        word if word.ends_with("_COMPLETE") => Style::new().green(),
        _ => return word.to_owned(),
    };
    styled(word, style, true)
}
