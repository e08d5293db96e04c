//! The texts that the commands about runbooks print.

use freehold_protocol::InstallId;
use freehold_protocol::api::{InstallRunbooks, RunStepView, RunView};

use crate::api::{IN_A_SENTENCE, IN_A_TABLE, brief};
use crate::app::labels_text;
use crate::error::{Error, Kind, Result};
use crate::output::{Output, Table, duration, time};

/// Returns the list of an install's runbooks. `by_label` means that the list contains only the runbooks with certain
/// labels.
pub(super) fn runbooks(install: &InstallId, all: &InstallRunbooks, by_label: bool, out: Output) -> String {
    if all.runbooks.is_empty() && by_label {
        return format!("version {} of the app has no runbook with these labels", all.number);
    }
    if all.runbooks.is_empty() {
        return format!(
            "version {} of the app has no runbooks; add one in `runbooks/` of the app config, sync and deploy",
            all.number
        );
    }
    let mut text = Vec::new();
    for runbook in &all.runbooks {
        let description = Some(&runbook.description).filter(|text| !text.is_empty());
        let description = description.map(|text| format!(": {text}")).unwrap_or_default();
        let mut lines = vec![format!("{}{description}", runbook.runbook)];
        if !runbook.labels.is_empty() {
            lines.push(format!("  labels: {}", labels_text(&runbook.labels)));
        }
        for input in &runbook.inputs {
            let need = match (input.required, input.default.as_str()) {
                (true, "") => "required".to_owned(),
                (_, default) => format!("default `{default}`"),
            };
            let about = Some(&input.description).filter(|text| !text.is_empty());
            let about = about.map(|text| format!("{text} ")).unwrap_or_default();
            lines.push(format!("  --input {}=TEXT  {about}({need})", input.name));
        }
        lines.extend(runbook.steps.iter().enumerate().map(|(at, step)| format!("  {}. {step}", at + 1)));
        text.push(lines.join("\n"));
    }
    out.wrapped(&format!("{}\n\nnext: freehold runbook run {install} NAME", text.join("\n\n")))
}

/// Returns the list of an install's runs.
pub(super) fn runs(install: &InstallId, all: &[RunView], out: Output) -> String {
    if all.is_empty() {
        return format!("install `{install}` has no run; `freehold runbook run {install} NAME` starts one");
    }
    let mut table = Table::new(&["RUN", "RUNBOOK", "STATE", "STARTED", "TOOK", "REASON"]);
    for view in all {
        table.row([
            view.run.to_string(),
            view.runbook.to_string(),
            view.state.clone(),
            time(view.created_at),
            took(view),
            brief(&view.reason, IN_A_TABLE),
        ]);
    }
    out.table(&table)
}

/// Returns a run with its steps.
pub(super) fn run(view: &RunView, out: Output) -> String {
    let after = view.after_deploy.as_ref().map(|deploy| format!(" after deploy {deploy}")).unwrap_or_default();
    let mut facts = vec![
        format!("run {}: runbook {} of {}, {}", view.run, view.runbook, view.install, out.state(&view.state)),
        format!("started {}{after} by {}, version {}", time(view.created_at), view.asked_by, view.number),
    ];
    facts.extend(view.inputs.iter().map(|(name, value)| format!("input {name}: {value}")));
    facts.extend(view.cancelled_by.iter().map(|by| format!("cancel requested by {by}")));
    facts.extend(view.resumed.iter().map(|one| format!("resumed {} by {}: {}", time(one.at), one.by, one.reason)));
    let mut table = Table::new(&["STEP", "DOES", "STATE", "TRIES", "WORKFLOW", "REASON"]);
    for (at, step) in view.steps.iter().enumerate() {
        table.row([
            numbered(at, step),
            step.does.clone(),
            step.state.clone(),
            step.tries.to_string(),
            step.workflow.as_ref().map(ToString::to_string).unwrap_or_default(),
            brief(&step.reason, IN_A_TABLE),
        ]);
    }
    let next = next_command(view).map(|command| format!("\n\nnext: {command}")).unwrap_or_default();
    format!("{}\n\n{}{next}", facts.join("\n"), out.table(&table).trim_end())
}

/// Returns the name of a step in a list of progress.
pub(super) fn step_name(at: usize, step: &RunStepView) -> String {
    format!("{}. {}", at + 1, step.does)
}

fn numbered(at: usize, step: &RunStepView) -> String {
    format!("{} {}", at + 1, step.name).trim_end().to_owned()
}

fn took(view: &RunView) -> String {
    view.ended_at.map(|end| duration(end.since(view.created_at))).unwrap_or_default()
}

fn next_command(view: &RunView) -> Option<String> {
    match view.state.as_str() {
        "failed" | "cancelled" => Some(format!("freehold runbook resume {} --reason 'WHY'", view.run)),
        "running" => Some(format!("freehold runbook watch {}", view.run)),
        _ => None,
    }
}

/// Returns a sentence about the success of an ended run, or the error with which the command ends.
pub(super) fn outcome(view: &RunView) -> Result<String> {
    let subject = format!("runbook `{}` of `{}`", view.runbook, view.install);
    if view.state == "succeeded" {
        return Ok(format!("{subject} succeeded in {} ({})", took(view), view.run));
    }
    let reason = brief(&view.reason, IN_A_SENTENCE);
    let because = if reason.is_empty() { String::new() } else { format!(": {reason}") };
    let failed = view.steps.iter().find(|step| step.state == "failed");
    let look = failed.and_then(|step| step.workflow.as_ref());
    let look = look.map(|workflow| format!("see `freehold workflow show {workflow}`, then ")).unwrap_or_default();
    let error = Error::quoting(Kind::Failed, format!("{subject} {} ({}){because}", view.state, view.run));
    Err(error.or(format!("{look}resume it at this step with `freehold runbook resume {} --reason 'WHY'`", view.run)))
}

/// Returns the sentence after a request to cancel a run. Returns an error if the run has already ended and was not
/// cancelled.
pub(super) fn cancelled(view: &RunView) -> Result<String> {
    let run = &view.run;
    match view.state.as_str() {
        "cancelled" => Ok(format!("`{run}` is cancelled")),
        "running" => {
            let step = view.steps.iter().find_map(|step| step.workflow.as_ref().filter(|_| step.state == "running"));
            let step = step.map(|workflow| format!(" (`freehold workflow show {workflow}`)")).unwrap_or_default();
            Ok(format!("`{run}` was asked to stop; it ends with its running step{step}, and no further step starts"))
        }
        ended => Err(Error::conflict(format!("nothing was stopped, because `{run}` has already ended: {ended}"))),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn view(state: &str) -> RunView {
        let arn = "arn:aws:sts::111111111111:assumed-role/ops/ada";
        serde_json::from_value(json!({
            "run": "run_00000000000000000001", "install": "globex", "runbook": "restore",
            "version": format!("sha256:{}", "0".repeat(64)), "number": 3, "state": state, "created_at": 1000,
            "ended_at": 13000, "asked_by": { "by": "caller", "arn": arn }, "inputs": { "snapshot": "s-1" },
            "reason": if state == "failed" { "step 2 (run action check): exit status 1" } else { "" },
            "resumed": [{ "at": 9000, "by": { "by": "caller", "arn": arn }, "reason": "disk was full" }],
            "steps": [
                { "name": "db", "does": "deploy component db", "state": "succeeded", "tries": 1,
                  "workflow": "wf_00000000000000000001" },
                { "does": "run action check", "state": state, "tries": 2, "workflow": "wf_00000000000000000002",
                  "reason": if state == "failed" { "exit status 1" } else { "" } },
            ],
        }))
        .unwrap()
    }

    #[test]
    fn a_run_says_who_asked_who_resumed_it_and_what_to_do_next() {
        insta::assert_snapshot!(run(&view("failed"), Output::plain()), @r"
        run run_00000000000000000001: runbook restore of globex, failed
        started 1970-01-01 00:00:01Z by arn:aws:sts::111111111111:assumed-role/ops/ada, version 3
        input snapshot: s-1
        resumed 1970-01-01 00:00:09Z by arn:aws:sts::111111111111:assumed-role/ops/ada: disk was full

        STEP  DOES                 STATE      TRIES  WORKFLOW                 REASON
        1 db  deploy component db  succeeded  1      wf_00000000000000000001
        2     run action check     failed     2      wf_00000000000000000002  exit status 1

        next: freehold runbook resume run_00000000000000000001 --reason 'WHY'
        ");
    }

    #[test]
    fn a_run_after_a_deploy_names_the_deploy() {
        let deploy = "wf_00000000000000000009".parse().ok();
        let text = run(&RunView { after_deploy: deploy, ..view("succeeded") }, Output::plain());

        assert!(text.contains("\nstarted 1970-01-01 00:00:01Z after deploy wf_00000000000000000009 by arn:"), "{text}");
    }

    #[test]
    fn a_run_that_failed_names_its_step_and_both_ways_on() {
        let error = outcome(&view("failed")).unwrap_err();

        assert_eq!(error.kind().exit_code(), 1);
        insta::assert_snapshot!(error, @"runbook `restore` of `globex` failed (run_00000000000000000001): step 2 (run action check): exit status 1; see `freehold workflow show wf_00000000000000000002`, then resume it at this step with `freehold runbook resume run_00000000000000000001 --reason 'WHY'`");
        assert_eq!(
            outcome(&view("succeeded")).unwrap(),
            "runbook `restore` of `globex` succeeded in 12 s (run_00000000000000000001)"
        );
    }

    #[test]
    fn a_cancel_is_told_as_it_is() {
        assert_eq!(cancelled(&view("cancelled")).unwrap(), "`run_00000000000000000001` is cancelled");
        assert!(cancelled(&view("running")).unwrap().contains("it ends with its running step"));
        let late = cancelled(&view("succeeded")).unwrap_err();
        assert_eq!(late.kind().exit_code(), 4);
        assert!(late.to_string().starts_with("nothing was stopped"), "{late}");
    }

    #[test]
    fn a_list_of_runbooks_has_their_inputs_and_steps() {
        let install = "globex".parse().unwrap();
        let none: InstallRunbooks =
            serde_json::from_value(json!({ "version": view("failed").version, "number": 3, "runbooks": [] })).unwrap();
        let mut all = none.clone();
        all.runbooks = serde_json::from_value(json!([{
            "runbook": "restore", "description": "Brings a snapshot back.",
            "labels": { "type": "operations", "service": "ecs" },
            "inputs": [{ "name": "snapshot", "required": true, "description": "Its id" },
                       { "name": "count", "default": "3" }],
            "steps": ["run action stop", "deploy component db"],
        }]))
        .unwrap();

        assert!(runbooks(&install, &none, false, Output::plain()).starts_with("version 3 of the app has no runbooks"));
        let unlabelled = runbooks(&install, &none, true, Output::plain());
        assert_eq!(unlabelled, "version 3 of the app has no runbook with these labels");
        insta::assert_snapshot!(runbooks(&install, &all, false, Output::plain()), @r"
        restore: Brings a snapshot back.
          labels: service=ecs, type=operations
          --input snapshot=TEXT  Its id (required)
          --input count=TEXT  (default `3`)
          1. run action stop
          2. deploy component db

        next: freehold runbook run globex NAME
        ");
    }
}
