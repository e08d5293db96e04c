//! `freehold app graph`: shows the dependencies of an app as a table, or as a diagram for Graphviz and Mermaid.

mod diagram;
mod table;

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use freehold_appconfig::Fetched;
use freehold_domain::graph::{Graph as Found, graph};
use freehold_protocol::AppName;
use freehold_protocol::app_version::AppVersion;

use super::check::{Check, checked_dir, has_errors};
use super::fetch_version::fetch_version;
use super::version::VersionName;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::output::note;

/// The format of the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// A table in the order of a deploy.
    Text,
    /// The language of Graphviz.
    Dot,
    /// A flowchart that Markdown pages show.
    Mermaid,
}

/// Show the order in which an app is deployed, and the reasons for it.
#[derive(Debug, Args)]
#[command(
    override_usage = "freehold app graph [OPTIONS] DIR\n       freehold app graph [OPTIONS] --app NAME",
    after_help = "\
Examples:
  freehold app graph ./my-app                                           a directory, without an account or a network
  freehold app graph ./my-app --format dot | dot -Tsvg > graph.svg      a picture, with Graphviz
  freehold app graph --app my-app --version 3 --format mermaid          version 3 of an app of the tenant

The table has one line for each component: its step, its name, its type, the components that are deployed before it, and
what else it reads. Components of one step are deployed in parallel. An install may leave `toggleable` components out.
`NAME (template)` means that a template reads the outputs of NAME, `NAME (declared)` that `dependencies` lists NAME.
Below the table, each action is listed with what starts it and what it needs. Exit code 2 when the config has errors."
)]
pub(crate) struct Graph {
    /// The directory of an app config; give either this or `--app`.
    #[arg(value_name = "DIR", required_unless_present = "app", conflicts_with = "app")]
    dir: Option<PathBuf>,
    /// Name of an app of the tenant, to show instead of a directory.
    #[arg(long, value_name = "NAME")]
    app: Option<AppName>,
    /// With `--app`: the version, by its number, its digest or the beginning of its digest; the latest version when
    /// absent.
    #[arg(long, value_name = "VERSION", conflicts_with = "dir")]
    version: Option<VersionName>,
    /// The format: `text`, a table in the order of a deploy; `dot`, the language of Graphviz; or `mermaid`, a flowchart
    /// that Markdown pages show.
    // If each value had a help text, the parser would print this page in another layout than all other pages.
    #[arg(long, value_enum, default_value = "text", hide_possible_values = true)]
    format: Format,
}

impl Graph {
    pub(super) async fn run(&self, context: &Context) -> Result<()> {
        let graph = graph(&self.document(context).await?);
        match self.format {
            Format::Text => context.out.show(&graph, |graph| rendered(graph, self.format)),
            Format::Dot | Format::Mermaid => context.out.show_verbatim(&graph, |graph| rendered(graph, self.format)),
        }
    }

    async fn document(&self, context: &Context) -> Result<AppVersion> {
        if let Some(app) = &self.app {
            return Ok(fetch_version(&context.api().await?, app, self.version.as_ref()).await?.document);
        }
        let Some(dir) = &self.dir else {
            return Err(Error::invalid("no app is given; pass the directory with its config, or `--app NAME`"));
        };
        let dir = checked_dir(dir)?;
        match freehold_appconfig::load_for_comparison(dir, &Fetched::new()) {
            Ok(loaded) => {
                if !loaded.addresses.is_empty() {
                    note(
                        "warning: this command does not fetch files from addresses, so the graph below lacks the \
                         references in these files",
                    );
                }
                Ok(loaded.version)
            }
            Err(found) => {
                Check { dir: dir.to_owned(), deny_warnings: false }.run(context)?;
                Err(has_errors(dir, &found))
            }
        }
    }
}

fn rendered(graph: &Found, format: Format) -> String {
    match format {
        Format::Text => table::render(graph),
        Format::Dot => diagram::dot(graph),
        Format::Mermaid => diagram::mermaid(graph),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Returns the version in which an install may leave `api` out.
    fn with_toggle(mut version: AppVersion) -> AppVersion {
        version.components[0].settings.toggle = Some(false);
        version
    }

    fn found() -> Found {
        let component =
            |name: &str, kind: serde_json::Value, after: serde_json::Value, references: serde_json::Value| {
                json!({
                    "name": name, "dependencies": after, "references": references, "deploy_timeout_secs": 60,
                    "source": { "from": "version" }, "spec": kind,
                })
            };
        let module = json!({ "kind": "terraform_module", "terraform_version": "1.11.3" });
        let image = json!({ "kind": "container_image" });
        let version: AppVersion = serde_json::from_value(json!({
            "format": 1, "app": "demo",
            "components": [
                component("api", module.clone(), json!(["db", "web"]), json!([
                    { "to": "component", "name": "db" }, { "to": "input", "name": "size" },
                    { "to": "secret", "name": "key" }, { "to": "sandbox", "name": "vpc" },
                ])),
                component("db", module, json!([]), json!([])),
                component("web", image, json!([]), json!([])),
            ],
            "actions": [
                { "name": "check", "timeout_secs": 60, "steps": [], "triggers": [
                    { "on": "manual" }, { "on": "post_deploy_all_components" },
                ] },
                { "name": "migrate", "timeout_secs": 60, "steps": [],
                  "triggers": [{ "on": "post_deploy_component", "component": "db" }, { "on": "cron", "schedule": "0 \"1\"" }],
                  "references": [{ "to": "component", "name": "db" }] },
                { "name": "whoami", "timeout_secs": 60, "steps": [{ "name": "s", "command": "./s.sh" }], "triggers": [{ "on": "manual" }],
                  "step_repos": [{ "step": 0, "source": {
                      "from": "git", "url": "https://github.com/acme/actions", "commit": "a".repeat(40), "directory": "checks",
                  } }],
                  "references": [{ "to": "component", "name": "web" }] },
            ],
        }))
        .unwrap();
        graph(&with_toggle(version))
    }

    #[test]
    fn text_is_in_deploy_order_and_says_why() {
        insta::assert_snapshot!(rendered(&found(), Format::Text), @r#"
        app demo: 3 components in 2 steps, 3 actions

          1  db   terraform_module
             web  container_image

          2  api  terraform_module  after db (template), web (declared); reads input size, secret key, the sandbox; toggleable, off by default

        actions
             check    by hand, after every deploy
             migrate  after component `db`, on schedule `0 "1"`; needs db
             whoami   by hand; needs web; runs in `checks` of https://github.com/acme/actions
        "#);
    }

    #[test]
    fn dot_has_a_node_for_everything() {
        insta::assert_snapshot!(rendered(&found(), Format::Dot), @r#"
        digraph "demo" {
          rankdir=LR
          node [shape=box]
          "db" [label="db\nterraform_module"]
          "web" [label="web\ncontainer_image"]
          "api" [label="api\nterraform_module", style=dashed]
          "action:check" [shape=hexagon, label="check\nby hand\nafter every deploy"]
          "action:migrate" [shape=hexagon, label="migrate\non schedule `0 \"1\"`"]
          "action:whoami" [shape=hexagon, label="whoami\nby hand"]
          "db" -> "api" [label="template"]
          "web" -> "api" [label="declared"]
          "api" -> "action:check" [style=dashed]
          "db" -> "action:migrate" [style=dashed]
          "web" -> "action:whoami" [style=dotted, label="needs"]
        }
        "#);
    }

    #[test]
    fn mermaid_has_a_node_for_everything() {
        insta::assert_snapshot!(rendered(&found(), Format::Mermaid), @r#"
        flowchart LR
          c0["db<br/>terraform_module"]
          c1["web<br/>container_image"]
          c2["api<br/>terraform_module<br/>toggleable"]
          a0{{"check<br/>by hand<br/>after every deploy"}}
          a1{{"migrate<br/>on schedule '0 #quot;1#quot;'"}}
          a2{{"whoami<br/>by hand"}}
          c0 -->|template| c2
          c1 -->|declared| c2
          c2 -.-> a0
          c0 -.-> a1
          c1 -.->|needs| a2
        "#);
    }

    #[test]
    fn an_app_without_components_says_so() {
        let empty = AppVersion::empty("demo".parse().unwrap());

        assert_eq!(rendered(&graph(&empty), Format::Text), "app demo: no components");
    }
}
