//! An SQS in memory, as fast as loopback, so that measurements see the runner and not the queue: JSON protocol, long
//! polls, visibility, FIFO groups, deduplication, batches; counters. It checks no credentials, and every queue exists.
//! Requests to other services get the answers that the caller has prepared.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use aws_smithy_types::date_time::{DateTime, Format};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::Notify;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{Duration, Instant};

use crate::http::{Message, Wire};

const DEFAULT_VISIBILITY_SECS: u64 = 30;
const DEDUPLICATION: Duration = Duration::from_secs(300);

/// A running server; it ends when it is dropped.
#[derive(Debug)]
pub struct FastSqs {
    address: SocketAddr,
    queues: Arc<Queues>,
    accepting: AbortHandle,
}

#[derive(Debug, Default)]
struct Queues {
    queues: Mutex<BTreeMap<String, Arc<Queue>>>,
    requests: Mutex<BTreeMap<String, u64>>,
    /// Answers of other services, by action: content type and body.
    others: Mutex<BTreeMap<String, (String, String)>>,
}

#[derive(Debug, Default)]
struct Queue {
    state: Mutex<State>,
    /// Something may have become deliverable.
    changed: Notify,
}

#[derive(Debug, Default)]
struct State {
    waiting: VecDeque<Stored>,
    /// By receipt handle: until when, and what.
    in_flight: HashMap<String, (Instant, Stored)>,
    /// Deduplication ids, with the message that had each first.
    seen: HashMap<String, (Instant, u64)>,
    last: u64,
}

#[derive(Debug)]
struct Stored {
    number: u64,
    body: String,
    group: Option<String>,
    sent_millis: u128,
    receives: u32,
}

/// CloudFormation's answer when there is no install stack. A runner then has no rules about when changes may start.
const NO_STACKS: &str = "<DescribeStacksResponse xmlns=\"http://cloudformation.amazonaws.com/doc/2010-05-15/\">\
    <DescribeStacksResult><Stacks/></DescribeStacksResult></DescribeStacksResponse>";

impl FastSqs {
    /// Starts a server on `listen`.
    ///
    /// # Errors
    /// When the address cannot be listened on.
    pub async fn start(listen: &str) -> io::Result<Self> {
        let listener = TcpListener::bind(listen).await?;
        let address = listener.local_addr()?;
        let queues = Arc::new(Queues::default());
        let accepting = tokio::spawn(accept(listener, queues.clone())).abort_handle();
        let server = Self { address, queues, accepting };
        server.answer_also("DescribeStacks", "text/xml", NO_STACKS);
        Ok(server)
    }

    /// Returns the URL to use as `AWS_ENDPOINT_URL`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns the URL of the queue `name`.
    pub fn queue_url(&self, name: &str) -> String {
        format!("{}/000000000000/{name}", self.url())
    }

    /// Returns the requests so far, by action, and starts counting anew.
    pub fn take_requests(&self) -> BTreeMap<String, u64> {
        std::mem::take(&mut *lock(&self.queues.requests))
    }

    /// Answers `action` of another service with `body` from now on.
    pub fn answer_also(&self, action: &str, content_type: &str, body: &str) {
        lock(&self.queues.others).insert(action.to_owned(), (content_type.to_owned(), body.to_owned()));
    }

    /// Returns whether the queue `name` holds nothing, handed out or not.
    pub fn is_empty(&self, name: &str) -> bool {
        let queue = self.queues.queue(name);
        let state = lock(&queue.state);
        state.waiting.is_empty() && state.in_flight.is_empty()
    }

    /// Puts a message into the queue `name`, as `SendMessage` does.
    pub fn send(&self, name: &str, body: &str, group: Option<&str>, deduplication: Option<&str>) {
        let entry = json!({"MessageBody": body, "MessageGroupId": group, "MessageDeduplicationId": deduplication});
        self.queues.queue(name).send(&entry);
    }

    /// Takes one message out of the queue `name` for good; waits for it until `deadline`.
    pub async fn take(&self, name: &str, deadline: Instant) -> Option<String> {
        let queue = self.queues.queue(name);
        let (handle, body) =
            queue.receive(1, DEFAULT_VISIBILITY_SECS, deadline).await.into_iter().next().map(|found| {
                let text = |key: &str| found[key].as_str().unwrap_or_default().to_owned();
                (text("ReceiptHandle"), text("Body"))
            })?;
        queue.delete(&handle);
        Some(body)
    }
}

impl Drop for FastSqs {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn accept(listener: TcpListener, queues: Arc<Queues>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                let Ok((stream, _)) = accepted else { continue };
                let queues = queues.clone();
                connections.spawn(async move { queues.serve(Wire::new(stream)).await.unwrap_or(()) });
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

impl Queues {
    async fn serve(&self, mut client: Wire) -> io::Result<()> {
        while let Some(request) = client.request().await? {
            let (status, kind, body) = tokio::select! {
                answer = self.answer(&request) => answer,
                () = client.closed() => return Ok(()),
            };
            let date = DateTime::from(SystemTime::now()).fmt(Format::HttpDate).unwrap_or_default();
            let head = format!(
                "HTTP/1.1 {status} OK\r\ncontent-type: {kind}\r\ndate: {date}\r\ncontent-length: {}\r\n\r\n",
                body.len()
            );
            client.write(&[head.as_bytes(), body.as_bytes()].concat()).await?;
        }
        Ok(())
    }

    async fn answer(&self, request: &Message) -> (u16, String, String) {
        let (status, body) = match action(request) {
            None => (200, json!(std::mem::take(&mut *lock(&self.requests)))),
            Some(action) => {
                *lock(&self.requests).entry(action.clone()).or_default() += 1;
                if let Some((kind, body)) = lock(&self.others).get(&action) {
                    return (200, kind.clone(), body.clone());
                }
                self.act(&action, request).await
            }
        };
        (status, "application/x-amz-json-1.0".to_owned(), body.to_string())
    }

    async fn act(&self, action: &str, request: &Message) -> (u16, Value) {
        let asked: Value = serde_json::from_slice(&request.body).unwrap_or_default();
        let name = asked["QueueUrl"].as_str().or(asked["QueueName"].as_str()).unwrap_or_default();
        let name = name.rsplit('/').next().unwrap_or_default();
        let queue = self.queue(name);
        let handle = |entry: &Value| entry["ReceiptHandle"].as_str().unwrap_or_default().to_owned();
        let secs = |entry: &Value| entry["VisibilityTimeout"].as_u64().unwrap_or(DEFAULT_VISIBILITY_SECS);
        let each = |act: &dyn Fn(&Value) -> Value| {
            let done = asked["Entries"].as_array().into_iter().flatten().map(|entry| {
                let mut done = act(entry);
                done["Id"] = entry["Id"].clone();
                done
            });
            json!({"Successful": done.collect::<Vec<_>>(), "Failed": []})
        };
        let answer = match action {
            "CreateQueue" | "GetQueueUrl" => {
                let host = request.header("host").unwrap_or_default();
                json!({"QueueUrl": format!("http://{host}/000000000000/{name}")})
            }
            "GetQueueAttributes" => queue.attributes(),
            "SendMessage" => queue.send(&asked),
            "SendMessageBatch" => each(&|entry| queue.send(entry)),
            "ReceiveMessage" => {
                let most = asked["MaxNumberOfMessages"].as_u64().unwrap_or(1);
                let until = Instant::now() + Duration::from_secs(asked["WaitTimeSeconds"].as_u64().unwrap_or(0));
                json!({"Messages": queue.receive(most, secs(&asked), until).await})
            }
            "DeleteMessage" => queue.delete(&handle(&asked)),
            "DeleteMessageBatch" => each(&|entry| queue.delete(&handle(entry))),
            "ChangeMessageVisibility" => match queue.change_visibility(&handle(&asked), secs(&asked)) {
                Some(done) => done,
                None => return refused("MessageNotInflight", "the message is not in flight"),
            },
            "ChangeMessageVisibilityBatch" => {
                each(&|entry| queue.change_visibility(&handle(entry), secs(entry)).unwrap_or_default())
            }
            // The builder asks for the credential of a private registry. Nobody stored one.
            "GetSecretValue" => return refused("ResourceNotFoundException", "there is no such secret"),
            other => return refused("UnsupportedOperation", &format!("this server has no `{other}`")),
        };
        (200, answer)
    }

    fn queue(&self, name: &str) -> Arc<Queue> {
        lock(&self.queues).entry(name.to_owned()).or_default().clone()
    }
}

impl Queue {
    fn send(&self, entry: &Value) -> Value {
        let mut state = lock(&self.state);
        let text = |key: &str| entry[key].as_str().map(str::to_owned);
        let now = Instant::now();
        state.last += 1;
        let mut number = state.last;
        if let Some(id) = text("MessageDeduplicationId") {
            match state.seen.get(&id) {
                Some((at, first)) if now.duration_since(*at) < DEDUPLICATION => number = *first,
                Some(_) | None => drop(state.seen.insert(id, (now, number))),
            }
        }
        if number == state.last {
            state.waiting.push_back(Stored {
                number,
                body: text("MessageBody").unwrap_or_default(),
                group: text("MessageGroupId"),
                sent_millis: SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis(),
                receives: 0,
            });
            self.changed.notify_waiters();
        }
        json!({"MessageId": message_id(number), "SequenceNumber": number.to_string()})
    }

    /// Returns up to `most` messages; waits for the first until `until`.
    async fn receive(&self, most: u64, visibility_secs: u64, until: Instant) -> Vec<Value> {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            let next_return = {
                let mut state = lock(&self.state);
                let found = state.take(most, visibility_secs);
                if !found.is_empty() || Instant::now() >= until {
                    return found;
                }
                state.in_flight.values().map(|(until, _)| *until).min()
            };
            let _ = tokio::time::timeout_at(next_return.map_or(until, |at| at.min(until)), changed).await;
        }
    }

    fn delete(&self, handle: &str) -> Value {
        lock(&self.state).in_flight.remove(handle);
        // The next message of its group may go.
        self.changed.notify_waiters();
        json!({})
    }

    fn change_visibility(&self, handle: &str, secs: u64) -> Option<Value> {
        let mut state = lock(&self.state);
        state.in_flight.get_mut(handle)?.0 = Instant::now() + Duration::from_secs(secs);
        self.changed.notify_waiters();
        Some(json!({}))
    }

    fn attributes(&self) -> Value {
        let state = lock(&self.state);
        json!({"Attributes": {
            "ApproximateNumberOfMessages": state.waiting.len().to_string(),
            "ApproximateNumberOfMessagesNotVisible": state.in_flight.len().to_string(),
        }})
    }
}

impl State {
    fn take(&mut self, most: u64, visibility_secs: u64) -> Vec<Value> {
        let now = Instant::now();
        self.bring_back(now);
        let busy: Vec<_> = self.in_flight.values().filter_map(|(_, stored)| stored.group.clone()).collect();
        let mut found = Vec::new();
        let mut at = 0;
        while at < self.waiting.len() && (found.len() as u64) < most {
            if self.waiting[at].group.as_ref().is_some_and(|group| busy.contains(group)) {
                at += 1;
                continue;
            }
            let Some(mut stored) = self.waiting.remove(at) else { break };
            stored.receives += 1;
            let handle = format!("{}#{}", stored.number, stored.receives);
            let mut attributes = json!({
                "ApproximateReceiveCount": stored.receives.to_string(),
                "SentTimestamp": stored.sent_millis.to_string(),
            });
            if let Some(group) = &stored.group {
                attributes["MessageGroupId"] = json!(group);
            }
            let id = message_id(stored.number);
            found
                .push(json!({"MessageId": id, "ReceiptHandle": handle, "Body": stored.body, "Attributes": attributes}));
            self.in_flight.insert(handle, (now + Duration::from_secs(visibility_secs), stored));
        }
        found
    }

    /// Makes messages visible again when their time is over, at their old place.
    fn bring_back(&mut self, now: Instant) {
        let over: Vec<_> =
            self.in_flight.iter().filter(|(_, (until, _))| *until <= now).map(|(h, _)| h.clone()).collect();
        for handle in over {
            if let Some((_, stored)) = self.in_flight.remove(&handle) {
                let at = self.waiting.partition_point(|other| other.number < stored.number);
                self.waiting.insert(at, stored);
            }
        }
    }
}

/// Returns what `request` asks for; nothing for a plain GET.
fn action(request: &Message) -> Option<String> {
    if let Some(target) = request.header("x-amz-target") {
        return target.rsplit('.').next().map(str::to_owned);
    }
    let form = String::from_utf8_lossy(&request.body);
    form.split('&').find_map(|pair| pair.strip_prefix("Action=").map(str::to_owned))
}

fn message_id(number: u64) -> String {
    format!("{number:08x}-0000-4000-8000-000000000000")
}

fn refused(code: &str, message: &str) -> (u16, Value) {
    (400, json!({"__type": format!("com.amazonaws.sqs#{code}"), "message": message}))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
