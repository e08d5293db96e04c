//! The input and the output of an evaluator's process: one question, and a line for the result of each policy.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Verdict;

/// The text of a policy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PolicyText {
    /// The name of the policy in messages: a path of the app config, a key of the customer's bucket, or the file of a
    /// built-in policy.
    pub file: String,
    /// The text, in Rego.
    pub text: String,
}

/// The policies to evaluate, and the documents on which each of them is evaluated.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Question {
    pub(crate) policies: Vec<PolicyText>,
    pub(crate) inputs: Vec<Value>,
    /// The maximum memory of the process, in MiB.
    pub(crate) memory_mib: u64,
}

/// The result of one policy for all documents.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    Says(Verdict),
    /// The policy cannot be read or evaluated. The text gives the reason, with the file and, if it is known, the line.
    Failed(String),
}
