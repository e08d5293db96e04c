//! Policies in Rego: reads them, evaluates them on an input document, and returns their messages as a value.
//!
//! A policy is the text of one file in package `nuon` or `freehold`. Its rules `deny` and `warn` contain messages. Rego
//! has no clock, network or files here. [`Evaluator`] evaluates policies in a separate process, which ends at a limit
//! of time or memory.

pub mod built_in;
mod builtin_names;
mod child;
mod cidr;
mod error;
mod evaluator;
pub mod input;
mod iteration;
mod messages;
mod question;
mod redact;
mod rego;
mod token;

pub use child::{COMMAND, run_if_asked};
pub use error::PolicyError;
pub use evaluator::{Evaluator, LIMITS, Limits};
pub use question::{Answer, PolicyText};
pub use redact::redacted;
pub use rego::{check, evaluate, evaluate_strictly};

use serde::{Deserialize, Serialize};

/// The packages whose rules are evaluated. Policies that were written for another product have the first one.
pub const PACKAGES: [&str; 2] = ["nuon", "freehold"];
/// The maximum length of a policy, in bytes.
pub const MAX_POLICY_BYTES: usize = 128 * 1024;

/// The messages of one policy about one input document.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Verdict {
    /// The messages of rule `deny`, sorted. Any message forbids the change.
    pub deny: Vec<String>,
    /// The messages of rule `warn`, sorted.
    pub warn: Vec<String>,
}

impl Verdict {
    /// Adds the messages of `other`.
    pub fn extend(&mut self, other: Self) {
        for (into, from) in [(&mut self.deny, other.deny), (&mut self.warn, other.warn)] {
            into.extend(from);
            into.sort();
            into.dedup();
        }
    }
}
