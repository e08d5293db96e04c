//! What all pages of a person have in common: the navigation, who is signed in, and the tokens of forms.

use std::collections::BTreeSet;

use freehold_pages::{Form, Link, Page, Site, encoded};
use freehold_protocol::api::CallerView;
use freehold_protocol::{Digest, Timestamp};
use maud::{Markup, html};

/// The name of the site in titles.
pub(crate) const SITE: &str = "Freehold";

/// The person who looks at a page, and what the forms of the page need.
#[derive(Debug)]
pub(crate) struct View<'a> {
    pub(crate) caller: &'a CallerView,
    /// The path of the page.
    pub(crate) path: &'a str,
    /// The token that proves that a form belongs to the session.
    pub(crate) form_token: String,
    /// A random name of this page, from which the idempotency keys of its forms are made.
    pub(crate) page: String,
    /// The path of the script for live updates.
    pub(crate) script: &'a str,
    /// The actions that the person may perform on the install of the page, by name.
    pub(crate) allowed: BTreeSet<&'static str>,
}

impl View<'_> {
    /// Returns whether the person may perform an action on the whole tenant.
    pub(crate) fn may(&self, action: &str) -> bool {
        self.caller.permissions.iter().any(|other| other == action)
    }

    /// Returns a form with the token and an idempotency key: a form that is sent twice does its work once.
    pub(crate) fn form<'f>(&self, action: &'f str, button: &'f str) -> Form<'f> {
        let key = format!("{}-{}", self.page, Digest::of(action.as_bytes()).short());
        Form::new(action, button, &self.form_token).hidden("key", key)
    }

    /// Returns the document of a page.
    pub(crate) fn document(&self, page: Page<'_>) -> String {
        let mut links = Vec::new();
        if self.caller.is_member {
            links.extend([Link::new("Installs", "/installs"), Link::new("Apps", "/apps")]);
        }
        if self.may("list_members") {
            links.push(Link::new("Members", "/members"));
        }
        if self.may("show_policies") {
            links.push(Link::new("Policies", "/policies"));
        }
        let site = Site { name: SITE, links, account: self.account() };
        page.render(&site)
    }

    fn account(&self) -> Markup {
        html! {
            a href="/account" { (self.caller.name) }
            (self.form("/sign-out", "Sign out").render())
        }
    }
}

/// Returns the path of an install.
pub(crate) fn install_path(install: impl std::fmt::Display) -> String {
    format!("/installs/{}", encoded(&install.to_string()))
}

/// Returns a link to an install.
pub(crate) fn install_link(install: impl std::fmt::Display) -> Markup {
    html! { a href=(install_path(&install)) { (install.to_string()) } }
}

/// Returns a link to an app.
pub(crate) fn app_link(app: impl std::fmt::Display) -> Markup {
    html! { a href={ "/apps/" (encoded(&app.to_string())) } { (app.to_string()) } }
}

/// Returns a link to a workflow.
pub(crate) fn workflow_link(workflow: impl std::fmt::Display) -> Markup {
    html! { a href={ "/workflows/" (encoded(&workflow.to_string())) } { (workflow.to_string()) } }
}

/// Returns a link to a job.
pub(crate) fn job_link(job: impl std::fmt::Display) -> Markup {
    html! { a href={ "/jobs/" (encoded(&job.to_string())) } { (job.to_string()) } }
}

/// Returns the path of the next page of a list.
pub(crate) fn next_path(path: &str, next: Option<&str>) -> Option<String> {
    next.map(|next| format!("{path}?after={}", encoded(next)))
}

/// Returns a time, or a dash.
pub(crate) fn maybe_time(at: Option<Timestamp>) -> Markup {
    html! { @if let Some(at) = at { (freehold_pages::time(at)) } @else { "–" } }
}
