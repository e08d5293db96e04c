//! The queues of a runner, in memory: orders are leased as SQS does it, and reports are taken.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use freehold_protocol::{Timestamp, limits};
use tokio::time::Instant;

use crate::record::unstarted_notes::Notes;
use crate::wire::inbox::{Delivery, Inbox, InboxError, Outbox, Sent};

/// A queue in memory.
#[derive(Debug, Default)]
pub(super) struct Queue {
    pub(super) messages: Mutex<BTreeMap<u32, Queued>>,
    next: AtomicU32,
    added: tokio::sync::Notify,
    /// While set, renewals fail.
    pub(super) deaf: AtomicBool,
    /// While set, the runner may not use it.
    pub(super) closed: AtomicBool,
    /// While set, no request for messages is answered.
    pub(super) unreachable: AtomicBool,
    /// What the machines of the install tell each other.
    pub(super) notes: Mutex<BTreeMap<String, String>>,
    /// While set, no note is written.
    pub(super) notes_closed: AtomicBool,
}

#[derive(Debug)]
pub(super) struct Queued {
    body: String,
    sent_at: Timestamp,
    group: Option<String>,
    pub(super) receive: u32,
    hidden_until: Option<Instant>,
}

impl Queue {
    pub(super) fn send(&self, body: String) {
        self.send_at(body, Timestamp::from_millis(2_000_000));
    }

    /// Sends a message that the queue takes at `sent_at`.
    pub(super) fn send_at(&self, body: String, sent_at: Timestamp) {
        self.add(Queued { body, sent_at, group: None, receive: 0, hidden_until: None });
    }

    /// Sends a message in the message group `group`, which the queue takes at `sent_at`.
    pub(super) fn send_in(&self, group: &str, body: String, sent_at: Timestamp) {
        self.add(Queued { body, sent_at, group: Some(group.to_owned()), receive: 0, hidden_until: None });
    }

    fn add(&self, message: Queued) {
        let at = self.next.fetch_add(1, Ordering::Relaxed);
        self.messages.lock().unwrap().insert(at, message);
        self.added.notify_one();
    }

    pub(super) fn take(&self) -> Vec<Delivery> {
        let now = Instant::now();
        let mut messages = self.messages.lock().unwrap();
        let visible = messages.iter_mut().filter(|(_, m)| m.hidden_until.is_none_or(|until| until <= now));
        visible
            .map(|(at, message)| {
                message.receive += 1;
                message.hidden_until = Some(now + Duration::from_secs(limits::LEASE_SECS));
                Delivery {
                    body: message.body.clone(),
                    handle: format!("{at}#{}", message.receive),
                    receive: message.receive,
                    sent_at: message.sent_at,
                    group: message.group.clone(),
                    leased_at: now,
                }
            })
            .collect()
    }

    fn with<T>(&self, handle: &str, act: impl FnOnce(&mut BTreeMap<u32, Queued>, u32) -> T) -> Result<T, InboxError> {
        let (at, receive) = handle.split_once('#').unwrap();
        let at = at.parse().unwrap();
        let mut messages = self.messages.lock().unwrap();
        let ours = messages.get(&at).is_some_and(|m| {
            m.receive.to_string() == receive && m.hidden_until.is_some_and(|until| until > Instant::now())
        });
        if ours { Ok(act(&mut messages, at)) } else { Err(InboxError::Gone("lease is over".into())) }
    }

    pub(super) fn len(&self) -> usize {
        self.messages.lock().unwrap().len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn refused(&self) -> Result<(), InboxError> {
        let closed = self.closed.load(Ordering::Relaxed);
        if closed { Err(InboxError::Denied("not for you (AccessDenied)".into())) } else { Ok(()) }
    }
}

#[async_trait]
impl Inbox for Queue {
    async fn receive(&self, wait_secs: u64) -> Result<Vec<Delivery>, InboxError> {
        let until = Instant::now() + Duration::from_secs(wait_secs);
        loop {
            self.refused()?;
            if self.unreachable.load(Ordering::Relaxed) {
                return Err(InboxError::Transient("no route to host".into()));
            }
            let taken = self.take();
            if !taken.is_empty() || Instant::now() >= until {
                return Ok(taken);
            }
            let step = (Instant::now() + Duration::from_secs(1)).min(until);
            let _ = tokio::time::timeout_at(step, self.added.notified()).await;
        }
    }

    async fn lease(&self, handle: &str, secs: u64) -> Result<(), InboxError> {
        self.refused()?;
        if self.deaf.load(Ordering::Relaxed) {
            return Err(InboxError::Transient("no answer".into()));
        }
        self.with(handle, |messages, at| {
            if let Some(message) = messages.get_mut(&at) {
                message.hidden_until = Some(Instant::now() + Duration::from_secs(secs));
            }
        })
    }

    async fn delete(&self, handle: &str) -> Result<(), InboxError> {
        self.refused()?;
        self.with(handle, |messages, at| drop(messages.remove(&at)))
    }
}

/// The reports queue.
#[derive(Debug, Default)]
pub(super) struct Taken {
    pub(super) bodies: Mutex<Vec<String>>,
    /// While set, it takes nothing.
    pub(super) deaf: AtomicBool,
    /// While set, the runner may not use it.
    pub(super) closed: AtomicBool,
}

#[async_trait]
impl Outbox for Taken {
    async fn send(&self, bodies: &[String]) -> Result<Vec<Sent>, InboxError> {
        if self.deaf.load(Ordering::Relaxed) {
            return Err(InboxError::Transient("no answer".into()));
        }
        if self.closed.load(Ordering::Relaxed) {
            return Err(InboxError::Denied("not for you (AccessDenied)".into()));
        }
        self.bodies.lock().unwrap().extend_from_slice(bodies);
        Ok(vec![Sent::Taken; bodies.len()])
    }
}

#[async_trait]
impl Notes for Queue {
    async fn put(&self, key: &str, text: String) -> Result<(), String> {
        if self.notes_closed.load(Ordering::Relaxed) {
            return Err("no answer".into());
        }
        self.notes.lock().unwrap().insert(key.to_owned(), text);
        Ok(())
    }

    async fn get(&self, key: &str) -> Result<Option<String>, String> {
        Ok(self.notes.lock().unwrap().get(key).cloned())
    }
}
