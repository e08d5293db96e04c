//! An HTTP endpoint on loopback that serves fresh credentials of a job's mode (ECS container credentials format).
//!
//! A session of a chained role lasts at most one hour. A job may last longer, so credentials in its environment would
//! expire. Every AWS SDK and Terraform asks such an endpoint again before the credentials expire. The endpoint is on
//! the loopback of the job's box. Without a box it is on the machine's loopback, which other programs can reach too. So
//! it answers only a caller that sends the job's random token.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use aws_credential_types::Credentials;
use aws_credential_types::provider::{ProvideCredentials as _, SharedCredentialsProvider};
use aws_smithy_types::DateTime;
use aws_smithy_types::date_time::Format;
use bytes::Bytes;
use freehold_iam_proxy::Connections;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HeaderValue};
use hyper::{Method, Request, Response, StatusCode};
use serde::Serialize;
use sha2::{Digest as _, Sha256};
use tokio::net::TcpListener;
use tokio_util::task::AbortOnDropHandle;
use zeroize::Zeroizing;

use crate::config::SandboxKind;
use crate::job::Job;
use crate::record::log::JobLog;
use crate::sandbox::{Serve, Service};

/// The address of the endpoint inside a box.
const INSIDE: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 51_679);
const PATH: &str = "/credentials";
/// The largest head of a request, in bytes.
const MAX_HEAD: usize = 16 * 1024;
/// The time limit of one request.
const REQUEST_TIME: Duration = Duration::from_secs(30);
/// The maximum number of open connections; an SDK uses one.
const MOST_CONNECTIONS: usize = 32;

/// The credentials endpoint of one job. Dropping it closes the endpoint.
#[derive(Debug)]
pub struct CredentialsEndpoint {
    address: SocketAddr,
    served: Served,
    /// The server on the machine's loopback, for a job without a box.
    server: Option<AbortOnDropHandle<()>>,
}

impl CredentialsEndpoint {
    /// Returns the credentials endpoint of `job`. The job's log redacts the token and all credentials that the endpoint
    /// serves.
    ///
    /// # Errors
    /// When there is no free loopback port, or the system gives no random bytes.
    pub async fn of(job: &Job) -> io::Result<Self> {
        match job.config.sandbox {
            SandboxKind::Bubblewrap => {
                let served = Served::new(job.credentials.clone(), job.log.clone())?;
                Ok(Self { address: INSIDE, served, server: None })
            }
            SandboxKind::None => Self::start(job.credentials.clone(), job.log.clone()).await,
        }
    }

    /// Starts an endpoint on a loopback port of this machine, for a job that runs without a box.
    ///
    /// # Errors
    /// The errors of [`Self::of`].
    pub async fn start(credentials: SharedCredentialsProvider, log: JobLog) -> io::Result<Self> {
        let served = Served::new(credentials, log)?;
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let address = listener.local_addr()?;
        let server = AbortOnDropHandle::new(tokio::spawn(serve(listener, served.clone())));
        Ok(Self { address, served, server: Some(server) })
    }

    /// Returns the services to run inside the box of each program of the job; empty without a box.
    pub fn services(&self) -> Vec<Service> {
        let in_a_box = self.server.is_none();
        let service = || Service { at: self.address, name: None, serve: Arc::new(self.served.clone()) };
        in_a_box.then(service).into_iter().collect()
    }

    /// Returns the environment variables by which a program finds the endpoint.
    pub fn environment(&self) -> BTreeMap<String, String> {
        BTreeMap::from([
            ("AWS_CONTAINER_CREDENTIALS_FULL_URI".to_owned(), format!("http://{}{PATH}", self.address)),
            ("AWS_CONTAINER_AUTHORIZATION_TOKEN".to_owned(), self.served.token.to_string()),
        ])
    }

    /// Returns the token.
    #[cfg(test)]
    fn token(&self) -> &str {
        &self.served.token
    }
}

/// The state for answering requests: the job's token, its credentials and its log.
#[derive(Debug, Clone)]
struct Served {
    token: Arc<str>,
    credentials: SharedCredentialsProvider,
    log: JobLog,
}

impl Served {
    fn new(credentials: SharedCredentialsProvider, log: JobLog) -> io::Result<Self> {
        let mut random = [0; 32];
        getrandom::fill(&mut random).map_err(|error| io::Error::other(error.to_string()))?;
        let token: Arc<str> = freehold_protocol::digest::hex(&random).into();
        log.add_credentials(&[&token]);
        Ok(Self { token, credentials, log })
    }
}

#[async_trait::async_trait]
impl Serve for Served {
    async fn serve(&self, listener: TcpListener) {
        serve(listener, self.clone()).await;
    }
}

async fn serve(listener: TcpListener, served: Served) {
    let connections = Connections { most: MOST_CONNECTIONS, time: REQUEST_TIME, head: MAX_HEAD };
    let answer = move |request| {
        let served = served.clone();
        async move { answer(&request, &served).await }
    };
    connections.serve(listener, answer).await;
}

async fn answer(request: &Request<Incoming>, served: &Served) -> Response<Full<Bytes>> {
    if request.method() != Method::GET || *request.uri() != PATH {
        return refusal(StatusCode::NOT_FOUND, "Refused", "only `GET /credentials` is served here");
    }
    if !is_token(request.headers().get(AUTHORIZATION), &served.token) {
        return refusal(StatusCode::UNAUTHORIZED, "Refused", "the token is missing or wrong");
    }
    match served.credentials.provide_credentials().await {
        Ok(credentials) => {
            hide(&credentials, &served.log);
            json(StatusCode::OK, document(&credentials))
        }
        Err(error) => {
            tracing::warn!("Cannot get credentials for a job: {}", crate::aws::explain(&error));
            let message = "the runner cannot get credentials of the job's role now";
            refusal(StatusCode::SERVICE_UNAVAILABLE, "NoCredentials", message)
        }
    }
}

/// Makes `log` redact `credentials`. Must be called before the job gets them.
fn hide(credentials: &Credentials, log: &JobLog) {
    let own = [credentials.access_key_id(), credentials.secret_access_key()];
    let all: Vec<&str> = own.into_iter().chain(credentials.session_token()).collect();
    log.add_credentials(&all);
}

/// Compares digests, so that the duration does not reveal how much of a guessed token is right.
fn is_token(given: Option<&HeaderValue>, token: &str) -> bool {
    let given = given.map_or(&[][..], |value| value.as_bytes().trim_ascii());
    Sha256::digest(given) == Sha256::digest(token)
}

fn refusal(status: StatusCode, code: &str, message: &str) -> Response<Full<Bytes>> {
    json(status, Zeroizing::new(serde_json::json!({ "code": code, "message": message }).to_string()))
}

fn json(status: StatusCode, body: Zeroizing<String>) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from_owner(Secret(body))));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// A body that is wiped from memory after it is sent.
struct Secret(Zeroizing<String>);

impl AsRef<[u8]> for Secret {
    fn as_ref(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

/// Returns the document that SDKs read (Amazon ECS developer guide, "Task IAM role").
fn document(credentials: &Credentials) -> Zeroizing<String> {
    #[derive(Serialize)]
    #[serde(rename_all = "PascalCase")]
    struct Document<'a> {
        access_key_id: &'a str,
        secret_access_key: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        token: Option<&'a str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        expiration: Option<String>,
    }
    let document = Document {
        access_key_id: credentials.access_key_id(),
        secret_access_key: credentials.secret_access_key(),
        token: credentials.session_token(),
        expiration: credentials.expiry().and_then(|at| DateTime::from(at).fmt(Format::DateTime).ok()),
    };
    Zeroizing::new(serde_json::to_string(&document).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use std::time::UNIX_EPOCH;

    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpStream;

    use super::*;

    async fn get(endpoint: &CredentialsEndpoint, token: &str) -> (u16, serde_json::Value) {
        let url = endpoint.environment().remove("AWS_CONTAINER_CREDENTIALS_FULL_URI").expect("address");
        let http = freehold_oci::client().expect("client");
        let answer = http.get(url).header("authorization", token).send().await.expect("answer");
        (answer.status().as_u16(), answer.json().await.expect("json"))
    }

    fn some() -> SharedCredentialsProvider {
        let expiry = UNIX_EPOCH + Duration::from_secs(1_800_000_000);
        SharedCredentialsProvider::new(Credentials::new("AKID", "SECRET", Some("SESSION".into()), Some(expiry), "test"))
    }

    #[tokio::test]
    async fn the_holder_of_the_token_gets_the_credentials() {
        let endpoint = CredentialsEndpoint::start(some(), JobLog::default()).await.expect("endpoint");

        let (status, document) = get(&endpoint, endpoint.token()).await;

        assert_eq!(status, 200);
        assert_eq!(
            document,
            serde_json::json!({ "AccessKeyId": "AKID", "SecretAccessKey": "SECRET", "Token": "SESSION",
                "Expiration": "2027-01-15T08:00:00Z" })
        );
    }

    #[tokio::test]
    async fn neither_the_token_nor_what_is_served_is_shown_by_the_jobs_log() {
        let log = JobLog::default();
        let endpoint = CredentialsEndpoint::start(some(), log.clone()).await.expect("endpoint");
        get(&endpoint, endpoint.token()).await;

        log.line(&format!("AWS_CONTAINER_AUTHORIZATION_TOKEN={}", endpoint.token()));
        log.line("AKID SECRET SESSION");

        let masked = "AWS_CONTAINER_AUTHORIZATION_TOKEN=[redacted]\n[redacted] [redacted] [redacted]\n";
        assert_eq!(log.take_chunk(), masked);
    }

    #[tokio::test]
    async fn a_connection_too_many_is_refused_and_the_next_after_that_is_served() {
        let endpoint = CredentialsEndpoint::start(some(), JobLog::default()).await.expect("endpoint");
        let mut open = Vec::new();
        for _ in 0..MOST_CONNECTIONS {
            open.push(TcpStream::connect(endpoint.address).await.expect("connection"));
        }
        let request = format!("GET /credentials HTTP/1.1\r\nhost: a\r\nauthorization: {}\r\n\r\n", endpoint.token());

        let refused = raw(&endpoint, request.as_bytes()).await;
        drop(open);
        let mut served = raw(&endpoint, request.as_bytes()).await;
        while served.starts_with("HTTP/1.1 503") {
            served = raw(&endpoint, request.as_bytes()).await;
        }

        assert!(refused.starts_with("HTTP/1.1 503") && !refused.contains("SECRET"), "{refused}");
        assert!(served.starts_with("HTTP/1.1 200"), "{served}");
    }

    #[tokio::test]
    async fn nobody_else_gets_them() {
        let endpoint = CredentialsEndpoint::start(some(), JobLog::default()).await.expect("endpoint");

        let (status, document) = get(&endpoint, "guess").await;

        assert_eq!(status, 401);
        assert!(!document.to_string().contains("SECRET"));
    }

    /// Sends raw bytes and returns everything that comes back until the endpoint closes the connection.
    async fn raw(endpoint: &CredentialsEndpoint, request: &[u8]) -> String {
        let mut stream = TcpStream::connect(endpoint.address).await.expect("connection");
        // The endpoint may close before it has read all of a hostile request.
        let _ = stream.write_all(request).await;
        let mut all = Vec::new();
        let _ = stream.read_to_end(&mut all).await;
        String::from_utf8_lossy(&all).into_owned()
    }

    #[tokio::test]
    async fn the_endpoint_listens_on_loopback_alone_and_ends_with_its_owner() {
        let endpoint = CredentialsEndpoint::start(some(), JobLog::default()).await.expect("endpoint");
        let address = endpoint.address;
        assert!(address.ip().is_loopback());

        drop(endpoint);
        while TcpStream::connect(address).await.is_ok() {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn hostile_requests_get_no_credentials() {
        let endpoint = CredentialsEndpoint::start(some(), JobLog::default()).await.expect("endpoint");
        let token = endpoint.token();
        let half = &token[..32];
        let long = "x".repeat(MAX_HEAD);
        let cases = [
            ("no token", "GET /credentials HTTP/1.1\r\nhost: a\r\n\r\n".to_owned()),
            ("an empty token", "GET /credentials HTTP/1.1\r\nhost: a\r\nauthorization:\r\n\r\n".to_owned()),
            ("half a token", format!("GET /credentials HTTP/1.1\r\nhost: a\r\nauthorization: {half}\r\n\r\n")),
            ("more than the token", format!("GET /credentials HTTP/1.1\r\nhost: a\r\nauthorization: {token}0\r\n\r\n")),
            (
                "another scheme",
                format!("GET /credentials HTTP/1.1\r\nhost: a\r\nauthorization: Bearer {token}\r\n\r\n"),
            ),
            (
                "a wrong token before the right one",
                format!("GET /credentials HTTP/1.1\r\nhost: a\r\nauthorization: x\r\nauthorization: {token}\r\n\r\n"),
            ),
            ("the token in the query", format!("GET /credentials?{token} HTTP/1.1\r\nhost: a\r\n\r\n")),
            ("another method", format!("POST /credentials HTTP/1.1\r\nhost: a\r\nauthorization: {token}\r\n\r\n")),
            ("another path", format!("GET /credentials/ HTTP/1.1\r\nhost: a\r\nauthorization: {token}\r\n\r\n")),
            ("a folded header", format!("GET /credentials HTTP/1.1\r\nauthorization:\r\n {token}x\r\n\r\n")),
            ("a bare line", format!("{token}\r\n\r\n")),
            (
                "a head that is too large",
                format!("GET /credentials HTTP/1.1\r\nx: {long}\r\nauthorization: {token}\r\n\r\n"),
            ),
            (
                "too many headers",
                format!("GET /credentials HTTP/1.1\r\n{}authorization: {token}\r\n\r\n", "a: b\r\n".repeat(200)),
            ),
            ("bytes that are not HTTP", "\u{0}\u{1}\u{2}\r\n\r\n".to_owned()),
        ];

        for (what, request) in cases {
            let answer = raw(&endpoint, request.as_bytes()).await;

            assert!(!answer.contains("AKID") && !answer.contains("SECRET"), "{what}: {answer}");
            assert!(!answer.starts_with("HTTP/1.1 200"), "{what}: {answer}");
        }
        assert_eq!(get(&endpoint, token).await.0, 200);
    }

    #[tokio::test]
    async fn a_second_request_on_a_connection_is_not_answered() {
        let endpoint = CredentialsEndpoint::start(some(), JobLog::default()).await.expect("endpoint");
        let request = format!("GET /credentials HTTP/1.1\r\nhost: a\r\nauthorization: {}\r\n\r\n", endpoint.token());

        let answer = raw(&endpoint, request.repeat(2).as_bytes()).await;

        assert_eq!(answer.matches("HTTP/1.1 200").count(), 1, "{answer}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_head_that_never_ends_is_cut_off() {
        let endpoint = CredentialsEndpoint::start(some(), JobLog::default()).await.expect("endpoint");
        let started = tokio::time::Instant::now();

        let answer = raw(&endpoint, b"GET /credentials HTTP/1.1\r\nhost: a\r\n").await;

        assert!(!answer.contains("SECRET"), "{answer}");
        assert!(started.elapsed() < REQUEST_TIME, "{:?}", started.elapsed());
    }
}
