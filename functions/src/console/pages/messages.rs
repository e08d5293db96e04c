//! The pages without a person: that for signing in, and those of errors.

use freehold_pages::{Page, Site, Tone, code, encoded, notice};
use maud::{Markup, html};

use super::view::SITE;

/// Returns the page for signing in. After it, the browser gets the page `back`.
pub(crate) fn sign_in(back: &str, message: Option<&str>) -> String {
    let content = html! {
        @if let Some(message) = message { (notice(Tone::Neutral, message)) }
        p { "This console shows the apps and installs of a tenant to its members." }
        p { a .button href={ "/sign-in/start?return=" (encoded(back)) } { "Sign in" } }
    };
    Page::new("Sign in", content).render(&bare())
}

/// Returns the page of an error: what is wrong, and the way out.
pub(crate) fn error(title: &str, message: &str, request: Option<&str>) -> String {
    let content = html! {
        (notice(Tone::Bad, message))
        @if let Some(id) = request { p { "Request " (code(id)) } }
        p { a href="/" { "Start page" } }
    };
    Page::new(title, content).render(&bare())
}

fn bare() -> Site<'static> {
    Site { name: SITE, links: Vec::new(), account: Markup::default() }
}
