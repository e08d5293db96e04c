//! `freehold customer`: answers a customer's questions about an install with the customer's own AWS credentials, and
//! without any service of the vendor.

mod answer;
mod approve;
mod changes;
mod cost;
mod gone;
mod hold;
mod log;
mod man;
mod man_page;
mod own_install;
mod permissions;
mod question;
mod runner_checksum;
mod stop;
mod stopped;
mod ui;
mod verify_licence;
mod verify_template;
mod windows;

use clap::Subcommand;

use self::log::{approvals, asked, audit, origin, outside, ran, sent};

pub(crate) use self::log::evidence::Evidence;
pub(crate) use self::log::history::records;
pub(crate) use self::own_install::OwnInstall;
pub(crate) use self::question::questions;
pub(crate) use self::windows::change_windows;
use crate::context::Context;
use crate::error::Result;

#[derive(Debug, Subcommand)]
pub(crate) enum CustomerCommand {
    VerifyTemplate(verify_template::VerifyTemplate),
    VerifyLicence(verify_licence::VerifyLicence),
    Permissions(permissions::Permissions),
    Changes(changes::Changes),
    Asked(asked::Asked),
    Approvals(approvals::Approvals),
    Approve(approve::Approve),
    Reject(approve::Reject),
    Ran(ran::Ran),
    Origin(origin::Origin),
    Sent(sent::Sent),
    Outside(outside::Outside),
    #[command(subcommand)]
    Audit(audit::AuditCommand),
    Pause(stop::Pause),
    Resume(stop::Resume),
    RevokeSessions(stop::RevokeSessions),
    Close(stop::Close),
    Open(stop::Open),
    Windows(windows::Windows),
    Hold(hold::Hold),
    LiftHold(hold::LiftHold),
    Cost(cost::Cost),
    Stopped(stopped::Stopped),
    Gone(gone::Gone),
    Ui(ui::Ui),
    Man(man::Man),
}

impl CustomerCommand {
    pub(crate) async fn run(self, context: &Context, root: clap::Command) -> Result<()> {
        match self {
            Self::VerifyTemplate(args) => args.run(context),
            Self::VerifyLicence(args) => args.run(context),
            Self::Permissions(args) => args.run(context).await,
            Self::Changes(args) => args.run(context).await,
            Self::Asked(args) => args.run(context).await,
            Self::Approvals(args) => args.run(context).await,
            Self::Approve(args) => args.run(context).await,
            Self::Reject(args) => args.run(context).await,
            Self::Ran(args) => args.run(context).await,
            Self::Origin(args) => args.run(context).await,
            Self::Sent(args) => args.run(context).await,
            Self::Outside(args) => args.run(context).await,
            Self::Audit(command) => command.run(context).await,
            Self::Pause(args) => args.run(context).await,
            Self::Resume(args) => args.run(context).await,
            Self::RevokeSessions(args) => args.run(context).await,
            Self::Close(args) => args.run(context).await,
            Self::Open(args) => args.run(context).await,
            Self::Windows(args) => args.run(context).await,
            Self::Hold(args) => args.run(context).await,
            Self::LiftHold(args) => args.run(context).await,
            Self::Cost(args) => args.run(context).await,
            Self::Stopped(args) => args.run(context).await,
            Self::Gone(args) => args.run(context).await,
            Self::Ui(args) => args.run(context).await,
            Self::Man(args) => args.run(context, root),
        }
    }
}
