//! The table in memory. It checks the conditions of writes as DynamoDB does.

use std::collections::{BTreeMap, BTreeSet};

use async_trait::async_trait;

use super::lock::lock;
use super::memory::Memory;
use crate::ports::{Committed, Expect, Key, PortError, Row, Store, Write};

/// The maximum number of writes in one commit (DynamoDB API reference, `TransactWriteItems`).
const COMMIT_WRITES: usize = 100;

/// Returns the result of a commit of `writes` if a condition is not met, and `None` if all conditions are met. A
/// condition that failed because its own put has happened before does not count.
fn refusal(rows: &BTreeMap<Key, Row>, writes: &[Write]) -> Option<Committed> {
    let failed: Vec<_> = writes.iter().filter(|write| !is_met(write, rows.get(write.key()))).collect();
    let foreign = failed.iter().find(|write| !write.has_happened(rows.get(write.key())));
    match foreign {
        Some(write) => Some(Committed::Conflict(write.key().clone())),
        None => (!failed.is_empty()).then_some(Committed::Done),
    }
}

fn is_met(write: &Write, current: Option<&Row>) -> bool {
    match write {
        Write::Put { expect: Expect::Absent, .. } | Write::CheckAbsent { .. } => current.is_none(),
        Write::Put { expect: Expect::Rev(rev), .. } | Write::DeleteAt { rev, .. } => {
            current.is_some_and(|row| row.rev == *rev)
        }
        Write::Put { expect: Expect::Any, .. } | Write::Delete { .. } => true,
    }
}

#[async_trait]
impl Store for Memory {
    async fn get(&self, key: &Key) -> Result<Option<Row>, PortError> {
        self.faults.run("get", || lock(&self.rows).get(key).cloned())
    }

    async fn query(&self, pk: &str, prefix: &str, after: Option<&str>, limit: u32) -> Result<Vec<Row>, PortError> {
        self.faults.run("query", || {
            let first = Key { pk: pk.to_owned(), sk: prefix.max(after.unwrap_or_default()).to_owned() };
            lock(&self.rows)
                .range(first..)
                .map(|(_, row)| row)
                .take_while(|row| row.key.pk == pk && row.key.sk.starts_with(prefix))
                .filter(|row| after.is_none_or(|after| row.key.sk.as_str() > after))
                .take(limit as usize)
                .cloned()
                .collect()
        })
    }

    async fn commit(&self, writes: Vec<Write>) -> Result<Committed, PortError> {
        if writes.len() > COMMIT_WRITES {
            let reason = format!("{} writes are more than {COMMIT_WRITES}, the maximum of a transaction", writes.len());
            return Err(PortError::Failed { what: "commit".to_owned(), reason });
        }
        // DynamoDB refuses a transaction that names an item twice.
        let mut keys = BTreeSet::new();
        if let Some(twice) = writes.iter().map(Write::key).find(|key| !keys.insert(*key)) {
            let reason = format!("the transaction names {} {} twice", twice.pk, twice.sk);
            return Err(PortError::Failed { what: "commit".to_owned(), reason });
        }
        self.faults.run("commit", || {
            let (mut rows, mut expiring) = (lock(&self.rows), lock(&self.expiring));
            if let Some(refusal) = refusal(&rows, &writes) {
                return refusal;
            }
            for write in writes {
                match write {
                    Write::Put { key, body, expires, .. } => {
                        let rev = rows.get(&key).map_or(1, |row| row.rev + 1);
                        match expires {
                            Some(at) => expiring.insert(key.clone(), at),
                            None => expiring.remove(&key),
                        };
                        rows.insert(key.clone(), Row { key, rev, body });
                    }
                    Write::Delete { key } | Write::DeleteAt { key, .. } => {
                        rows.remove(&key);
                        expiring.remove(&key);
                    }
                    Write::CheckAbsent { .. } => {}
                }
            }
            Committed::Done
        })
    }
}
