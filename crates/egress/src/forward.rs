//! Forwards an `http://` request to the host in its URL, with new headers.

use std::sync::Arc;

use http_body_util::Limited;
use hyper::body::{Body as _, Incoming};
use hyper::client::conn::http1::{Builder, SendRequest};
use hyper::header::{HOST, HeaderValue, PROXY_AUTHORIZATION};
use hyper::{Method, Request, Response, Uri, Version};
use hyper_util::rt::TokioIo;
use tokio_util::task::AbortOnDropHandle;

use crate::count::Counted;
use crate::gate::Gate;
use crate::headers::{names_host, strip_hop_by_hop};
use crate::host::Destination;
use crate::network::{dial, dial_configured};
use crate::refusal::Reason;
use crate::rule::Protocol;

const METHODS: [Method; 7] =
    [Method::GET, Method::HEAD, Method::POST, Method::PUT, Method::PATCH, Method::DELETE, Method::OPTIONS];

type Forwarded = Request<Limited<Incoming>>;

/// A response, and the connection that delivers its body. Dropping this value closes the connection.
pub(crate) struct Answer {
    pub(crate) response: Response<Incoming>,
    pub(crate) connection: AbortOnDropHandle<()>,
}

/// Forwards one request, and returns the destination's response.
pub(crate) async fn forward(gate: &Gate, request: Request<Incoming>) -> Result<Answer, Reason> {
    let to = destination(&request)?;
    let scope = gate.permit(&to, Protocol::Http).await?;
    if !METHODS.contains(request.method()) {
        let method = request.method().as_str().chars().take(20).collect();
        return Err(Reason::Method { to, method });
    }
    if request.body().size_hint().lower() > gate.limits.body_bytes {
        return Err(Reason::TooLarge { to, most: gate.limits.body_bytes });
    }
    let hop = gate.hop(&to, Protocol::Http, scope)?;
    let stream = match &hop {
        Some(hop) => dial_configured(&*gate.network, &hop.proxy, &gate.limits).await?,
        None => dial(&*gate.network, &to, scope, &gate.limits).await?,
    };
    let mut request = rewritten(gate, request, &to, hop.is_some())?;
    hop.and_then(|hop| hop.authorization).and_then(|value| request.headers_mut().insert(PROXY_AUTHORIZATION, value));
    let stream = Counted::new(stream, gate.counts.meter());
    send(gate, stream, request).await.map_err(|error| Reason::Unreachable { to, source: std::io::Error::other(error) })
}

/// Returns the host in the URL. Refuses a request that does not have exactly one `Host` header with the same host.
fn destination(request: &Request<Incoming>) -> Result<Destination, Reason> {
    let uri = request.uri();
    if uri.scheme_str() != Some("http") {
        return Err(Reason::Malformed("it names no host"));
    }
    let authority = uri.authority().map_or("", |authority| authority.as_str());
    let default_port = Protocol::Http.default_port();
    let to =
        Destination::parse(authority, Some(default_port)).map_err(|_| Reason::Malformed("its host is not valid"))?;
    if names_host(request.headers(), &to, default_port) { Ok(to) } else { Err(Reason::HostHeader(to)) }
}

/// Returns the request for the next hop. Its head is built from the parsed parts: no bytes of the job's own head are
/// passed on.
fn rewritten(gate: &Gate, request: Request<Incoming>, to: &Destination, by_proxy: bool) -> Result<Forwarded, Reason> {
    let most = usize::try_from(gate.limits.body_bytes).unwrap_or(usize::MAX);
    let mut request = request.map(|body| Limited::new(body, most));
    strip_hop_by_hop(request.headers_mut());
    let default = to.port == Protocol::Http.default_port();
    let authority = if default { to.host.to_string() } else { to.to_string() };
    let path = request.uri().path_and_query().map_or("/", |path| path.as_str());
    let target = if by_proxy { format!("http://{authority}{path}") } else { path.to_owned() };
    let malformed = || Reason::Malformed("its URL is not valid");
    let uri: Uri = target.parse().map_err(|_| malformed())?;
    let host = HeaderValue::from_str(&authority).map_err(|_| malformed())?;
    *request.uri_mut() = uri;
    *request.version_mut() = Version::HTTP_11;
    request.headers_mut().insert(HOST, host);
    Ok(request)
}

async fn send<S>(gate: &Gate, stream: Counted<S>, request: Forwarded) -> hyper::Result<Answer>
where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static,
{
    let (meter, idle) = (Arc::clone(stream.meter()), gate.limits.idle);
    let mut client = Builder::new();
    let handshake = client.max_buf_size(gate.limits.head_bytes).handshake(TokioIo::new(stream));
    let (mut sender, connection): (SendRequest<Limited<Incoming>>, _) = handshake.await?;
    // An idle connection is dropped, and both bodies with it.
    let connection = tokio::spawn(async move { drop(meter.unless_idle(idle, connection).await) });
    let connection = AbortOnDropHandle::new(connection);
    let mut response = sender.send_request(request).await?;
    strip_hop_by_hop(response.headers_mut());
    Ok(Answer { response, connection })
}
