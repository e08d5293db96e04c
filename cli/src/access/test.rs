//! `freehold access test`: asks the tenant what its policies decide.

use clap::Args;
use freehold_access::{Who, actions};
use freehold_client::calls;
use freehold_protocol::api::{AccessView, CallerView, TestAccessRequest};
use freehold_protocol::{ActionName, AppName, InstallId, MemberName};
use freehold_template::nearest;

use crate::context::Context;
use crate::error::{Error, Result};

/// Ask whether somebody may do something, without doing it.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  freehold access test --member ana@example.com --action deploy_components --install globex
  freehold access test --member ana@example.com --action run_action --install globex --run-action report-usage
  freehold access test --member ben@example.com --action set_policies
  freehold access test --who iam:arn:aws:iam::111111111111:role/ci --action sync_app --app my-app
  freehold access test --action approve_job --install globex

An action is the name of an operation of the API in lower case with underscores; docs/access.md lists the actions.
Without `--install` and `--app`, the action is about the whole tenant. Without `--member` and `--who`, the question is
about yourself, which everybody may ask. Exit code 1 when the policies do not permit the action.")]
pub(crate) struct Test {
    /// The principal, as `freehold whoami` prints it: `iam:` and an ARN, or `person:` or `pipeline:` and the subject of
    /// a token.
    #[arg(long, value_name = "PRINCIPAL", conflicts_with = "member")]
    who: Option<Who>,
    /// Name of a member.
    #[arg(long, value_name = "NAME")]
    member: Option<MemberName>,
    /// The action, such as `deploy_components`.
    #[arg(long, value_name = "ACTION")]
    action: String,
    /// The install that the action is about.
    #[arg(long, value_name = "INSTALL", conflicts_with = "app")]
    install: Option<InstallId>,
    /// The app that the action is about.
    #[arg(long, value_name = "APP")]
    app: Option<AppName>,
    /// Name of the action of the app, for `--action run_action`.
    #[arg(long, value_name = "NAME", requires = "install")]
    run_action: Option<ActionName>,
}

impl Test {
    pub(super) async fn run(self, context: &Context) -> Result<()> {
        let Self { who, member, action, install, app, run_action } = self;
        check(&action)?;
        let api = context.api().await?;
        let who = match (who, &member) {
            (Some(who), _) => Some(who.to_string()),
            (None, Some(_)) => None,
            (None, None) => Some(api.send::<CallerView>(calls::show_caller()).await?.who),
        };
        let request = TestAccessRequest { who, member, action, app, install, run_action };
        let view: AccessView = api.send(calls::test_access(&request)).await?;
        context.out.show(&view, |view| text(&request, view))?;
        if view.is_allowed { Ok(()) } else { Err(denial(&request, &view)) }
    }
}

/// Refuses a name that no action has.
fn check(action: &str) -> Result<()> {
    let names = || actions().iter().map(|known| known.name);
    if names().any(|name| name == action) {
        return Ok(());
    }
    let error = Error::invalid(format!("`{action}` is not an action"));
    Err(match nearest(action, names()) {
        Some(near) => error.or(format!("did you mean `{near}`? docs/access.md lists the actions")),
        None => error.or("docs/access.md lists the actions"),
    })
}

/// Returns who wants to do what, and where.
fn question(request: &TestAccessRequest) -> (String, String) {
    let who = request.member.as_ref().map(ToString::to_string).or_else(|| request.who.clone()).unwrap_or_default();
    let action = &request.action;
    let what = match (&request.install, &request.app, &request.run_action) {
        (Some(install), _, Some(run)) => format!("`{action}` with action `{run}` in install `{install}`"),
        (Some(install), _, None) => format!("`{action}` in install `{install}`"),
        (None, Some(app), _) => format!("`{action}` in app `{app}`"),
        (None, None, _) => format!("`{action}` in the tenant"),
    };
    (who, what)
}

fn text(request: &TestAccessRequest, view: &AccessView) -> String {
    let (who, what) = question(request);
    let word = if view.is_allowed { "allowed" } else { "denied" };
    let by = match (view.policies.is_empty(), view.is_allowed) {
        (true, _) => "no policy permits it".to_owned(),
        (false, true) => format!("permitted by {}", named(&view.policies)),
        (false, false) => format!("forbidden by {}", named(&view.policies)),
    };
    let groups = match view.groups.is_empty() {
        true => "no group may do it".to_owned(),
        false => format!("groups that may do it: {}", view.groups.join(", ")),
    };
    format!("{word}: {who}, {what}\n{by}\n{groups}")
}

fn named(policies: &[String]) -> String {
    policies.iter().map(|policy| format!("`{policy}`")).collect::<Vec<_>>().join(", ")
}

/// Returns the error about what the policies do not permit.
fn denial(request: &TestAccessRequest, view: &AccessView) -> Error {
    let (who, what) = question(request);
    let error = Error::failed(format!("the policies do not permit {what} to `{who}`"));
    match (&request.member, view.groups.first(), view.policies.is_empty()) {
        (Some(member), Some(group), true) => error.or(format!(
            "change the member, such as with `freehold member set {member} --group {group}`, or the policies with \
             `freehold access set`"
        )),
        (_, _, false) => error.or(format!("change {} with `freehold access set`", named(&view.policies))),
        (_, _, true) => error.or("add a policy that permits it with `freehold access set`"),
    }
}
