//! The console of one tenant: finds the session of a request, checks forms, and leads to the pages and the changes.

use std::sync::Arc;

use aws_lambda_events::event::apigw::{ApiGatewayV2httpRequest, ApiGatewayV2httpResponse};
use freehold_app::ports::Clock;
use freehold_app::{AppError, Kind};
use freehold_client::{Client, Token, TokenKind};
use freehold_pages::{STYLE, STYLE_TYPE, encoded, style_path};
use freehold_protocol::Digest;
use freehold_protocol::api::CallerView;
use freehold_sign_in::{Settings as IssuerSettings, Tokens, discovery_base};
use lambda_runtime::Error;
use percent_encoding::percent_decode_str;
use url::Url;

use super::attempts::Attempts;
use super::failure::Failure;
use super::pages::view::View;
use super::pages::{members, messages};
use super::people::{OidcPeople, People};
use super::request::Request;
use super::response::Response;
use super::sealing::random_name;
use super::sessions::{Session, Sessions};
use super::{changes, cookies, reads};
use crate::log_failure;
use crate::settings::{Settings, variable};

const SCRIPT: &str = include_str!("live.js");
const SCRIPT_TYPE: &str = "text/javascript; charset=utf-8";
/// Tokens are renewed this long before they expire.
const RENEW_SECS: u64 = 60;

/// The console of one tenant.
pub struct Console {
    /// The origin of the console, such as `https://abc.execute-api.eu-west-1.amazonaws.com`.
    pub(crate) origin: String,
    pub(crate) api: Url,
    pub(crate) people: Arc<dyn People>,
    pub(crate) sessions: Sessions,
    pub(crate) attempts: Attempts,
    pub(crate) clock: Arc<dyn Clock>,
}

impl std::fmt::Debug for Console {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Console({})", self.origin)
    }
}

impl Console {
    /// Returns the console that the settings describe.
    ///
    /// # Errors
    /// When a setting is missing in the environment or is invalid.
    pub fn new(settings: &Settings) -> Result<Self, Error> {
        let (issuer, client_id) = (variable("FREEHOLD_PEOPLE_ISSUER")?, variable("FREEHOLD_PEOPLE_CLIENT_ID")?);
        let discovery_base = discovery_base(&issuer, std::env::var("AWS_ENDPOINT_URL").ok().as_deref());
        let (store, clock) = (settings.store()?, settings.clock());
        Ok(Self {
            origin: variable("FREEHOLD_CONSOLE_URL")?.trim_end_matches('/').to_owned(),
            api: variable("FREEHOLD_API_URL")?.parse()?,
            people: Arc::new(OidcPeople::new(IssuerSettings { issuer, client_id, discovery_base })),
            sessions: Sessions { store: Arc::clone(&store), clock: Arc::clone(&clock) },
            attempts: Attempts { store, clock: Arc::clone(&clock) },
            clock,
        })
    }

    /// Returns the response to one request of a browser.
    pub async fn answer(&self, event: ApiGatewayV2httpRequest) -> ApiGatewayV2httpResponse {
        match Request::parse(event) {
            Ok(request) => self.respond(&request).await.into(),
            Err(error) => refusal(&Failure::Own(error)).into(),
        }
    }

    /// Returns the response to a request.
    pub(crate) async fn respond(&self, request: &Request) -> Response {
        match self.perform(request).await {
            Ok(response) => response,
            // The script stops; the page that it belongs to stays.
            Err(Failure::SignedOut) if is_live(&request.path) => Response::page(401, String::new()),
            Err(Failure::SignedOut) => {
                let back = if request.is_post { "/" } else { request.path.as_str() };
                let page = format!("/sign-in?return={}", encoded(back));
                Response::redirect(page).with_cookie(cookies::removed(cookies::SESSION))
            }
            Err(failure) => refusal(&failure),
        }
    }

    async fn perform(&self, request: &Request) -> Result<Response, Failure> {
        if let Some(asset) = asset(&request.path) {
            return Ok(asset);
        }
        let parts = parts_of(&request.path)?;
        let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
        match (request.is_post, parts.as_slice()) {
            (false, ["sign-in"]) => Ok(self.sign_in_page(request)),
            (false, ["sign-in", "start"]) => self.start_sign_in(request).await,
            (false, ["callback"]) => self.finish_sign_in(request).await,
            (false, parts) => self.show(request, parts).await,
            (true, parts) => self.change(request, parts).await,
        }
    }

    async fn show(&self, request: &Request, parts: &[&str]) -> Result<Response, Failure> {
        let session = self.session(request).await?;
        let client = self.client(&session.tokens)?;
        if let [kind @ ("workflows" | "jobs"), id, "live"] = parts {
            return reads::live(&client, kind, id, request.query.get("since")).await;
        }
        // A page that polls does not keep its session alive.
        self.sessions.note_use(&session).await?;
        let caller = client.show_caller().await?;
        if !caller.is_member && parts != ["account"] {
            return Ok(Response::redirect("/account"));
        }
        let script = script_path();
        let view = view(&caller, &session, &request.path, &script)?;
        reads::page(&client, view, parts, &request.query).await
    }

    async fn change(&self, request: &Request, parts: &[&str]) -> Result<Response, Failure> {
        request.check_origin(&self.origin)?;
        let session = self.session(request).await?;
        if !session.secret.is_form_token(request.form.get("csrf")) {
            return Err(AppError::new(
                Kind::Unauthorized,
                "this form belongs to another session; open its page again and send the form again",
            )
            .into());
        }
        match parts {
            ["sign-out"] => return self.sign_out(&session, false).await,
            ["sign-out", "everywhere"] => {
                changes::check_confirmation(request)?;
                return self.sign_out(&session, true).await;
            }
            _ => {}
        }
        self.sessions.note_use(&session).await?;
        let client = self.client(&session.tokens)?;
        if parts != ["members"] {
            return changes::change(&client, parts, request).await;
        }
        let invited = changes::invite(&client, request).await?;
        let (caller, script) = (client.show_caller().await?, script_path());
        let view = view(&caller, &session, "/members", &script)?;
        Ok(Response::page(200, members::invited(&view, &invited)))
    }

    /// Returns the session of a request, with tokens that the API takes.
    pub(crate) async fn session(&self, request: &Request) -> Result<Session, Failure> {
        let cookie = cookies::value(&request.cookies, cookies::SESSION);
        let session = self.sessions.find(cookie).await?.ok_or(Failure::SignedOut)?;
        if self.has_good_tokens(&session) {
            return Ok(session);
        }
        if let Some(tokens) = self.people.refresh(&session.tokens).await?
            && let Some(renewed) = self.sessions.renew(session, tokens).await?
        {
            return Ok(renewed);
        }
        // Another request may have renewed the tokens at the same time: an issuer may take a refresh token only once.
        let found = self.sessions.find(cookie).await?;
        found.filter(|session| self.has_good_tokens(session)).ok_or(Failure::SignedOut)
    }

    fn has_good_tokens(&self, session: &Session) -> bool {
        session.tokens.expires_at > self.clock.now().plus_secs(RENEW_SECS)
    }

    fn client(&self, tokens: &Tokens) -> Result<Client, Failure> {
        let token = Arc::new(Token::new(tokens.access.expose())?);
        Ok(Client::with_token(self.api.clone(), TokenKind::Person, token)?)
    }
}

fn view<'a>(caller: &'a CallerView, session: &Session, path: &'a str, script: &'a str) -> Result<View<'a>, AppError> {
    let (form_token, page) = (session.secret.form_token()?, random_name()?);
    Ok(View { caller, path, form_token, page, script, allowed: std::collections::BTreeSet::new() })
}

/// Returns the page of an error, and logs the failure.
pub(crate) fn refusal(failure: &Failure) -> Response {
    let (kind, message) = (failure.kind(), failure.message());
    match failure {
        Failure::Own(error) => log_failure("request refused", error),
        Failure::SignedOut | Failure::Api(_) => log_failure("request refused", &AppError::new(kind, &message)),
    }
    let title = match kind {
        Kind::Invalid => "This request is not valid",
        Kind::Unauthorized => "This request is refused",
        Kind::Forbidden => "You may not do this",
        Kind::NotFound => "There is no such page",
        Kind::Conflict => "This is not possible now",
        Kind::Transient => "Try again in a moment",
        Kind::Internal => "Something is broken",
    };
    Response::page(kind.status(), messages::error(title, &message, failure.request_id()))
}

fn is_live(path: &str) -> bool {
    path.ends_with("/live")
}

/// Returns the path of the script, which has the digest of its text.
pub(crate) fn script_path() -> String {
    format!("/assets/live-{}.js", Digest::of(SCRIPT.as_bytes()).hex().get(..16).unwrap_or_default())
}

fn asset(path: &str) -> Option<Response> {
    if path == style_path() {
        return Some(Response::asset(STYLE_TYPE, STYLE));
    }
    (path == script_path()).then(|| Response::asset(SCRIPT_TYPE, SCRIPT))
}

/// Returns the parts of a path, decoded.
fn parts_of(path: &str) -> Result<Vec<String>, AppError> {
    let parts = path.split('/').filter(|part| !part.is_empty());
    let decoded = parts.map(|part| percent_decode_str(part).decode_utf8().map(std::borrow::Cow::into_owned));
    decoded.collect::<Result<_, _>>().map_err(|_| AppError::not_found("the address of this page is not text in UTF-8"))
}
