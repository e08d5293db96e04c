//! Policies as orders carry them to the runner, and their results there.

use serde::{Deserialize, Serialize};

use crate::Digest;
use crate::app_version::PolicyEngine;
use crate::packed_text::{UnpackError, pack, unpack};

/// The maximum length of a policy's text in an order, in bytes.
pub const MAX_POLICY_BYTES: usize = 128 * 1024;

/// A policy of the vendor that guards the work of an order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OrderPolicy {
    pub name: String,
    pub engine: PolicyEngine,
    /// The SHA-256 of the text, by which the terms name the policy.
    pub contents: Digest,
    /// The text, packed with gzip and base64.
    pub text: String,
}

/// The reason why the text of a policy in an order cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PolicyTextError {
    #[error("the text cannot be unpacked")]
    Packed(#[from] UnpackError),
    #[error("the text is not UTF-8")]
    NotText,
    #[error("the text has digest `{found}`, and the order names `{named}`")]
    OtherText { found: Digest, named: Digest },
}

impl OrderPolicy {
    /// Returns the policy as an order carries it.
    ///
    /// # Errors
    /// Never: writing to memory does not fail.
    pub fn new(name: &str, engine: PolicyEngine, text: &str) -> std::io::Result<Self> {
        let contents = Digest::of(text.as_bytes());
        Ok(Self { name: name.to_owned(), engine, contents, text: pack(text.as_bytes())? })
    }

    /// Returns the text.
    ///
    /// # Errors
    /// [`PolicyTextError`], also when the text has another digest.
    pub fn text(&self) -> Result<String, PolicyTextError> {
        let bytes = unpack(&self.text, MAX_POLICY_BYTES)?;
        let found = Digest::of(&bytes);
        if found != self.contents {
            return Err(PolicyTextError::OtherText { found, named: self.contents.clone() });
        }
        String::from_utf8(bytes).map_err(|_| PolicyTextError::NotText)
    }
}

/// The result of one policy about a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PolicyResult {
    pub name: String,
    pub origin: PolicyOrigin,
    /// The SHA-256 of the policy's text.
    pub contents: Digest,
    /// The reasons why the policy forbids the change, without values of the plan; empty when it permits the change.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub deny: Vec<String>,
    /// The warnings, without values of the plan.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warn: Vec<String>,
    /// Why the policy could not be evaluated. The job then stops too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<String>,
}

impl PolicyResult {
    /// Returns whether the policy stops the job.
    pub const fn stops(&self) -> bool {
        !self.deny.is_empty() || self.failed.is_some()
    }
}

/// Who wrote a policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum PolicyOrigin {
    /// The vendor, in the app config.
    Vendor,
    /// The customer, in the install's bucket.
    Customer,
    /// Freehold, for every install.
    BuiltIn,
}

impl PolicyOrigin {
    /// Returns the words for messages.
    pub const fn describe(self) -> &'static str {
        match self {
            Self::Vendor => "of the vendor",
            Self::Customer => "of the customer",
            Self::BuiltIn => "built in",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_that_is_not_that_of_the_digest_is_refused() {
        let policy = OrderPolicy::new("a", PolicyEngine::Opa, "package nuon").unwrap();
        let other = OrderPolicy { text: OrderPolicy::new("a", PolicyEngine::Opa, "x").unwrap().text, ..policy.clone() };

        assert_eq!(policy.text().unwrap(), "package nuon");
        assert!(matches!(other.text(), Err(PolicyTextError::OtherText { .. })));
    }
}
