//! Who may start changes outside of the windows with `--now`, and which actions change nothing.

use freehold_protocol::order::{AskedBy, CallerArn, Principal};
use freehold_protocol::report::FreeActions;

use crate::text::{Piece, RulesError};

/// A caller of the vendor's API whose changes the customer lets start at once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Caller {
    /// The caller with this ARN.
    One(CallerArn),
    /// Every session of the role of this session.
    Sessions(CallerArn),
}

impl Caller {
    fn is(&self, arn: &CallerArn) -> bool {
        match self {
            Self::One(one) => one == arn,
            Self::Sessions(one) => {
                role_of(one).is_some_and(|(role, _)| role_of(arn).is_some_and(|(other, _)| other == role))
            }
        }
    }
}

/// Splits the ARN of a session into the part that all sessions of its role share, and the name of the session.
fn role_of(arn: &CallerArn) -> Option<(&str, &str)> {
    match arn.parts()?.1 {
        Principal::Session { .. } => arn.as_str().rsplit_once('/'),
        Principal::User { .. } | Principal::Federated { .. } | Principal::Root => None,
    }
}

/// Returns whether `by` is one of `callers`.
pub(crate) fn may_pass(callers: &[Caller], by: &AskedBy) -> bool {
    match by {
        AskedBy::Caller { arn } => callers.iter().any(|caller| caller.is(arn)),
        AskedBy::Member { .. }
        | AskedBy::Pipeline { .. }
        | AskedBy::Webhook { .. }
        | AskedBy::Schedule
        | AskedBy::Sweep => false,
    }
}

/// Reads ARNs of callers between commas. The session of a role may be `*`.
pub(crate) fn callers(text: Piece<'_>) -> Result<Vec<Caller>, RulesError> {
    named(text).map(caller).collect()
}

fn caller(text: Piece<'_>) -> Result<Caller, RulesError> {
    let wrong = |_| {
        text.wrong(format!(
            "{} is not a caller; write the ARN of an IAM user or of a role's session, such as \
             `arn:aws:sts::111111111111:assumed-role/deployer/ana`, or all sessions of a role as \
             `arn:aws:sts::111111111111:assumed-role/deployer/*`",
            text.quoted()
        ))
    };
    match text.text().strip_suffix("/*") {
        // An ARN cannot contain `*`, so the session `any` represents all sessions of the role.
        Some(role) if role.contains(":assumed-role/") => {
            format!("{role}/any").parse().map(Caller::Sessions).map_err(wrong)
        }
        Some(_) | None => text.text().parse().map(Caller::One).map_err(wrong),
    }
}

/// Reads names of actions between commas, or `*` for every action.
pub(crate) fn free_actions(text: Piece<'_>) -> Result<FreeActions, RulesError> {
    if text.trimmed().text() == "*" {
        return Ok(FreeActions::All);
    }
    let name = |part: Piece<'_>| {
        let what = format!(
            "{} is not the name of an action; write names between commas, or `*` for every action",
            part.quoted()
        );
        part.text().parse().map_err(|_| part.wrong(what))
    };
    named(text).map(name).collect::<Result<_, _>>().map(FreeActions::Named)
}

fn named(text: Piece<'_>) -> impl Iterator<Item = Piece<'_>> {
    let is_empty = text.trimmed().text().is_empty();
    text.split(',').filter(move |_| !is_empty)
}
