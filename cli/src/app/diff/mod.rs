//! `freehold app diff`: compares two versions, or a directory with a version, and shows what a deploy would run.

mod text;

use std::path::Path;

use freehold_appconfig::{Fetched, Loaded};
use freehold_domain::diff::{Diff as Found, diff};
use freehold_protocol::AppName;
use freehold_protocol::api::VersionDocument;
use freehold_protocol::app_version::AppVersion;
use serde::Serialize;
use serde_json::{Value, json};

use super::check::{checked_dir, has_errors};
use super::fetch_version::fetch_version;
use super::{Diff, VersionName, fetch, sync};
use crate::api::Api;
use crate::context::Context;
use crate::error::{Error, Kind, Result};
use crate::output::note;
use crate::progress::Progress;

/// One side of a comparison.
struct Side {
    /// The name that is printed, such as `version 3`.
    name: String,
    /// The description of this side in the JSON output.
    json: Value,
    document: AppVersion,
}

/// The comparison as `--json` prints it.
#[derive(Debug, Serialize)]
struct Comparison {
    app: AppName,
    from: Value,
    to: Value,
    differs: bool,
    #[serde(flatten)]
    diff: Found,
}

impl Diff {
    pub(super) async fn run(&self, context: &Context) -> Result<()> {
        let (from, to) = match (&self.app, &self.to) {
            (Some(app), Some(to)) => between(context, app, &self.from_or_dir, to).await?,
            (None, None) => self.with_directory(context, Path::new(&self.from_or_dir)).await?,
            (Some(app), None) => {
                return Err(Error::invalid(format!(
                    "no version to compare with is given; run `freehold app diff --app {app} FROM TO`"
                )));
            }
            (None, Some(_)) => {
                return Err(Error::invalid("no app is given; run `freehold app diff --app NAME FROM TO`"));
            }
        };
        let diff = diff(&from.document, &to.document);
        let differs = !diff.is_empty();
        let app = to.document.app.clone();
        let head = format!("app {app}: {} -> {}", from.name, to.name);
        let comparison = Comparison { app, from: from.json, to: to.json, differs, diff };
        context.out.show(&comparison, |all| {
            let text = text::render(&all.diff, &to.document, context.out.colours());
            format!("{head}\n\n{text}")
        })?;
        if differs && self.exit_code { Err(Error::failed("the two versions differ")) } else { Ok(()) }
    }

    /// Compares a directory with the version from `--version`, or with the latest version.
    async fn with_directory(&self, context: &Context, dir: &Path) -> Result<(Side, Side)> {
        let dir = checked_dir(dir)?;
        let to = if self.offline { read(dir)? } else { resolve_side(dir).await? };
        let api = context.api().await?;
        let from = match of_tenant(&api, &to.document.app, self.version.as_ref()).await {
            // An app without a version is compared as an empty version.
            Err(error) if error.kind() == Kind::NotFound && self.version.is_none() => Side {
                name: "no version yet".into(),
                json: Value::Null,
                document: AppVersion::empty(to.document.app.clone()),
            },
            other => other?,
        };
        Ok((from, to))
    }
}

async fn between(context: &Context, app: &AppName, from: &str, to: &str) -> Result<(Side, Side)> {
    let name = |text: &str| text.parse::<VersionName>().map_err(|e| Error::invalid(format!("`{text}`: {e}")));
    let (from, to) = (name(from)?, name(to)?);
    let api = context.api().await?;
    Ok((of_tenant(&api, app, Some(&from)).await?, of_tenant(&api, app, Some(&to)).await?))
}

async fn of_tenant(api: &Api, app: &AppName, name: Option<&VersionName>) -> Result<Side> {
    let VersionDocument { view, document, .. } = fetch_version(api, app, name).await?;
    let json = json!({ "version": view.version, "number": view.number });
    Ok(Side { name: format!("version {}", view.number), json, document })
}

/// Reads a directory as a sync would: fetches texts and resolves branches to commits.
async fn resolve_side(dir: &Path) -> Result<Side> {
    let progress = Progress::start();
    let mut loaded = fetch::load(dir, &progress, freehold_appconfig::load_for_comparison).await?;
    sync::resolve(&mut loaded, &progress).await?;
    note_refused(&loaded);
    let json = json!({ "dir": dir });
    Ok(Side { name: dir.display().to_string(), json, document: loaded.version })
}

/// Reads a directory without a network: branches are not resolved to commits.
fn read(dir: &Path) -> Result<Side> {
    let loaded = freehold_appconfig::load_for_comparison(dir, &Fetched::new()).map_err(|found| {
        note(&found.to_string());
        has_errors(dir, &found)
    })?;
    note_refused(&loaded);
    let branches: Vec<String> = loaded.unresolved.iter().map(|git| format!("{} of {}", git.branch, git.url)).collect();
    let open: Vec<&String> = branches.iter().chain(&loaded.addresses).collect();
    if !open.is_empty() {
        note(&format!(
            "warning: these sources were not resolved because of --offline, so they count as changed:{}",
            open.iter().map(|one| format!("\n  {one}")).collect::<String>()
        ));
    }
    let json = json!({ "dir": dir, "unresolved": open });
    Ok(Side { name: format!("{} (offline)", dir.display()), json, document: loaded.version })
}

/// Prints why a sync would refuse the directory, if it would.
fn note_refused(loaded: &Loaded) {
    if !loaded.refused.is_empty() {
        note(&format!(
            "warning: `freehold app sync` refuses this directory; parts that are missing count as changed\n{}",
            loaded.refused
        ));
    }
}
