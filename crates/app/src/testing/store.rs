//! The table in memory. It checks the conditions of writes as DynamoDB does.

use std::collections::BTreeMap;

use async_trait::async_trait;

use super::lock::lock;
use super::memory::Memory;
use crate::ports::{Committed, Expect, Key, PortError, Row, Store, Write};

/// The maximum number of writes in one commit (DynamoDB API reference, `TransactWriteItems`).
const COMMIT_WRITES: usize = 100;

/// Returns the key of the first write whose condition is not met.
fn first_conflict(rows: &BTreeMap<Key, Row>, writes: &[Write]) -> Option<Key> {
    writes.iter().find_map(|write| {
        let current = rows.get(write.key());
        let fits = match write {
            Write::Put { expect: Expect::Absent, .. } | Write::CheckAbsent { .. } => current.is_none(),
            Write::Put { expect: Expect::Rev(rev), .. } => current.is_some_and(|row| row.rev == *rev),
            Write::DeleteAt { rev, .. } => current.is_some_and(|row| row.rev == *rev),
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
        Write::Delete { key } | Write::DeleteAt { key, .. } => !rows.contains_key(key),
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
            let reason = format!("{} writes are more than the {COMMIT_WRITES} of one transaction", writes.len());
            return Err(PortError::Failed { what: "commit".to_owned(), reason });
        }
        self.faults.run("commit", || {
            let (mut rows, mut expiring) = (lock(&self.rows), lock(&self.expiring));
            if let Some(key) = first_conflict(&rows, &writes) {
                return if is_done_already(&rows, &writes) { Committed::Done } else { Committed::Conflict(key) };
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
