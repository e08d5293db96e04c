//! The sandbox outputs that components read.

use std::collections::{BTreeMap, BTreeSet};

use freehold_protocol::{ComponentName, Digest, canonical};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The sandbox outputs that the templates of one component read.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct SandboxReads {
    /// All outputs that the templates read. An empty name means every output of the sandbox.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub outputs: BTreeSet<String>,
    /// The outputs without which a template cannot be rendered.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub required: BTreeSet<String>,
}

impl SandboxReads {
    /// Returns whether the templates do not read any output.
    pub fn is_empty(&self) -> bool {
        self.outputs.is_empty()
    }

    /// Returns a digest of the values of the outputs that the templates read; `None` if they do not read any. Integers
    /// without a canonical form count as their text, so that no output of a job can prevent the recording of the job's
    /// end.
    ///
    /// # Errors
    /// The error of [`canonical::digest`], which these values do not cause.
    pub fn digest(&self, outputs: &BTreeMap<String, Value>) -> Result<Option<Digest>, serde_json::Error> {
        if self.is_empty() {
            return Ok(None);
        }
        let value = |value: &Value| canonical::with_long_integers_as_text(value.clone());
        if self.outputs.contains("") {
            let all: BTreeMap<&String, Value> = outputs.iter().map(|(name, found)| (name, value(found))).collect();
            return canonical::digest(&all).map(Some);
        }
        let read: BTreeMap<&String, Option<Value>> =
            self.outputs.iter().map(|name| (name, outputs.get(name).map(value))).collect();
        canonical::digest(&read).map(Some)
    }

    /// Returns an error message about the outputs that `component` requires and the sandbox does not have; `None` if
    /// the sandbox has all of them.
    pub fn refusal(&self, component: &ComponentName, outputs: &BTreeMap<String, Value>) -> Option<String> {
        let missing: Vec<&str> =
            self.required.iter().map(String::as_str).filter(|name| !outputs.contains_key(*name)).collect();
        let names = missing.join("`, `");
        let (word, them) = if missing.len() == 1 { ("output", "it") } else { ("outputs", "them") };
        (!missing.is_empty()).then(|| {
            format!(
                "component `{component}` reads {word} `{names}` of the sandbox, but the sandbox does not have {them}; \
                 declare {them} in the module of `sandbox.toml`, or correct the component's template: `freehold app check` \
                 names its file and line; for a sensitive output that is declared, update the install stack and the runner, \
                 and deploy the sandbox again with `freehold deploy --all`"
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn reads(outputs: &[&str], required: &[&str]) -> SandboxReads {
        let set = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        SandboxReads { outputs: set(outputs), required: set(required) }
    }

    fn outputs(value: Value) -> BTreeMap<String, Value> {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn only_a_value_that_is_read_changes_the_digest() {
        let (before, after) = (outputs(json!({ "vpc": "a", "dns": 1 })), outputs(json!({ "vpc": "a", "dns": 2 })));
        let same = |reads: SandboxReads| reads.digest(&before).unwrap() == reads.digest(&after).unwrap();

        assert!(same(reads(&["vpc"], &[])));
        assert!(!same(reads(&["vpc", "dns"], &[])));
        assert!(!same(reads(&[""], &[])));
        assert_eq!(reads(&[], &[]).digest(&before).unwrap(), None);
    }

    #[test]
    fn outputs_that_are_not_there_are_named_with_the_way_out() {
        let (component, outputs) = ("api".parse().unwrap(), outputs(json!({ "vpc": "a" })));

        assert_eq!(reads(&["vpc", "dns"], &["vpc"]).refusal(&component, &outputs), None);
        assert_eq!(
            reads(&["vpc", "dns"], &["vpc", "dns"]).refusal(&component, &outputs).unwrap(),
            "component `api` reads output `dns` of the sandbox, but the sandbox does not have it; declare it in the \
             module of `sandbox.toml`, or correct the component's template: `freehold app check` names its file and line; for \
             a sensitive output that is declared, update the install stack and the runner, and deploy the sandbox again with \
             `freehold deploy --all`"
        );
    }
}
