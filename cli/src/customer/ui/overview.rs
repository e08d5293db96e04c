//! The first page: the state of the stack, of the runner and of the log, and what runs.

use freehold_pages::{Facts, Tone, code, notice, time};
use freehold_protocol::audit::AuditEvent;
use maud::{Markup, html};
use serde_json::Value;

use super::super::log::approvals::waiting;
use super::super::log::evidence::Evidence;
use super::super::log::history::records;
use super::super::log::ran;
use super::super::question::Question;
use super::super::stop::roles;
use super::super::windows::change_windows;
use super::html::part_of;
use super::source::Source;
use crate::clock;
use crate::cloudformation::{ACCEPTED_CONTRACT, Stack};
use crate::error::{Error, Result};
use crate::output::{clean_lines, plural};

/// Returns the first page, which the state of the log follows.
pub(super) async fn content(source: &Source) -> Markup {
    let stack = source.own.stack().await.and_then(|stack| of_stack(&stack));
    let records = match source.records().await {
        Ok(evidence) => of_records(&evidence),
        Err(error) => Err(error),
    };
    html! {
        (shown(stack))
        (shown(records))
        (commands(source))
    }
}

fn shown(part: Result<Markup>) -> Markup {
    part.unwrap_or_else(|error| not_read(&error))
}

fn not_read(error: &Error) -> Markup {
    notice(Tone::Bad, clean_lines(&error.to_string()))
}

/// Returns what the parameters of the stack permit now.
fn of_stack(stack: &Stack) -> Result<Markup> {
    let runner = match stack.parameters.get("EnableRunner").map(String::as_str) {
        Some("true") => "switched on",
        Some("false") => "paused: it can neither receive orders nor assume roles",
        Some(_) | None => "the stack has no switch for it",
    };
    let open: Vec<String> = roles(stack).into_iter().filter(|(_, is_open)| *is_open).map(|(role, _)| role).collect();
    let open = if open.is_empty() { "none".to_owned() } else { open.join(", ") };
    let windows = match change_windows(stack, clock::now()?) {
        Ok(windows) => windows.get("says").and_then(Value::as_str).unwrap_or_default().to_owned(),
        Err(error) => error.to_string(),
    };
    let accepted = stack.parameters.get(ACCEPTED_CONTRACT).filter(|contract| !contract.is_empty());
    let facts = Facts::new()
        .with("Stack", format!("{} is {}", stack.name, stack.status.as_str()))
        .with("Runner", runner)
        .with("Roles that are open", clean_lines(&open))
        .with("Changes", clean_lines(&windows))
        .maybe("Contract that you accepted", accepted.map(|contract| code(clean_lines(contract))));
    Ok(facts.render())
}

/// Returns what the records state: whether they are whole, who wrote them, and what runs.
fn of_records(evidence: &Evidence) -> Result<Markup> {
    let chain = &evidence.chain;
    let log = if chain.problems.is_empty() {
        format!("{}, complete and unchanged", plural(chain.records, "record"))
    } else {
        format!("incomplete or changed: {}", plural(chain.problems.len(), "problem"))
    };
    let reported = records(&evidence.copy)
        .into_iter()
        .rev()
        .find(|record| matches!(&record.event, AuditEvent::Sent { reports } if !reports.is_empty()));
    let hosts: Vec<&str> = chain.runners.iter().map(|runner| runner.host.as_str()).collect();
    let plans = waiting(evidence, clock::now()?).len();
    let facts = Facts::new()
        .with("Log", html! { a href="/log" { (log) } })
        .with("Machines that wrote it", clean_lines(&hosts.join(", ")))
        .maybe("Last record of a runner", chain.to.map(time))
        .maybe("Last report to the vendor", reported.map(|record| time(record.at)))
        .maybe("Confirmed by the vendor", chain.confirmed.map(|seq| format!("up to record {seq}")))
        .with("Plans that wait for you", html! { a href="/approvals" { (plans) } });
    Ok(html! {
        (facts.render())
        h2 { "What runs" }
        p { "The newest attempt at each component that may have changed it, by the signed orders of the log." }
        (part_of("Components", &ran::newest_of_components(evidence)))
    })
}

/// Returns each question with the command that answers it.
fn commands(source: &Source) -> Markup {
    let mut table = freehold_pages::Table::new("Your questions", ["Question", "The command that answers it"]);
    for question in Question::ALL {
        let words = question.command().trim_start_matches("freehold customer ");
        table.row([html! { (question.text()) }, code(source.command(words, ""))]);
    }
    table.render()
}
