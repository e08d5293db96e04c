//! The colours of states.

/// Returns the name of a state in its colour.
pub(super) fn coloured(word: &str) -> String {
    let code = match word {
        "succeeded" | "ready" | "connected" | "built" | "deployed" | "ok" | "pass" | "in_sync" | "healthy" => 32,
        "failed" | "fail" | "broken" | "disabled" | "lost" | "interrupted" | "refused" | "blocked" | "timed_out"
        | "cut_off" | "unhealthy" => 31,
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
        | "silent" => 33,
        "skipped" | "waiting" | "cancelled" | "idle" | "acknowledged" | "unchecked" => 90,
        word if word.ends_with("FAILED") || word.contains("ROLLBACK") => 31,
        word if word.ends_with("_COMPLETE") => 32,
        _ => return word.to_owned(),
    };
    format!("\u{1b}[{code}m{word}\u{1b}[0m")
}
