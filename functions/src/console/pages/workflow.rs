//! The page of a workflow: its state, its graph and its steps.

use freehold_pages::{Facts, Field, Graph, Node, Page, Table, Tone, badge, code, notice, time};
use freehold_protocol::Digest;
use freehold_protocol::api::{NodeView, WorkflowView, describe_act};
use maud::{Markup, html};

use super::view::{View, install_link, install_path, job_link, maybe_time, workflow_link};

/// Returns the page of a workflow.
pub(crate) fn show(view: &View<'_>, workflow: &WorkflowView) -> String {
    let path = format!("/workflows/{}", workflow.workflow);
    let title = format!("Workflow {}", workflow.workflow);
    let content = html! {
        div data-live={ (path) "/live" } data-since=(since(workflow)) { (changing(workflow)) }
        p { a href=(path) { "Refresh now" } }
        (actions(view, workflow, &path))
        (continuations(workflow))
    };
    let page = Page::new(&title, content).at("/installs").with_script(view.script);
    let page = page.below("Installs", "/installs");
    view.document(page.below(workflow.install.as_str(), install_path(&workflow.install)))
}

/// Returns the part of the page that changes while the workflow runs.
pub(crate) fn changing(workflow: &WorkflowView) -> Markup {
    let nodes = workflow.nodes.iter().map(|node| Node {
        name: &node.name,
        state: &node.state,
        dependencies: node.dependencies.iter().map(String::as_str).collect(),
    });
    let graph = Graph { title: "Steps and their dependencies", nodes: nodes.collect() };
    html! {
        @if !workflow.reason.is_empty() { (notice(Tone::Bad, &workflow.reason)) }
        @if let Some(nothing) = &workflow.nothing_ran { (notice(Tone::Neutral, nothing)) }
        (facts(workflow))
        (graph.render())
        (steps(&workflow.nodes))
    }
}

/// Returns the name of the state that a page shows. It differs when the page would.
pub(crate) fn since(workflow: &WorkflowView) -> String {
    Digest::of(changing(workflow).into_string().as_bytes()).short().to_owned()
}

fn facts(workflow: &WorkflowView) -> Markup {
    let rolled_back_by = workflow.rolled_back.as_ref().and_then(|back| back.workflow.as_ref());
    Facts::new()
        .with("State", badge(&workflow.state))
        .with("Kind", &workflow.kind)
        .with("Install", install_link(&workflow.install))
        .maybe("Version", workflow.version.as_ref().map(code))
        .maybe("Release", workflow.release.as_ref().map(code))
        .maybe("Action", workflow.action.as_ref().map(code))
        .maybe("Asked by", workflow.asked_by.as_ref().map(ToString::to_string))
        .with("Started", time(workflow.created_at))
        .with("Ended", maybe_time(workflow.ended_at))
        .maybe("Cancelled by", workflow.cancelled_by.as_ref().map(ToString::to_string))
        .maybe("Rolls back", workflow.roll_back_of.as_ref().map(workflow_link))
        .maybe("Rolled back by", rolled_back_by.map(workflow_link))
        .render()
}

fn steps(nodes: &[NodeView]) -> Markup {
    let mut table = Table::new("Steps", ["Step", "State", "Job", "Depends on", "Reason"]);
    for node in nodes {
        table.row([
            html! { (node.name) },
            badge(&node.state),
            html! { @if let Some(job) = &node.job { (job_link(job)) } },
            html! { (node.dependencies.join(", ")) },
            html! { (node.reason) },
        ]);
    }
    table.render_or("The workflow has no steps.")
}

fn actions(view: &View<'_>, workflow: &WorkflowView, path: &str) -> Markup {
    let (cancel, resume) = (format!("{path}/cancel"), format!("{path}/resume"));
    let reason = Field::Text {
        name: "reason",
        label: "Reason",
        value: "",
        hint: "The customer's audit log shows it.",
        is_required: false,
    };
    html! {
        div .actions {
            @if workflow.ended_at.is_none() && view.allowed.contains("cancel_workflow") {
                (view.form(&cancel, "Cancel").field(reason).confirmed("Cancel this workflow").render())
            } @else if has_ended_badly(workflow) && view.allowed.contains("resume_workflow") {
                (view.form(&resume, "Resume").field(reason).render())
            }
        }
    }
}

fn has_ended_badly(workflow: &WorkflowView) -> bool {
    workflow.ended_at.is_some() && workflow.state != "succeeded"
}

fn continuations(workflow: &WorkflowView) -> Markup {
    let mut table = Table::new("Continuations", ["Time", "What", "By", "Reason", "Had ended as"]);
    for again in &workflow.again {
        table.row([
            time(again.at),
            html! { (describe_act(&again.act, again.node.as_deref())) },
            html! { (again.by.to_string()) },
            html! { (again.reason) },
            html! { (badge(&again.ended_as)) " " (again.ended_reason) },
        ]);
    }
    html! { @if !table.is_empty() { (table.render()) } }
}
