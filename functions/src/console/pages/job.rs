//! The page of a job: its state, the plan that waits for an approval, its history and its log.

use freehold_pages::{Facts, Field, Page, Table, Tone, badge, code, notice, time};
use freehold_protocol::api::{JobView, LogPage, PlanView};
use freehold_protocol::approval::Side;
use maud::{Markup, html};

use super::view::{View, install_link, install_path, maybe_time, workflow_link};

/// The most bytes of a log that a page shows.
const LOG_BYTES: usize = 20_000;

/// Returns the page of a job with the end of its log.
pub(crate) fn show(view: &View<'_>, job: &JobView, log: &LogPage) -> String {
    let (title, path) = (format!("Job {}", job.job), format!("/jobs/{}", job.job));
    let content = html! {
        @if !job.reason.is_empty() { (notice(Tone::Warning, &job.reason)) }
        (facts(job))
        @if let Some(plan) = &job.plan { (waiting_plan(view, plan, &path)) }
        (actions(view, job, &path))
        h2 { "Log" }
        p { a href=(path) { "Refresh now" } }
        (shown_log(job, &path, log))
        h2 { "Outputs" }
        (outputs(job))
        h2 { "Policies" }
        (policies(job))
        h2 { "History" }
        (history(job))
    };
    let page = Page::new(&title, content).at("/installs").with_script(view.script);
    let page = page.below("Installs", "/installs").below(job.install.as_str(), install_path(&job.install));
    view.document(page.below(job.workflow.as_str(), format!("/workflows/{}", job.workflow)))
}

/// Returns the text of a log's pages.
pub(crate) fn text_of(log: &LogPage) -> String {
    log.chunks.iter().map(|chunk| chunk.text.as_str()).collect()
}

fn shown_log(job: &JobView, path: &str, log: &LogPage) -> Markup {
    let text = text_of(log);
    let from = text.len().saturating_sub(LOG_BYTES);
    let from = (from..text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or_default();
    let shown = text.get(from..).unwrap_or_default();
    html! {
        @if from > 0 { p { "The log is longer; " (code(format!("freehold job logs {}", job.job))) " shows all of it." } }
        // The parser drops one line break after the start tag.
        pre tabindex="0" role="region" aria-label="Log" data-live={ (path) "/live" } data-since=(log.cursor) {
            "\n" (shown)
        }
    }
}

fn facts(job: &JobView) -> Markup {
    Facts::new()
        .with("State", badge(&job.state))
        .with("Part", &job.node)
        .with("Install", install_link(&job.install))
        .with("Workflow", workflow_link(&job.workflow))
        .with("Mode", job.mode.as_str())
        .with("Created", time(job.created_at))
        .with("Ended", maybe_time(job.ended_at))
        .maybe("Waits since", job.waits_since.map(time))
        .maybe("Waits until", job.waits_until.map(time))
        .maybe("May start at", job.opens_at.map(time))
        .render()
}

fn waiting_plan(view: &View<'_>, plan: &PlanView, path: &str) -> Markup {
    let proposed = &plan.proposed;
    let mut changes = Table::new("Changes of the plan", ["Resource", "Change", "Type"]);
    for change in &proposed.summary.changes {
        changes.row([code(&change.address), badge(change.change.as_str()), html! { (change.kind) }]);
    }
    let sides: Vec<&str> = plan.waits_for.iter().map(|side| side.as_str()).collect();
    let more = usize::try_from(proposed.summary.count()).unwrap_or_default();
    let more = more.saturating_sub(proposed.summary.changes.len());
    let facts = Facts::new()
        .with("Plan", code(&proposed.plan))
        .with("Waits for", sides.join(", "))
        .with("Until", time(proposed.until))
        .maybe("Approved at the vendor by", plan.approved_by_vendor.as_deref())
        .maybe("Approved at the customer by", plan.approved_by_customer.as_deref());
    html! {
        h2 { "Plan" }
        (facts.render())
        (changes.render_or("The plan lists no resource."))
        @if more > 0 { p { "and " (more) " more" } }
        @if let Some(instead) = &proposed.instead { (notice(Tone::Warning, instead)) }
        (decision(view, plan, path))
    }
}

fn decision(view: &View<'_>, plan: &PlanView, path: &str) -> Markup {
    let (approve, reject) = (format!("{path}/approve"), format!("{path}/reject"));
    let digest = plan.proposed.plan.to_string();
    let reason = Field::Text {
        name: "reason",
        label: "Reason for the rejection",
        value: "",
        hint: "One line of 1 to 500 characters.",
        is_required: true,
    };
    let waits_for_vendor = plan.waits_for.contains(&Side::Vendor);
    html! {
        @if plan.waits_for.is_empty() {
            (notice(Tone::Neutral, "The plan is approved. Freehold orders the job again within a minute."))
        }
        div .actions {
            @if waits_for_vendor && view.allowed.contains("approve_job") {
                (view.form(&approve, "Approve").hidden("plan", &digest).render())
            }
            @if view.allowed.contains("reject_job") {
                (view.form(&reject, "Reject").hidden("plan", &digest).field(reason)
                    .confirmed("Reject the plan and end the job").render())
            }
        }
    }
}

fn actions(view: &View<'_>, job: &JobView, path: &str) -> Markup {
    let (cancel, retry) = (format!("{path}/cancel"), format!("{path}/retry"));
    html! {
        div .actions {
            @if job.ended_at.is_none() && view.allowed.contains("cancel_job") {
                (view.form(&cancel, "Cancel").confirmed("Cancel this job").render())
            } @else if job.ended_at.is_some() && job.state != "succeeded" && view.allowed.contains("retry_job") {
                (view.form(&retry, "Retry").render())
            }
        }
    }
}

fn outputs(job: &JobView) -> Markup {
    let mut table = Table::new("Outputs of the job", ["Output", "Value"]);
    for (name, value) in &job.outputs {
        table.row([code(name), code(value)]);
    }
    table.render_or("The job has no outputs.")
}

fn policies(job: &JobView) -> Markup {
    let mut table = Table::new("Results of policies", ["Policy", "Denies", "Warns", "Failed"]);
    for result in &job.policies {
        table.row([
            html! { (result.name) },
            html! { (result.deny.join(", ")) },
            html! { (result.warn.join(", ")) },
            html! { (result.failed.as_deref().unwrap_or_default()) },
        ]);
    }
    table.render_or("No policy was evaluated.")
}

fn history(job: &JobView) -> Markup {
    let mut table = Table::new("Changes of the state", ["Time", "What", "From", "To", "Reason"]);
    for entry in &job.history {
        table.row([
            time(entry.at),
            html! { (entry.what) },
            html! { (entry.from.replace('_', " ")) },
            html! { (entry.to.replace('_', " ")) },
            html! { (entry.reason) },
        ]);
    }
    table.render_or("Nothing has happened.")
}
