//! The state of all doubles, and their clock.

use std::collections::BTreeMap;
use std::sync::Mutex;

use freehold_domain::workflow::WorkflowKind;
use freehold_protocol::notification::Notification;
use freehold_protocol::{Digest, Timestamp, WorkflowId};
use serde_json::Value;

use super::faults::Faults;
use super::lock::lock;
use crate::messages::{DispatchMessage, GrantMessage};
use crate::ports::{Clock, Key, Row, Subscription};

/// All ports of a control plane in memory, except its signer and its registry.
#[derive(Debug, Default)]
pub struct Memory {
    pub(super) rows: Mutex<BTreeMap<Key, Row>>,
    /// The times after which rows may be deleted.
    pub(super) expiring: Mutex<BTreeMap<Key, Timestamp>>,
    /// The app versions in the bucket, as bytes by digest.
    pub versions: Mutex<BTreeMap<Digest, Vec<u8>>>,
    /// The messages to `dispatch-job`, oldest first.
    pub dispatched: Mutex<Vec<DispatchMessage>>,
    /// The messages to `grant-artifact`, oldest first.
    pub grants: Mutex<Vec<GrantMessage>>,
    /// The messages to runners, as (queue URL, group, deduplication id, body). A queue has only one message for each
    /// deduplication id.
    pub orders: Mutex<Vec<(String, String, String, String)>>,
    /// The started executions.
    pub started: Mutex<Vec<(WorkflowKind, WorkflowId)>>,
    /// The executions that continue a workflow, by workflow and attempt.
    pub continued: Mutex<BTreeMap<(WorkflowId, u32), WorkflowKind>>,
    /// The token and the output of each resumed state.
    pub resumed: Mutex<Vec<(String, Value)>>,
    /// The token of each heartbeat, oldest first.
    pub beats: Mutex<Vec<String>>,
    /// Whether each call requested the build runner's machine.
    pub woken: Mutex<Vec<bool>>,
    /// The notifications that were sent, oldest first.
    pub notifications: Mutex<Vec<Notification>>,
    /// The subscriptions to the notifications.
    pub subscriptions: Mutex<Vec<Subscription>>,
    now: Mutex<u64>,
    pub faults: Faults,
}

impl Memory {
    /// Moves the clock forward by `secs` seconds.
    pub fn advance_secs(&self, secs: u64) {
        *lock(&self.now) += secs * 1000;
    }

    /// Returns and removes the messages for `dispatch-job`.
    pub fn take_dispatched(&self) -> Vec<DispatchMessage> {
        std::mem::take(&mut *lock(&self.dispatched))
    }

    /// Replaces the state by a copy of the state of `other`; the injected faults stay.
    pub fn restore(&self, other: &Self) {
        lock(&self.rows).clone_from(&lock(&other.rows));
        lock(&self.expiring).clone_from(&lock(&other.expiring));
        lock(&self.versions).clone_from(&lock(&other.versions));
        lock(&self.dispatched).clone_from(&lock(&other.dispatched));
        lock(&self.grants).clone_from(&lock(&other.grants));
        lock(&self.orders).clone_from(&lock(&other.orders));
        lock(&self.started).clone_from(&lock(&other.started));
        lock(&self.continued).clone_from(&lock(&other.continued));
        lock(&self.resumed).clone_from(&lock(&other.resumed));
        lock(&self.beats).clone_from(&lock(&other.beats));
        lock(&self.woken).clone_from(&lock(&other.woken));
        lock(&self.notifications).clone_from(&lock(&other.notifications));
        lock(&self.subscriptions).clone_from(&lock(&other.subscriptions));
        *lock(&self.now) = *lock(&other.now);
    }

    /// Deletes the rows that have expired. DynamoDB does that within days.
    pub fn delete_expired(&self) {
        let now = self.now();
        let (mut rows, mut expiring) = (lock(&self.rows), lock(&self.expiring));
        rows.retain(|key, _| expiring.get(key).is_none_or(|at| *at > now));
        expiring.retain(|_, at| *at > now);
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
