//! `freehold customer pause`, `resume`, `revoke-sessions`, `close` and `open`: each changes one parameter of the install
//! stack, with the template that is launched.

use std::collections::BTreeMap;

use clap::Args;
use freehold_protocol::{InstallId, RoleKey};
use serde_json::json;

use super::own_install::OwnInstall;
use super::question::Question;
use crate::cloudformation::{Change, Outcome, Stacks, Template};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::progress::Progress;

/// Stop the runner and every mode at once, as the customer; orders wait.
#[derive(Debug, Args)]
#[command(after_help = Question::CanStop.help("\
Example:
  freehold customer pause globex --tenant acme

Sets `EnableRunner=false`. Jobs that run are ended, and the runner can take no order and no role. What the app made keeps
running with its own roles. `freehold customer stopped` checks that the pause took effect, and `freehold customer resume`
undoes it."))]
pub(crate) struct Pause {
    /// Name of the install.
    install: InstallId,
}

/// Resume the runner after a pause, as the customer.
#[derive(Debug, Args)]
#[command(after_help = Question::CanStop.help("\
Example:
  freehold customer resume globex --tenant acme

Sets `EnableRunner=true`. Modes that you closed stay closed."))]
pub(crate) struct Resume {
    /// Name of the install.
    install: InstallId,
}

/// End every live session of the runner and of all modes, as the customer.
#[derive(Debug, Args)]
#[command(after_help = Question::CanStop.help("\
Example:
  freehold customer revoke-sessions globex --tenant acme

Sets `RevokeSessionsBefore` to the present time: sessions that began before it may do nothing any more, also those of roles that
the app made. New sessions are not affected: pause or close first. The stack's own machine is replaced by a new one. A runner that
runs elsewhere notices within about a minute, ends the jobs that run, and continues with a new session by itself; jobs that may be
done again are done again, others end as interrupted. Only if it gets its credentials from outside, such as from variables of its
environment, does it need new ones from whoever starts it: its log says so."))]
pub(crate) struct RevokeSessions {
    /// Name of the install.
    install: InstallId,
}

/// Close a mode or another role of the app, as the customer.
#[derive(Debug, Args)]
#[command(after_help = Question::CanStop.help("\
Examples:
  freehold customer close globex maintenance --tenant acme
  freehold customer close globex break-glass-restart --tenant acme

Sets the parameter of the role to `false`, such as `EnableMaintenance`. Nobody can take the role, and its live sessions may do
nothing; a job that needs it ends as blocked. While the runner is paused, the stack does not store this: resume it first."))]
pub(crate) struct Close {
    /// Name of the install.
    install: InstallId,
    /// The mode or role: `provision`, `maintenance`, `deprovision`, or the name of a role of the app as the stack's outputs
    /// have it.
    role: RoleKey,
}

/// Open a mode or another role of the app, as the customer.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  freehold customer open globex deprovision --tenant acme

Sets the parameter of the role to `true`, such as `EnableDeprovision`.")]
pub(crate) struct Open {
    /// Name of the install.
    install: InstallId,
    /// The mode or role.
    role: RoleKey,
}

impl Pause {
    pub(crate) async fn run(&self, context: &Context) -> Result<()> {
        let does = "the runner can take no order and no role, and no mode has a permission; the app keeps running";
        set(context, &self.install, ("EnableRunner", "false"), does).await
    }
}

impl Resume {
    pub(crate) async fn run(&self, context: &Context) -> Result<()> {
        let does = "the runner takes orders again, under the modes that are open";
        set(context, &self.install, ("EnableRunner", "true"), does).await
    }
}

impl RevokeSessions {
    pub(crate) async fn run(&self, context: &Context) -> Result<()> {
        let now = jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
        let does = "sessions that began before have no permissions any more; the runner ends the jobs that run, and continues \
                    within about a minute with a new session, which has the permissions of the open modes";
        set(context, &self.install, ("RevokeSessionsBefore", &now), does).await
    }
}

impl Close {
    pub(crate) async fn run(&self, context: &Context) -> Result<()> {
        let does = format!("nobody can take the role `{}`, and its live sessions have no permissions", self.role);
        set(context, &self.install, (&self.role.switch(), "false"), &does).await
    }
}

impl Open {
    pub(crate) async fn run(&self, context: &Context) -> Result<()> {
        let does = format!("the runner may take the role `{}` for jobs of the accepted contract", self.role);
        set(context, &self.install, (&self.role.switch(), "true"), &does).await
    }
}

/// Sets one parameter of the install stack, and says what this does.
async fn set(context: &Context, install: &InstallId, (name, value): (&str, &str), does: &str) -> Result<()> {
    let own = OwnInstall::find(context, install).await?;
    let stack = own.stack().await?;
    if !stack.parameters.contains_key(name) {
        let switches: Vec<&str> =
            stack.parameters.keys().map(String::as_str).filter(|name| name.starts_with("Enable")).collect();
        return Err(Error::not_found(format!("stack `{}` has no parameter `{name}`", stack.name))
            .or(format!("its switches are {}", switches.join(", "))));
    }
    let change = Change {
        stack: stack.name.clone(),
        template: Template::Launched,
        parameters: BTreeMap::from([(name.to_owned(), value.to_owned())]),
        tags: BTreeMap::new(),
    };
    let progress = Progress::start();
    let (outcome, stack) = Stacks::new(&own.config).apply(&change, &progress).await?;
    drop(progress);
    let changed = outcome != Outcome::Unchanged;
    // CloudFormation stores the value of a parameter with a change of a resource only. While the runner is off, a mode has
    // no permissions either way, so closing it changes no resource.
    if stack.parameters.get(name).is_none_or(|now| now != value) {
        return Err(Error::failed(format!("stack `{}` did not store `{name}={value}`, since no resource depends on it now", stack.name))
            .or("run `freehold customer resume` first; until this command has succeeded, the mode is as it was before the pause"));
    }
    let answer = json!({ "stack": stack.name, "parameter": name, "value": value, "changed": changed, "does": does });
    context.out.show(&answer, |_| {
        let word = if changed { "is now" } else { "was already" };
        format!("parameter `{name}` of stack `{}` {word} `{value}`: {does}", stack.name)
    })
}
