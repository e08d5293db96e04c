//! The pages that a GET request asks for: reads what they show from the API, as far as the person may see it.

use std::collections::BTreeSet;
use std::fmt::Display;
use std::str::FromStr;

use freehold_app::AppError;
use freehold_client::{Client, calls};
use freehold_protocol::api::{CallerView, LogPage, TestAccessRequest};
use freehold_protocol::{AppName, InstallId, JobId, WorkflowId};
use futures_util::future::join_all;
use serde::Serialize;

use super::failure::Failure;
use super::pages::view::View;
use super::pages::{apps, install_parts, installs, job, members, policies, version, workflow};
use super::request::Fields;
use super::response::Response;

/// The most pages of a log that a page reads.
const LOG_PAGES: u32 = 10;

/// What has changed since a page was shown.
#[derive(Debug, Serialize)]
struct Live {
    /// The value of the parameter `since` for the next poll.
    since: String,
    /// Whether nothing more will change.
    ended: bool,
    /// Text to append.
    #[serde(skip_serializing_if = "String::is_empty")]
    text: String,
    /// The part as it is now; empty if it has not changed.
    #[serde(skip_serializing_if = "String::is_empty")]
    html: String,
}

/// Returns a page. The query names the place after which a list begins, or the version to compare with.
pub(crate) async fn page(client: &Client, view: View<'_>, parts: &[&str], query: &Fields) -> Result<Response, Failure> {
    let after = query.get("after");
    let document = match parts {
        [] => return Ok(Response::redirect("/installs")),
        ["account"] => members::account(&view),
        ["installs"] => installs::list(&view, &client.send(&calls::list_installs().after(after)).await?),
        ["installs", id, rest @ ..] => return install(client, view, &parsed(id)?, rest, after).await,
        ["apps"] => apps::list(&view, &client.send(&calls::list_apps().after(after)).await?),
        ["apps", id] => app(client, &view, &parsed(id)?, after).await?,
        ["apps", app, "versions", id] => {
            let (app, before) = (parsed(app)?, query.given("before").map(parsed).transpose()?);
            let shown = client.show_version(&app, &parsed(id)?).await?;
            let before = match &before {
                Some(before) => Some(client.show_version(&app, before).await?),
                None => None,
            };
            version::show(&view, &shown, before.as_ref())
        }
        ["workflows", id] => {
            let shown = client.show_workflow(&parsed(id)?).await?;
            let view = allowing(client, view, &shown.install, &["cancel_workflow", "resume_workflow"]).await;
            workflow::show(&view, &shown)
        }
        ["jobs", id] => {
            let id: JobId = parsed(id)?;
            let (shown, log) = tokio::try_join!(client.show_job(&id), log_of(client, &id))?;
            let actions = ["approve_job", "reject_job", "cancel_job", "retry_job"];
            let view = allowing(client, view, &shown.install, &actions).await;
            job::show(&view, &shown, &log)
        }
        ["members"] => members::list(&view, &client.send(&calls::list_members().after(after)).await?),
        ["members", name] => {
            let all = client.all(calls::list_members()).await?;
            let found = all.items.iter().find(|member| member.member.as_str() == *name);
            let unknown = || AppError::not_found(format!("there is no member `{name}`"));
            members::show(&view, found.ok_or_else(unknown)?)
        }
        ["policies"] => policies::show(&view, &client.show_policies().await?),
        _ => return Err(AppError::not_found("the console has no page with this address").into()),
    };
    Ok(Response::page(200, document))
}

async fn install(
    client: &Client,
    view: View<'_>,
    id: &InstallId,
    rest: &[&str],
    after: &str,
) -> Result<Response, Failure> {
    let document = match rest {
        [] => {
            let (shown, workflows) = (calls::show_install(id).after(after), calls::list_workflows(id));
            let (shown, workflows) = tokio::try_join!(client.send(&shown), client.send(&workflows))?;
            let view = allowing(client, view, id, &["deploy_components"]).await;
            let releases = match &shown.app {
                Some(app) if !view.allowed.is_empty() => client.list_releases(app).await.map(|page| page.items),
                _ => Ok(Vec::new()),
            };
            // Without releases, the page has no form to deploy one.
            installs::show(&view, &shown, &workflows, &releases.unwrap_or_default())
        }
        ["inputs"] => install_parts::inputs(&view, &client.show_inputs(id).await?),
        ["drift"] => install_parts::drift(&view, &client.list_drift(id).await?),
        ["history"] => {
            let history = client.send(&calls::show_history(id).after(after)).await?;
            install_parts::history(&view, id.as_str(), &history)
        }
        ["workflows"] => {
            let workflows = client.send(&calls::list_workflows(id).after(after)).await?;
            installs::workflows(&view, id.as_str(), &workflows)
        }
        _ => return Err(AppError::not_found("an install has no page with this address").into()),
    };
    Ok(Response::page(200, document))
}

async fn app(client: &Client, view: &View<'_>, id: &AppName, after: &str) -> Result<String, Failure> {
    let versions = calls::list_versions(id).after(after);
    let (app, versions, releases, channels, builds) = tokio::try_join!(
        client.show_app(id),
        client.send(&versions),
        client.list_releases(id),
        client.list_channels(id),
        client.list_builds(id),
    )?;
    Ok(apps::show(view, &app, &apps::Parts { versions, releases, channels, builds }))
}

/// Returns what has changed in a page since the state `since`.
pub(crate) async fn live(client: &Client, kind: &str, id: &str, since: &str) -> Result<Response, Failure> {
    let live = if kind == "workflows" {
        let shown = client.show_workflow(&parsed::<WorkflowId>(id)?).await?;
        let now = workflow::since(&shown);
        let html = if now == since { String::new() } else { workflow::changing(&shown).into_string() };
        Live { since: now, ended: shown.ended_at.is_some(), text: String::new(), html }
    } else {
        let log = client.send(&calls::list_logs(&parsed::<JobId>(id)?).after(since)).await?;
        let text = job::text_of(&log);
        Live { since: log.cursor, ended: log.ended, text, html: String::new() }
    };
    Ok(Response::json(serde_json::to_string(&live).map_err(AppError::from)?))
}

/// Returns the log of a job, up to a number of pages.
async fn log_of(client: &Client, job: &JobId) -> Result<LogPage, freehold_client::Error> {
    let mut log = client.list_logs(job).await?;
    for _ in 1..LOG_PAGES {
        if log.ended {
            break;
        }
        let page = client.send(&calls::list_logs(job).after(&log.cursor)).await?;
        let is_all = page.chunks.is_empty();
        log.chunks.extend(page.chunks);
        (log.cursor, log.ended) = (page.cursor, page.ended);
        if is_all {
            break;
        }
    }
    Ok(log)
}

/// Returns the view with those of `actions` that the policies permit the person on an install.
async fn allowing<'a>(client: &Client, view: View<'a>, install: &InstallId, actions: &[&'static str]) -> View<'a> {
    let answers = actions.iter().copied().map(|action| is_allowed(client, view.caller, install, action));
    let allowed: BTreeSet<&'static str> = join_all(answers).await.into_iter().flatten().collect();
    View { allowed, ..view }
}

async fn is_allowed(
    client: &Client,
    caller: &CallerView,
    install: &InstallId,
    action: &'static str,
) -> Option<&'static str> {
    let request = TestAccessRequest {
        who: Some(caller.who.clone()),
        member: None,
        action: action.to_owned(),
        app: None,
        install: Some(install.clone()),
        run_action: None,
    };
    client.test_access(&request).await.is_ok_and(|decision| decision.is_allowed).then_some(action)
}

/// Returns a part of a path as a value of a type.
pub(crate) fn parsed<T: FromStr<Err: Display>>(part: &str) -> Result<T, Failure> {
    part.parse::<T>().map_err(|error| AppError::not_found(format!("the address of this page is wrong: {error}")).into())
}
