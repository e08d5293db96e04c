//! `freehold app list`, `show` and `versions`: lists apps and their versions, and shows one version.

use clap::Args;
use freehold_protocol::AppName;
use freehold_protocol::api::{AppView, VersionDocument, VersionView};

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
        let apps: Vec<AppView> = context.api().await?.list(&["v1", "apps"]).await?;
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
        let versions: Vec<VersionView> =
            context.api().await?.list(&["v1", "apps", self.app.as_str(), "versions"]).await?;
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

/// Show one version of an app: components, inputs, actions.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  freehold app show my-app\n  freehold app show my-app --version 3 --json")]
pub(crate) struct Show {
    /// Name of the app.
    app: AppName,
    /// The version: its number, its digest or the beginning of its digest; the latest version when absent.
    #[arg(long, value_name = "VERSION")]
    version: Option<VersionName>,
}

impl Show {
    pub(super) async fn run(&self, context: &Context) -> Result<()> {
        let api = context.api().await?;
        let version = or_latest(&api, &self.app, self.version.as_ref()).await?;
        let path = ["v1", "apps", self.app.as_str(), "versions", version.as_str()];
        let document: VersionDocument = api.get(&path).await?;
        context.out.show(&document, |document| render(document, context.out))
    }
}

fn render(shown: &VersionDocument, out: Output) -> String {
    let (view, document) = (&shown.view, &shown.document);
    let mut components = Table::new(&["COMPONENT", "KIND", "AFTER"]);
    for one in &document.components {
        let after: Vec<&str> = one.dependencies.iter().map(|name| name.as_str()).collect();
        components.row([one.name.to_string(), one.spec.kind().to_owned(), after.join(", ")]);
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
    let mut actions = Table::new(&["ACTION", "STEPS", "TIMEOUT"]);
    for one in &document.actions {
        let timeout = crate::output::duration(u64::from(one.timeout_secs) * 1000);
        actions.row([one.name.to_string(), one.steps.len().to_string(), timeout]);
    }
    let mut parts =
        vec![format!("app {}  version {}  synced {}\n{}", view.app, view.number, time(view.created_at), view.version)];
    let tables = [
        (components, document.components.len()),
        (sources, shown.resolved.len()),
        (inputs, document.inputs.len()),
        (actions, document.actions.len()),
    ];
    parts.extend(tables.iter().filter(|(_, rows)| *rows > 0).map(|(table, _)| out.table(table)));
    parts.join("\n\n")
}
