//! The reasons for which the runner refuses a job's IAM request, and the error responses in IAM's form.

use crate::answer::Answer;
use crate::xml::escape;

/// The reason why a request is not passed on. The text names the rule, and states what to do instead.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Refusal {
    /// The request does not have the form of an IAM request.
    #[error("{0}")]
    Malformed(String),
    /// A rule forbids the request.
    #[error("{0}")]
    Denied(String),
    /// The request could not be handled, but may be sent again.
    #[error("{0}")]
    Unavailable(String),
}

impl Refusal {
    /// Returns the IAM error code for the refusal.
    pub(crate) const fn code(&self) -> &'static str {
        match self {
            Self::Malformed(_) => "ValidationError",
            Self::Denied(_) => "AccessDenied",
            Self::Unavailable(_) => "ServiceUnavailable",
        }
    }

    /// Returns the response to the client, in the form of an IAM error.
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
