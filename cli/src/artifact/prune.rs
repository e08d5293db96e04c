//! `freehold artifact prune`: shows why each artifact is kept, and marks unused artifacts.

use clap::Args;
use freehold_client::calls;
use freehold_protocol::AppName;
use freehold_protocol::api::{ArtifactView, ArtifactsView};

use crate::context::Context;
use crate::error::Result;
use crate::output::{Output, Table, bytes, plural, time};

/// Mark unused artifacts for removal, and show why other artifacts are kept.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  freehold artifact prune --dry-run
  freehold artifact prune --app my-app

An artifact is kept while an install runs it, an install is at a version that contains it, a release names it, a
workflow that has not ended may need it, it belongs to the newest version of its app, or it was built in the last 30
days. Any other artifact is marked, and no new deploy or release may use it. A day later the function `prune-artifacts`
removes it; the function also marks artifacts itself, once a day. Before the removal, `freehold build` restores the
artifact; after the removal, `freehold build` builds it again.")]
pub(crate) struct Prune {
    /// Consider only the artifacts of this app.
    #[arg(long, value_name = "APP")]
    app: Option<AppName>,
    /// Change nothing; show which artifacts would be removed, and why other artifacts are kept.
    #[arg(long)]
    dry_run: bool,
}

impl Prune {
    pub(crate) async fn run(self, context: &Context) -> Result<()> {
        let Self { app, dry_run } = self;
        let api = context.api().await?;
        let apps = match app {
            Some(app) => vec![app],
            None => api.list(calls::list_apps()).await?.into_iter().map(|app| app.app).collect(),
        };
        let mut all: Vec<ArtifactsView> = Vec::with_capacity(apps.len());
        for app in &apps {
            let first = if dry_run { calls::list_artifacts(app) } else { calls::prune_artifacts(app) };
            let first = api.send(first).await?;
            all.push(api.complete(first, calls::list_artifacts(app)).await?);
        }
        context.out.show(&all, |all| render(all, dry_run, context.out))
    }
}

fn render(all: &[ArtifactsView], dry_run: bool, out: Output) -> String {
    let mut table = Table::new(&["APP", "COMPONENT", "ARTIFACT", "SIZE", "STATE", "WHY"]);
    for view in all {
        for one in &view.artifacts {
            table.row([
                view.app.to_string(),
                one.component.to_string(),
                one.artifact.to_string(),
                bytes(one.size),
                one.state.clone(),
                why(one),
            ]);
        }
    }
    let artifacts = || all.iter().flat_map(|view| &view.artifacts);
    let going = artifacts().filter(|one| one.state == "unused" || one.next == "mark");
    let (count, size) = going.fold((0, 0), |(count, size), one| (count + 1, size + one.size));
    let artifacts = plural(count, "artifact");
    let last = match (count, dry_run) {
        (0, _) => "no artifact is removed".to_owned(),
        (_, true) => {
            format!(
                "{artifacts} would be removed, which frees at most {}; mark them with `freehold artifact prune`",
                bytes(size)
            )
        }
        (_, false) => {
            format!(
                "{artifacts} will be removed, each a day after its mark or later; this frees at most {}",
                bytes(size)
            )
        }
    };
    format!("{}\n\n{last}", out.table(&table))
}

fn why(one: &ArtifactView) -> String {
    match one.next.as_str() {
        "mark" => "unused".to_owned(),
        "remove" => "unused; the tenant's function `prune-artifacts` removes it at its next daily run".to_owned(),
        _ if one.state == "removed" => "nothing used it".to_owned(),
        _ => match (one.kept_by.is_empty(), one.removable_at) {
            (true, Some(at)) => format!("unused; will be removed after {}", time(at)),
            (true, None) | (false, _) => one.kept_by.join(", "),
        },
    }
}
