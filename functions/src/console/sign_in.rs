//! Signing in and out. A sign-in always begins a new session, so a cookie that somebody planted is worth nothing.

use freehold_app::AppError;
use url::Url;

use super::attempts::{ATTEMPT_SECS, Started};
use super::cookies::{self, SESSION, SIGN_IN};
use super::failure::Failure;
use super::pages::messages;
use super::request::Request;
use super::response::Response;
use super::server::Console;
use super::sessions::{LONGEST_SECS, Session};

impl Console {
    /// Returns the page for signing in.
    pub(crate) fn sign_in_page(&self, request: &Request) -> Response {
        let message = request.query.given("out").map(|_| "You are signed out of this console.");
        Response::page(200, messages::sign_in(own_path(request.query.get("return")), message))
    }

    /// Sends the browser to the issuer.
    pub(crate) async fn start_sign_in(&self, request: &Request) -> Result<Response, Failure> {
        let begun = self.people.begin(&self.redirect_address()?).await?;
        let page = own_path(request.query.get("return")).to_owned();
        let secret = self.attempts.start(&Started { attempt: begun.attempt, page }).await?;
        let cookie = cookies::set(SIGN_IN, &secret.text(), ATTEMPT_SECS);
        Ok(Response::redirect(begun.url).with_cookie(cookie))
    }

    /// Begins a session after the issuer has sent the browser back.
    pub(crate) async fn finish_sign_in(&self, request: &Request) -> Result<Response, Failure> {
        let cookie = cookies::value(&request.cookies, SIGN_IN);
        let started =
            self.attempts.take(cookie).await?.ok_or_else(|| {
                AppError::invalid("this sign-in has expired, or began in another browser; sign in again")
            })?;
        let tokens = self.people.finish(&started.attempt, &request.raw_query).await?;
        self.sessions.end(cookies::value(&request.cookies, SESSION)).await?;
        let secret = self.sessions.begin(&tokens).await?;
        let response = Response::redirect(own_path(&started.page));
        let response = response.with_cookie(cookies::set(SESSION, &secret.text(), LONGEST_SECS));
        Ok(response.with_cookie(cookies::removed(SIGN_IN)))
    }

    /// Ends the session, or all sessions of its person.
    pub(crate) async fn sign_out(&self, session: &Session, everywhere: bool) -> Result<Response, Failure> {
        if everywhere {
            self.sessions.end_all(session).await?;
        } else {
            self.sessions.end(Some(&session.secret.text())).await?;
        }
        // The session is over in any case; without the revocation, its tokens expire by themselves.
        if let Err(error) = self.people.revoke(&session.tokens).await {
            tracing::warn!("could not revoke the tokens of a session that has ended: {error}");
        }
        Ok(Response::redirect("/sign-in?out=yes").with_cookie(cookies::removed(SESSION)))
    }

    fn redirect_address(&self) -> Result<Url, AppError> {
        let address = format!("{}/callback", self.origin);
        address.parse().map_err(|_| AppError::internal(format!("`{}` is not the address of a console", self.origin)))
    }
}

/// Returns the path if it is one of this console's pages, and the start page otherwise. Browsers take `//host` and
/// `/\host` as addresses of other hosts.
pub(crate) fn own_path(path: &str) -> &str {
    let is_path = path.starts_with('/') && !path.starts_with("//") && !path.contains('\\');
    let is_plain = path.bytes().all(|byte| byte.is_ascii_graphic());
    let is_sign_in = ["/sign-in", "/sign-out", "/callback"].iter().any(|start| path.starts_with(start));
    if is_path && is_plain && !is_sign_in { path } else { "/" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_return_path_stays_in_the_console() {
        for own in ["/", "/installs/globex?after=b", "/apps"] {
            assert_eq!(own_path(own), own);
        }
        for foreign in [
            "",
            "//evil.example",
            "/\\evil.example",
            "\\/evil.example",
            "https://evil.example",
            "javascript:alert(1)",
            "/\t/evil.example",
            "/a\r\nset-cookie: b=c",
            "evil",
            " /apps",
            "/apps\\..\\",
            "/sign-out/everywhere",
        ] {
            assert_eq!(own_path(foreign), "/", "{foreign}");
        }
    }
}
