//! Counts requests, injected faults and billed units that pass the proxy.

use std::collections::{BTreeMap, HashMap};

use serde_json::{Value, json};

use super::capacity::{Items, RowWrites, Units};
use super::faults::{Fault, matches};
use super::operation::Operation;
use crate::http::Message;

/// SQS bills a request for every begun block of this size.
const SQS_BLOCK_BYTES: usize = 64 << 10;

/// Counts since the start or the last reset.
#[derive(Debug, Clone, Default)]
pub struct Counts {
    /// By operation.
    pub operations: BTreeMap<String, OperationCounts>,
    /// Requests by caller: an access key, or the role once the proxy has seen the answer that made the key.
    pub callers: BTreeMap<String, u64>,
    /// DynamoDB request units.
    pub units: Units,
    /// Writes by kind of row, such as `job state`.
    pub writes_by_row: BTreeMap<String, RowWrites>,
    /// SQS requests as billed, in blocks of 64 KiB.
    pub sqs_billed: u64,
    /// Messages sent, a batch counting each.
    pub messages_sent: u64,
}

/// Counts of one operation.
#[derive(Debug, Clone, Default)]
pub struct OperationCounts {
    /// Requests that clients made.
    pub requests: u64,
    /// Requests that reached the service: a dropped one does not, a duplicated one does twice.
    pub forwarded: u64,
    /// Answers of the service with status 400 or above.
    pub failed: u64,
    /// Faults injected, by their word.
    pub faults: BTreeMap<&'static str, u64>,
}

impl Counts {
    /// Returns how many requests reached the services, of operations that `pattern` names (`sqs.*`).
    pub fn forwarded(&self, pattern: &str) -> u64 {
        self.of(pattern).map(|counts| counts.forwarded).sum()
    }

    /// Returns how many faults were injected into operations that `pattern` names.
    pub fn injected(&self, pattern: &str) -> u64 {
        self.of(pattern).flat_map(|counts| counts.faults.values()).sum()
    }

    fn of(&self, pattern: &str) -> impl Iterator<Item = &OperationCounts> {
        self.operations.iter().filter(move |(name, _)| matches(pattern, name)).map(|(_, counts)| counts)
    }

    /// Returns the counts as `GET /__proxy/counts` answers them.
    pub fn to_json(&self, seed: u64) -> Value {
        let operations: BTreeMap<_, _> = self
            .operations
            .iter()
            .map(|(name, c)| {
                let counts =
                    json!({"requests": c.requests, "forwarded": c.forwarded, "failed": c.failed, "faults": c.faults});
                (name, counts)
            })
            .collect();
        let write_units: BTreeMap<_, _> = self.writes_by_row.iter().map(|(row, writes)| (row, writes.units)).collect();
        json!({
            "seed": seed,
            "operations": operations,
            "callers": self.callers,
            "write_units": self.units.write,
            "cancelled_write_units": self.units.cancelled,
            "write_units_by_row": write_units,
            "read_units": self.units.read,
            "sqs_requests": self.forwarded("sqs.*"),
            "sqs_billed": self.sqs_billed,
            "messages_sent": self.messages_sent,
            "executions_started": self.forwarded("states.StartExecution"),
            "callbacks": self.forwarded("states.SendTask*"),
            "kms_calls": self.forwarded("kms.*"),
            "faults": self.injected("*"),
        })
    }
}

/// Counts as they grow, with what must outlive a reset.
#[derive(Debug, Default)]
pub(crate) struct Counter {
    pub(crate) counts: Counts,
    items: Items,
    /// Roles of access keys.
    roles: HashMap<String, String>,
}

impl Counter {
    /// Notes a request; returns the caller's name.
    pub(crate) fn asked(&mut self, operation: &str, key: Option<String>) -> String {
        let key = key.unwrap_or_else(|| "unsigned".to_owned());
        let caller = self.roles.get(&key).cloned().unwrap_or(key);
        *self.counts.callers.entry(caller.clone()).or_default() += 1;
        self.operation(operation).requests += 1;
        caller
    }

    pub(crate) fn injected(&mut self, operation: &str, fault: Fault) {
        *self.operation(operation).faults.entry(fault.as_str()).or_default() += 1;
    }

    /// Notes that the service got `request` and answered `answer`.
    pub(crate) fn answered(&mut self, operation: &Operation, request: &Message, answer: &Message) {
        let status = answer.status();
        let counts = self.operation(&operation.to_string());
        counts.forwarded += 1;
        counts.failed += u64::from(status >= 400);
        let json = |message: &Message| serde_json::from_slice::<Value>(&message.body).unwrap_or_default();
        match operation.service.as_str() {
            "dynamodb" => {
                let units = self.items.units(&operation.action, &json(request), status, &json(answer));
                for (row, writes) in std::mem::take(&mut self.items.by_row) {
                    self.counts.writes_by_row.entry(row).or_default().add(writes);
                }
                self.counts.units.add(units);
            }
            "sqs" => {
                let bytes = request.body.len().max(answer.body.len());
                self.counts.sqs_billed += bytes.div_ceil(SQS_BLOCK_BYTES).max(1) as u64;
                self.counts.messages_sent += match operation.action.as_str() {
                    "SendMessage" => 1,
                    "SendMessageBatch" => json(request)["Entries"].as_array().map_or(0, Vec::len) as u64,
                    _ => 0,
                };
            }
            "sts" => self.learn(&String::from_utf8_lossy(&answer.body)),
            _ => {}
        }
    }

    /// Remembers whose key an answer of STS hands out.
    fn learn(&mut self, xml: &str) {
        let between = |start: &str, end: &str| {
            let (_, rest) = xml.split_once(start)?;
            rest.split_once(end).map(|(text, _)| text.to_owned())
        };
        let arn = between("<AssumedRoleUser>", "</AssumedRoleUser>").and_then(|user| {
            let (_, rest) = user.split_once(":assumed-role/")?;
            rest.split(['/', '<']).next().map(str::to_owned)
        });
        if let (Some(key), Some(role)) = (between("<AccessKeyId>", "</AccessKeyId>"), arn) {
            self.roles.insert(key, role);
        }
    }

    fn operation(&mut self, name: &str) -> &mut OperationCounts {
        self.counts.operations.entry(name.to_owned()).or_default()
    }
}
