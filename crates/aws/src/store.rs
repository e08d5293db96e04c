//! The tenant's table on DynamoDB. A row has `pk`, `sk`, `rev` (a number), `body` and, optionally, `ttl` (seconds since
//! the epoch). `body` is JSON text; a long body is deflated and stored as binary, because that needs fewer write units.

use std::collections::HashMap;
use std::io::{Read as _, Write as _};
use std::time::Duration;

use async_trait::async_trait;
use aws_config::SdkConfig;
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::operation::transact_write_items::TransactWriteItemsError;
use aws_sdk_dynamodb::operation::update_item::UpdateItemError;
use aws_sdk_dynamodb::primitives::Blob;
use aws_sdk_dynamodb::types::{
    AttributeValue, CancellationReason, ConditionCheck, Delete, ReturnValuesOnConditionCheckFailure, TransactWriteItem,
    Update,
};
use freehold_app::ports::{Committed, Expect, Key, PortError, Row, Store, Write};
use freehold_protocol::Timestamp;

use crate::error::port_error;

/// How often a transaction is retried after a conflict with another transaction, before the call fails as transient.
const CONFLICT_TRIES: u32 = 6;

/// A body longer than this, in bytes, is deflated. A shorter body and its keys fit into one write unit (1 KiB).
const PACK_FROM_BYTES: usize = 900;
/// The largest inflated body that is read, in bytes. An item has at most 400 KB, and the JSON of a row does not deflate
/// to a fortieth.
const MAX_BODY_BYTES: u64 = 16 * 1024 * 1024;

/// The tenant's table.
#[derive(Debug, Clone)]
pub struct DynamoStore {
    client: Client,
    table: String,
}

type Item = HashMap<String, AttributeValue>;

impl DynamoStore {
    /// Returns the store of `table`.
    pub fn new(config: &SdkConfig, table: impl Into<String>) -> Self {
        Self { client: Client::new(config), table: table.into() }
    }

    async fn write_one(&self, write: &Write) -> Result<Committed, PortError> {
        let update = match write {
            Write::Put { body, expect, expires, .. } => UpdateParts::new(body, *expect, *expires),
            Write::Delete { key } => {
                self.client
                    .delete_item()
                    .table_name(&self.table)
                    .set_key(Some(item_key(key)))
                    .send()
                    .await
                    .map_err(|e| port_error("table", e))?;
                return Ok(Committed::Done);
            }
            // A removal with a condition has only one implementation: a transaction, here with one write.
            Write::DeleteAt { .. } => return self.write_all(std::slice::from_ref(write)).await,
            Write::CheckAbsent { key } => {
                let found = self.get(key).await?;
                return Ok(found.map_or(Committed::Done, |row| Committed::Conflict(row.key)));
            }
        };
        let sent = self
            .client
            .update_item()
            .table_name(&self.table)
            .set_key(Some(item_key(write.key())))
            .update_expression(update.expression)
            .set_condition_expression(update.condition)
            .set_expression_attribute_names(Some(update.names))
            .set_expression_attribute_values(Some(update.values))
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld)
            .send()
            .await;
        match sent {
            Ok(_) => Ok(Committed::Done),
            Err(error) => match error.as_service_error() {
                Some(UpdateItemError::ConditionalCheckFailedException(failed)) => {
                    let current = failed.item().and_then(row_of);
                    Ok(if write.has_happened(current.as_ref()) {
                        Committed::Done
                    } else {
                        Committed::Conflict(write.key().clone())
                    })
                }
                _ => Err(port_error("table", error)),
            },
        }
    }

    async fn write_all(&self, writes: &[Write]) -> Result<Committed, PortError> {
        let items: Vec<_> = writes.iter().map(|write| self.transact_item(write)).collect::<Result<_, _>>()?;
        let token = token();
        for attempt in 0.. {
            let sent = self
                .client
                .transact_write_items()
                .set_transact_items(Some(items.clone()))
                .client_request_token(&token)
                .send()
                .await;
            let error = match sent {
                Ok(_) => return Ok(Committed::Done),
                Err(error) => error,
            };
            let Some(TransactWriteItemsError::TransactionCanceledException(cancelled)) = error.as_service_error()
            else {
                return Err(port_error("table", error));
            };
            let reasons = cancelled.cancellation_reasons();
            if let Some(committed) = conflict_of(writes, reasons) {
                return Ok(committed);
            }
            if attempt >= CONFLICT_TRIES {
                return Err(PortError::Transient {
                    what: "table".into(),
                    reason: "transaction conflicted with others on every try".into(),
                });
            }
            tokio::time::sleep(jitter(attempt)).await;
        }
        // INVARIANT: the loop above ends only with a return.
        Err(PortError::Failed {
            what: "table".into(),
            reason: "the retries of a transaction ended without a result".into(),
        })
    }

    fn transact_item(&self, write: &Write) -> Result<TransactWriteItem, PortError> {
        let broken = |e: aws_smithy_types::error::operation::BuildError| PortError::Failed {
            what: "table".into(),
            reason: e.to_string(),
        };
        let item = TransactWriteItem::builder();
        let key = item_key(write.key());
        let old = ReturnValuesOnConditionCheckFailure::AllOld;
        Ok(match write {
            Write::Put { body, expect, expires, .. } => {
                let parts = UpdateParts::new(body, *expect, *expires);
                let update = Update::builder()
                    .table_name(&self.table)
                    .set_key(Some(key))
                    .update_expression(parts.expression)
                    .set_condition_expression(parts.condition)
                    .set_expression_attribute_names(Some(parts.names))
                    .set_expression_attribute_values(Some(parts.values))
                    .return_values_on_condition_check_failure(old)
                    .build()
                    .map_err(broken)?;
                item.update(update).build()
            }
            Write::Delete { .. } => {
                let delete = Delete::builder().table_name(&self.table).set_key(Some(key)).build().map_err(broken)?;
                item.delete(delete).build()
            }
            Write::DeleteAt { rev, .. } => {
                let delete = Delete::builder()
                    .table_name(&self.table)
                    .set_key(Some(key))
                    .condition_expression("rev = :old")
                    .expression_attribute_values(":old", AttributeValue::N(rev.to_string()))
                    .return_values_on_condition_check_failure(old)
                    .build()
                    .map_err(broken)?;
                item.delete(delete).build()
            }
            Write::CheckAbsent { .. } => {
                let check = ConditionCheck::builder()
                    .table_name(&self.table)
                    .set_key(Some(key))
                    .condition_expression("attribute_not_exists(pk)")
                    .return_values_on_condition_check_failure(old)
                    .build()
                    .map_err(broken)?;
                item.condition_check(check).build()
            }
        })
    }
}

#[async_trait]
impl Store for DynamoStore {
    async fn get(&self, key: &Key) -> Result<Option<Row>, PortError> {
        let found = self
            .client
            .get_item()
            .table_name(&self.table)
            .set_key(Some(item_key(key)))
            .consistent_read(true)
            .send()
            .await
            .map_err(|e| port_error("table", e))?;
        found.item().map(|item| row_of(item).ok_or_else(|| unreadable(key))).transpose()
    }

    async fn query(&self, pk: &str, prefix: &str, after: Option<&str>, limit: u32) -> Result<Vec<Row>, PortError> {
        let mut rows = Vec::new();
        let mut start = after.map(|sk| item_key(&Key { pk: pk.to_owned(), sk: sk.to_owned() }));
        loop {
            let condition = if prefix.is_empty() { "pk = :pk" } else { "pk = :pk AND begins_with(sk, :prefix)" };
            let wanted = i32::try_from(limit).unwrap_or(i32::MAX) - i32::try_from(rows.len()).unwrap_or(0);
            let mut query = self
                .client
                .query()
                .table_name(&self.table)
                .consistent_read(true)
                .key_condition_expression(condition)
                .expression_attribute_values(":pk", AttributeValue::S(pk.to_owned()))
                .set_exclusive_start_key(start.take())
                .limit(wanted);
            if !prefix.is_empty() {
                query = query.expression_attribute_values(":prefix", AttributeValue::S(prefix.to_owned()));
            }
            let page = query.send().await.map_err(|e| port_error("table", e))?;
            for item in page.items() {
                let key = Key { pk: pk.to_owned(), sk: prefix.to_owned() };
                rows.push(row_of(item).ok_or_else(|| unreadable(&key))?);
            }
            match page.last_evaluated_key {
                Some(last) if !last.is_empty() && rows.len() < limit as usize => start = Some(last),
                _ => return Ok(rows),
            }
        }
    }

    async fn commit(&self, writes: Vec<Write>) -> Result<Committed, PortError> {
        match writes.as_slice() {
            [] => Ok(Committed::Done),
            [one] => self.write_one(one).await,
            all => self.write_all(all).await,
        }
    }
}

/// A put as an update expression: the same form for a new row, for a known revision and for any revision.
struct UpdateParts {
    expression: String,
    condition: Option<String>,
    names: HashMap<String, String>,
    values: Item,
}

impl UpdateParts {
    fn new(body: &str, expect: Expect, expires: Option<Timestamp>) -> Self {
        let number = |n: u64| AttributeValue::N(n.to_string());
        let mut values = Item::from([(":body".to_owned(), packed(body))]);
        let (rev, condition) = match expect {
            Expect::Absent => {
                values.insert(":rev".into(), number(1));
                (":rev", Some("attribute_not_exists(pk)".to_owned()))
            }
            Expect::Rev(rev) => {
                values.insert(":rev".into(), number(rev + 1));
                values.insert(":old".into(), number(rev));
                (":rev", Some("rev = :old".to_owned()))
            }
            Expect::Any => {
                values.insert(":zero".into(), number(0));
                values.insert(":one".into(), number(1));
                ("if_not_exists(rev, :zero) + :one", None)
            }
        };
        let mut expression = format!("SET body = :body, rev = {rev}");
        // `ttl` is a reserved word of expressions.
        let names = HashMap::from([("#ttl".to_owned(), "ttl".to_owned())]);
        match expires {
            Some(expires) => {
                expression.push_str(", #ttl = :ttl");
                values.insert(":ttl".into(), number(expires.as_secs()));
            }
            None => expression.push_str(" REMOVE #ttl"),
        }
        Self { expression, condition, names, values }
    }
}

fn item_key(key: &Key) -> Item {
    HashMap::from([
        ("pk".to_owned(), AttributeValue::S(key.pk.clone())),
        ("sk".to_owned(), AttributeValue::S(key.sk.clone())),
    ])
}

fn row_of(item: &Item) -> Option<Row> {
    let text = |name: &str| item.get(name)?.as_s().ok().cloned();
    let body = unpacked(item.get("body")?)?;
    let rev = item.get("rev")?.as_n().ok()?.parse().ok()?;
    Some(Row { key: Key { pk: text("pk")?, sk: text("sk")? }, rev, body })
}

/// Returns a body as it is stored: deflated if that is smaller. DynamoDB bills a write per KiB, rounded up, and twice
/// as much in a transaction.
fn packed(body: &str) -> AttributeValue {
    if body.len() > PACK_FROM_BYTES {
        let mut deflate = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::best());
        if deflate.write_all(body.as_bytes()).is_ok()
            && let Ok(packed) = deflate.finish()
            && packed.len() < body.len()
        {
            return AttributeValue::B(Blob::new(packed));
        }
    }
    AttributeValue::S(body.to_owned())
}

/// Returns the JSON text of a body as it is stored.
pub fn unpacked(body: &AttributeValue) -> Option<String> {
    match body {
        AttributeValue::S(text) => Some(text.clone()),
        AttributeValue::B(packed) => {
            let mut text = String::new();
            let inflate = flate2::read::DeflateDecoder::new(packed.as_ref());
            inflate.take(MAX_BODY_BYTES).read_to_string(&mut text).ok()?;
            Some(text)
        }
        _ => None,
    }
}

/// Returns what the failed conditions mean. `None` means a conflict with another transaction, or throttling.
fn conflict_of(writes: &[Write], reasons: &[CancellationReason]) -> Option<Committed> {
    let failed: Vec<_> = writes
        .iter()
        .zip(reasons)
        .filter(|(_, reason)| reason.code() == Some("ConditionalCheckFailed"))
        .map(|(write, reason)| (write, reason.item().and_then(row_of)))
        .collect();
    let foreign = failed.iter().find(|(write, current)| !write.has_happened(current.as_ref()));
    match foreign {
        Some((write, _)) => Some(Committed::Conflict(write.key().clone())),
        // Each condition failed because its own write had already happened. The writes of a transaction happen
        // together, so all of them have happened.
        None if !failed.is_empty() => Some(Committed::Done),
        None => None,
    }
}

/// Returns the token of one commit. DynamoDB performs the tries of a commit once, because they share it. A later commit
/// has another token even if it has the same writes: a row may be added, removed, and added again within the ten minutes
/// in which DynamoDB knows a token.
fn token() -> String {
    format!("{:032x}", fastrand::u128(..))
}

/// Returns a random wait before the next attempt: at most 20 ms, doubled with each attempt up to 1.3 s.
fn jitter(attempt: u32) -> Duration {
    Duration::from_millis(fastrand::u64(..=20u64 << attempt.min(6)))
}

fn unreadable(key: &Key) -> PortError {
    PortError::Failed {
        what: "table".into(),
        reason: format!("the row with partition key `{}` and sort key `{}` has no body", key.pk, key.sk),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_body_is_kept_small_and_read_as_it_was() {
        let nodes: Vec<_> =
            (0..40).map(|at| format!(r#"{{"name":"n{at}","state":"waiting","dependencies":[]}}"#)).collect();
        let body = format!("[{}]", nodes.join(","));

        let kept = packed(&body);

        assert!(kept.as_b().is_ok_and(|packed| packed.as_ref().len() * 4 < body.len()));
        assert_eq!(unpacked(&kept), Some(body));
    }

    #[test]
    fn a_short_body_stays_readable() {
        assert_eq!(packed("{}"), AttributeValue::S("{}".to_owned()));
    }

    #[test]
    fn other_attributes_are_not_read_as_a_body() {
        assert_eq!(unpacked(&AttributeValue::B(Blob::new(*b"\xff\xff\xff"))), None);
        assert_eq!(unpacked(&AttributeValue::Bool(true)), None);
    }
}
