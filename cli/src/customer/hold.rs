//! `freehold customer hold` and `lift-hold`: start and end a hold, during which no change may start, not even in a
//! change window.

use clap::Args;
use freehold_protocol::InstallId;
use freehold_windows::HELD;

use super::answer::Answer;
use super::own_install::OwnInstall;
use super::stop::set;
use crate::context::Context;
use crate::error::Result;

/// For customers: hold all changes of the vendor that have not started yet.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  freehold customer hold globex --tenant acme

Sets `ChangesHeld=true`. Deploys, removals and actions that have not started wait until `freehold customer lift-hold`;
work that has started continues to its end. Health checks that you name in `ActionsAnyTime` continue, and a hold does
not change break-glass access. The hold takes effect within a minute. To stop jobs that run, use `freehold customer
pause`.")]
pub(crate) struct Hold {
    /// Name of the install.
    install: InstallId,
}

/// For customers: let changes start again when the windows allow it.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  freehold customer lift-hold globex --tenant acme

Sets `ChangesHeld=false`. The runner notices this within two minutes, and the waiting changes continue when a window is
open.")]
pub(crate) struct LiftHold {
    /// Name of the install.
    install: InstallId,
}

impl Hold {
    pub(crate) async fn run(&self, context: &Context) -> Result<()> {
        hold(&OwnInstall::find(context, &self.install).await?).await?.print(context.out)
    }
}

impl LiftHold {
    pub(crate) async fn run(&self, context: &Context) -> Result<()> {
        lift_hold(&OwnInstall::find(context, &self.install).await?).await?.print(context.out)
    }
}

/// Holds all changes that have not started.
pub(super) async fn hold(own: &OwnInstall) -> Result<Answer> {
    let does = "within a minute the hold takes effect: no new change starts until the hold is lifted; changes that \
                have started continue";
    set(own, &|_| Ok(vec![(HELD.to_owned(), "true".to_owned())]), does).await
}

/// Lets changes start again.
pub(super) async fn lift_hold(own: &OwnInstall) -> Result<Answer> {
    let does = "changes may start again within the change windows";
    set(own, &|_| Ok(vec![(HELD.to_owned(), "false".to_owned())]), does).await
}
