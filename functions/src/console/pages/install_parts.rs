//! The pages of an install's parts: its inputs, its drift and its history.

use freehold_pages::{Page, Table, Tone, badge, code, notice, pagination, time};
use freehold_protocol::api::{DriftedView, HistoryEntry, InputView, InstallDrift, InstallInputs, Page as List};
use maud::{Markup, html};

use super::view::{View, install_path, job_link, next_path, workflow_link};

/// Returns the page of the inputs. Values of sensitive inputs are not in the answer of the API.
pub(crate) fn inputs(view: &View<'_>, inputs: &InstallInputs) -> String {
    let mut table = Table::new("Inputs", ["Input", "Value", "From", "Required"]);
    for input in &inputs.inputs {
        table.row([
            html! { (code(&input.name)) " " (input.display_name) },
            value(input),
            html! { (input.from.describe()) },
            html! { @if input.required { "yes" } @else { "no" } },
        ]);
    }
    let problems = inputs.inputs.iter().filter_map(|input| input.problem.as_deref());
    let content = html! {
        @for problem in problems { (notice(Tone::Warning, problem)) }
        p { "Set inputs with " (code(format!("freehold install inputs {} --input NAME=VALUE", inputs.install))) "." }
        (table.render_or("The app has no inputs."))
    };
    part(view, "Inputs", inputs.install.as_str(), content)
}

fn value(input: &InputView) -> Markup {
    html! {
        @if let Some(value) = &input.value {
            @if let Some(text) = value.as_str() { (code(text)) } @else { (code(value)) }
        } @else { "–" }
    }
}

/// Returns the page of the drift.
pub(crate) fn drift(view: &View<'_>, drift: &InstallDrift) -> String {
    let mut parts = Table::new("Parts", ["Part", "State", "Checked", "Workflow"]);
    let mut resources = Table::new("Resources that differ", ["Resource", "Part", "Change", "Attributes", "Known"]);
    for part in &drift.parts {
        parts.row([
            html! { (part.component.to_string()) },
            html! { (badge(&part.drift.state)) " " (part.drift.reason) },
            time(part.drift.checked_at),
            workflow_link(&part.drift.workflow),
        ]);
        for drifted in &part.drift.resources {
            resources.row([
                code(&drifted.resource.address),
                html! { (part.component.to_string()) },
                html! { (drifted.resource.change.as_str()) },
                html! { (drifted.resource.attributes.join(", ")) },
                known(drifted),
            ]);
        }
    }
    let mut rules = Table::new("Rules that ignore drift", ["Address", "Reason", "By", "Since"]);
    for rule in &drift.rules {
        rules.row([code(&rule.address), html! { (rule.reason) }, html! { (rule.by.to_string()) }, time(rule.at)]);
    }
    let content = html! {
        (parts.render_or("No check has run."))
        (resources.render_or("No resource differs."))
        (rules.render_or("No rule ignores drift."))
    };
    part(view, "Drift", drift.install.as_str(), content)
}

fn known(drifted: &DriftedView) -> Markup {
    html! {
        @if drifted.ignored { "ignored by a rule" }
        @if let Some(known) = &drifted.acknowledged { (known.reason) " (" (known.by.to_string()) ")" }
    }
}

/// Returns the page of the history.
pub(crate) fn history(view: &View<'_>, install: &str, history: &List<HistoryEntry>) -> String {
    let mut table = Table::new("History, newest first", ["Time", "What", "Result", "By", "Why"]);
    for entry in &history.items {
        table.row([
            time(entry.at),
            html! {
                (entry.what)
                @if let Some(component) = &entry.component { " of " (component.to_string()) }
                @if let Some(workflow) = &entry.workflow { " " (workflow_link(workflow)) }
                @if let Some(job) = &entry.job { " " (job_link(job)) }
            },
            html! { (entry.result) },
            html! { @if let Some(by) = &entry.by { (by.to_string()) } },
            html! { (entry.why) },
        ]);
    }
    let path = format!("{}/history", install_path(install));
    let content = html! {
        (table.render_or("Nothing has happened."))
        (pagination(next_path(&path, history.next.as_deref()).as_deref()))
    };
    part(view, "History", install, content)
}

fn part(view: &View<'_>, name: &str, install: &str, content: Markup) -> String {
    let title = format!("{name} of install {install}");
    let page = Page::new(&title, content).at(view.path);
    view.document(page.below("Installs", "/installs").below(install, install_path(install)))
}
