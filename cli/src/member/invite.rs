//! `freehold member invite`: invites a person by a code, or makes an IAM principal a member.

use clap::Args;
use freehold_access::Group;
use freehold_client::calls;
use freehold_protocol::api::{InviteMemberRequest, MemberInvited};
use freehold_protocol::{AppName, InstallId, MemberName};

use super::text;
use crate::context::Context;
use crate::error::Result;

/// Invite a member. Prints a code, with which the person whom you give it to becomes the member; the tenant sends no
/// mail.
#[derive(Debug, Args)]
#[command(
    override_usage = "freehold member invite NAME --group GROUP [OPTIONS]",
    after_help = "\
Groups of a new tenant:
  owner           everything
  operator        see everything, and operate and approve in every install; not change members or policies
  developer       see everything, build apps, and operate and change installs outside of production
  data_scientist  see installs and their results, and run actions whose name begins with `report-`
  auditor         see everything except secret inputs, and change nothing
  customer        see the installs that the member is limited to, and nothing else

An install is in production if its own label `environment` is `production`, or if it has no such label. The policies
say what a group may do: `freehold access show` prints them.

Examples:
  freehold member invite ana@example.com --group developer
  freehold member invite ben@example.com --group operator --group auditor
  freehold member invite globex-ops --group customer --install globex
  freehold member invite ci --group developer --iam arn:aws:iam::111111111111:role/ci

The code is valid for seven days and for one person, and is shown once. Send it over a channel that only this person
reads. An invitation of somebody who has not accepted yet replaces the first one, whose code stops working. With
`--iam`, the user or role is a member at once. A member with an app or an install is limited to it, whatever the
groups are."
)]
pub(crate) struct Invite {
    /// Name for the member, such as an e-mail address.
    #[arg(value_name = "NAME")]
    member: MemberName,
    /// A group of the member, such as `developer`; repeat it for several.
    #[arg(long = "group", value_name = "GROUP", required = true)]
    groups: Vec<Group>,
    /// An app that the member is limited to; repeat it for several.
    #[arg(long = "app", value_name = "APP")]
    apps: Vec<AppName>,
    /// An install that the member is limited to; repeat it for several.
    #[arg(long = "install", value_name = "INSTALL")]
    installs: Vec<InstallId>,
    /// ARN of the IAM user or role that is the member.
    #[arg(long, value_name = "ARN")]
    iam: Option<String>,
}

impl Invite {
    pub(super) async fn run(self, context: &Context) -> Result<()> {
        let Self { member, groups, apps, installs, iam } = self;
        let request = InviteMemberRequest {
            member,
            groups: groups.into_iter().map(String::from).collect(),
            apps: apps.into_iter().collect(),
            installs: installs.into_iter().collect(),
            iam,
        };
        let invited: MemberInvited = context.api().await?.send(calls::invite_member(&request)).await?;
        context.out.show(&invited, text::invited)
    }
}
