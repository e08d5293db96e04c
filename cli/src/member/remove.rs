//! `freehold member remove`: removes a member or an invitation.

use clap::Args;
use freehold_client::calls;
use freehold_protocol::MemberName;
use freehold_protocol::api::{MemberRemoved, MemberView};

use super::find::find;
use crate::confirm;
use crate::context::Context;
use crate::error::Result;

/// Remove a member, or an invitation that nobody has accepted.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  freehold member remove ana@example.com
  freehold member remove ana@example.com --confirm ana@example.com

The next request of the member is refused, also with a token that is still valid. Work that the
member asked for before continues, and its history keeps the member's name.")]
pub(crate) struct Remove {
    /// Name of the member.
    #[arg(value_name = "NAME")]
    member: MemberName,
    /// The name of the member once more, instead of a question.
    #[arg(long, value_name = "NAME")]
    confirm: Option<String>,
}

impl Remove {
    pub(super) async fn run(&self, context: &Context) -> Result<()> {
        let api = context.api().await?;
        let member = find(&api, &self.member).await?;
        confirm::removal("member", self.member.as_str(), self.confirm.as_deref(), &consequences(&member))?;
        let removed: MemberRemoved = api.send(calls::remove_member(&self.member)).await?;
        context.out.show(&removed, |removed| match member.accepted_at {
            Some(_) => format!("member `{}` is removed, and may do nothing in the tenant from now on", removed.member),
            None => format!("the invitation of `{}` is removed, and its code does not work any more", removed.member),
        })
    }
}

/// Returns the text about what the removal does, for the person who confirms it.
fn consequences(view: &MemberView) -> String {
    let MemberView { member, groups, .. } = view;
    let groups: Vec<&str> = groups.iter().map(String::as_str).collect();
    match view.accepted_at {
        Some(_) => format!("`{member}` ({}) loses all access to the tenant at once.", groups.join(", ")),
        None => format!("The invitation of `{member}` ({}) stops working.", groups.join(", ")),
    }
}
