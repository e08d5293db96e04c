//! The changes of an install that a person can start on a page. Each of them is the change of a command.

use freehold_protocol::{Digest, RoleKey};

use super::super::answer::Answer;
use super::super::approve::{approve, reject};
use super::super::hold::{hold, lift_hold};
use super::super::own_install::OwnInstall;
use super::super::stop::{close, pause, resume, revoke_sessions};
use super::fields::Fields;
use crate::error::{Error, Result};

/// A change of the install.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Action {
    Pause,
    Resume,
    RevokeSessions,
    Close(RoleKey),
    Hold,
    LiftHold,
    Approve(Digest),
    Reject(Digest, String),
}

impl Action {
    /// Returns the change that a form requests. `path` is the path of the form; `None` if there is no such form.
    pub(super) fn requested(path: &str, fields: &Fields) -> Result<Option<Self>> {
        let action = match path {
            "/pause" => Self::Pause,
            "/resume" => Self::Resume,
            "/revoke-sessions" => Self::RevokeSessions,
            "/close" => Self::Close(fields.required("role")?),
            "/hold" => Self::Hold,
            "/lift-hold" => Self::LiftHold,
            "/approve" => Self::Approve(fields.required("plan")?),
            "/reject" => Self::Reject(fields.required("plan")?, fields.required("reason")?),
            _ => return Ok(None),
        };
        if fields.get("confirmed") != Some("yes") {
            return Err(Error::invalid("nothing was changed, because the form was not confirmed")
                .or("go back, and tick the box of the form"));
        }
        Ok(Some(action))
    }

    /// Performs the change, as the command does.
    pub(super) async fn perform(&self, own: &OwnInstall) -> Result<Answer> {
        match self {
            Self::Pause => pause(own).await,
            Self::Resume => resume(own).await,
            Self::RevokeSessions => revoke_sessions(own).await,
            Self::Close(role) => close(own, role).await,
            Self::Hold => hold(own).await,
            Self::LiftHold => lift_hold(own).await,
            Self::Approve(plan) => approve(own, plan).await,
            Self::Reject(plan, reason) => reject(own, plan, reason).await,
        }
    }

    /// Returns the words of the command, without the install and the vendor.
    pub(super) fn words(&self) -> (&'static str, String) {
        match self {
            Self::Pause => ("pause", String::new()),
            Self::Resume => ("resume", String::new()),
            Self::RevokeSessions => ("revoke-sessions", String::new()),
            Self::Close(role) => ("close", format!(" {role}")),
            Self::Hold => ("hold", String::new()),
            Self::LiftHold => ("lift-hold", String::new()),
            Self::Approve(plan) => ("approve", format!(" --plan {plan}")),
            Self::Reject(plan, reason) => ("reject", format!(" --plan {plan} --reason {}", quoted(reason))),
        }
    }
}

/// Returns a text as one word of a shell.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_without_its_confirmation_or_with_a_missing_field_changes_nothing() {
        let requested = |path: &str, text: &str| Action::requested(path, &Fields::parse(text));

        assert_eq!(requested("/pause", "confirmed=yes").unwrap(), Some(Action::Pause));
        assert_eq!(requested("/elsewhere", "confirmed=yes").unwrap(), None);
        let close = Action::Close("maintenance".parse().unwrap());
        assert_eq!(requested("/close", "confirmed=yes&role=maintenance").unwrap(), Some(close));
        for (path, text) in
            [("/pause", ""), ("/pause", "confirmed=no"), ("/close", "confirmed=yes"), ("/approve", "plan=x")]
        {
            assert!(requested(path, text).is_err(), "{path} {text}");
        }
    }

    #[test]
    fn the_reason_of_a_rejection_is_one_word_of_the_command() {
        let reject = Action::Reject(Digest::of(b""), "it's; rm".to_owned());

        assert!(reject.words().1.ends_with(r" --reason 'it'\''s; rm'"), "{:?}", reject.words());
    }
}
