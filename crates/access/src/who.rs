//! Who calls: an IAM principal, a person or a pipeline, as API Gateway has identified them.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The maximum length of an ARN and of a subject, in bytes. OpenID Connect Core, section 2, limits a subject to 255.
const MAX_ARN_BYTES: usize = 2048;
const MAX_SUBJECT_BYTES: usize = 255;

/// A caller. As a text it is `iam:`, `person:` or `pipeline:`, followed by the ARN or the subject.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Who {
    /// An IAM principal of the tenant's account: a user, or a role for all of its sessions.
    Iam { arn: String },
    /// Somebody who has signed in: the claim `sub` of the token.
    Person { subject: String },
    /// A job of the CI with a token of its own: the claim `sub` of the token.
    Pipeline { subject: String },
}

/// A text names no caller.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{value}` is not a principal; expected `iam:` and an ARN, or `person:` or `pipeline:` and the subject of a token"
)]
pub struct NotWho {
    value: String,
}

impl Who {
    /// Returns the ARN or the subject.
    pub fn id(&self) -> &str {
        match self {
            Self::Iam { arn } => arn,
            Self::Person { subject } | Self::Pipeline { subject } => subject,
        }
    }
}

impl fmt::Display for Who {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self {
            Self::Iam { .. } => "iam",
            Self::Person { .. } => "person",
            Self::Pipeline { .. } => "pipeline",
        };
        write!(f, "{kind}:{}", self.id())
    }
}

impl FromStr for Who {
    type Err = NotWho;

    fn from_str(text: &str) -> Result<Self, NotWho> {
        let is_visible = |id: &str, max| {
            let mut chars = id.chars();
            (1..=max).contains(&id.len()) && chars.all(|c| !c.is_control() && !c.is_whitespace())
        };
        let who = match text.split_once(':') {
            Some(("iam", arn)) if is_visible(arn, MAX_ARN_BYTES) => Some(Self::Iam { arn: arn.to_owned() }),
            Some(("person", id)) if is_visible(id, MAX_SUBJECT_BYTES) => Some(Self::Person { subject: id.to_owned() }),
            Some(("pipeline", id)) if is_visible(id, MAX_SUBJECT_BYTES) => {
                Some(Self::Pipeline { subject: id.to_owned() })
            }
            _ => None,
        };
        who.ok_or_else(|| NotWho { value: text.chars().filter(|c| !c.is_control()).take(80).collect() })
    }
}

impl TryFrom<String> for Who {
    type Error = NotWho;

    fn try_from(text: String) -> Result<Self, NotWho> {
        text.parse()
    }
}

impl From<Who> for String {
    fn from(who: Who) -> Self {
        who.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_caller_is_read_from_its_own_text() {
        for text in [
            "iam:arn:aws:iam::111122223333:role/ci",
            "person:1f3e-55",
            "person:auth0|507f1f77",
            "pipeline:repo:acme/web:ref:refs/heads/main",
        ] {
            let who: Who = text.parse().unwrap();

            assert_eq!(who.to_string(), text);
        }
    }

    #[test]
    fn a_text_without_a_kind_or_with_invisible_characters_is_not_a_caller() {
        let long = format!("person:{}", "a".repeat(256));
        for text in ["", "ana", "person", "person:", "robot:1", "Person:1", "person:a b", "person:a\nb", &long] {
            assert!(text.parse::<Who>().is_err(), "{text:?}");
        }
        assert_eq!(
            "ana\n".parse::<Who>().unwrap_err().to_string(),
            "`ana` is not a principal; expected `iam:` and an ARN, or `person:` or `pipeline:` and the subject of a \
             token"
        );
    }
}
