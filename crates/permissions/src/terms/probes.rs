//! Compares the commands that health checks run as probes in two documents of terms.

use std::collections::BTreeSet;

use freehold_protocol::contract::ProbeTerms;

use super::TermsDiff;

impl TermsDiff {
    pub(super) fn probes(&mut self, before: &BTreeSet<ProbeTerms>, after: &BTreeSet<ProbeTerms>) {
        for probe in after.difference(before) {
            self.widen(&about(probe), format!("runs {}", describe_probe(probe)));
        }
        for probe in before.difference(after) {
            self.narrow(&about(probe), format!("no longer runs {}", describe_probe(probe)));
        }
    }
}

fn about(probe: &ProbeTerms) -> String {
    format!("the health check of component `{}`", probe.component)
}

/// Returns a description of a command that a health check runs, with the role that it runs under.
pub fn describe_probe(probe: &ProbeTerms) -> String {
    let role = match probe.role.as_str() {
        "" => "`maintenance`, or as `provision` in the first deploy".to_owned(),
        role => format!("`{role}`"),
    };
    format!("{} as {role}", describe_command(&probe.command))
}

/// Returns a description of a command: its words as JSON, so that nobody reads two words as one.
pub fn describe_command(command: &[String]) -> String {
    // INVARIANT: a list of texts is always JSON. Otherwise the description has the words in another form.
    let words = serde_json::to_string(command).unwrap_or_else(|_| format!("{command:?}"));
    format!("command `{words}`")
}
