//! The actions: the operations of the API about which policies decide, each with its class, resource and summary.

use Class::{Administer, Approve, Change, Operate, Read};

/// What an action does. Each class is a group of actions in the policies, such as `Freehold::Action::"read"`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// Changes nothing.
    Read,
    /// Acts on what exists: deploys, runs, repairs.
    Operate,
    /// Changes what an app or an install is.
    Change,
    /// Approves or rejects a plan.
    Approve,
    /// Changes who may do what, or something that the whole tenant depends on.
    Administer,
}

impl Class {
    /// All classes.
    pub const ALL: [Self; 5] = [Read, Operate, Change, Approve, Administer];

    /// Returns the name of the class in the policies.
    pub const fn as_str(self) -> &'static str {
        match self {
            Read => "read",
            Operate => "operate",
            Change => "change",
            Approve => "approve",
            Administer => "administer",
        }
    }
}

/// The kind of resource that an action is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum About {
    Tenant,
    App,
    Install,
}

impl About {
    /// Returns the name of the kind, as people write it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Tenant => "tenant",
            Self::App => "app",
            Self::Install => "install",
        }
    }
}

/// An action of the policies, which has the name of its operation in the API.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ActionInfo {
    /// The operation's id in the document of the API.
    pub name: &'static str,
    pub class: Class,
    pub about: About,
    /// Whether the action can also be about an app or the tenant: the workflow and the jobs of a build belong to an
    /// app, and the build runner belongs to the tenant.
    pub has_builds: bool,
    /// What the action does, as a sentence for people.
    pub summary: &'static str,
}

impl ActionInfo {
    /// Returns whether the action can be about a resource of this kind.
    pub fn is_about(&self, about: About) -> bool {
        self.has_builds || self.about == about
    }
}

/// The operations about which no policy decides. A call of a webhook is signed by the webhook's key. Everybody whom API
/// Gateway has identified may see who they are, and may accept an invitation, whose code is the proof.
pub const UNDECIDED: [&str; 3] = ["call_webhook", "show_caller", "accept_invitation"];

const fn of(about: About, class: Class, name: &'static str, summary: &'static str) -> ActionInfo {
    ActionInfo { name, class, about, has_builds: false, summary }
}

const fn tenant(class: Class, name: &'static str, summary: &'static str) -> ActionInfo {
    of(About::Tenant, class, name, summary)
}

const fn app(class: Class, name: &'static str, summary: &'static str) -> ActionInfo {
    of(About::App, class, name, summary)
}

const fn install(class: Class, name: &'static str, summary: &'static str) -> ActionInfo {
    of(About::Install, class, name, summary)
}

/// An action about an install, a build's workflow and jobs, or the build runner.
const fn work(class: Class, name: &'static str, summary: &'static str) -> ActionInfo {
    ActionInfo { has_builds: true, ..of(About::Install, class, name, summary) }
}

/// Returns all actions, sorted by what they are about and by their class.
pub const fn actions() -> &'static [ActionInfo] {
    &ACTIONS
}

/// `create_install` is about the install that it would create, with the environment that the request gives it.
const ACTIONS: [ActionInfo; 81] = [
    tenant(Read, "show_tenant", "Shows the tenant, its reports queue and its root key."),
    tenant(Read, "list_apps", "Lists all apps."),
    tenant(Read, "list_installs", "Lists all installs."),
    tenant(Read, "show_lineage", "Shows which builds made an artifact, and which installs use it."),
    tenant(Read, "list_subscriptions", "Lists the subscriptions to notifications."),
    tenant(Read, "list_webhooks", "Lists the webhooks."),
    tenant(Read, "list_members", "Lists the members and their groups."),
    tenant(Read, "show_policies", "Shows the policies about who may do what."),
    tenant(Read, "test_access", "Shows what the policies decide about a principal."),
    tenant(Administer, "enrol_build_runner", "Registers the tenant's build runner."),
    tenant(Administer, "revoke_artifact", "Revokes an artifact."),
    tenant(Administer, "add_subscription", "Adds a subscription to notifications."),
    tenant(Administer, "remove_subscription", "Removes a subscription."),
    tenant(Administer, "test_subscriptions", "Sends a test notification."),
    tenant(Administer, "add_webhook", "Adds a webhook."),
    tenant(Administer, "remove_webhook", "Removes a webhook."),
    tenant(Administer, "invite_member", "Invites a member."),
    tenant(Administer, "set_member", "Changes the groups, apps and installs of a member."),
    tenant(Administer, "remove_member", "Removes a member."),
    tenant(Administer, "set_policies", "Replaces the policies about who may do what."),
    app(Read, "show_app", "Shows an app and its latest version."),
    app(Read, "list_versions", "Lists the versions of an app."),
    app(Read, "show_version", "Shows a version of an app with its document."),
    app(Read, "show_inputs_schema", "Shows the JSON Schema of a version's inputs."),
    app(Read, "show_contract", "Shows what a version may do in a customer's account."),
    app(Read, "show_terms", "Shows terms that a customer agreed to."),
    app(Read, "list_builds", "Lists the builds of an app."),
    app(Read, "list_releases", "Lists the releases of an app."),
    app(Read, "show_release", "Shows a release and its artifacts."),
    app(Read, "list_channels", "Lists the channels of an app."),
    app(Read, "list_artifacts", "Lists the artifacts of an app, and the reasons why they are kept."),
    app(Operate, "move_channel", "Moves a channel to a release, and deploys the installs that follow it."),
    app(Operate, "prune_artifacts", "Marks unused artifacts of an app for removal."),
    app(Change, "upload_source", "Uploads a packed source directory."),
    app(Change, "sync_app", "Syncs a version of an app."),
    app(Change, "build_components", "Builds components of an app."),
    app(Change, "create_release", "Creates a release of an app."),
    work(Read, "show_install", "Shows an install and its deployed components."),
    install(Read, "show_inputs", "Shows the inputs of an install. Sensitive inputs have no value there."),
    install(Read, "show_toggles", "Shows the toggleable components of an install."),
    install(Read, "render_stack", "Shows the CloudFormation template of an install."),
    install(Read, "render_stack_of_version", "Shows the CloudFormation template for another version of the app."),
    install(Read, "list_runbooks", "Lists the runbooks that can be run in an install."),
    install(Read, "list_runs", "Lists the runs of runbooks."),
    install(Read, "show_run", "Shows a run of a runbook and its steps."),
    install(Read, "list_drift", "Lists the drift that checks found."),
    work(Read, "show_history", "Shows the events of an install."),
    work(Read, "list_workflows", "Lists the workflows of an install."),
    work(Read, "show_workflow", "Shows a workflow and its nodes."),
    work(Read, "show_job", "Shows a job, its plan and its history."),
    work(Read, "list_logs", "Shows the log of a job."),
    install(Operate, "deploy_components", "Deploys components of an install."),
    install(Operate, "run_action", "Runs an action in an install."),
    install(Operate, "run_runbook", "Runs a runbook in an install."),
    install(Operate, "resume_run", "Resumes a run of a runbook."),
    install(Operate, "cancel_run", "Cancels a run of a runbook."),
    work(Operate, "upgrade_runner", "Replaces the program of a runner by one of a signed release."),
    install(Operate, "detect_drift", "Checks deployed parts for drift."),
    install(Operate, "acknowledge_drift", "States that a difference is known and stays."),
    install(Operate, "ignore_drift", "Changes the rules that ignore drift."),
    install(Operate, "check_health", "Checks whether deployed components are healthy."),
    install(Operate, "report_check", "Reports the result of a required check of a component."),
    work(Operate, "cancel_workflow", "Cancels a workflow."),
    work(Operate, "resume_workflow", "Resumes a workflow that has ended."),
    work(Operate, "skip_node", "Lets a workflow continue without one of its failed nodes."),
    work(Operate, "cancel_job", "Cancels a job."),
    work(Operate, "retry_job", "Retries a failed job."),
    work(Operate, "disable_install", "Disables an install."),
    work(Operate, "enable_install", "Enables a disabled install again."),
    install(Change, "create_install", "Creates an install and starts its provisioning."),
    install(Change, "set_inputs", "Changes the vendor's inputs of an install."),
    install(Change, "set_toggles", "Switches components of an install on or off."),
    install(Change, "set_labels", "Sets and removes labels of an install, also its environment."),
    install(Change, "set_licence", "Sets or withdraws the licence of an install."),
    install(Change, "set_release", "Pins an install to a release, or lets it follow a channel."),
    install(Change, "teardown_install", "Removes what is deployed in an install."),
    install(Change, "delete_install", "Deletes an install in which nothing ever ran."),
    work(Approve, "approve_job", "Approves the plan for which a job waits."),
    work(Approve, "reject_job", "Rejects the plan for which a job waits."),
    install(Administer, "set_approvals", "Sets whether plans of an install wait for an approval."),
    install(Administer, "forget_install", "Removes everything that the tenant stores about an install."),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_action_has_one_name() {
        let mut names: Vec<&str> = actions().iter().map(|action| action.name).chain(UNDECIDED).collect();
        let all = names.len();
        names.sort_unstable();
        names.dedup();

        assert_eq!(names.len(), all);
    }

    #[test]
    fn actions_are_sorted_by_resource_and_class() {
        let places: Vec<(About, Class)> = actions().iter().map(|action| (action.about, action.class)).collect();

        assert!(places.is_sorted(), "{places:?}");
    }
}
