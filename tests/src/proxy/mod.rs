//! A proxy between AWS clients and the local cloud that injects faults and counts calls. It passes bytes on unchanged,
//! with the signed Host header, so that signatures still verify.

mod capacity;
mod counts;
mod faults;
mod operation;
mod refusals;
#[cfg(test)]
mod testing;

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::task::{AbortHandle, JoinSet};

pub use capacity::{RowWrites, Units};
pub use counts::{Counts, OperationCounts};
pub use faults::{Fault, Rule, parse_rules};
pub use operation::{Operation, Protocol};

use crate::http::{Message, Wire};
use counts::Counter;
use faults::Fates;

/// The longest that a reordered request waits for another one to overtake it.
const REORDER_LIMIT: Duration = Duration::from_secs(2);

/// A running proxy; it ends when it is dropped.
#[derive(Debug)]
pub struct Proxy {
    address: SocketAddr,
    shared: Arc<Shared>,
    accepting: AbortHandle,
}

#[derive(Debug)]
struct Shared {
    upstream: String,
    fates: Mutex<Fates>,
    counter: Mutex<Counter>,
    /// Called when an answer of some operation has gone out.
    passed: Notify,
    /// The last full answers, for [`Fault::RepeatAnswer`].
    answers: Mutex<HashMap<String, Vec<u8>>>,
}

/// What becomes of a connection after one request.
#[derive(Debug, PartialEq, Eq)]
enum Next {
    Keep,
    Close,
}

impl Proxy {
    /// Starts a proxy on `listen` (`127.0.0.1:0` picks a port) in front of `upstream` (`http://127.0.0.1:4566`), which
    /// need not be up yet.
    ///
    /// # Errors
    /// When the address cannot be listened on.
    pub async fn start(listen: &str, upstream: &str, seed: u64, rules: Vec<Rule>) -> io::Result<Self> {
        let listener = TcpListener::bind(listen).await?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared {
            upstream: upstream.trim_start_matches("http://").trim_end_matches('/').to_owned(),
            fates: Mutex::new(Fates::new(seed, rules)),
            counter: Mutex::default(),
            passed: Notify::new(),
            answers: Mutex::default(),
        });
        let accepting = tokio::spawn(accept(listener, shared.clone())).abort_handle();
        Ok(Self { address, shared, accepting })
    }

    /// Returns the URL to use as `AWS_ENDPOINT_URL`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns the seed.
    pub fn seed(&self) -> u64 {
        lock(&self.shared.fates).seed
    }

    /// Replaces the rules; from now on draws start anew from `seed`.
    pub fn set_faults(&self, seed: u64, rules: Vec<Rule>) {
        *lock(&self.shared.fates) = Fates::new(seed, rules);
    }

    /// Returns the counts.
    pub fn counts(&self) -> Counts {
        lock(&self.shared.counter).counts.clone()
    }

    /// Starts counting from zero.
    pub fn reset_counts(&self) {
        lock(&self.shared.counter).counts = Counts::default();
    }

    /// Returns when the proxy has ended, which it does not do by itself.
    pub async fn forever(&self) {
        std::future::pending().await
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    // Dropped with this task: its connections end with the proxy.
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                let Ok((stream, _)) = accepted else { continue };
                let shared = shared.clone();
                // What goes wrong on one connection is the client's to see.
                connections.spawn(async move { shared.serve(stream).await.unwrap_or(()) });
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

impl Shared {
    async fn serve(&self, stream: TcpStream) -> io::Result<()> {
        let mut client = Wire::new(stream);
        while let Some(request) = client.request().await? {
            let next = match request.start[1].strip_prefix("/__proxy/") {
                Some(path) => client.write(&self.control(path, &request)).await.map(|()| Next::Keep)?,
                None => self.pass(&mut client, &request).await?,
            };
            if next == Next::Close || request.last {
                break;
            }
        }
        Ok(())
    }

    async fn pass(&self, client: &mut Wire, request: &Message) -> io::Result<Next> {
        let operation = operation::operation(request);
        let name = operation.to_string();
        let caller = lock(&self.counter).asked(&name, operation::access_key(request));
        let call = request.header("amz-sdk-invocation-id");
        let fault = lock(&self.fates).decide(&name, &caller, call);
        if let Some(fault) = fault {
            lock(&self.counter).injected(&name, fault);
        }
        match fault {
            None => {}
            Some(Fault::Delay(time)) => tokio::time::sleep(time).await,
            Some(Fault::Reorder) => {
                let _ = tokio::time::timeout(REORDER_LIMIT, self.passed.notified()).await;
            }
            Some(Fault::DropRequest) => return Ok(Next::Close),
            Some(Fault::BlackHole(time)) => {
                let _ = tokio::time::timeout(time, client.closed()).await;
                return Ok(Next::Close);
            }
            Some(fault @ (Fault::Throttle | Fault::Error | Fault::Conflict)) => {
                client.write(&refusals::refusal(&operation, fault, request)).await?;
                return Ok(Next::Keep);
            }
            Some(Fault::RepeatAnswer) => {
                let earlier = lock(&self.answers).get(&name).cloned();
                if let Some(answer) = earlier {
                    return client.write(&answer).await.map(|()| Next::Keep);
                }
            }
            Some(Fault::DropAnswer | Fault::Duplicate | Fault::Truncate) => {}
        }
        let answer = tokio::select! {
            answer = self.forward(&operation, request) => answer,
            () = client.closed() => return Ok(Next::Close),
        };
        let answer = match answer {
            Ok(answer) => answer,
            Err(error) => {
                let body = serde_json::json!({"message": format!("the proxy cannot reach {}: {error}", self.upstream)});
                client.write(&refusals::answer(502, "application/json", &[], &body.to_string())).await?;
                return Ok(Next::Keep);
            }
        };
        self.answer(client, &operation, request, fault, answer).await
    }

    async fn answer(
        &self,
        client: &mut Wire,
        operation: &Operation,
        request: &Message,
        fault: Option<Fault>,
        answer: Message,
    ) -> io::Result<Next> {
        match fault {
            Some(Fault::DropAnswer) => return Ok(Next::Close),
            Some(Fault::Truncate) => {
                // With the announced length, so that the client can tell; an empty body loses part of its head.
                let bytes = answer.bytes();
                let kept =
                    if answer.body.is_empty() { bytes.len() / 2 } else { answer.head.len() + answer.body.len() / 2 };
                client.write(&bytes[..kept]).await?;
                return Ok(Next::Close);
            }
            // The first answer comes back, as on a network that delivers twice.
            Some(Fault::Duplicate) => drop(self.forward(operation, request).await),
            Some(_) | None => {}
        }
        let bytes = answer.bytes();
        client.write(&bytes).await?;
        if answer.status() == 200 && answer.body.len() > 2 && !answer.last {
            lock(&self.answers).insert(operation.to_string(), bytes);
        }
        self.passed.notify_waiters();
        Ok(if answer.last { Next::Close } else { Next::Keep })
    }

    async fn forward(&self, operation: &Operation, request: &Message) -> io::Result<Message> {
        let mut upstream = Wire::connect(&self.upstream).await?;
        upstream.write(&request.bytes()).await?;
        let answer = upstream.answer(&request.start[0]).await?;
        lock(&self.counter).answered(operation, request, &answer);
        Ok(answer)
    }

    /// Answers a request to the proxy itself: `GET counts`, `POST reset`, `PUT faults` (rules as text; `?seed=N`).
    fn control(&self, path: &str, request: &Message) -> Vec<u8> {
        let json =
            |status, body: serde_json::Value| refusals::answer(status, "application/json", &[], &body.to_string());
        let (path, query) = path.split_once('?').unwrap_or((path, ""));
        match (request.start[0].as_str(), path) {
            ("GET", "counts") => {
                let seed = lock(&self.fates).seed;
                json(200, lock(&self.counter).counts.to_json(seed))
            }
            ("POST", "reset") => {
                lock(&self.counter).counts = Counts::default();
                json(200, serde_json::json!({}))
            }
            ("PUT", "faults") => match parse_rules(&String::from_utf8_lossy(&request.body)) {
                Ok(rules) => {
                    let mut fates = lock(&self.fates);
                    let seed = query.strip_prefix("seed=").and_then(|seed| seed.parse().ok()).unwrap_or(fates.seed);
                    *fates = Fates::new(seed, rules);
                    json(200, serde_json::json!({"seed": seed}))
                }
                Err(error) => json(400, serde_json::json!({"message": format!("{error:#}")})),
            },
            _ => json(404, serde_json::json!({"message": "there are GET counts, POST reset and PUT faults"})),
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
