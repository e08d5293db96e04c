//! A console in memory: its table and clock, an issuer that signs in one person, and browsers that send requests.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use aws_lambda_events::event::apigw::ApiGatewayV2httpRequest;
use freehold_app::AppError;
use freehold_app::ports::Clock as _;
use freehold_app::testing::Memory;
use freehold_sign_in::{Attempt, Begun, Identity, Tokens};
use serde_json::json;
use url::Url;

use crate::console::attempts::Attempts;
use crate::console::cookies::{SESSION, SIGN_IN};
use crate::console::people::People;
use crate::console::request::Request;
use crate::console::response::Response;
use crate::console::server::Console;
use crate::console::sessions::Sessions;

pub(crate) const ORIGIN: &str = "https://console.example";
/// An address at which nothing listens.
const NO_API: &str = "http://127.0.0.1:9";

/// An issuer that signs in the person `subject`.
pub(crate) struct Issuer {
    clock: Arc<Memory>,
    subject: Mutex<&'static str>,
    /// Whether the issuer renews tokens.
    pub(crate) renews: Mutex<bool>,
    /// The sessions and the cookie of another request that renews its tokens first.
    pub(crate) rival: Mutex<Option<(Sessions, String)>>,
    /// The refresh tokens that were revoked.
    pub(crate) revoked: Mutex<Vec<String>>,
}

impl Issuer {
    fn tokens(&self, access: &str) -> Tokens {
        let subject = *self.subject.lock().unwrap();
        Tokens {
            access: access.to_owned().into(),
            refresh: Some(format!("refresh-of-{subject}").into()),
            expires_at: self.clock.now().plus_secs(3600),
            identity: Identity { subject: subject.to_owned(), email: None },
        }
    }
}

#[async_trait]
impl People for Issuer {
    async fn begin(&self, redirect: &Url) -> Result<Begun, AppError> {
        let text = |text: &str| text.to_owned().into();
        let (state, nonce, verifier) = (text("state-1"), text("nonce-1"), text("verifier-1"));
        let url = "https://id.example/authorize?state=state-1".parse().unwrap();
        Ok(Begun { url, attempt: Attempt { state, nonce, verifier, redirect: redirect.to_string() } })
    }

    async fn finish(&self, attempt: &Attempt, query: &str) -> Result<Tokens, AppError> {
        if attempt.is_answered_by(query) && query.contains("code=") {
            return Ok(self.tokens("access-1"));
        }
        Err(AppError::invalid("this answer belongs to another sign-in"))
    }

    async fn refresh(&self, _tokens: &Tokens) -> Result<Option<Tokens>, AppError> {
        let rival = self.rival.lock().unwrap().take();
        if let Some((sessions, cookie)) = rival {
            let session = sessions.find(cookie.split_once('=').map(|(_, value)| value)).await?.unwrap();
            return Ok(sessions.renew(session, self.tokens("access-of-rival")).await?.and(None));
        }
        Ok(self.renews.lock().unwrap().then(|| self.tokens("access-2")))
    }

    async fn revoke(&self, tokens: &Tokens) -> Result<(), AppError> {
        let token = tokens.refresh.as_ref().map(|token| token.expose().to_owned());
        self.revoked.lock().unwrap().extend(token);
        Ok(())
    }
}

/// A console and everything around it.
pub(crate) struct World {
    pub(crate) console: Console,
    pub(crate) memory: Arc<Memory>,
    pub(crate) issuer: Arc<Issuer>,
}

impl World {
    pub(crate) fn new() -> Self {
        Self::of(NO_API)
    }

    /// Returns a world with the API at an address.
    pub(crate) fn of(api: &str) -> Self {
        let memory = Arc::new(Memory::default());
        let issuer = Arc::new(Issuer {
            clock: memory.clone(),
            subject: Mutex::new("ana"),
            renews: Mutex::new(true),
            rival: Mutex::default(),
            revoked: Mutex::default(),
        });
        let console = Console {
            origin: ORIGIN.to_owned(),
            api: api.parse().unwrap(),
            people: issuer.clone(),
            sessions: Sessions { store: memory.clone(), clock: memory.clone() },
            attempts: Attempts { store: memory.clone(), clock: memory.clone() },
            clock: memory.clone(),
        };
        Self { console, memory, issuer }
    }

    /// Sends a request of a browser.
    async fn send(&self, method: &str, address: &str, body: &str, headers: &[(&str, &str)], cookie: &str) -> Response {
        self.console.respond(&request(method, address, body, headers, cookie)).await
    }

    pub(crate) async fn get(&self, address: &str, cookie: &str) -> Response {
        self.send("GET", address, "", &[], cookie).await
    }

    /// Sends a form with these headers.
    pub(crate) async fn post(&self, path: &str, form: &str, headers: &[(&str, &str)], cookie: &str) -> Response {
        self.send("POST", path, form, headers, cookie).await
    }

    /// Signs the person `subject` in, and returns the session's cookie as the browser sends it.
    pub(crate) async fn sign_in(&self, subject: &'static str) -> String {
        *self.issuer.subject.lock().unwrap() = subject;
        let started = self.get("/sign-in/start?return=/installs", "").await;
        let back = self.get("/callback?code=c&state=state-1", &sent_back(&started, SIGN_IN)).await;
        sent_back(&back, SESSION)
    }

    /// Returns the access token with which the next request of a session calls the API; `None` if the session is over.
    pub(crate) async fn access_token(&self, cookie: &str) -> Option<String> {
        let session = self.console.session(&request("GET", "/apps", "", &[], cookie)).await.ok()?;
        Some(session.tokens.access.expose().to_owned())
    }

    /// Moves the clock by almost an hour, in which the session is used.
    pub(crate) async fn use_for_an_hour(&self, cookie: &str) {
        let value = cookie.split_once('=').map(|(_, value)| value);
        for _ in 0..3 {
            self.memory.advance_secs(1190);
            let session = self.console.sessions.find(value).await.unwrap().unwrap();
            self.console.sessions.note_use(&session).await.unwrap();
        }
    }

    /// Returns whether a cookie is that of a session which has not ended.
    pub(crate) async fn is_signed_in(&self, cookie: &str) -> bool {
        let value = cookie.strip_prefix(SESSION).and_then(|rest| rest.strip_prefix('='));
        self.console.sessions.find(value).await.unwrap().is_some()
    }

    /// Returns the token of the forms of a session.
    pub(crate) async fn form_token(&self, cookie: &str) -> String {
        let value = cookie.strip_prefix(SESSION).and_then(|rest| rest.strip_prefix('='));
        self.console.sessions.find(value).await.unwrap().unwrap().secret.form_token().unwrap()
    }
}

/// Returns a request of a browser, as the HTTP API hands it over.
fn request(method: &str, address: &str, body: &str, headers: &[(&str, &str)], cookie: &str) -> Request {
    let (path, query) = address.split_once('?').unwrap_or((address, ""));
    let headers: serde_json::Map<_, _> =
        headers.iter().map(|(name, value)| ((*name).to_owned(), json!(value))).collect();
    let event = json!({
        "version": "2.0", "routeKey": "$default", "rawPath": path, "rawQueryString": query,
        "headers": headers, "cookies": [cookie], "body": body, "isBase64Encoded": false,
        "requestContext": {
            "accountId": "111111111111", "apiId": "api", "stage": "$default", "requestId": "id",
            "http": { "method": method, "path": path, "protocol": "HTTP/1.1", "sourceIp": "192.0.2.1",
                "userAgent": "test" },
            "time": "01/Jan/2026:00:00:00 +0000", "timeEpoch": 1_767_225_600_000_u64,
        },
    });
    let event: ApiGatewayV2httpRequest = serde_json::from_value(event).unwrap();
    Request::parse(event).unwrap()
}

/// Returns the cookie `name` that a response sets, as the browser sends it back.
pub(crate) fn sent_back(response: &Response, name: &str) -> String {
    let set = response.cookies.iter().find(|cookie| cookie.starts_with(&format!("{name}="))).unwrap();
    set.split(';').next().unwrap().to_owned()
}

/// Returns the value of a header of a response.
pub(crate) fn header<'a>(response: &'a Response, name: &str) -> Option<&'a str> {
    response.headers.iter().find(|(other, _)| *other == name).map(|(_, value)| value.as_str())
}
