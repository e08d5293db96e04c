//! Every page, and the examples of the API's document that it is made of.

use freehold_protocol::api::{CallerView, Page as List, ReleaseView, VersionDocument};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::console::pages::view::View;
use crate::console::pages::{apps, install_parts, installs, job, members, messages, policies, version, workflow};

const EXAMPLES: &str = include_str!("../../api/examples.json");
/// The actions whose forms pages of installs show.
const ACTIONS: [&str; 7] =
    ["approve_job", "cancel_job", "cancel_workflow", "deploy_components", "reject_job", "resume_workflow", "retry_job"];
/// The actions whose forms pages of the tenant show.
const OF_TENANT: [&str; 6] =
    ["invite_member", "list_members", "remove_member", "set_member", "set_policies", "show_policies"];

/// Makes a page of answers of the API; `None` if one of them does not have its form.
pub(crate) type Make = fn(&View<'_>, &[Value]) -> Option<String>;

/// The name of each page, the examples that it is made of, and how.
pub(crate) const PAGES: [(&str, &[&str], Make); 21] = [
    ("installs", &["ListInstalls"], |view, of| Some(installs::list(view, &read(of, 0)?))),
    ("install", &["InstallView", "ListWorkflows", "ListReleases"], install),
    ("install of which plans are asked for", &["SetApprovals", "ListWorkflows", "ListReleases"], install),
    ("disabled install", &["DisableInstall", "ListWorkflows", "ListReleases"], install),
    ("workflows", &["ListWorkflows"], |view, of| Some(installs::workflows(view, "globex", &read(of, 0)?))),
    ("inputs", &["InstallInputs"], |view, of| Some(install_parts::inputs(view, &read(of, 0)?))),
    ("drift", &["InstallDrift"], |view, of| Some(install_parts::drift(view, &read(of, 0)?))),
    ("history", &["ShowHistory"], |view, of| Some(install_parts::history(view, "globex", &read(of, 0)?))),
    ("workflow", &["WorkflowView"], |view, of| Some(workflow::show(view, &read(of, 0)?))),
    ("workflow that was resumed", &["SkipNode"], |view, of| Some(workflow::show(view, &read(of, 0)?))),
    ("workflow that is cancelled", &["CancelWorkflow"], |view, of| Some(workflow::show(view, &read(of, 0)?))),
    ("job", &["JobView", "LogPage"], |view, of| Some(job::show(view, &read(of, 0)?, &read(of, 1)?))),
    ("job with a plan", &["ApproveJob", "LogPage"], |view, of| Some(job::show(view, &read(of, 0)?, &read(of, 1)?))),
    ("apps", &["ListApps"], |view, of| Some(apps::list(view, &read(of, 0)?))),
    ("app", &["AppView", "ListVersions", "ListReleases", "ListChannels", "ListBuilds"], app),
    ("version", &["VersionDocument"], |view, of| Some(version::show(view, &read(of, 0)?, None))),
    ("compared version", &["VersionDocument", "VersionDocument"], compared),
    ("members", &["ListMembers"], |view, of| Some(members::list(view, &read(of, 0)?))),
    ("member", &["MemberView"], |view, of| Some(members::show(view, &read(of, 0)?))),
    ("invitation", &["MemberInvited"], |view, of| Some(members::invited(view, &read(of, 0)?))),
    ("policies", &["PoliciesView"], |view, of| Some(policies::show(view, &read(of, 0)?))),
];

/// The pages that are made of the caller or of a text alone.
pub(crate) const OTHERS: [(&str, Make); 3] = [
    ("account", |view, _| Some(members::account(view))),
    ("error", |_, of| Some(messages::error("There is no such page", &read::<String>(of, 0)?, of.first()?.as_str()))),
    ("sign-in", |_, of| Some(messages::sign_in("/apps", of.first()?.as_str()))),
];

fn install(view: &View<'_>, of: &[Value]) -> Option<String> {
    let releases: List<ReleaseView> = read(of, 2)?;
    Some(installs::show(view, &read(of, 0)?, &read(of, 1)?, &releases.items))
}

fn app(view: &View<'_>, of: &[Value]) -> Option<String> {
    let (versions, releases, channels, builds) = (read(of, 1)?, read(of, 2)?, read(of, 3)?, read(of, 4)?);
    Some(apps::show(view, &read(of, 0)?, &apps::Parts { versions, releases, channels, builds }))
}

fn compared(view: &View<'_>, of: &[Value]) -> Option<String> {
    let before: VersionDocument = read(of, 1)?;
    Some(version::show(view, &read(of, 0)?, Some(&before)))
}

fn read<T: DeserializeOwned>(of: &[Value], at: usize) -> Option<T> {
    serde_json::from_value(of.get(at)?.clone()).ok()
}

/// Returns the examples with these names.
pub(crate) fn examples(names: &[&str]) -> Vec<Value> {
    let all: Value = serde_json::from_str(EXAMPLES).unwrap();
    names.iter().map(|name| all.get(name).unwrap_or_else(|| panic!("no example `{name}`")).clone()).collect()
}

/// Returns the caller of the examples, who may do everything.
pub(crate) fn caller() -> Value {
    let mut caller = examples(&["CallerView"]).swap_remove(0);
    caller["permissions"] = OF_TENANT.as_slice().into();
    caller
}

/// Makes a page for a caller; `None` if an answer does not have its form.
pub(crate) fn made(make: Make, caller: &Value, of: &[Value]) -> Option<String> {
    let caller: CallerView = serde_json::from_value(caller.clone()).ok()?;
    let view = View {
        caller: &caller,
        path: "/installs/globex",
        form_token: "form-token".to_owned(),
        page: "page-1".to_owned(),
        script: "/assets/live-1.js",
        allowed: ACTIONS.into_iter().collect(),
    };
    make(&view, of)
}

/// Returns every page as the examples make it, with its name.
pub(crate) fn all() -> Vec<(&'static str, String)> {
    let text = [Value::from("a text")];
    let caller = caller();
    let of = |make: Make, of: &[Value]| made(make, &caller, of);
    let pages = PAGES.iter().map(|(name, names, make)| (*name, of(*make, &examples(names))));
    let others = OTHERS.iter().map(|(name, make)| (*name, of(*make, &text)));
    let all = pages.chain(others);
    all.map(|(name, page)| (name, page.unwrap_or_else(|| panic!("the examples of `{name}` have another form"))))
        .collect()
}
