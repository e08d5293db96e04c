//! The HTTP proxy of a job: reads and answers requests, then runs the tunnel that a `CONNECT` asked for.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::{Mutex, PoisonError};
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body_util::{Either, Full};
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper::header::{CONNECTION, CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::upgrade::OnUpgrade;
use hyper::{Method, Request, Response};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpStream;
use tokio_util::task::AbortOnDropHandle;

use crate::forward::forward;
use crate::gate::Gate;
use crate::headers::{has_body, names_host};
use crate::host::Destination;
use crate::refusal::Reason;
use crate::rule::Protocol;
use crate::tunnel::Tunnel;

type Answer = Response<Either<Full<Bytes>, Passed>>;

/// The tunnel of a permitted `CONNECT`, while its response is being sent.
struct Granted {
    to: Destination,
    client: OnUpgrade,
    destination: TcpStream,
    from_destination: Bytes,
}

/// Serves one connection to the proxy.
pub(crate) async fn converse(gate: &Gate, stream: TcpStream) {
    let granted = Mutex::new(None);
    let service = service_fn(async |request| Ok::<_, Infallible>(answer(gate, &granted, request).await));
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(gate.limits.head)
        .max_header_size(gate.limits.head_bytes)
        .max_buf_size(gate.limits.head_bytes)
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades()
        .await;
    let granted = granted.into_inner().unwrap_or_else(PoisonError::into_inner);
    // When serving failed (the client closed, or did not speak HTTP), hyper has already sent the response.
    if let (Ok(()), Some(granted)) = (served, granted) {
        granted.run(gate).await;
    }
}

async fn answer(gate: &Gate, granted: &Mutex<Option<Granted>>, request: Request<Incoming>) -> Answer {
    let done = if request.method() == Method::CONNECT {
        grant(gate, request).await.map(|tunnel| {
            *granted.lock().unwrap_or_else(PoisonError::into_inner) = Some(tunnel);
            Response::new(Either::Left(Full::default()))
        })
    } else {
        forward(gate, request).await.map(|answer| {
            let connection = answer.connection;
            answer.response.map(|body| Either::Right(Passed { body, _connection: connection }))
        })
    };
    done.unwrap_or_else(|reason| {
        gate.note(&reason);
        refusal(&reason)
    })
}

/// Connects to the host of a `CONNECT`.
async fn grant(gate: &Gate, request: Request<Incoming>) -> Result<Granted, Reason> {
    let authority = request.uri().authority().map_or("", |authority| authority.as_str());
    let to: Destination = authority.parse().map_err(|_| Reason::Malformed("`CONNECT` names no host with a port"))?;
    let scope = gate.permit(&to, Protocol::Connect).await?;
    if has_body(request.headers()) {
        return Err(Reason::Malformed("`CONNECT` has a body"));
    }
    if request.headers().contains_key(hyper::header::HOST) && !names_host(request.headers(), &to, to.port) {
        return Err(Reason::HostHeader(to));
    }
    let (destination, from_destination) = gate.reach(&to, scope).await?;
    Ok(Granted { to, client: hyper::upgrade::on(request), destination, from_destination })
}

impl Granted {
    async fn run(self, gate: &Gate) {
        let Ok(client) = self.client.await else { return };
        // INVARIANT: `converse` gave hyper exactly this type of stream.
        let Ok(parts) = client.downcast::<TokioIo<TcpStream>>() else { return };
        let mut client = parts.io.into_inner();
        let mut from_client = parts.read_buf.to_vec();
        if !gate.admits_hello(&mut client, &mut from_client, &self.to).await {
            return;
        }
        let from_destination = self.from_destination.to_vec();
        let tunnel = Tunnel { client, destination: self.destination, from_client, from_destination };
        tunnel.run(&gate.counts.meter(), gate.limits.idle).await;
    }
}

/// Returns a response with the same sentence as in the job's record. The response closes the connection, so bytes
/// after a refused head are not read.
fn refusal(reason: &Reason) -> Answer {
    let mut response = Response::new(Either::Left(Full::from(format!("{reason}\n"))));
    *response.status_mut() = reason.status();
    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    response
}

/// The body of a forwarded response, with the connection that delivers it.
struct Passed {
    body: Incoming,
    _connection: AbortOnDropHandle<()>,
}

impl Body for Passed {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
