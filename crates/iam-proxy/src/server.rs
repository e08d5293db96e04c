//! Serves the IAM proxy to one job over HTTP. Only the job can reach the listener.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use crate::answer::Answer;
use crate::proxy::Proxy;
use crate::refusal::Refusal;

/// The maximum size of a request, in bytes. A policy has at most 10,240 characters, and a request to simulate policies
/// contains several.
const LARGEST: usize = 1024 * 1024;
const LARGEST_HEAD: usize = 64 * 1024;
/// The maximum time for the client to send the head of a request.
const HEAD_TIME: Duration = Duration::from_secs(10);
/// The maximum time for one request and its answer. One request can need several calls of IAM: to read the resource, to
/// change it, and to list policies.
const REQUEST_TIME: Duration = Duration::from_secs(120);
/// The maximum number of open connections. Terraform opens ten.
const MOST_CONNECTIONS: usize = 64;
/// The maximum time for each of the two steps of refusing a connection above [`MOST_CONNECTIONS`]: to read from it, and
/// to write the answer.
const REFUSAL_TIME: Duration = Duration::from_millis(50);
/// The answer to a connection above [`MOST_CONNECTIONS`]. The AWS SDKs retry after it.
const BUSY: &[u8] =
    b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";

/// Answers requests on `listener` until this future is dropped. Every client that reaches the listener acts as the job.
pub async fn serve(listener: TcpListener, proxy: Arc<Proxy>) {
    // When this set is dropped, its requests end.
    let mut requests = JoinSet::new();
    loop {
        while requests.try_join_next().is_some() {}
        match listener.accept().await {
            Ok((stream, _)) if requests.len() >= MOST_CONNECTIONS => refuse(stream).await,
            Ok((stream, _)) => {
                let proxy = Arc::clone(&proxy);
                requests.spawn(async move {
                    let _ = tokio::time::timeout(REQUEST_TIME, converse(stream, &proxy)).await;
                });
            }
            // The process may have no free file descriptor, for example.
            Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
        }
    }
}

/// Refuses a connection above the limit. The bytes that the client sent are read first, because closing a connection
/// with unread bytes resets it.
async fn refuse(mut stream: TcpStream) {
    let mut head = [0; 1024];
    let _ = tokio::time::timeout(REFUSAL_TIME, stream.read(&mut head)).await;
    let _ = tokio::time::timeout(REFUSAL_TIME, stream.write_all(BUSY)).await;
}

/// Answers the request of a connection. A connection carries only one request.
async fn converse(stream: TcpStream, proxy: &Proxy) -> hyper::Result<()> {
    let service = service_fn(async |request| Ok::<_, Infallible>(response(answer(request, proxy).await)));
    http1::Builder::new()
        .keep_alive(false)
        .half_close(true)
        .max_buf_size(LARGEST_HEAD)
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIME)
        .serve_connection(TokioIo::new(stream), service)
        .await
}

async fn answer(request: Request<Incoming>, proxy: &Proxy) -> Answer {
    if request.method() != Method::POST || *request.uri() != "/" {
        return Refusal::Malformed(
            "the runner accepts only `POST /` with a form here, as IAM's Query API does".to_owned(),
        )
        .answer();
    }
    match Limited::new(request.into_body(), LARGEST).collect().await {
        Ok(body) => proxy.answer(&body.to_bytes()).await,
        Err(error) => Refusal::Malformed(format!("the request cannot be read: {error}")).answer(),
    }
}

fn response(answer: Answer) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(answer.body));
    *response.status_mut() = StatusCode::from_u16(answer.status).unwrap_or(StatusCode::BAD_GATEWAY);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/xml"));
    response
}
