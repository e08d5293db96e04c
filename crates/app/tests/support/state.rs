//! The state that tests compare between runs: the table and the queues without times, tokens and revisions.

use std::collections::BTreeSet;

use freehold_app::ports::Row;
use serde_json::Value;

use super::World;

/// Fields that say when, or how often something was tried, and nothing else.
const TIMES: [&str; 17] = [
    "at",
    "told_away",
    "created_at",
    "ended_at",
    "since",
    "started_at",
    "last_contact",
    "updated_at",
    "built_at",
    "not_after",
    "cancel_requested",
    "history",
    "token",
    "last_seq",
    // Signed messages have times in them.
    "signed",
    "report",
    "statement",
];

impl World {
    /// Returns the ids of workflows that have not ended.
    pub(crate) fn open(&self) -> Vec<String> {
        self.memory.rows().into_iter().filter(|row| row.key.pk == "open").map(|row| row.key.sk).collect()
    }

    /// Returns the refusals on record, by reason.
    pub(crate) fn refusals(&self) -> Vec<String> {
        let refused = |row: &Row| row.key.sk.starts_with("refused#");
        let reason =
            |row: Row| serde_json::from_str::<Value>(&row.body).unwrap()["reason"].as_str().unwrap().to_owned();
        self.memory.rows().into_iter().filter(refused).map(reason).collect()
    }

    /// Returns every row but refusals, notices, logs and contacts: what a message that is not believed must not change.
    pub(crate) fn believed(&self) -> Vec<Row> {
        let noise = ["refused#", "notice#", "log#", "contact"];
        self.memory.rows().into_iter().filter(|row| !noise.iter().any(|sk| row.key.sk.starts_with(sk))).collect()
    }

    /// Returns the final state as text, one line a row, an execution, an order or a dead letter.
    pub(crate) fn outcome(&self) -> String {
        let mut lines = BTreeSet::new();
        // The tries to send an order again are stored only after a failure, and a job that has ended does not need them.
        // This row says nothing but when a workflow is due.
        let is_try = |row: &Row| row.key.sk.starts_with("sending#") || row.key.pk == "next-sweep";
        for row in self.memory.rows().into_iter().filter(|row| !is_try(row)) {
            let mut body: Value = serde_json::from_str(&row.body).unwrap();
            forget_times(&mut body);
            // A request that failed after its answer was sent leaves this mark, which a job that has ended never needs.
            if let Some(mark) = body.get_mut("unanswered") {
                *mark = Value::Bool(false);
            }
            let sk = match row.key.sk.strip_prefix("workflow#") {
                // Its sort key begins with a time.
                Some(rest) => format!("workflow {}", rest.rsplit('#').next().unwrap()),
                None if row.key.sk.starts_with("run#") => format!("run {}", row.key.sk.rsplit('#').next().unwrap()),
                None => row.key.sk,
            };
            if row.key.pk == "due" {
                // A notification counts as sent when it was sent, or when there is a task that sends it.
                match body["notification"]["id"].as_str() {
                    Some(id) => lines.insert(format!("told {id}")),
                    None if body["due"] == "runner_away" => lines.insert(format!("watched {}", body["install"])),
                    None => lines.insert(format!("due {sk} {body}")),
                };
                continue;
            }
            lines.insert(format!("{} {sk} {body}", row.key.pk));
        }
        for (kind, id) in self.memory.started.lock().unwrap().iter() {
            lines.insert(format!("execution {} {id}", kind.machine()));
        }
        for (queue, group, dedup, _) in self.memory.orders.lock().unwrap().iter() {
            lines.insert(format!("message {queue} {group} {dedup}"));
        }
        for notification in self.memory.notifications.lock().unwrap().iter() {
            lines.insert(format!("told {}", notification.id));
        }
        for (shard, accounts) in self.queues.reporters.lock().unwrap().iter() {
            lines.insert(format!("reporters {shard} {accounts:?}"));
        }
        for (install, runner) in &self.runners {
            let mut started = runner.started.clone();
            started.sort();
            lines.insert(format!("runner {install} started {started:?}"));
            lines.insert(format!("runner {install} refused {:?}", runner.refused_grants));
        }
        for (id, machine) in &self.machines {
            lines.insert(format!("machine {id} {:?}", machine.at));
        }
        for (mail, error) in &self.dead {
            lines.insert(format!("dead {mail:?} {error}"));
        }
        lines.into_iter().collect::<Vec<_>>().join("\n")
    }
}

/// Returns an outcome without what a late second delivery leaves behind: a refusal on record.
pub(crate) fn effects(outcome: &str) -> String {
    outcome.lines().filter(|line| !line.contains("refused")).collect::<Vec<_>>().join("\n")
}

fn forget_times(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.retain(|name, _| !TIMES.contains(&name.as_str()));
            map.values_mut().for_each(forget_times);
        }
        Value::Array(items) => items.iter_mut().for_each(forget_times),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
