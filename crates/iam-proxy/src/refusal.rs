//! Why the runner does not do what a job asks of IAM, and how it says so in IAM's own form.

use crate::answer::Answer;
use crate::xml::escape;

/// Why a request is not passed on. Its text names the rule and the way out.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Refusal {
    /// The request is not a request of IAM.
    #[error("{0}")]
    Malformed(String),
    /// A rule forbids the request.
    #[error("{0}")]
    Denied(String),
    /// The request may be sent again.
    #[error("{0}")]
    Unavailable(String),
}

impl Refusal {
    /// Returns IAM's word for it.
    pub(crate) const fn code(&self) -> &'static str {
        match self {
            Self::Malformed(_) => "ValidationError",
            Self::Denied(_) => "AccessDenied",
            Self::Unavailable(_) => "ServiceUnavailable",
        }
    }

    /// Returns the answer to the client, as IAM would write it.
    pub(crate) fn answer(&self) -> Answer {
        let (status, side) = match self {
            Self::Malformed(_) => (400, "Sender"),
            Self::Denied(_) => (403, "Sender"),
            Self::Unavailable(_) => (503, "Receiver"),
        };
        let (code, message) = (self.code(), escape(&format!("Freehold: {self}")));
        let body = format!(
            "<ErrorResponse xmlns=\"https://iam.amazonaws.com/doc/2010-05-08/\"><Error><Type>{side}</Type><Code>{code}</Code>\
             <Message>{message}</Message></Error><RequestId>freehold</RequestId></ErrorResponse>"
        );
        Answer { status, body: body.into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_an_error_of_iam() {
        let answer = Refusal::Denied("`a` < `b`".to_owned()).answer();

        assert_eq!(answer.status, 403);
        assert!(String::from_utf8_lossy(&answer.body).contains("<Message>Freehold: `a` &lt; `b`</Message>"));
    }
}
