//! In-memory doubles of the ports: a table, queues that keep their messages, and a clock that tests set. The tests of
//! this crate and of the simulated control plane use them. The fault injector makes any call fail once, before or after
//! its effect.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use freehold_domain::workflow::WorkflowKind;
use freehold_protocol::{Digest, InstallId, Timestamp, WorkflowId};
use serde_json::Value;

use crate::messages::{DispatchMessage, GrantMessage};
use crate::ports::{
    Callbacks, Clock, Committed, Expect, Key, Machines, Objects, OrdersQueue, Outbox, PortError, Row, Store, Write,
};

/// The most writes of one commit (DynamoDB API reference, `TransactWriteItems`).
const COMMIT_WRITES: usize = 100;

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// When a call fails: before its effect, or after it, so that only the answer is lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    Before,
    AnswerLost,
}

/// Decides for one call, by its name, whether and how it fails.
type Decide = Box<dyn FnMut(&'static str) -> Option<Fault> + Send>;

/// Injects faults; a call succeeds when the function returns `None`.
#[derive(Default)]
pub struct Faults(Mutex<Option<Decide>>);

impl std::fmt::Debug for Faults {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Faults")
    }
}

impl Faults {
    /// Uses `decide` for every call from now on.
    pub fn set(&self, decide: impl FnMut(&'static str) -> Option<Fault> + Send + 'static) {
        *lock(&self.0) = Some(Box::new(decide));
    }

    fn next(&self, what: &'static str) -> Option<Fault> {
        lock(&self.0).as_mut().and_then(|decide| decide(what))
    }

    /// Performs `effect` unless the call must fail. Doubles of ports outside this module use it.
    ///
    /// # Errors
    /// Transient when the call must fail.
    pub fn run<T>(&self, what: &'static str, effect: impl FnOnce() -> T) -> Result<T, PortError> {
        let lost = || PortError::Transient { what: what.to_owned(), reason: "injected".to_owned() };
        match self.next(what) {
            None => Ok(effect()),
            Some(Fault::Before) => Err(lost()),
            Some(Fault::AnswerLost) => {
                effect();
                Err(lost())
            }
        }
    }
}

/// All ports of a control plane in memory, except its signer and its registry.
#[derive(Debug, Default)]
pub struct Memory {
    rows: Mutex<BTreeMap<Key, Row>>,
    /// Objects of the bucket that hold app versions, by digest.
    pub versions: Mutex<BTreeMap<Digest, Vec<u8>>>,
    /// Messages for `dispatch-job`, oldest first.
    pub dispatched: Mutex<Vec<DispatchMessage>>,
    /// Messages for `grant-artifact`.
    pub grants: Mutex<Vec<GrantMessage>>,
    /// The messages to runners: (queue, group, deduplication id, body), each deduplication id once.
    pub orders: Mutex<Vec<(String, String, String, String)>>,
    /// The started executions.
    pub started: Mutex<Vec<(WorkflowKind, WorkflowId)>>,
    /// The token and the output of each resumed state.
    pub resumed: Mutex<Vec<(String, Value)>>,
    /// Heartbeats, by token.
    pub beats: Mutex<Vec<String>>,
    now: Mutex<u64>,
    pub faults: Faults,
}

impl Memory {
    /// Moves the clock forward.
    pub fn advance_secs(&self, secs: u64) {
        *lock(&self.now) += secs * 1000;
    }

    /// Returns and removes the messages for `dispatch-job`.
    pub fn take_dispatched(&self) -> Vec<DispatchMessage> {
        std::mem::take(&mut *lock(&self.dispatched))
    }

    /// Becomes a copy of `other`, except for its faults.
    pub fn restore(&self, other: &Self) {
        lock(&self.rows).clone_from(&lock(&other.rows));
        lock(&self.versions).clone_from(&lock(&other.versions));
        lock(&self.dispatched).clone_from(&lock(&other.dispatched));
        lock(&self.grants).clone_from(&lock(&other.grants));
        lock(&self.orders).clone_from(&lock(&other.orders));
        lock(&self.started).clone_from(&lock(&other.started));
        lock(&self.resumed).clone_from(&lock(&other.resumed));
        lock(&self.beats).clone_from(&lock(&other.beats));
        *lock(&self.now) = *lock(&other.now);
    }

    /// Returns every row, so that tests can compare whole states.
    pub fn rows(&self) -> Vec<Row> {
        lock(&self.rows).values().cloned().collect()
    }
}

impl Clock for Memory {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(1_700_000_000_000 + *lock(&self.now))
    }
}

/// Returns the key of the first write whose condition does not hold, unless the row is already the result of the write.
fn first_conflict(rows: &BTreeMap<Key, Row>, writes: &[Write]) -> Option<Key> {
    writes.iter().find_map(|write| {
        let current = rows.get(write.key());
        let fits = match write {
            Write::Put { expect: Expect::Absent, .. } | Write::CheckAbsent { .. } => current.is_none(),
            Write::Put { expect: Expect::Rev(rev), .. } => current.is_some_and(|row| row.rev == *rev),
            Write::Put { expect: Expect::Any, .. } | Write::Delete { .. } => true,
        };
        (!fits).then(|| write.key().clone())
    })
}

fn is_done_already(rows: &BTreeMap<Key, Row>, writes: &[Write]) -> bool {
    writes.iter().all(|write| match write {
        Write::Put { key, body, expect, .. } => rows.get(key).is_some_and(|row| {
            let rev = match expect {
                Expect::Absent => row.rev == 1,
                Expect::Rev(rev) => row.rev == rev + 1,
                Expect::Any => true,
            };
            rev && row.body == *body
        }),
        Write::Delete { key } => !rows.contains_key(key),
        Write::CheckAbsent { .. } => true,
    })
}

#[async_trait]
impl Store for Memory {
    async fn get(&self, key: &Key) -> Result<Option<Row>, PortError> {
        self.faults.run("get", || lock(&self.rows).get(key).cloned())
    }

    async fn query(&self, pk: &str, prefix: &str, after: Option<&str>, limit: u32) -> Result<Vec<Row>, PortError> {
        self.faults.run("query", || {
            lock(&self.rows)
                .values()
                .filter(|row| row.key.pk == pk && row.key.sk.starts_with(prefix))
                .filter(|row| after.is_none_or(|after| row.key.sk.as_str() > after))
                .take(limit as usize)
                .cloned()
                .collect()
        })
    }

    async fn commit(&self, writes: Vec<Write>) -> Result<Committed, PortError> {
        if writes.len() > COMMIT_WRITES {
            let reason = format!("{} writes are more than the {COMMIT_WRITES} of one transaction", writes.len());
            return Err(PortError::Failed { what: "commit".to_owned(), reason });
        }
        self.faults.run("commit", || {
            let mut rows = lock(&self.rows);
            if let Some(key) = first_conflict(&rows, &writes) {
                return if is_done_already(&rows, &writes) { Committed::Done } else { Committed::Conflict(key) };
            }
            for write in writes {
                match write {
                    Write::Put { key, body, .. } => {
                        let rev = rows.get(&key).map_or(1, |row| row.rev + 1);
                        rows.insert(key.clone(), Row { key, rev, body });
                    }
                    Write::Delete { key } => {
                        rows.remove(&key);
                    }
                    Write::CheckAbsent { .. } => {}
                }
            }
            Committed::Done
        })
    }
}

#[async_trait]
impl Objects for Memory {
    async fn presign_source(&self, digest: &Digest, size: u64, valid_secs: u64) -> Result<String, PortError> {
        let url = || format!("https://bucket.invalid/{}?{size}&{valid_secs}", digest.hex());
        self.faults.run("presign_source", url)
    }

    async fn put_version(&self, digest: &Digest, bytes: &[u8]) -> Result<(), PortError> {
        self.faults.run("put_version", || {
            lock(&self.versions).insert(digest.clone(), bytes.to_vec());
        })
    }

    async fn get_version(&self, digest: &Digest) -> Result<Option<Vec<u8>>, PortError> {
        self.faults.run("get_version", || lock(&self.versions).get(digest).cloned())
    }
}

#[async_trait]
impl Outbox for Memory {
    async fn dispatch(&self, messages: &[DispatchMessage]) -> Result<(), PortError> {
        self.faults.run("dispatch", || lock(&self.dispatched).extend_from_slice(messages))
    }

    async fn request_grant(&self, message: &GrantMessage) -> Result<(), PortError> {
        self.faults.run("request_grant", || lock(&self.grants).push(message.clone()))
    }
}

#[async_trait]
impl OrdersQueue for Memory {
    async fn send(&self, queue_url: &str, group: &str, dedup: &str, body: &str) -> Result<(), PortError> {
        self.faults.run("send", || {
            let mut orders = lock(&self.orders);
            if !orders.iter().any(|(url, _, known, _)| url == queue_url && known == dedup) {
                orders.push((queue_url.to_owned(), group.to_owned(), dedup.to_owned(), body.to_owned()));
            }
        })
    }
}

#[async_trait]
impl Machines for Memory {
    async fn start(&self, kind: WorkflowKind, workflow: &WorkflowId, _: &InstallId) -> Result<(), PortError> {
        self.faults.run("start", || {
            let mut started = lock(&self.started);
            if !started.iter().any(|(_, known)| known == workflow) {
                started.push((kind, workflow.clone()));
            }
        })
    }
}

#[async_trait]
impl Callbacks for Memory {
    async fn succeed(&self, token: &str, output: &Value) -> Result<(), PortError> {
        self.faults.run("succeed", || lock(&self.resumed).push((token.to_owned(), output.clone())))
    }

    async fn heartbeat(&self, token: &str) -> Result<(), PortError> {
        self.faults.run("heartbeat", || lock(&self.beats).push(token.to_owned()))
    }
}
