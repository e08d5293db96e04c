//! Reports parts of an app that use the cluster of the sandbox, in an app whose sandbox cannot have one.

use std::collections::{BTreeMap, BTreeSet};

use freehold_domain::toggles::off;
use freehold_protocol::app_version::{AppVersion, ComponentSpec, Platform};

use crate::kinds::Kind;
use crate::read::document::Node;
use crate::read::files::Place;
use crate::report::diagnostic::Severity;
use crate::report::draft::Draft;
use crate::state::app::App;

/// The outputs of a sandbox by which the runner finds its cluster.
const OUTPUTS: [&str; 2] = ["cluster", "cluster_name"];

/// Reports every part that uses the sandbox's cluster, if there cannot be one. `outputs` are the names of the outputs
/// that the sandbox's module declares; `None` if they are not known.
pub(crate) fn check(app: &mut App, version: &AppVersion, outputs: Option<&BTreeSet<String>>) {
    let elsewhere = version.stack.as_ref().is_some_and(|stack| stack.platform != Platform::AwsCloudformation)
        || version.runner.as_ref().is_some_and(|runner| runner.runner_type != "aws");
    let unsure = [Kind::Sandbox, Kind::Stack, Kind::Runner].iter().any(|kind| app.broken.contains(kind));
    if elsewhere || unsure {
        return;
    }
    let Some(Lack { why, way_out }) = lack(app, outputs) else { return };
    let drafts: Vec<Draft> = users(app, version)
        .into_iter()
        .map(|User { severity, place, what, other }| {
            Draft::new(severity, place, format!("{what}, and {why}")).help(format!("{way_out}, or {other}"))
        })
        .collect();
    app.drafts.extend(drafts);
}

/// The reason why there is no cluster, and how to get one.
struct Lack {
    why: &'static str,
    way_out: &'static str,
}

fn lack(app: &App, outputs: Option<&BTreeSet<String>>) -> Option<Lack> {
    if app.of(Kind::Sandbox).next().is_none() {
        let way_out = "add a `sandbox.toml` whose module has the output `cluster_name`";
        return Some(Lack { why: "the app has no sandbox", way_out });
    }
    let is_named = OUTPUTS.iter().any(|name| outputs.is_none_or(|outputs| outputs.contains(*name)));
    let way_out = "declare the output `cluster_name` in the module of the sandbox";
    let why = "the module of the sandbox has neither an output `cluster` nor an output `cluster_name`";
    (!is_named).then_some(Lack { why, way_out })
}

/// A part that uses the cluster of the sandbox.
struct User {
    severity: Severity,
    place: Place,
    /// What the part does with the cluster, as the start of a message.
    what: String,
    /// How the part can do without the cluster.
    other: &'static str,
}

/// Returns all parts that use the cluster of the sandbox. The severity is an error if the first deploy of every install
/// fails because of the part.
fn users(app: &App, version: &AppVersion) -> Vec<User> {
    const CONTEXT: &str = "name another cluster with `kubernetes_context`, from a `[[kubernetes_context]]` of \
                           `metadata.toml`";
    let off = off(version, &BTreeMap::new());
    let in_cluster = version.components.iter().filter(|one| is_in_cluster(&one.spec));
    let components = in_cluster.filter(|one| one.settings.kubernetes_context.is_empty()).filter_map(|one| {
        let name = one.name.as_str();
        let severity = if off.contains(&one.name) { Severity::Warning } else { Severity::Error };
        let what = format!("component `{name}` is deployed into the cluster of the sandbox");
        Some(User { severity, place: component(app, name)?, what, other: CONTEXT })
    });
    let secrets = version.secrets.iter().filter(|one| one.kubernetes.is_some()).filter_map(|one| {
        // A secret without a value is not copied.
        let severity = if one.required || one.auto_generate { Severity::Error } else { Severity::Warning };
        let what = format!("secret `{}` is copied into the cluster of the sandbox", one.name);
        Some(User { severity, place: secret(app, &one.name)?, what, other: "remove `kubernetes_sync`" })
    });
    let actions = version.actions.iter().filter(|one| one.enable_kube_config && one.kubernetes_context.is_empty());
    let actions = actions.filter_map(|one| {
        let name = one.name.as_str();
        let what = format!("action `{name}` gets a kubeconfig of the cluster of the sandbox");
        Some(User { severity: Severity::Warning, place: action(app, name)?, what, other: CONTEXT })
    });
    components.chain(secrets).chain(actions).collect()
}

/// Returns whether a component is deployed into a cluster.
const fn is_in_cluster(spec: &ComponentSpec) -> bool {
    match spec {
        ComponentSpec::HelmChart { .. } | ComponentSpec::KubernetesManifest { .. } | ComponentSpec::Job { .. } => true,
        ComponentSpec::TerraformModule { .. }
        | ComponentSpec::CloudformationStack { .. }
        | ComponentSpec::ContainerImage { .. }
        | ComponentSpec::DockerBuild { .. }
        | ComponentSpec::Pulumi { .. } => false,
    }
}

fn component(app: &App, name: &str) -> Option<Place> {
    let checked = app.of(Kind::Component).find(|checked| checked.root.text("name") == Some(name))?;
    Some(checked.place_of(&checked.root, "type"))
}

fn action(app: &App, name: &str) -> Option<Place> {
    const KEY: &str = "enable_kube_config";
    let checked = app.of(Kind::Action).find(|checked| checked.root.text("name") == Some(name))?;
    let root = &checked.root;
    let node = std::iter::once(root).chain(root.tables("steps")).find(|node| node.flag(KEY));
    // Without the key, the scripts of the action decide.
    Some(checked.key_place(node.map_or_else(|| root.entry("name"), |node| node.entry(KEY))?))
}

fn secret(app: &App, name: &str) -> Option<Place> {
    app.checked.iter().find_map(|checked| {
        let nodes: &[Node] = match checked.kind {
            Kind::Secrets => checked.root.tables("secret"),
            Kind::Secret => std::slice::from_ref(&checked.root),
            _ => return None,
        };
        let node = nodes.iter().find(|node| node.text("name") == Some(name))?;
        Some(checked.key_place(node.entry("kubernetes_sync")?))
    })
}
