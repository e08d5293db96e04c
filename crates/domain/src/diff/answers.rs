//! Finds the inputs and secrets of the second version for which an install of the first version has no valid answer.

use freehold_protocol::app_version::{AppVersion, Input, Secret};
use serde::{Deserialize, Serialize};

/// A question of the second version that somebody has to answer before a deploy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    pub what: Question,
    pub name: String,
    /// Whether the customer answers the question; otherwise the vendor does.
    pub customer: bool,
    pub why: Reason,
}

/// The kind of a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Question {
    Input,
    Secret,
}

/// The reason why a question has no valid answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// The first version does not have the question.
    New,
    /// The first version does not require an answer.
    NowRequired,
    /// The first version has a default or a generated value for the question; the second version has neither.
    DefaultGone,
    /// The first version asks the vendor and the second version the customer, or the reverse.
    AnsweredElsewhere,
    /// The question has different types in the two versions, so that the existing answer may not fit.
    TypeChanged,
}

impl Answer {
    /// Returns the reason as `freehold app diff` prints it.
    pub const fn reason(&self) -> &'static str {
        match (self.why, self.customer) {
            (Reason::New, _) => "new and required",
            (Reason::NowRequired, _) => "required now",
            (Reason::DefaultGone, _) => "no longer has a default",
            (Reason::AnsweredElsewhere, true) => "answered by the vendor until now",
            (Reason::AnsweredElsewhere, false) => "answered by the customer until now",
            (Reason::TypeChanged, _) => "has a different type; the answer may not fit",
        }
    }
}

/// Returns the questions of `to` for which an install of `from` has no valid answer: inputs, then secrets.
pub(super) fn answers(from: &AppVersion, to: &AppVersion) -> Vec<Answer> {
    let inputs = to.inputs.iter().filter(|input| asks(input)).filter_map(|input| {
        let before = from.inputs.iter().find(|before| before.name == input.name);
        let why = reason(before, input)?;
        Some(Answer { what: Question::Input, name: input.name.clone(), customer: input.customer, why })
    });
    let secrets = to.secrets.iter().filter(|secret| secret.required).filter_map(|secret| {
        let before = from.secrets.iter().find(|before| before.name == secret.name);
        let why = secret_reason(before)?;
        Some(Answer { what: Question::Secret, name: secret.name.clone(), customer: true, why })
    });
    inputs.chain(secrets).collect()
}

/// Returns whether nothing can be deployed until somebody answers the input: it is required and has no usable default.
pub(super) fn asks(input: &Input) -> bool {
    input.required && input.usable_default().is_none()
}

fn reason(before: Option<&Input>, input: &Input) -> Option<Reason> {
    let Some(before) = before else { return Some(Reason::New) };
    if before.customer != input.customer {
        Some(Reason::AnsweredElsewhere)
    } else if before.usable_default().is_some() {
        Some(Reason::DefaultGone)
    } else if !before.required {
        Some(Reason::NowRequired)
    } else {
        (before.kind != input.kind).then_some(Reason::TypeChanged)
    }
}

const fn secret_reason(before: Option<&Secret>) -> Option<Reason> {
    match before {
        None => Some(Reason::New),
        Some(before) if before.required => None,
        Some(before) if before.auto_generate => Some(Reason::DefaultGone),
        Some(_) => Some(Reason::NowRequired),
    }
}
