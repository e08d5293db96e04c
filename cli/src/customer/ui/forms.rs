//! The forms of the pages, by which a person starts what a command for customers does.

use freehold_pages::{Field, Form, Tone, code, empty, encoded, notice};
use freehold_protocol::Digest;
use maud::{Markup, html};

use super::super::log::approvals::{OnePlan, waiting};
use super::super::stop::roles;
use super::source::Source;
use crate::clock;
use crate::error::Result;
use crate::job::plan::changes;
use crate::output::clean_lines;

/// Returns the forms that start and end a hold.
pub(super) fn of_windows(csrf: &str) -> Markup {
    let hold = Form::new("/hold", "Hold changes", csrf);
    let lift = Form::new("/lift-hold", "Lift the hold", csrf);
    html! {
        h2 { "Hold" }
        p {
            "You set the windows with the parameters " (code("ChangeWindows")) " and " (code("ChangeFreezes"))
            " of the stack. A hold stops all changes that have not started, also in a window."
        }
        div .actions {
            (hold.confirmed("No change may start until I lift the hold.").render())
            (lift.confirmed("Changes may start again within the windows.").render())
        }
    }
}

/// Returns the forms that stop and resume work.
pub(super) async fn of_stop(source: &Source, csrf: &str) -> Markup {
    let roles = match source.own.stack().await {
        Ok(stack) => roles(&stack),
        Err(error) => return notice(Tone::Bad, clean_lines(&error.to_string())),
    };
    let open = roles.into_iter().filter(|(_, is_open)| *is_open);
    let open: Vec<(String, String)> = open.map(|(role, _)| (role.clone(), role)).collect();
    let first = open.first().map(|(role, _)| role.clone()).unwrap_or_default();
    let has_open = !open.is_empty();
    let role = Field::Choice { name: "role", label: "Role", options: open, chosen: &first };
    let close = Form::new("/close", "Close a role", csrf).field(role);
    let pause = Form::new("/pause", "Pause", csrf);
    let resume = Form::new("/resume", "Resume", csrf);
    let revoke = Form::new("/revoke-sessions", "End all sessions", csrf);
    html! {
        h2 { "Stop and resume" }
        p {
            "Each of these changes one parameter of your stack, with the template that is launched. "
            (code(source.command("open", " ROLE"))) " opens a role again."
        }
        div .actions {
            (pause.confirmed("Stop the runner and every mode. The app keeps running.").render())
            (resume.confirmed("Let the runner take orders again.").render())
            (revoke.confirmed("End every live session of the runner and of all modes.").render())
            @if has_open { (close.confirmed("Close this role, also for jobs that run.").render()) }
        }
    }
}

/// Returns the plans that wait for the customer, or the forms about the plan `wanted`.
pub(super) async fn of_approvals(source: &Source, wanted: Option<&Digest>, csrf: &str) -> Markup {
    match waiting_plans(source).await {
        Ok(plans) => match wanted {
            None => list(&plans),
            Some(wanted) => match plans.iter().find(|one| one.plan == *wanted) {
                Some(plan) => decision(plan, csrf),
                None => notice(Tone::Warning, "This plan does not wait for your approval any more."),
            },
        },
        Err(error) => notice(Tone::Bad, clean_lines(&error.to_string())),
    }
}

async fn waiting_plans(source: &Source) -> Result<Vec<OnePlan>> {
    let records = source.records().await?;
    Ok(waiting(&records, clock::now()?))
}

fn list(plans: &[OnePlan]) -> Markup {
    html! {
        h2 { "Plans that wait for you" }
        @if plans.is_empty() { (empty("No plan waits for your approval.")) }
        ul {
            @for one in plans {
                li {
                    a href={ "/approvals?plan=" (encoded(one.plan.as_str())) } { "Decide about " (code(&one.plan)) }
                    " of " (code(&one.job))
                }
            }
        }
    }
}

fn decision(one: &OnePlan, csrf: &str) -> Markup {
    let plan = one.plan.as_str();
    let approve = Form::new("/approve", "Approve", csrf).hidden("plan", plan);
    let hint = "The vendor sees it.";
    let reason = Field::Text { name: "reason", label: "Reason", value: "", hint, is_required: true };
    let reject = Form::new("/reject", "Reject", csrf).hidden("plan", plan).field(reason);
    html! {
        h2 { "The plan" }
        p { (code(plan)) " of " (code(&one.job)) }
        @for line in changes(&one.summary) { p { (clean_lines(&line)) } }
        p {
            "The runner applies exactly this plan or nothing. The whole plan is in your bucket, below "
            (code("plans/")) "."
        }
        div .actions {
            (approve.confirmed("I have read the plan, and approve it.").render())
            (reject.confirmed("The job ends, and changes nothing.").render())
        }
    }
}
