//! Makes the findings of checks, and interprets the responses of AWS to calls that test a permission.

use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use aws_sdk_sts::error::{ProvideErrorMetadata, SdkError};
use freehold_protocol::preflight::{Finding, Verdict};

use crate::aws;
use crate::job::bucket::explain;

/// The maximum length of a detail or fix in the report, in characters.
const MAX_TEXT: usize = 300;

/// The time limit for one check.
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

/// Returns a warning for a check that could not be completed. The warning does not mean that later jobs will fail.
pub(super) fn unchecked(check: &str, why: impl AsRef<str>, fix: impl AsRef<str>) -> Finding {
    warn(check, format!("could not be checked: {}", why.as_ref()), fix)
}

fn finding(check: &str, state: Verdict, detail: &str, fix: &str) -> Finding {
    let cut = |text: &str| text.replace('\n', " ").chars().take(MAX_TEXT).collect();
    Finding { check: check.to_owned(), state, detail: cut(detail), fix: cut(fix) }
}

/// A check with its name. The future is on the heap, because several large futures of the SDK would overflow a thread's
/// stack.
pub(super) type Check<'a> = (&'static str, Pin<Box<dyn Future<Output = Vec<Finding>> + Send + 'a>>);

/// Runs all checks in parallel. Returns their findings in the given order, and a warning for each check that timed out.
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

/// The meaning of a response to a call that tests a permission.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Answer {
    /// The role may make the call.
    Allowed,
    Denied(String),
    /// No response came, because of a problem in the network.
    Unreachable(String),
    /// AWS returned another error. A caller may expect it, for example for an absent object.
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

    /// Treats an error that contains one of `expected` as `Allowed`.
    pub(super) fn or_expected(self, expected: &[&str]) -> Self {
        match self {
            Self::Other { code, text } if expected.iter().any(|word| code == *word || text.contains(word)) => {
                Self::Allowed
            }
            other => other,
        }
    }

    /// Returns the finding for a call that the later jobs also make. An unexpected error is only a warning, because a
    /// local cloud may lack an API.
    pub(super) fn needed(self, check: &str, detail: &str, service: &str, fix: &str) -> Finding {
        match self {
            Self::Allowed => pass(check, detail),
            Self::Denied(text) => fail(check, text, fix),
            Self::Unreachable(text) => fail(check, text, way_to(service)),
            Self::Other { text, .. } => unchecked(check, text, ""),
        }
    }
}

/// Returns the text of the fix for a service that does not answer.
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
