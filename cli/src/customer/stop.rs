//! `freehold customer pause`, `resume`, `revoke-sessions`, `close` and `open`: each changes one or two parameters of
//! the install stack, with the template that is launched.

use std::collections::BTreeMap;

use clap::Args;
use freehold_domain::suggestion::nearest;
use freehold_protocol::{InstallId, RoleKey};
use jiff::Timestamp;
use serde_json::json;

use super::answer::Answer;
use super::own_install::OwnInstall;
use super::question::Question;
use crate::cloudformation::{BREAK_GLASS_UNTIL, Change, Outcome, Stack, Stacks, Template};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::output::Part;
use crate::progress::{Progress, or_stopped};

/// The switches of the stack that do not belong to a role.
const NOT_OF_ROLES: [&str; 2] = ["EnableRunner", "EnableAppRoles"];

/// For customers: stop the runner and every mode at once; orders wait.
#[derive(Debug, Args)]
#[command(after_help = Question::CanStop.help("\
Example:
  freehold customer pause globex --tenant acme

Sets `EnableRunner=false`. Jobs that run are ended, and the runner can neither receive orders nor assume roles. What the app made keeps
running with its own roles. `freehold customer stopped` checks that the pause took effect, and `freehold customer resume`
undoes it."))]
pub(crate) struct Pause {
    /// Name of the install.
    install: InstallId,
}

/// For customers: resume the runner after a pause.
#[derive(Debug, Args)]
#[command(after_help = Question::CanStop.help("\
Example:
  freehold customer resume globex --tenant acme

Sets `EnableRunner=true`. Modes that you closed stay closed."))]
pub(crate) struct Resume {
    /// Name of the install.
    install: InstallId,
}

/// For customers: end every live session of the runner and of all modes.
#[derive(Debug, Args)]
#[command(after_help = Question::CanStop.help("\
Example:
  freehold customer revoke-sessions globex --tenant acme

Sets `RevokeSessionsBefore` to the present time: sessions that began before it lose all permissions, including those of
roles that the app made. New sessions are not affected: pause or close first. The stack's own machine is replaced by a
new one. A runner that runs elsewhere notices within about a minute, ends the jobs that run, and continues with a new
session automatically; jobs that may be repeated are repeated, and other jobs end as interrupted. A runner that gets its
credentials from outside, such as from variables of its environment, needs new credentials from whoever starts it; its
log then states this."))]
pub(crate) struct RevokeSessions {
    /// Name of the install.
    install: InstallId,
}

/// For customers: close a mode or another role of the app.
#[derive(Debug, Args)]
#[command(after_help = Question::CanStop.help("\
Examples:
  freehold customer close globex maintenance --tenant acme
  freehold customer close globex break-glass-restart --tenant acme

Sets the parameter of the role to `false`, such as `EnableMaintenance`. Nobody can assume the role, and its live
sessions may do nothing; a job that needs the role ends as blocked. While the runner is paused, the stack does not store
this change: resume the runner first."))]
pub(crate) struct Close {
    /// Name of the install.
    install: InstallId,
    /// The mode or role: `provision`, `maintenance`, `deprovision`, or the name of a role of the app as the stack's
    /// outputs name it.
    role: RoleKey,
}

/// For customers: open a mode or another role of the app.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  freehold customer open globex deprovision --tenant acme
  freehold customer open globex break-glass-restart --until 2026-11-30T18:00:00Z --tenant acme

Sets the parameter of the role to `true`, such as `EnableDeprovision`. Break-glass access needs an end: `--until` also
sets `BreakGlassUntil`.")]
pub(crate) struct Open {
    /// Name of the install.
    install: InstallId,
    /// The mode or role.
    role: RoleKey,
    /// The time in UTC at which break-glass roles lose their permissions again, such as `2026-11-30T18:00:00Z`.
    #[arg(long, value_name = "TIME", value_parser = time)]
    until: Option<Timestamp>,
}

impl Pause {
    pub(crate) async fn run(&self, context: &Context) -> Result<()> {
        pause(&OwnInstall::find(context, &self.install).await?).await?.print(context.out)
    }
}

impl Resume {
    pub(crate) async fn run(&self, context: &Context) -> Result<()> {
        resume(&OwnInstall::find(context, &self.install).await?).await?.print(context.out)
    }
}

impl RevokeSessions {
    pub(crate) async fn run(&self, context: &Context) -> Result<()> {
        revoke_sessions(&OwnInstall::find(context, &self.install).await?).await?.print(context.out)
    }
}

impl Close {
    pub(crate) async fn run(&self, context: &Context) -> Result<()> {
        close(&OwnInstall::find(context, &self.install).await?, &self.role).await?.print(context.out)
    }
}

/// Stops the runner and every mode.
pub(super) async fn pause(own: &OwnInstall) -> Result<Answer> {
    let does = "the runner can neither receive orders nor assume roles, and the roles of its jobs have no permissions; \
                the app keeps running";
    set(own, &|_| Ok(vec![("EnableRunner".to_owned(), "false".to_owned())]), does).await
}

/// Resumes the runner after a pause.
pub(super) async fn resume(own: &OwnInstall) -> Result<Answer> {
    let does = "the runner takes orders again, under the modes that are open";
    set(own, &|_| Ok(vec![("EnableRunner".to_owned(), "true".to_owned())]), does).await
}

/// Ends every live session of the runner and of all modes.
pub(super) async fn revoke_sessions(own: &OwnInstall) -> Result<Answer> {
    let now = written(Timestamp::now());
    let does = "sessions that began earlier have no permissions any more; the runner ends the jobs that run, and \
                continues within about a minute with a new session, which has the permissions of the open modes";
    set(own, &|_| Ok(vec![("RevokeSessionsBefore".to_owned(), now.clone())]), does).await
}

/// Closes a mode or another role of the app.
pub(super) async fn close(own: &OwnInstall, role: &RoleKey) -> Result<Answer> {
    let does = format!("nobody can assume the role `{role}`, and its live sessions have no permissions");
    let off = |stack: &Stack| Ok(vec![(switch(stack, &own.install, role)?, "false".to_owned())]);
    set(own, &off, &does).await
}

impl Open {
    pub(crate) async fn run(&self, context: &Context) -> Result<()> {
        let does = format!("the runner may assume the role `{}` for jobs that the accepted contract allows", self.role);
        let on = |stack: &Stack| self.changes(stack, Timestamp::now());
        set(&OwnInstall::find(context, &self.install).await?, &on, &does).await?.print(context.out)
    }

    /// Returns the parameters to set. A break-glass role that the stack would open without an end is refused.
    fn changes(&self, stack: &Stack, now: Timestamp) -> Result<Vec<(String, String)>> {
        let role = &self.role;
        let on = (switch(stack, &self.install, role)?, "true".to_owned());
        if !role.as_str().starts_with("break-glass") {
            return match self.until {
                None => Ok(vec![on]),
                Some(_) => Err(Error::invalid(format!(
                    "`--until` is for break-glass roles only, and `{role}` is not one"
                ))
                .or(format!("leave out `--until`; `freehold customer close {} {role}` closes the role", self.install))),
            };
        }
        let set_before = stack.parameters.get(BREAK_GLASS_UNTIL).and_then(|until| until.parse::<Timestamp>().ok());
        match self.until {
            Some(until) if until > now => Ok(vec![on, (BREAK_GLASS_UNTIL.to_owned(), written(until))]),
            None if set_before.is_some_and(|until| until > now) => Ok(vec![on]),
            Some(until) => Err(Error::invalid(format!("`--until {}` has passed", written(until)))
                .or("pass a time in the future, in UTC, such as `--until 2026-11-30T18:00:00Z`")),
            None => Err(Error::invalid(format!("role `{role}` needs a time at which break-glass ends"))
                .or("pass `--until TIME`, in UTC, such as `--until 2026-11-30T18:00:00Z`")),
        }
    }
}

/// Parses a time in UTC.
fn time(text: &str) -> Result<Timestamp, String> {
    text.parse().map_err(|_| format!("`{text}` is not a time in UTC, such as 2026-11-30T18:00:00Z"))
}

/// Returns a time in the format of the stack's parameters.
fn written(at: Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// Returns the parameter of `stack` that opens and closes `role`.
fn switch(stack: &Stack, install: &InstallId, role: &RoleKey) -> Result<String> {
    let switch = role.switch();
    if switch == "EnableRunner" {
        return Err(Error::invalid("`runner` is not a mode or a role of the app").or(format!(
            "`freehold customer pause {install}` stops the runner, and `freehold customer resume {install}` starts it"
        )));
    }
    let roles: Vec<String> = roles(stack).into_iter().map(|(role, _)| role).collect();
    if stack.parameters.contains_key(&switch) && !NOT_OF_ROLES.contains(&switch.as_str()) {
        return Ok(switch);
    }
    let way_out = match nearest(role.as_str(), roles.iter().map(String::as_str)) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("its roles are `{}`", roles.join("`, `")),
    };
    Err(Error::not_found(format!("install `{install}` has no role `{role}`")).or(way_out))
}

/// Returns the roles that the stack opens and closes, each with whether its switch is on.
pub(super) fn roles(stack: &Stack) -> Vec<(String, bool)> {
    let switches = stack.parameters.iter().map(|(name, value)| (name.as_str(), value));
    let of_roles = switches.filter(|(name, _)| name.starts_with("Enable") && !NOT_OF_ROLES.contains(name));
    of_roles.map(|(name, value)| (role_of(name), value == "true")).collect()
}

/// Returns the role of a switch: `break-glass-restart` of `EnableBreakGlassRestart`.
fn role_of(switch: &str) -> String {
    let mut role = String::new();
    for sign in switch.trim_start_matches("Enable").chars() {
        if sign.is_ascii_uppercase() && !role.is_empty() {
            role.push('-');
        }
        role.push(sign.to_ascii_lowercase());
    }
    role
}

/// Names of parameters and their new values.
type Parameters = Vec<(String, String)>;

/// Sets the parameters that `changes` returns for the install stack, and returns the effect.
pub(super) async fn set(
    own: &OwnInstall,
    changes: &dyn Fn(&Stack) -> Result<Parameters>,
    does: &str,
) -> Result<Answer> {
    let stack = own.stack().await?;
    let parameters = changes(&stack)?;
    let change = Change {
        stack: stack.name.clone(),
        template: Template::Launched,
        parameters: parameters.iter().cloned().collect(),
        tags: BTreeMap::new(),
    };
    let progress = Progress::start();
    let stacks = Stacks::new(&own.config);
    let stopped = format!(
        "stopped waiting for stack `{}`, whose update continues if it has begun; run the command again to wait for it",
        stack.name
    );
    let (outcome, stack) = or_stopped(stacks.apply(&change, &progress), stopped).await?;
    drop(progress);
    let changed = outcome != Outcome::Unchanged;
    for (name, value) in &parameters {
        stored(&stack, name, value)?;
    }
    let (name, value) = parameters.first().cloned().unwrap_or_default();
    let answer = json!({ "stack": stack.name, "parameter": name, "value": value, "changed": changed, "does": does });
    let word = if changed { "is now" } else { "was already" };
    let text = format!("parameter `{name}` of stack `{}` {word} `{value}`: {does}", stack.name);
    Answer::new(&answer, vec![Part::Text(text)])
}

/// Checks that the stack has stored the value. CloudFormation stores the value of a parameter with a change of a resource
/// only. While the runner is off, a mode has no permissions either way, so closing it changes no resource.
fn stored(stack: &Stack, name: &str, value: &str) -> Result<()> {
    if stack.parameters.get(name).is_some_and(|now| now == value) {
        return Ok(());
    }
    let what = "because this changes no resource while the runner is paused";
    Err(Error::conflict(format!("CloudFormation did not store `{name}={value}` in stack `{}`, {what}", stack.name)).or(
        "run `freehold customer resume`, then this command again; until then the mode stays as it was before the pause",
    ))
}

#[cfg(test)]
mod tests {
    use aws_sdk_cloudformation::types::StackStatus;

    use super::*;

    fn stack(parameters: &[(&str, &str)]) -> Stack {
        Stack {
            id: "arn".into(),
            name: "freehold-acme--globex".into(),
            status: StackStatus::UpdateComplete,
            reason: String::new(),
            parameters: parameters.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
            outputs: BTreeMap::new(),
            changed_at: String::new(),
        }
    }

    fn of(role: &str) -> Result<String> {
        let names = ["EnableRunner", "EnableAppRoles", "EnableMaintenance", "EnableBreakGlassRestart", "RunnerUrl"];
        let stack = stack(&names.map(|name| (name, "true")));
        switch(&stack, &"globex".parse().unwrap(), &role.parse().unwrap())
    }

    #[test]
    fn only_a_role_has_a_switch_and_a_typo_is_answered_with_the_role_that_was_meant() {
        assert_eq!(of("break-glass-restart").unwrap(), "EnableBreakGlassRestart");
        insta::assert_snapshot!(of("maintenanc").unwrap_err(), @"install `globex` has no role `maintenanc`; did you mean `maintenance`?");
        insta::assert_snapshot!(of("app-roles").unwrap_err(), @"install `globex` has no role `app-roles`; its roles are `break-glass-restart`, `maintenance`");
        insta::assert_snapshot!(of("runner").unwrap_err(), @"`runner` is not a mode or a role of the app; `freehold customer pause globex` stops the runner, and `freehold customer resume globex` starts it");
    }

    #[test]
    fn break_glass_is_opened_with_an_end_in_the_future() {
        let now: Timestamp = "2026-11-30T12:00:00Z".parse().unwrap();
        let changes = |role: &str, until: Option<&str>, before: &str| {
            let until = until.map(|text| time(text).unwrap());
            let open = Open { install: "globex".parse().unwrap(), role: role.parse().unwrap(), until };
            let stack =
                stack(&[("EnableBreakGlassX", "false"), ("EnableProvision", "false"), (BREAK_GLASS_UNTIL, before)]);
            let names = open.changes(&stack, now).map_err(|error| error.to_string())?;
            Ok::<_, String>(names.into_iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>())
        };
        let (past, future) = ("1970-01-01T00:00:00Z", "2026-11-30T18:00:00Z");

        let both = ["EnableBreakGlassX=true".to_owned(), format!("{BREAK_GLASS_UNTIL}={future}")];
        assert_eq!(changes("break-glass-x", Some(future), past).unwrap(), both);
        assert_eq!(changes("break-glass-x", None, future).unwrap(), ["EnableBreakGlassX=true"]);
        assert_eq!(changes("provision", None, past).unwrap(), ["EnableProvision=true"]);
        let without = changes("break-glass-x", None, past).unwrap_err();
        assert!(
            without.starts_with("role `break-glass-x` needs a time at which break-glass ends; pass `--until"),
            "{without}"
        );
        assert!(changes("break-glass-x", Some(past), past).unwrap_err().contains("has passed"));
        assert!(changes("provision", Some(future), past).unwrap_err().contains("`provision` is not one"));
        assert!(time("tomorrow").unwrap_err().contains("such as 2026-11-30T18:00:00Z"));
    }

    #[test]
    fn a_value_that_the_stack_did_not_store_is_a_matter_of_the_moment() {
        let error = stored(&stack(&[("EnableProvision", "true")]), "EnableProvision", "false").unwrap_err();

        assert_eq!(error.kind().exit_code(), 4);
        assert!(stored(&stack(&[("EnableProvision", "false")]), "EnableProvision", "false").is_ok());
    }
}
