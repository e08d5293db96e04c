//! `freehold member set`: changes the groups, apps and installs of a member.

use std::collections::BTreeSet;

use clap::Args;
use freehold_access::Group;
use freehold_client::calls;
use freehold_protocol::api::{MemberView, SetMemberRequest};
use freehold_protocol::{AppName, InstallId, MemberName};

use super::find::find;
use super::text;
use crate::context::Context;
use crate::error::Result;

/// Change what a member may do: replace the groups, the apps or the installs of the member.
#[derive(Debug, Args)]
#[command(
    override_usage = "freehold member set NAME [OPTIONS]",
    after_help = "\
Examples:
  freehold member set ana@example.com --group operator
  freehold member set ana@example.com --group developer --group auditor
  freehold member set globex-ops --install globex --install globex-eu
  freehold member set ben@example.com --no-apps --no-installs

The options replace the groups, apps or installs of the member; what no option names stays. A member without apps and
installs is not limited: the groups count for the whole tenant, except that `customer` permits nothing then. The change
decides about the next request of the member. `freehold member invite --help` lists the groups."
)]
pub(crate) struct Set {
    /// Name of the member.
    #[arg(value_name = "NAME")]
    member: MemberName,
    #[command(flatten)]
    change: Change,
}

/// What is replaced.
#[derive(Debug, Args)]
#[group(required = true, multiple = true)]
struct Change {
    /// A group that the member has from now on; repeat it for several.
    #[arg(long = "group", value_name = "GROUP")]
    groups: Vec<Group>,
    /// An app that the member is limited to from now on; repeat it for several.
    #[arg(long = "app", value_name = "APP")]
    apps: Vec<AppName>,
    /// An install that the member is limited to from now on; repeat it for several.
    #[arg(long = "install", value_name = "INSTALL")]
    installs: Vec<InstallId>,
    /// Remove the limit to apps.
    #[arg(long, conflicts_with = "apps")]
    no_apps: bool,
    /// Remove the limit to installs.
    #[arg(long, conflicts_with = "installs")]
    no_installs: bool,
}

impl Set {
    pub(super) async fn run(self, context: &Context) -> Result<()> {
        let api = context.api().await?;
        let request = self.change.of(find(&api, &self.member).await?);
        let set: MemberView = api.send(calls::set_member(&self.member, &request)).await?;
        context.out.show(&set, text::member)
    }
}

impl Change {
    /// Returns the request that changes `member`.
    fn of(self, member: MemberView) -> SetMemberRequest {
        let groups = self.groups.into_iter().map(String::from).collect();
        SetMemberRequest {
            groups: replaced(groups, false, member.groups),
            apps: replaced(self.apps, self.no_apps, member.apps),
            installs: replaced(self.installs, self.no_installs, member.installs),
        }
    }
}

/// Returns the `given` values; without any, those from `before`, unless there shall be `none`.
fn replaced<T: Ord>(given: Vec<T>, none: bool, before: BTreeSet<T>) -> BTreeSet<T> {
    if given.is_empty() && !none { before } else { given.into_iter().collect() }
}
