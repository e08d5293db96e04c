//! Answers the requests of the browser: shows a page, or starts a change.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use freehold_pages::{Page, STYLE, STYLE_TYPE, Site, Tone, code, html_headers, notice, security_headers, style_path};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::{Method, Request, Response, StatusCode};
use maud::{Markup, html};
use tokio::time::Instant;

use super::access::{Access, Refusal, Verdict};
use super::action::Action;
use super::fields::Fields;
use super::html::answer_of;
use super::source::Source;
use super::topic::Topic;
use super::work::{State, Work};
use crate::error::{Error, Result};
use crate::output::clean_lines;

/// The path of the page about the newest change.
const WORK: &str = "/work";
/// The maximum size of a form, in bytes.
const LARGEST_FORM: usize = 64 * 1024;
/// The time limit for the browser to send a form.
const FORM_TIME: Duration = Duration::from_secs(10);
/// The title of a page about a request without a result.
const REFUSED: &str = "Not done";

/// The response to a request.
pub(super) type Reply = Response<Full<Bytes>>;

/// The pages about one install.
pub(super) struct CustomerSite {
    source: Rc<Source>,
    access: Access,
    work: Rc<Work>,
    last_request: Cell<Instant>,
}

impl CustomerSite {
    pub(super) fn new(source: Source, access: Access) -> Self {
        let (source, work) = (Rc::new(source), Rc::new(Work::default()));
        Self { source, access, work, last_request: Cell::new(Instant::now()) }
    }

    /// Returns the time of the last request that was permitted. A change that runs counts as a request.
    pub(super) fn last_request(&self) -> Instant {
        if self.work.is_running() { Instant::now() } else { self.last_request.get() }
    }

    /// Answers a request.
    pub(super) async fn answer(&self, request: Request<Incoming>) -> Reply {
        match self.access.check(&request) {
            Verdict::Refused(refusal) => return self.refusal(refusal),
            Verdict::Exchanged(cookie) => {
                self.last_request.set(Instant::now());
                return self.welcome(cookie);
            }
            Verdict::Permitted => self.last_request.set(Instant::now()),
        }
        let path = request.uri().path().to_owned();
        if request.method() == Method::GET {
            let fields = Fields::parse(request.uri().query().unwrap_or_default());
            return self.show(&path, &fields).await;
        }
        if request.method() == Method::POST {
            return match self.change(&path, request.into_body()).await {
                Ok(reply) => reply,
                Err((status, error)) => self.page(status, REFUSED, &path, &notice_of(&error), &[]),
            };
        }
        let message = notice(Tone::Bad, "a page is read with GET, and a form is sent with POST");
        self.page(StatusCode::METHOD_NOT_ALLOWED, REFUSED, &path, &message, &[])
    }

    async fn show(&self, path: &str, fields: &Fields) -> Reply {
        if path == style_path() {
            return stylesheet();
        }
        if path == WORK {
            return self.work_page();
        }
        let Some(topic) = Topic::at(path) else {
            let message = notice(Tone::Warning, "there is no such page; follow a link above");
            return self.page(StatusCode::NOT_FOUND, "No such page", path, &message, &[]);
        };
        let content = topic.content(&self.source, fields, self.access.form_token()).await;
        self.page(StatusCode::OK, topic.title(), path, &content, &[])
    }

    /// Starts the change that a form requests.
    async fn change(&self, path: &str, body: Incoming) -> Result<Reply, (StatusCode, Error)> {
        let bad = |error: Error| (StatusCode::BAD_REQUEST, error);
        let fields = read_form(body).await.map_err(bad)?;
        if !self.access.is_own_form(&fields) {
            return Ok(self.refusal(Refusal::Form));
        }
        let Some(action) = Action::requested(path, &fields).map_err(bad)? else {
            return Err((StatusCode::NOT_FOUND, Error::not_found("there is no such form; load the page again")));
        };
        self.work.start(action, &self.source).map_err(|error| (StatusCode::CONFLICT, error))?;
        Ok(self.page(
            StatusCode::SEE_OTHER,
            "Started",
            path,
            &html! { a href=(WORK) { "Go to the change" } },
            &[("location", WORK)],
        ))
    }

    /// Returns the page about the newest change. While the change runs, the browser loads the page again and again.
    fn work_page(&self) -> Reply {
        let (title, content) = self.work.with_state(|state| match state {
            State::Idle => ("No change", html! { p { "Nobody has started a change on these pages." } }),
            State::Running(action) => {
                let waits = "this page shows the end; a change of the stack takes some minutes";
                ("In progress", html! { (notice(Tone::Busy, waits)) (self.command_of(action)) })
            }
            State::Ended(action, Ok(answer)) => {
                ("Done", html! { (answer_of("The change", answer)) (self.command_of(action)) })
            }
            State::Ended(action, Err(error)) => (REFUSED, html! { (notice_of(error)) (self.command_of(action)) }),
        });
        let again: &[(&'static str, &str)] = if self.work.is_running() { &[("refresh", "3")] } else { &[] };
        self.page(StatusCode::OK, title, WORK, &content, again)
    }

    fn command_of(&self, action: &Action) -> Markup {
        let (words, more) = action.words();
        html! { p { "The command that does the same: " (code(self.source.command(words, &clean_lines(&more)))) } }
    }

    /// Returns the response that sets the cookie. The browser then opens the first page by itself. It would not send a
    /// cookie with `SameSite=Strict` after a redirection if another site had the link, such as a terminal in a browser.
    fn welcome(&self, cookie: String) -> Reply {
        let link = html! { p { a href="/" { "Open the pages about install " (self.source.own.install.as_str()) } } };
        let headers = [("set-cookie", cookie.as_str()), ("refresh", "0; url=/")];
        self.page(StatusCode::OK, "Freehold", "", &link, &headers)
    }

    fn refusal(&self, refusal: Refusal) -> Reply {
        let site = Site { name: "Freehold", links: Vec::new(), account: Markup::default() };
        let page = Page::new("Refused", notice(Tone::Bad, refusal.text())).render(&site);
        response(StatusCode::FORBIDDEN, &[], page)
    }

    fn page(
        &self,
        status: StatusCode,
        title: &str,
        path: &str,
        content: &Markup,
        headers: &[(&'static str, &str)],
    ) -> Reply {
        let (install, tenant) = (self.source.own.install.as_str(), self.source.own.tenant.as_str());
        let account = html! { span { "Install " (install) " of vendor " (tenant) } };
        let site = Site { name: "Freehold", links: Topic::links(), account };
        response(status, headers, Page::new(title, content.clone()).at(path).render(&site))
    }
}

fn notice_of(error: &Error) -> Markup {
    notice(Tone::Bad, clean_lines(&error.to_string()))
}

/// Reads a form of at most [`LARGEST_FORM`] bytes.
async fn read_form(body: Incoming) -> Result<Fields> {
    let unread = || Error::invalid("the form cannot be read; load the page again, and send its form");
    let read = tokio::time::timeout(FORM_TIME, Limited::new(body, LARGEST_FORM).collect()).await;
    let bytes = read.map_err(|_| unread())?.map_err(|_| unread())?.to_bytes();
    Ok(Fields::parse(&String::from_utf8_lossy(&bytes)))
}

fn stylesheet() -> Reply {
    let own = [("content-type", STYLE_TYPE), ("cache-control", "no-store")];
    let fixed = security_headers(std::iter::empty());
    with_headers(StatusCode::OK, fixed.iter().map(|(name, value)| (*name, value.as_str())).chain(own), STYLE.to_owned())
}

fn response(status: StatusCode, headers: &[(&'static str, &str)], page: String) -> Reply {
    let fixed = html_headers(std::iter::empty());
    with_headers(status, fixed.iter().map(|(name, value)| (*name, value.as_str())).chain(headers.iter().copied()), page)
}

fn with_headers<'a>(status: StatusCode, headers: impl Iterator<Item = (&'static str, &'a str)>, body: String) -> Reply {
    let builder = Response::builder().status(status);
    let builder = headers.fold(builder, |builder, (name, value)| builder.header(name, value));
    // INVARIANT: all names and values are printable ASCII.
    builder.body(Full::from(body)).unwrap_or_else(|_| {
        let mut empty = Response::new(Full::default());
        *empty.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
        empty
    })
}
