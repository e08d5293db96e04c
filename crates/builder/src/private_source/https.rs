//! Serves Git over HTTP to a box, and forwards the requests to the Git servers over HTTPS with their tokens. Forwards
//! only the two requests of a fetch (gitprotocol-http(5), "Smart Clients"), so a token that may write is used for
//! reading only.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use freehold_oci::{authority, client_builder};
use freehold_protocol::source::{Hidden, Scheme, SourceAddress};
use freehold_runner::job::Job;
use freehold_runner::job::failure::Failure;
use freehold_runner::sandbox::{Outside, Serve, Through};
use futures_util::TryStreamExt as _;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, Limited, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::header::{ACCEPT, CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, LOCATION, USER_AGENT};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use reqwest::Client;
use reqwest::redirect::Policy;
use tokio::net::{TcpListener, TcpStream};

use super::accept::accept_each;
use super::connection::{destination, refused};
use super::obstacle::Obstacle;
use super::route::{Repository, nearest};

/// The largest request, in bytes: the list of the commits that Git in the box has and wants.
const LARGEST: usize = 16 * 1024 * 1024;
/// The largest head of a request, in bytes.
const LARGEST_HEAD: usize = 64 * 1024;
/// The maximum time for the client to send the head of a request.
const HEAD_TIME: Duration = Duration::from_secs(10);
/// The maximum time without a received byte from a server.
const IDLE: Duration = Duration::from_secs(60);
/// The headers of a request that are forwarded to a server, and the headers of its response that are returned.
const ASKED: [HeaderName; 5] =
    [ACCEPT, CONTENT_TYPE, CONTENT_ENCODING, USER_AGENT, HeaderName::from_static("git-protocol")];
const ANSWERED: [HeaderName; 1] = [CONTENT_TYPE];

type Body = UnsyncBoxBody<Bytes, reqwest::Error>;

/// One address with its token.
#[derive(Debug, Clone)]
pub(super) struct HttpsSource {
    pub(super) address: SourceAddress,
    user: String,
    token: Hidden,
    http: Client,
    _outside: Arc<Outside>,
}

impl HttpsSource {
    /// Prepares connections to the host of `address`. `is_inside` marks it as a host of a private network.
    pub(super) async fn open(
        job: &Job,
        address: &SourceAddress,
        (user, token): (String, Hidden),
        is_inside: bool,
        obstacle: &Obstacle,
    ) -> Result<Self, Failure> {
        let unusable =
            |error: &dyn std::error::Error| Failure::because(&format!("could not connect to `{address}`"), error);
        let to = destination(address)?;
        let noted = refused(job, address, obstacle);
        let outside =
            Outside::to(job, &to, is_inside, Through::Proxy, noted).await.map_err(|error| unusable(&error))?;
        let http = client_builder().redirect(Policy::none()).read_timeout(IDLE).no_proxy();
        let http = match outside.at() {
            Some(at) => http.proxy(reqwest::Proxy::all(format!("http://{at}")).map_err(|error| unusable(&error))?),
            None => http,
        };
        let http = http.build().map_err(|error| unusable(&error))?;
        Ok(Self { address: address.clone(), user, token, http, _outside: Arc::new(outside) })
    }
}

/// The server for one box.
#[derive(Debug, Clone)]
pub(super) struct HttpsSources {
    all: Arc<[HttpsSource]>,
    obstacle: Obstacle,
}

/// A request of a fetch.
struct Fetch {
    repository: Repository,
    /// The rest of the URL after the repository.
    rest: &'static str,
}

impl HttpsSources {
    pub(super) fn new(all: Vec<HttpsSource>, obstacle: Obstacle) -> Self {
        Self { all: all.into(), obstacle }
    }

    async fn converse(&self, stream: TcpStream) -> hyper::Result<()> {
        let service = service_fn(async |request| Ok::<_, Infallible>(self.answer(request).await));
        http1::Builder::new()
            .keep_alive(false)
            .half_close(true)
            .max_buf_size(LARGEST_HEAD)
            .timer(TokioTimer::new())
            .header_read_timeout(HEAD_TIME)
            .serve_connection(TokioIo::new(stream), service)
            .await
    }

    async fn answer(&self, request: Request<Incoming>) -> Response<Body> {
        let Some(fetch) = fetch_of(request.method(), request.uri()) else {
            return plain_text(
                StatusCode::FORBIDDEN,
                "this proxy passes only fetches of Git and refuses other requests",
            );
        };
        let Some(source) = nearest(&self.all, |one| &one.address, &fetch.repository.address) else {
            return plain_text(StatusCode::FORBIDDEN, "this job has no credential for the repository");
        };
        match self.ask(source, &fetch, request).await {
            Ok(answer) => answer,
            Err((status, reason)) => {
                self.obstacle.note(&reason);
                plain_text(status, &reason)
            }
        }
    }

    async fn ask(
        &self,
        source: &HttpsSource,
        fetch: &Fetch,
        request: Request<Incoming>,
    ) -> Result<Response<Body>, (StatusCode, String)> {
        let url = url(&fetch.repository, fetch.rest);
        let (head, body) = request.into_parts();
        let body = Limited::new(body, LARGEST).collect().await;
        let body = body.map_err(|_| {
            (StatusCode::PAYLOAD_TOO_LARGE, format!("the request of git to `{url}` is larger than {LARGEST} bytes"))
        })?;
        let asked = source.http.request(head.method, &url).headers(some(&head.headers, &ASKED));
        let asked = asked.basic_auth(&source.user, Some(source.token.reveal())).body(body.to_bytes());
        let answer = asked.send().await.map_err(|error| {
            let why = freehold_runner::aws::explain(&error.without_url());
            (
                StatusCode::BAD_GATEWAY,
                format!("no response from `{}`: {why}; check the network, and build again", source.address.authority()),
            )
        })?;
        let status = answer.status();
        if status.is_redirection() {
            return redirected(source, &url, &answer);
        }
        if !status.is_success() {
            return Err((status, denied(source, &url, status)));
        }
        let headers = some(answer.headers(), &ANSWERED);
        let body = StreamBody::new(answer.bytes_stream().map_ok(Frame::data));
        let mut passed = Response::new(BodyExt::boxed_unsync(body));
        *passed.headers_mut() = headers;
        Ok(passed)
    }
}

#[async_trait]
impl Serve for HttpsSources {
    async fn serve(&self, listener: TcpListener) {
        accept_each(listener, self, |served, stream| async move {
            // An error needs no handling: the client closed the connection, and Git reports what is missing.
            let _ = served.converse(stream).await;
        })
        .await;
    }
}

/// Returns the fetch that a request belongs to; `None` for every other request.
fn fetch_of(method: &Method, uri: &hyper::Uri) -> Option<Fetch> {
    let (end, rest) = match (method, uri.query()) {
        (&Method::GET, Some("service=git-upload-pack")) => ("/info/refs", "/info/refs?service=git-upload-pack"),
        (&Method::POST, None) => ("/git-upload-pack", "/git-upload-pack"),
        _ => return None,
    };
    let repository = Repository::of_path(Scheme::Https, uri.path().strip_suffix(end)?)?;
    Some(Fetch { repository, rest })
}

fn url(repository: &Repository, rest: &str) -> String {
    format!("https://{}/{}{rest}", repository.address.authority(), repository.path.trim_end_matches('/'))
}

/// Forwards a redirect if the credential also covers the new repository, for example after a rename.
fn redirected(
    source: &HttpsSource,
    url: &str,
    answer: &reqwest::Response,
) -> Result<Response<Body>, (StatusCode, String)> {
    let to = answer.headers().get(LOCATION).and_then(|to| to.to_str().ok());
    let to = to.and_then(|to| answer.url().join(to).ok());
    let host = to.as_ref().and_then(|to| to.host_str()).unwrap_or("an address that is not valid").to_owned();
    let within = to.and_then(|to| {
        let end = ["/info/refs", "/git-upload-pack"].into_iter().find(|end| to.path().ends_with(end))?;
        let text = format!("{}://{}{}", to.scheme(), authority(&to), to.path().strip_suffix(end)?);
        let repository = Repository::of_url(&text).filter(|found| source.address.covers(&found.address))?;
        let query = to.query().map(|query| format!("?{query}")).unwrap_or_default();
        HeaderValue::try_from(format!("{}{end}{query}", repository.as_path())).ok()
    });
    let Some(location) = within else {
        let address = &source.address;
        let reason = format!(
            "`{url}` redirects to `{host}`, where the credential of `{address}` is not sent; name the repository by its new \
             address"
        );
        return Err((StatusCode::BAD_GATEWAY, reason));
    };
    let mut passed = plain_text(answer.status(), "");
    passed.headers_mut().insert(LOCATION, location);
    Ok(passed)
}

/// Explains a status that is not a success. Leaves out the body of the response: a server may repeat the token in it.
fn denied(source: &HttpsSource, url: &str, status: StatusCode) -> String {
    let (address, host, code) = (&source.address, source.address.authority(), status.as_u16());
    let way_out = format!("store another token with `freehold tenant source add {address}`");
    match code {
        401 | 403 => format!(
            "`{host}` refuses the token of `{address}` with status {code}: it is wrong, expired or revoked, or may not read \
             this repository; {way_out}"
        ),
        404 => format!("`{host}` has no repository at `{url}`, or the token of `{address}` may not read it; {way_out}"),
        _ => format!("`{host}` returns {code} for `{url}`; check the address in the app config, and build again"),
    }
}

fn some(headers: &HeaderMap, names: &[HeaderName]) -> HeaderMap {
    names.iter().filter_map(|name| Some((name.clone(), headers.get(name)?.clone()))).collect()
}

fn plain_text(status: StatusCode, text: &str) -> Response<Body> {
    let body = Full::new(Bytes::from(format!("{text}\n"))).map_err(|never: Infallible| match never {});
    let mut answer = Response::new(BodyExt::boxed_unsync(body));
    *answer.status_mut() = status;
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain"));
    answer
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_requests_of_a_fetch_pass() {
        let passes = |method: &str, uri: &str| fetch_of(&method.parse().unwrap(), &uri.parse().unwrap()).is_some();

        assert!(passes("GET", "/git.example/acme/demo.git/info/refs?service=git-upload-pack"));
        assert!(passes("POST", "/git.example/acme/demo.git/git-upload-pack"));
        for (method, uri) in [
            ("GET", "/git.example/acme/demo.git/info/refs?service=git-receive-pack"),
            ("POST", "/git.example/acme/demo.git/git-receive-pack"),
            ("GET", "/git.example/acme/demo.git/info/refs"),
            ("GET", "/git.example/acme/demo.git/HEAD"),
            ("GET", "/git.example/acme/../other/info/refs?service=git-upload-pack"),
            ("GET", "/git.example/acme/%2e%2e/other/info/refs?service=git-upload-pack"),
            ("PUT", "/git.example/acme/demo.git/git-upload-pack"),
        ] {
            assert!(!passes(method, uri), "{method} {uri}");
        }
    }
}
