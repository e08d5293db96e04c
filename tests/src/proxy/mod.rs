//! A proxy between AWS clients and the local cloud that injects faults and counts calls. It passes bytes on unchanged,
//! with the signed Host header, so that signatures still verify.

mod asker;
mod capacity;
mod counts;
mod distortion;
mod effects;
mod faults;

mod operation;
mod refusals;
#[cfg(test)]
mod testing;

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::task::{AbortHandle, JoinSet};

pub use capacity::{RowWrites, Units};
pub use counts::{Counts, OperationCounts};
pub use effects::Effects;
pub use faults::{Fault, Rule, parse_rules};
pub use operation::{Operation, Protocol};

use crate::http::{Message, Wire};
use counts::Counter;
use faults::{Asked, Fates};

/// The longest that a reordered request waits for another one to overtake it.
const REORDER_LIMIT: Duration = Duration::from_secs(2);

/// A running proxy; it ends when it is dropped.
#[derive(Debug)]
pub struct Proxy {
    shared: Arc<Shared>,
    accepting: AbortHandle,
}

#[derive(Debug)]
struct Shared {
    /// Where it listens.
    address: SocketAddr,
    upstream: String,
    fates: Mutex<Fates>,
    /// How often the rules were replaced.
    generation: AtomicU64,
    counter: Mutex<Counter>,
    /// Called when an answer of some operation has gone out.
    passed: Notify,
    /// The last full answers, for [`Fault::RepeatAnswer`].
    answers: Mutex<HashMap<String, Vec<u8>>>,
    /// Called when the rules are replaced.
    replaced: Notify,
    effects: Effects,
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
            address,
            upstream: upstream.trim_start_matches("http://").trim_end_matches('/').to_owned(),
            fates: Mutex::new(Fates::new(seed, rules)),
            generation: AtomicU64::new(0),
            counter: Mutex::default(),
            passed: Notify::new(),
            answers: Mutex::default(),
            replaced: Notify::new(),
            effects: Effects::default(),
        });
        let accepting = tokio::spawn(accept(listener, shared.clone())).abort_handle();
        Ok(Self { shared, accepting })
    }

    /// Returns the URL to use as `AWS_ENDPOINT_URL`.
    pub fn url(&self) -> String {
        format!("http://{}", self.shared.address)
    }

    /// Returns the seed.
    pub fn seed(&self) -> u64 {
        lock(&self.shared.fates).seed
    }

    /// Replaces the rules; from now on draws start anew from `seed`.
    pub fn set_faults(&self, seed: u64, rules: Vec<Rule>) {
        self.shared.replace_rules(seed, rules);
        lock(&self.shared.answers).clear();
    }

    /// Returns for each rule how many requests it has looked at, or how many SDK calls if it is stubborn.
    pub fn looked_at(&self) -> Vec<u64> {
        lock(&self.shared.fates).looked_at()
    }

    /// Returns what jobs wrote down here.
    pub fn effects(&self) -> &Effects {
        &self.shared.effects
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
    async fn serve(self: &Arc<Self>, stream: TcpStream) -> io::Result<()> {
        let asker = stream.peer_addr()?;
        let mut client = Wire::new(stream);
        while let Some(request) = client.request().await? {
            let next = match request.start[1].strip_prefix("/__proxy/") {
                Some(path) => client.write(&self.control(path, &request).await).await.map(|()| Next::Keep)?,
                None => self.pass(&mut client, asker, &request).await?,
            };
            if next == Next::Close || request.last {
                break;
            }
        }
        Ok(())
    }

    /// Replaces the rules and raises their number in one step, so that no fault of the new ones has the old number.
    fn replace_rules(&self, seed: u64, rules: Vec<Rule>) {
        let mut fates = lock(&self.fates);
        *fates = Fates::new(seed, rules);
        self.generation.fetch_add(1, Ordering::SeqCst);
        drop(fates);
        self.replaced.notify_waiters();
    }

    async fn pass(self: &Arc<Self>, client: &mut Wire, asker: SocketAddr, request: &Message) -> io::Result<Next> {
        let operation = operation::operation(request);
        let (fault, generation) = self.fault(&operation, request);
        match fault {
            Some(Fault::Delay(time)) => tokio::time::sleep(time).await,
            Some(Fault::Hold) => self.replaced.notified().await,
            Some(Fault::Reorder) => {
                let _ = tokio::time::timeout(REORDER_LIMIT, self.passed.notified()).await;
            }
            Some(Fault::DropRequest) => return Ok(Next::Close),
            Some(fault @ Fault::KillBefore) => return self.kill(asker, &operation, fault),
            Some(Fault::Cut(percent)) => return self.cut(request, percent).await,
            Some(Fault::BlackHole(time)) => {
                let _ = tokio::time::timeout(time, client.closed()).await;
                return Ok(Next::Close);
            }
            Some(fault @ (Fault::Throttle | Fault::Error | Fault::Conflict)) => {
                client.write(&refusals::refusal(&operation, fault, request)).await?;
                return Ok(Next::Keep);
            }
            Some(Fault::RepeatAnswer) => {
                let earlier = lock(&self.answers).get(&operation.to_string()).cloned();
                if let Some(answer) = earlier {
                    return client.write(&answer).await.map(|()| Next::Keep);
                }
            }
            None
            | Some(
                Fault::DropAnswer
                | Fault::DelayAnswer(_)
                | Fault::Duplicate
                | Fault::Replay(_)
                | Fault::KillAfter
                | Fault::Flip
                | Fault::ShortSession(_)
                | Fault::Truncate,
            ) => {}
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
        // The answer to a long poll may come after its rules are gone. Only what is late stays late.
        let is_over = self.generation.load(Ordering::SeqCst) != generation;
        let fault = fault.filter(|fault| !is_over || matches!(fault, Fault::DelayAnswer(_)));
        if let Some(fault @ Fault::KillAfter) = fault {
            return self.kill(asker, &operation, fault);
        }
        self.answer(client, &operation, request, fault, answer).await
    }

    /// Counts the request and draws its fate.
    /// Returns the fault that a call meets, and the number of the rules that decided it.
    fn fault(&self, operation: &Operation, request: &Message) -> (Option<Fault>, u64) {
        let name = operation.to_string();
        let caller = lock(&self.counter).asked(&name, operation::access_key(request));
        let answered_before = lock(&self.answers).contains_key(&name);
        let mut fates = lock(&self.fates);
        let generation = self.generation.load(Ordering::SeqCst);
        let fault = fates.decide(Asked {
            operation: &name,
            caller: &caller,
            call: request.header("amz-sdk-invocation-id"),
            texts: [request.start[1].as_bytes(), &request.body],
            answered_before,
        });
        drop(fates);
        // A kill counts when it was done.
        if let Some(fault) = fault.filter(|fault| !matches!(fault, Fault::KillBefore | Fault::KillAfter)) {
            lock(&self.counter).injected(&name, fault);
        }
        (fault, generation)
    }

    fn kill(&self, asker: SocketAddr, operation: &Operation, fault: Fault) -> io::Result<Next> {
        asker::kill(asker, self.address)?;
        lock(&self.counter).injected(&operation.to_string(), fault);
        Ok(Next::Close)
    }

    async fn answer(
        self: &Arc<Self>,
        client: &mut Wire,
        operation: &Operation,
        request: &Message,
        fault: Option<Fault>,
        mut answer: Message,
    ) -> io::Result<Next> {
        match fault {
            Some(Fault::DropAnswer) => return Ok(Next::Close),
            Some(Fault::DelayAnswer(time)) => tokio::time::sleep(time).await,
            Some(Fault::Flip) => distortion::flip(&mut answer.body),
            Some(Fault::ShortSession(time)) => distortion::shorten_session(&mut answer, time),
            Some(Fault::Truncate) => {
                client.write(&distortion::half(&answer)).await?;
                return Ok(Next::Close);
            }
            // The first answer comes back, as on a network that delivers twice.
            Some(Fault::Duplicate) => drop(self.forward(operation, request).await),
            Some(Fault::Replay(time)) => self.replay(operation, request, time),
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

    /// Sends the request again, whatever becomes of its connection meanwhile.
    fn replay(self: &Arc<Self>, operation: &Operation, request: &Message, after: Duration) {
        let (shared, operation, request) = (self.clone(), operation.clone(), request.clone());
        tokio::spawn(async move {
            tokio::time::sleep(after).await;
            drop(shared.forward(&operation, &request).await);
        });
    }

    /// Sends a part of the request, and ends the connection.
    async fn cut(&self, request: &Message, percent: u8) -> io::Result<Next> {
        let mut upstream = Wire::connect(&self.upstream).await?;
        let kept = request.head.len() + request.body.len() * usize::from(percent) / 100;
        upstream.write(&request.bytes()[..kept]).await?;
        Ok(Next::Close)
    }

    async fn forward(&self, operation: &Operation, request: &Message) -> io::Result<Message> {
        let mut upstream = Wire::connect(&self.upstream).await?;
        upstream.write(&request.bytes()).await?;
        let answer = upstream.answer(&request.start[0]).await?;
        lock(&self.counter).answered(operation, request, &answer);
        Ok(answer)
    }

    /// Answers a request to the proxy itself: `GET counts`, `POST reset`, `PUT faults` (rules as text; `?seed=N`), `POST
    /// effect?LINE` (see [`Effects`]).
    async fn control(&self, path: &str, request: &Message) -> Vec<u8> {
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
                    let known = lock(&self.fates).seed;
                    let seed = query.strip_prefix("seed=").and_then(|seed| seed.parse().ok()).unwrap_or(known);
                    self.replace_rules(seed, rules);
                    json(200, serde_json::json!({"seed": seed}))
                }
                Err(error) => json(400, serde_json::json!({"message": format!("{error:#}")})),
            },
            ("POST", "effect") => {
                self.effects.write(query).await;
                json(200, serde_json::json!({}))
            }
            _ => {
                let all = "there are GET counts, POST reset, PUT faults and POST effect";
                json(404, serde_json::json!({"message": all}))
            }
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
