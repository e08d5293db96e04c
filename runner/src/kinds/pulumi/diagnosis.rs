//! Reads the errors out of the document that a failed `pulumi preview --json` prints.

use serde::Deserialize;

/// The largest number of errors in the log.
const MAX_ERRORS: usize = 20;
/// The largest length of one error in the log, in characters.
const MAX_ERROR: usize = 4_000;
/// The largest length of the error that is appended to the reason why a job failed, in characters.
const MAX_SUMMARY: usize = 600;

/// The messages of a preview.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Diagnosis {
    #[serde(default)]
    diagnostics: Vec<Diagnostic>,
}

#[derive(Debug, Deserialize)]
struct Diagnostic {
    #[serde(default)]
    message: String,
    #[serde(default)]
    severity: String,
}

impl Diagnosis {
    /// Returns the same messages after `redact`. This must happen before messages are cut, because a part of a secret
    /// would not be recognized.
    pub(super) fn redacted(mut self, redact: impl Fn(&str) -> String) -> Self {
        self.diagnostics.iter_mut().for_each(|one| one.message = redact(&one.message));
        self
    }

    /// Returns the errors in their order, without the word `error` before them.
    pub(super) fn errors(&self) -> impl Iterator<Item = String> {
        let errors = self.diagnostics.iter().filter(|one| one.severity == "error").map(|one| one.message.trim());
        let errors = errors.map(|text| text.strip_prefix("error:").unwrap_or(text).trim());
        let errors = errors.filter(|text| !text.is_empty()).map(|text| text.chars().take(MAX_ERROR).collect());
        errors.take(MAX_ERRORS)
    }

    /// Returns the first error on one line, to be appended to the reason why the job failed. It is empty when there is
    /// no error.
    pub(super) fn summary(&self) -> String {
        let Some(error) = self.errors().next() else { return String::new() };
        let line: String = error.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(MAX_SUMMARY).collect();
        format!(": {line}")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn diagnosis(diagnostics: Value) -> Diagnosis {
        serde_json::from_value(json!({ "steps": [], "diagnostics": diagnostics })).unwrap()
    }

    #[test]
    fn the_errors_are_taken_out_of_the_messages() {
        let found = diagnosis(json!([
            { "message": "Downloading plugin\n", "severity": "info" },
            { "urn": "urn:pulumi:i::p::aws:ec2/vpc:Vpc::main", "message": "error: creating VPC:\n  denied\n", "severity": "error" },
            { "message": "warning: old", "severity": "warning" },
            { "message": "error: preview failed", "severity": "error" },
        ]));

        assert_eq!(found.errors().collect::<Vec<_>>(), ["creating VPC:\n  denied", "preview failed"]);
        assert_eq!(found.summary(), ": creating VPC: denied");
        assert_eq!(diagnosis(json!([])).summary(), "");
        assert_eq!(Diagnosis::default().summary(), "");
    }

    #[test]
    fn a_program_cannot_fill_the_log_with_its_errors() {
        let many = (0..100).map(|_| json!({ "message": "x".repeat(10_000), "severity": "error" })).collect::<Vec<_>>();
        let found = diagnosis(Value::from(many));

        assert_eq!(found.errors().map(|error| error.len()).collect::<Vec<_>>(), [MAX_ERROR; MAX_ERRORS]);
        assert_eq!(found.summary().len(), MAX_SUMMARY + 2);
    }

    #[test]
    fn a_secret_is_redacted_before_a_message_is_cut() {
        let message = format!("{}hunter2 is wrong", "x".repeat(MAX_SUMMARY - 3));
        let found = diagnosis(json!([{ "message": message, "severity": "error" }]));

        let summary = found.redacted(|text| text.replace("hunter2", "***")).summary();

        assert!(summary.ends_with("x***") && !summary.contains("hun"), "{summary}");
    }
}
