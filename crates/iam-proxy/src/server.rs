//! Serves the IAM proxy to one job over HTTP, and limits the connections of a job: those of the IAM proxy, and those of
//! the runner's credentials endpoint. Only the job can reach the listener.

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
/// The maximum time for one request and its response. One request can need several calls of IAM: to read the resource,
/// to change it, and to list policies.
const REQUEST_TIME: Duration = Duration::from_secs(120);
/// The maximum number of open connections. Terraform opens ten.
const MOST_CONNECTIONS: usize = 64;

/// The limits of the connections to one listener.
#[derive(Debug, Clone, Copy)]
pub struct Connections {
    /// The maximum number of open connections.
    pub most: usize,
    /// The time limit of one connection, with its request and its response.
    pub time: Duration,
    /// The maximum size of the head of a request, in bytes.
    pub head: usize,
}

/// The time limit for reading from a connection above the maximum number, and then for responding to it.
const REFUSAL_TIME: Duration = Duration::from_millis(50);
/// The pause after a connection could not be accepted.
const PAUSE: Duration = Duration::from_millis(100);
/// The response to a connection above the maximum number. The AWS SDKs retry after it.
const BUSY: &[u8] =
    b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";

impl Connections {
    /// Answers requests on `listener` until this future is dropped, which also ends the open connections. A connection
    /// carries only one request.
    pub async fn serve<A, F>(self, listener: TcpListener, answer: A)
    where
        A: Fn(Request<Incoming>) -> F + Clone + Send + 'static,
        F: Future<Output = Response<Full<Bytes>>> + Send + 'static,
    {
        // Dropping the set ends all connections.
        let mut open = JoinSet::new();
        loop {
            while open.try_join_next().is_some() {}
            match listener.accept().await {
                Ok((stream, _)) if open.len() >= self.most => refuse(stream).await,
                Ok((stream, _)) => {
                    let conversation = tokio::time::timeout(self.time, self.converse(stream, answer.clone()));
                    // An error needs no handling: a client that closed the connection or was too slow sends the request
                    // again if it still needs the response.
                    open.spawn(async move { drop(conversation.await) });
                }
                // The process may have no free file descriptor, for example.
                Err(_) => tokio::time::sleep(PAUSE).await,
            }
        }
    }

    /// Answers the only request of a connection.
    async fn converse<A, F>(self, stream: TcpStream, answer: A) -> hyper::Result<()>
    where
        A: Fn(Request<Incoming>) -> F,
        F: Future<Output = Response<Full<Bytes>>>,
    {
        let service = service_fn(move |request| {
            let response = answer(request);
            async { Ok::<_, Infallible>(response.await) }
        });
        http1::Builder::new()
            .keep_alive(false)
            .half_close(true)
            .max_buf_size(self.head)
            .timer(TokioTimer::new())
            .header_read_timeout(HEAD_TIME)
            .serve_connection(TokioIo::new(stream), service)
            .await
    }
}

/// Refuses a connection above the maximum number. The bytes that the client sent are read first, because closing a
/// connection with unread bytes resets it, and the client might not see the response.
async fn refuse(mut stream: TcpStream) {
    let mut head = [0; 1024];
    let _ = tokio::time::timeout(REFUSAL_TIME, stream.read(&mut head)).await;
    let _ = tokio::time::timeout(REFUSAL_TIME, stream.write_all(BUSY)).await;
}

/// Answers requests on `listener` until this future is dropped. Every client that reaches the listener acts as the job.
pub async fn serve(listener: TcpListener, proxy: Arc<Proxy>) {
    let connections = Connections { most: MOST_CONNECTIONS, time: REQUEST_TIME, head: LARGEST_HEAD };
    let answer = move |request| {
        let proxy = Arc::clone(&proxy);
        async move { response(answer(request, &proxy).await) }
    };
    connections.serve(listener, answer).await;
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
