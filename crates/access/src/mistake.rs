//! Mistakes in a text of policies, each with its place and the way out.

use std::fmt;

use cedar_policy::{ParseErrors, PolicyId, ValidationError, ValidationWarning};
use miette::Diagnostic;

/// The maximum length of the policies of a tenant, in bytes.
pub const MAX_POLICIES_BYTES: usize = 64 * 1024;
/// The page for the vendor that lists groups, types, attributes and actions.
const PAGE: &str = "docs/access.md";
/// The maximum length of a message, in characters.
const MAX_MESSAGE_CHARS: usize = 400;

/// The reason why a text cannot be the policies of a tenant.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PoliciesError {
    #[error("the policies have {bytes} bytes; the maximum is {}: remove policies, or use groups", MAX_POLICIES_BYTES)]
    TooLong { bytes: usize },
    /// At least one mistake, sorted by place.
    #[error("{}", first_of(.mistakes))]
    Wrong { mistakes: Vec<Mistake> },
    /// The schema of this crate cannot be read.
    #[error("{0}")]
    Broken(String),
}

/// One mistake in a text of policies.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mistake {
    /// The line, from 1.
    pub line: u32,
    /// The column in characters, from 1.
    pub column: u32,
    /// The policy's name, if it is known.
    pub policy: Option<String>,
    pub message: String,
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}: ", self.line, self.column)?;
        if let Some(policy) = &self.policy {
            write!(f, "policy `{policy}`: ")?;
        }
        f.write_str(&self.message)
    }
}

impl Mistake {
    pub(crate) fn at(text: &str, offset: usize, policy: Option<&str>, message: String) -> Self {
        let (line, column) = position(text, offset);
        // The message can contain a part of the text.
        let plain = message.chars().map(|c| if c.is_control() { ' ' } else { c });
        Self { line, column, policy: policy.map(str::to_owned), message: plain.take(MAX_MESSAGE_CHARS).collect() }
    }
}

impl PoliciesError {
    /// Returns the error with these mistakes, of which the first at each place is kept.
    pub(crate) fn wrong(mut mistakes: Vec<Mistake>) -> Self {
        mistakes.sort();
        mistakes.dedup_by(|later, first| (later.line, later.column) == (first.line, first.column));
        Self::Wrong { mistakes }
    }

    /// Returns the error of a text that is not Cedar.
    pub(crate) fn of_syntax(text: &str, errors: &ParseErrors) -> Self {
        Self::wrong(errors.iter().map(|error| Mistake::at(text, offset(error), None, with_hints(error))).collect())
    }
}

/// Returns the mistake that the validator found in the policy `id`.
pub(crate) fn of_error(text: &str, error: &ValidationError) -> Mistake {
    let id = error.policy_id();
    let message = without_prefix(&error.to_string(), id);
    let message = match error {
        ValidationError::UnrecognizedActionId(_) => format!("{message}; {PAGE} lists the actions"),
        ValidationError::UnrecognizedEntityType(_) => format!("{message}; {PAGE} lists the types"),
        ValidationError::EntityDerefLevelViolation(_) => {
            "the policy reads an attribute of an entity that it names; it can read those of `principal` and `resource`"
                .to_owned()
        }
        ValidationError::UnsafeAttributeAccess(access) if access.help().is_none() => {
            format!(
                "{message}; limit the types in the policy's scope, such as `resource is Freehold::Install` ({PAGE})"
            )
        }
        other => match other.help() {
            Some(help) => format!("{message}; {}", without_prefix(&help.to_string(), id)),
            None => format!("{message}; {PAGE} has examples"),
        },
    };
    Mistake::at(text, offset(error), Some(id.as_ref()), message)
}

/// Returns the mistake of a policy that is valid and probably does not do what its author wants.
pub(crate) fn of_warning(text: &str, warning: &ValidationWarning) -> Mistake {
    let id = warning.policy_id();
    let message = match warning {
        ValidationWarning::ImpossiblePolicy(_) | ValidationWarning::InvalidActionApplication(_) => {
            format!("the policy never applies; correct its actions, its resource or its conditions ({PAGE})")
        }
        // All others are about such characters.
        _ => "a text has characters that look like others or change the direction of reading; write plain letters"
            .to_owned(),
    };
    Mistake::at(text, offset(warning), Some(id.as_ref()), message)
}

fn first_of(mistakes: &[Mistake]) -> String {
    match mistakes {
        [] => "the policies are wrong".to_owned(),
        [only] => only.to_string(),
        [first, others @ ..] => {
            let (count, noun) = (others.len(), if others.len() == 1 { "mistake" } else { "mistakes" });
            format!("{first} (and {count} more {noun})")
        }
    }
}

/// Returns the error's text with what the parser expected instead, and the help.
fn with_hints(error: &dyn Diagnostic) -> String {
    let expected = error.labels().and_then(|mut labels| labels.next()?.label().map(str::to_owned));
    let help = error.help().map(|help| help.to_string());
    let hints: Vec<String> = [expected, help].into_iter().flatten().collect();
    if hints.is_empty() {
        return format!("{error}; {PAGE} has examples");
    }
    format!("{error}; {}", hints.join("; "))
}

fn without_prefix(message: &str, id: &PolicyId) -> String {
    message.strip_prefix(&format!("for policy `{id}`, ")).unwrap_or(message).to_owned()
}

/// Returns where in the text the error is, in bytes.
fn offset(error: &dyn Diagnostic) -> usize {
    error.labels().and_then(|mut labels| labels.next()).map_or(0, |label| label.offset())
}

/// Returns the line and the column of a position in bytes, both from 1.
fn position(text: &str, offset: usize) -> (u32, u32) {
    let before = text.get(..offset).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    (u32::try_from(line).unwrap_or(u32::MAX), u32::try_from(column).unwrap_or(u32::MAX))
}
