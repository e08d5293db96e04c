//! `freehold install labels`: shows the labels of an install, and sets and removes labels that the install itself has.

use std::collections::BTreeMap;

use clap::Args;
use freehold_client::calls;
use freehold_protocol::InstallId;
use freehold_protocol::api::{InstallView, SetLabelsRequest};

use crate::app::key_and_value;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::output::{Output, Table};

/// Show the labels of an install, or set and remove labels.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  freehold install labels globex
  freehold install labels globex --label env=production --label team=shop
  freehold install labels globex --remove team

The changes apply at once and deploy nothing. Other labels of the install stay. A default label of the app
(`default_labels` in `metadata.toml`) cannot be removed, but a label of the install with the same key takes precedence.")]
pub(crate) struct Labels {
    /// Name of the install.
    install: InstallId,
    /// A label to set; may be repeated.
    #[arg(long = "label", value_name = "KEY=VALUE", value_parser = key_and_value)]
    labels: Vec<(String, String)>,
    /// The key of a label to remove; may be repeated.
    #[arg(long, value_name = "KEY")]
    remove: Vec<String>,
}

impl Labels {
    pub(super) async fn run(&self, context: &Context) -> Result<()> {
        let labels = self.changes()?;
        let api = context.api().await?;
        let install = &self.install;
        let view: InstallView = if labels.is_empty() {
            api.send(calls::show_install(install)).await?
        } else {
            api.send(calls::set_labels(install, &SetLabelsRequest { labels })).await?
        };
        context.out.show(&view, |view| render(view, context.out))
    }

    /// Returns the value to set for each key, and `None` for a label to remove. A key that is named twice is an error.
    fn changes(&self) -> Result<BTreeMap<String, Option<String>>> {
        let set = by_key(&self.labels)?.into_iter().map(|(key, value)| (key, Some(value)));
        let mut all: BTreeMap<String, Option<String>> = set.collect();
        for key in &self.remove {
            if all.insert(key.clone(), None).is_some() {
                return Err(given_twice(key));
            }
        }
        Ok(all)
    }
}

/// Returns labels by their keys. Two values of one key are an error.
pub(super) fn by_key(labels: &[(String, String)]) -> Result<BTreeMap<String, String>> {
    let mut all = BTreeMap::new();
    for (key, value) in labels {
        if all.insert(key.clone(), value.clone()).is_some() {
            return Err(given_twice(key));
        }
    }
    Ok(all)
}

fn given_twice(key: &str) -> Error {
    Error::invalid(format!("label `{key}` is given twice; give it once"))
}

/// Checks that a new install has the labels `wanted`. A control plane of an earlier release ignores the labels in the
/// request.
pub(super) fn check_created(view: &InstallView, wanted: &BTreeMap<String, String>) -> Result<()> {
    if wanted.iter().all(|(key, value)| view.own_labels.get(key) == Some(value)) {
        return Ok(());
    }
    let install = &view.install;
    let message = format!("the tenant is of an earlier release: it created install `{install}` without its labels");
    Err(Error::failed(message).or(format!(
        "update the tenant with `freehold tenant deploy`, then set them with `freehold install labels {install}`"
    )))
}

fn render(view: &InstallView, out: Output) -> String {
    if view.labels.is_empty() {
        return format!("install `{}` has no labels; `--label KEY=VALUE` gives it one", view.install);
    }
    let mut table = Table::new(&["KEY", "VALUE", "FROM"]);
    for (key, value) in &view.labels {
        let from = if view.own_labels.contains_key(key) { "install" } else { "default of the app" };
        table.row([key.clone(), value.clone(), from.to_owned()]);
    }
    out.table(&table)
}
