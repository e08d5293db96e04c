//! `freehold history`: what happened to an install, newest first.

use clap::Args;
use freehold_client::calls;
use freehold_protocol::InstallId;
use freehold_protocol::api::{HistoryEntry, Page};

use crate::api::{IN_A_WIDE_TABLE, brief};
use crate::context::Context;
use crate::error::Result;
use crate::output::{Output, Table, time};

/// Show what happened to an install, newest first: workflows and who requested them, approvals, runs of runbooks,
/// drift, and whether the runner is away. Exit code 0 also when nothing has happened.
#[derive(Debug, Args)]
#[command(after_help = "\
The history does not contain earlier pauses and holds of the customer, or the drift of components that were removed.

Examples:
  freehold history globex
  freehold history globex --all --json")]
pub(crate) struct History {
    /// Name of the install.
    install: InstallId,
    /// Show the whole history. By default, the history begins at the 50th most recent workflow.
    #[arg(long)]
    all: bool,
}

impl History {
    pub(crate) async fn run(self, context: &Context) -> Result<()> {
        let call = calls::show_history(&self.install);
        let api = context.api().await?;
        let (items, is_more) = if self.all {
            (api.list(call).await?, false)
        } else {
            let page: Page<HistoryEntry> = api.send(call).await?;
            (page.items, page.next.is_some())
        };
        context.out.show(&items, |items| render(&self.install, items, is_more, context.out))
    }
}

fn render(install: &InstallId, items: &[HistoryEntry], is_more: bool, out: Output) -> String {
    if items.is_empty() {
        return format!("nothing has happened to install `{install}`");
    }
    let mut table = Table::new(&["AT", "WHAT", "RESULT", "BY", "WHY", "ID"]);
    for one in items {
        table.row([
            time(one.at),
            one.what.clone(),
            brief(&one.result, IN_A_WIDE_TABLE),
            one.by.as_ref().map(ToString::to_string).unwrap_or_default(),
            brief(&one.why, IN_A_WIDE_TABLE),
            id(one),
        ]);
    }
    let more = is_more.then(|| format!("\n\nolder entries: freehold history {install} --all"));
    format!("{}{}", out.table(&table).trim_end(), more.unwrap_or_default())
}

/// Returns the id that the user can pass to other commands for details.
fn id(one: &HistoryEntry) -> String {
    let job = one.job.as_ref().map(ToString::to_string);
    let workflow = one.workflow.as_ref().map(ToString::to_string);
    job.or(workflow).or(one.run.as_ref().map(ToString::to_string)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_history_says_when_what_who_and_why() {
        let arn = "arn:aws:sts::111111111111:assumed-role/ops/ada";
        let items: Vec<HistoryEntry> = serde_json::from_value(json!([
            { "at": 9000, "kind": "drift", "what": "drift found: 1 resource of `web`", "component": "web",
              "workflow": "wf_00000000000000000002" },
            { "at": 8000, "kind": "approval", "what": "plan of `web` rejected", "why": "too large",
              "workflow": "wf_00000000000000000001", "job": "job_00000000000000000001" },
            { "at": 1000, "kind": "workflow", "what": "deploy-components", "result": "failed: `web` blocked",
              "by": { "by": "caller", "arn": arn }, "workflow": "wf_00000000000000000001" },
        ]))
        .unwrap();
        let install = "globex".parse().unwrap();

        insta::assert_snapshot!(render(&install, &items, true, Output::plain()), @r"
        AT                    WHAT                              RESULT                 BY                                              WHY        ID
        1970-01-01 00:00:09Z  drift found: 1 resource of `web`                                                                                    wf_00000000000000000002
        1970-01-01 00:00:08Z  plan of `web` rejected                                                                                   too large  job_00000000000000000001
        1970-01-01 00:00:01Z  deploy-components                 failed: `web` blocked  arn:aws:sts::111111111111:assumed-role/ops/ada             wf_00000000000000000001

        older entries: freehold history globex --all
        ");
        assert_eq!(render(&install, &[], false, Output::plain()), "nothing has happened to install `globex`");
    }
}
