//! Findings of checks, and what the answer to a harmless AWS call proves about a permission.

use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use aws_sdk_sts::error::{ProvideErrorMetadata, SdkError};
use freehold_protocol::preflight::{Finding, Verdict};

use crate::aws;
use crate::kinds::bucket::explain;

/// The longest detail or fix that is reported, in characters.
const MAX_TEXT: usize = 300;

/// The deadline for one check.
const CHECK: Duration = Duration::from_secs(12);

pub(super) fn pass(check: &str, detail: impl AsRef<str>) -> Finding {
    finding(check, Verdict::Pass, detail.as_ref(), "")
}

pub(super) fn warn(check: &str, detail: impl AsRef<str>, fix: impl AsRef<str>) -> Finding {
    finding(check, Verdict::Warn, detail.as_ref(), fix.as_ref())
}

pub(super) fn fail(check: &str, detail: impl AsRef<str>, fix: impl AsRef<str>) -> Finding {
    finding(check, Verdict::Fail, detail.as_ref(), fix.as_ref())
}

/// Returns the warning of a check that could not finish, which proves nothing about the later jobs.
pub(super) fn unchecked(check: &str, why: impl AsRef<str>, fix: impl AsRef<str>) -> Finding {
    warn(check, format!("could not be checked: {}", why.as_ref()), fix)
}

fn finding(check: &str, state: Verdict, detail: &str, fix: &str) -> Finding {
    let cut = |text: &str| text.replace('\n', " ").chars().take(MAX_TEXT).collect();
    Finding { check: check.to_owned(), state, detail: cut(detail), fix: cut(fix) }
}

/// One check with its name, on the heap because the SDK's futures are large, and many of them fill a thread's stack.
pub(super) type Check<'a> = (&'static str, Pin<Box<dyn Future<Output = Vec<Finding>> + Send + 'a>>);

/// Runs all checks in parallel; returns their findings in the given order, with a warning for a check that timed out.
pub(super) async fn all_in_time<const N: usize>(checks: [Check<'_>; N]) -> [Vec<Finding>; N] {
    let mut found = [const { None }; N];
    let mut checks = checks.map(|(name, look)| (name, Box::pin(tokio::time::timeout(CHECK, look))));
    std::future::poll_fn(|context| {
        for ((name, look), found) in checks.iter_mut().zip(&mut found) {
            if found.is_none()
                && let Poll::Ready(ended) = look.as_mut().poll(context)
            {
                let late = |_| vec![unchecked(name, format!("no answer within {} s", CHECK.as_secs()), "")];
                *found = Some(ended.unwrap_or_else(late));
            }
        }
        if found.iter().all(Option::is_some) { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    found.map(Option::unwrap_or_default)
}

/// What the answer to a harmless call proves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Answer {
    /// The call may be made.
    Allowed,
    Denied(String),
    /// No answer came back, which is a problem of the network.
    Unreachable(String),
    /// Another error, which may be the expected one.
    Other {
        code: String,
        text: String,
    },
}

impl Answer {
    pub(super) fn of<T, E>(answer: &Result<T, SdkError<E>>) -> Self
    where
        E: ProvideErrorMetadata + std::error::Error + 'static,
    {
        let Err(error) = answer else { return Self::Allowed };
        if matches!(error, SdkError::DispatchFailure(_) | SdkError::TimeoutError(_)) {
            return Self::Unreachable(aws::explain(error));
        }
        let text = explain(error);
        if aws::is_denied(error.code()) {
            return Self::Denied(text);
        }
        Self::Other { code: error.code().unwrap_or_default().to_owned(), text }
    }

    /// Treats an error that contains one of `expected` as proof that the call may be made.
    pub(super) fn or_expected(self, expected: &[&str]) -> Self {
        match self {
            Self::Other { code, text } if expected.iter().any(|word| code == *word || text.contains(word)) => {
                Self::Allowed
            }
            other => other,
        }
    }

    /// Returns the finding of a call that the later jobs make too. An unexpected error is only a warning: a cloud that
    /// lacks an API must not stop a deploy.
    pub(super) fn needed(self, check: &str, detail: &str, service: &str, fix: &str) -> Finding {
        match self {
            Self::Allowed => pass(check, detail),
            Self::Denied(text) => fail(check, text, fix),
            Self::Unreachable(text) => fail(check, text, way_to(service)),
            Self::Other { text, .. } => unchecked(check, text, ""),
        }
    }
}

/// Returns the fix for a service that does not answer.
pub(super) fn way_to(service: &str) -> String {
    format!(
        "let the runner reach {service} on port 443, through a VPC endpoint or through the proxy that `HTTPS_PROXY` \
         names"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn other() -> Answer {
        Answer::Other { code: "InvalidAction".into(), text: "InvalidAction: no such thing".into() }
    }

    #[test]
    fn what_is_denied_or_silent_fails_and_what_is_unknown_warns() {
        let needed = |answer: Answer| answer.needed("stack", "may be read", "CloudFormation", "allow it");

        let denied = needed(Answer::Denied("AccessDenied: no".into()));
        let silent = needed(Answer::Unreachable("connection refused".into()));

        assert_eq!(needed(Answer::Allowed), pass("stack", "may be read"));
        assert_eq!(denied, fail("stack", "AccessDenied: no", "allow it"));
        assert!(silent.state == Verdict::Fail && silent.fix.contains("CloudFormation"), "{silent:?}");
        assert_eq!(needed(other()), unchecked("stack", "InvalidAction: no such thing", ""));
    }

    #[test]
    fn an_error_that_was_asked_for_is_a_permission() {
        assert_eq!(other().or_expected(&["InvalidAction"]), Answer::Allowed);
        assert_eq!(other().or_expected(&["no such"]), Answer::Allowed);
        assert_eq!(other().or_expected(&["NoSuchKey"]), other());
    }

    #[tokio::test(start_paused = true)]
    async fn a_check_without_an_end_is_a_warning() {
        let checks: [Check<'_>; 2] =
            [("quotas", Box::pin(std::future::pending())), ("disk", Box::pin(async { vec![pass("disk", "enough")] }))];

        let found = all_in_time(checks).await;

        assert_eq!(found, [vec![unchecked("quotas", "no answer within 12 s", "")], vec![pass("disk", "enough")]]);
    }
}
