//! The text about required checks and their results.

use freehold_protocol::api::{CheckResult, CheckView};

/// Returns the checks of a component with their results, on one line.
pub(crate) fn results(checks: &[CheckView]) -> String {
    checks.iter().map(result).collect::<Vec<_>>().join("; ")
}

/// Returns a check with its result, such as `load failed: too slow (https://ci.example.com/7)`.
fn result(view: &CheckView) -> String {
    let word = view.result.map_or("missing", CheckResult::as_str);
    let reason = if view.reason.is_empty() { String::new() } else { format!(": {}", view.reason) };
    let url = if view.url.is_empty() { String::new() } else { format!(" ({})", view.url) };
    format!("{} {word}{reason}{url}", view.check)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_check_shows_its_result_its_reason_and_its_address() {
        let view = |more: serde_json::Value| -> CheckView {
            let mut all = json!({ "check": "load" });
            all.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            serde_json::from_value(all).unwrap()
        };
        let all = [
            view(json!({})),
            view(json!({ "result": "passed" })),
            view(json!({ "result": "failed", "reason": "too slow", "url": "https://ci.example.com/7" })),
        ];

        let text = results(&all);

        assert_eq!(text, "load missing; load passed; load failed: too slow (https://ci.example.com/7)");
    }
}
