//! `freehold app list`, `show` and `versions`: lists apps and their versions, and shows one version.

use clap::Args;
use freehold_client::calls;
use freehold_protocol::AppName;
use freehold_protocol::api::{AppView, VersionDocument, VersionView};
use freehold_protocol::app_version::AppVersion;

use super::labels::{Label, has_labels, labels_text};
use super::version::{VersionName, or_latest};
use crate::context::Context;
use crate::error::Result;
use crate::output::{Output, Table, time};

/// List the apps.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  freehold app list")]
pub(crate) struct List {}

impl List {
    pub(super) async fn run(&self, context: &Context) -> Result<()> {
        let apps: Vec<AppView> = context.api().await?.list(calls::list_apps()).await?;
        context.out.show(&apps, |apps| {
            if apps.is_empty() {
                return "there is no app yet; `freehold app init DIR` writes an app to start from, and `freehold app sync DIR` \
                        stores it"
                    .to_owned();
            }
            let mut table = Table::new(&["APP", "VERSION", "DIGEST", "SYNCED"]);
            for app in apps {
                table.row([app.app.to_string(), app.number.to_string(), app.latest.short().to_owned(), time(app.updated_at)]);
            }
            context.out.table(&table)
        })
    }
}

/// List the versions of an app.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  freehold app versions my-app")]
pub(crate) struct Versions {
    /// Name of the app.
    app: AppName,
}

impl Versions {
    pub(super) async fn run(&self, context: &Context) -> Result<()> {
        let versions: Vec<VersionView> = context.api().await?.list(calls::list_versions(&self.app)).await?;
        context.out.show(&versions, |versions| {
            let mut table = Table::new(&["VERSION", "DIGEST", "COMPONENTS", "FIRST SYNCED"]);
            for one in versions {
                table.row([
                    one.number.to_string(),
                    one.version.to_string(),
                    one.components.to_string(),
                    time(one.created_at),
                ]);
            }
            context.out.table(&table)
        })
    }
}

/// Show one version of an app: components, inputs, actions, runbooks, roles.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  freehold app show my-app
  freehold app show my-app --version 3 --json
  freehold app show my-app --label service=ecs --label type")]
pub(crate) struct Show {
    /// Name of the app.
    app: AppName,
    /// The version: its number, its digest or the beginning of its digest; the latest version when absent.
    #[arg(long, value_name = "VERSION")]
    version: Option<VersionName>,
    /// Show only the components, actions and runbooks with this label of the app config: its key, or its key and its
    /// value. Can be given several times; a part must then have all of these labels.
    #[arg(long = "label", value_name = "KEY[=VALUE]")]
    labels: Vec<Label>,
}

impl Show {
    pub(super) async fn run(&self, context: &Context) -> Result<()> {
        let api = context.api().await?;
        let version = or_latest(&api, &self.app, self.version.as_ref()).await?;
        let mut document: VersionDocument = api.send(calls::show_version(&self.app, &version)).await?;
        keep_labelled(&mut document, &self.labels);
        context.out.show(&document, |document| render(document, !self.labels.is_empty(), context.out))
    }
}

/// Leaves out the parts without the labels in `wanted`, and inputs and roles, which have no labels. Does nothing if no
/// label is wanted.
fn keep_labelled(shown: &mut VersionDocument, wanted: &[Label]) {
    if wanted.is_empty() {
        return;
    }
    let document = &mut shown.document;
    document.components.retain(|one| has_labels(&one.settings.labels, wanted));
    document.actions.retain(|one| has_labels(&one.labels, wanted));
    document.runbooks.retain(|one| has_labels(&one.labels, wanted));
    document.inputs.clear();
    document.roles.clear();
    document.named_roles.clear();
    let components = &document.components;
    shown.resolved.retain(|one| components.iter().any(|kept| kept.name == one.component));
}

/// Returns a version as text. `by_label` means that the version was reduced to the parts with certain labels.
fn render(shown: &VersionDocument, by_label: bool, out: Output) -> String {
    let (view, document) = (&shown.view, &shown.document);
    let mut components = Table::new(&["COMPONENT", "KIND", "AFTER", "LABELS"]);
    for one in &document.components {
        let after: Vec<&str> = one.dependencies.iter().map(|name| name.as_str()).collect();
        let labels = labels_text(&one.settings.labels);
        components.row([one.name.to_string(), one.spec.kind().to_owned(), after.join(", "), labels]);
    }
    let mut sources = Table::new(&["COMPONENT", "SOURCE", "RESOLVED", "BUILD"]);
    for one in &shown.resolved {
        let resolved = one.resolved.clone().unwrap_or_else(|| "not built yet".to_owned());
        let build = one.build.as_ref().map(ToString::to_string).unwrap_or_default();
        sources.row([one.component.to_string(), one.asked.clone(), resolved, build]);
    }
    let mut inputs = Table::new(&["INPUT", "TYPE", "REQUIRED", "DEFAULT"]);
    for one in &document.inputs {
        let kind = serde_json::to_value(one.kind).ok().and_then(|v| v.as_str().map(str::to_owned)).unwrap_or_default();
        let default = match (&one.default, one.sensitive) {
            (Some(_), true) => "(sensitive)".to_owned(),
            (Some(serde_json::Value::String(text)), false) => text.lines().next().unwrap_or_default().to_owned(),
            (Some(value), false) => value.to_string(),
            (None, _) => String::new(),
        };
        let required = if one.required { "yes" } else { "" };
        inputs.row([one.name.clone(), kind, required.to_owned(), default]);
    }
    let mut parts =
        vec![format!("app {}  version {}  synced {}\n{}", view.app, view.number, time(view.created_at), view.version)];
    let about = [&document.display_name, &document.description].map(|text| on_one_line(text)).join("\n");
    parts.extend(Some(about.trim()).filter(|text| !text.is_empty() && !by_label).map(str::to_owned));
    let tables = [
        (components, document.components.len()),
        (sources, shown.resolved.len()),
        (inputs, document.inputs.len()),
        (actions(document), document.actions.len()),
        (runbooks(document), document.runbooks.len()),
        (roles(document), document.roles.len() + document.named_roles.len()),
    ];
    parts.extend(tables.iter().filter(|(_, rows)| *rows > 0).map(|(table, _)| out.table(table)));
    if by_label && parts.len() == 1 {
        parts.push("nothing in this version has these labels".to_owned());
    }
    parts.join("\n\n")
}

/// Returns a text of the app config without line breaks, as the cell of a table.
fn on_one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn actions(document: &AppVersion) -> Table {
    let mut table = Table::new(&["ACTION", "STEPS", "TIMEOUT", "LABELS", "DESCRIPTION"]);
    for one in &document.actions {
        let timeout = crate::output::duration(u64::from(one.timeout_secs) * 1000);
        let (steps, labels) = (one.steps.len().to_string(), labels_text(&one.labels));
        table.row([one.name.to_string(), steps, timeout, labels, on_one_line(&one.description)]);
    }
    table
}

fn runbooks(document: &AppVersion) -> Table {
    let mut table = Table::new(&["RUNBOOK", "STEPS", "LABELS", "DESCRIPTION"]);
    for one in &document.runbooks {
        let (steps, labels) = (one.steps.len().to_string(), labels_text(&one.labels));
        table.row([one.name.to_string(), steps, labels, on_one_line(&one.description)]);
    }
    table
}

fn roles(document: &AppVersion) -> Table {
    let mut table = Table::new(&["ROLE", "USE", "TITLE", "DESCRIPTION"]);
    let row = |name: &str, usage: String, title: &str, description: &str| {
        [on_one_line(name), usage, on_one_line(title), on_one_line(description)]
    };
    for one in &document.roles {
        table.row(row(&one.name, format!("mode {}", one.mode.as_str()), &one.display_name, &one.description));
    }
    for one in &document.named_roles {
        let usage = if one.break_glass { "break-glass" } else { "custom" };
        table.row(row(&one.name, usage.to_owned(), &one.display_name, &one.description));
    }
    table
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn version() -> VersionDocument {
        let component = |name: &str, labels: serde_json::Value| {
            json!({
                "name": name, "deploy_timeout_secs": 60, "source": { "from": "version" },
                "spec": { "kind": "container_image" }, "settings": { "labels": labels },
            })
        };
        let action = |name: &str, description: &str, labels: serde_json::Value| {
            let mut action = json!({ "name": name, "timeout_secs": 60, "steps": [], "labels": labels });
            action["description"] = description.into();
            action
        };
        serde_json::from_value(json!({
            "app": "demo", "version": format!("sha256:{}", "0".repeat(64)), "number": 3, "created_at": 1000, "components": 2,
            "document": {
                "format": 1, "app": "demo", "display_name": "The demo", "description": "Shows\neverything",
                "inputs": [{ "name": "size", "type": "number" }],
                "components": [component("api", json!({ "tier": "web" })), component("db", json!({}))],
                "actions": [
                    action("check", "asks the app", json!({ "tier": "web", "type": "report" })),
                    action("fix", "", json!({})),
                ],
                "runbooks": [
                    { "name": "night", "description": "stops it", "steps": [], "labels": { "tier": "batch" } },
                ],
                "roles": [
                    { "mode": "provision", "name": "p", "display_name": "Maker", "description": "makes",
                      "policies": [] },
                    { "mode": "deprovision", "name": "d", "policies": [] },
                ],
                "named_roles": [
                    { "name": "dns", "display_name": "Names", "description": "sets names", "policies": [] },
                    { "name": "help", "break_glass": true, "policies": [] },
                ],
            },
            "resolved": [{ "component": "api", "asked": "a" }, { "component": "db", "asked": "b" }],
        }))
        .unwrap()
    }

    fn shown(labels: &[&str]) -> String {
        let mut version = version();
        let labels: Vec<Label> = labels.iter().map(|text| text.parse().unwrap()).collect();
        keep_labelled(&mut version, &labels);
        let text = render(&version, !labels.is_empty(), Output::plain());
        text.lines().skip(3).map(str::trim_end).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn the_parts_are_shown_with_their_labels_and_texts() {
        insta::assert_snapshot!(shown(&[]), @r"
        The demo
        Shows everything

        COMPONENT  KIND             AFTER  LABELS
        api        container_image         tier=web
        db         container_image

        COMPONENT  SOURCE  RESOLVED       BUILD
        api        a       not built yet
        db         b       not built yet

        INPUT  TYPE    REQUIRED  DEFAULT
        size   number

        ACTION  STEPS  TIMEOUT    LABELS                 DESCRIPTION
        check   0      1 min 0 s  tier=web, type=report  asks the app
        fix     0      1 min 0 s

        RUNBOOK  STEPS  LABELS      DESCRIPTION
        night    0      tier=batch  stops it

        ROLE  USE               TITLE  DESCRIPTION
        p     mode provision    Maker  makes
        d     mode deprovision
        dns   custom            Names  sets names
        help  break-glass
        ");
    }

    #[test]
    fn only_what_has_the_labels_is_shown() {
        insta::assert_snapshot!(shown(&["tier=web"]), @r"
        COMPONENT  KIND             AFTER  LABELS
        api        container_image         tier=web

        COMPONENT  SOURCE  RESOLVED       BUILD
        api        a       not built yet

        ACTION  STEPS  TIMEOUT    LABELS                 DESCRIPTION
        check   0      1 min 0 s  tier=web, type=report  asks the app
        ");
        assert_eq!(shown(&["tier=web", "type=none"]), "nothing in this version has these labels");
    }
}
