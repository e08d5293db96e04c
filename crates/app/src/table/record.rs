//! Reads and writes one row, or the rows of a partition, as typed records.

use freehold_protocol::Timestamp;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::AppError;
use crate::ports::{Expect, Key, Row, Store, Write};

/// The number of rows that one query requests.
pub const PAGE: u32 = 100;

/// A value from the table, with the revision of its row.
#[derive(Debug, Clone, PartialEq)]
pub struct Stored<T> {
    pub value: T,
    pub rev: u64,
}

/// The id of one copy of a function, in a row that counts or claims something. Without it, two copies could write equal
/// rows at the same moment, and a commit takes an equal row for its own earlier try. One copy writes such rows one after
/// the other.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct WriterId(String);

impl WriterId {
    /// Returns the id of the copy that drew this random number.
    pub fn of(random: u64) -> Self {
        Self(format!("{random:016x}"))
    }

    /// Returns whether no copy is named, as in rows of earlier versions.
    pub fn is_absent(&self) -> bool {
        self.0.is_empty()
    }
}

/// A type whose values have one row each.
pub trait Record: Serialize + DeserializeOwned {
    /// Returns the key of the record's row.
    fn key(&self) -> Key;

    /// Returns the time after which DynamoDB may delete the row; `None` for a row that is kept.
    fn kept_until(&self) -> Option<Timestamp> {
        None
    }
}

/// Returns the key with the partition key `pk` and the sort key `sk`.
pub(super) fn key(pk: impl Into<String>, sk: impl Into<String>) -> Key {
    Key { pk: pk.into(), sk: sk.into() }
}

/// Parses a row as a record.
///
/// # Errors
/// Internal when the row does not contain a record of this type.
pub fn parse<T: DeserializeOwned>(row: &Row) -> Result<Stored<T>, AppError> {
    let value = serde_json::from_str(&row.body).map_err(|e| AppError {
        kind: crate::Kind::Internal,
        message: format!("the row with partition key `{}` and sort key `{}` cannot be read", row.key.pk, row.key.sk),
        soon: false,
        source: Some(Box::new(e)),
    })?;
    Ok(Stored { value, rev: row.rev })
}

/// Loads the record at `key`.
///
/// # Errors
/// The store's errors, or Internal for an unreadable row.
pub async fn load<T: DeserializeOwned>(store: &dyn Store, key: &Key) -> Result<Option<Stored<T>>, AppError> {
    store.get(key).await?.as_ref().map(parse).transpose()
}

/// Loads all records of the partition `pk` whose sort keys begin with `prefix`.
///
/// # Errors
/// The errors of [`load`].
pub async fn load_all<T: DeserializeOwned>(store: &dyn Store, pk: &str, prefix: &str) -> Result<Vec<T>, AppError> {
    Ok(load_all_stored(store, pk, prefix).await?.into_iter().map(|stored| stored.value).collect())
}

/// Loads the records of [`load_all`] with their revisions.
///
/// # Errors
/// The errors of [`load`].
pub async fn load_all_stored<T: DeserializeOwned>(
    store: &dyn Store,
    pk: &str,
    prefix: &str,
) -> Result<Vec<Stored<T>>, AppError> {
    let mut all = Vec::new();
    let mut after: Option<String> = None;
    loop {
        let rows = store.query(pk, prefix, after.as_deref(), PAGE).await?;
        for row in &rows {
            all.push(parse(row)?);
        }
        match rows.last() {
            Some(last) if rows.len() == PAGE as usize => after = Some(last.key.sk.clone()),
            Some(_) | None => return Ok(all),
        }
    }
}

/// Returns the write of `record` under the condition `expect`.
///
/// # Errors
/// Internal when the record cannot be written as JSON.
pub fn put<T: Record>(record: &T, expect: Expect) -> Result<Write, AppError> {
    put_until(record, expect, record.kept_until())
}

/// Returns the write of a `record` that DynamoDB may delete after `expires`.
///
/// # Errors
/// The errors of [`put`].
pub fn put_until<T: Record>(
    record: &T,
    expect: Expect,
    expires: impl Into<Option<Timestamp>>,
) -> Result<Write, AppError> {
    Ok(Write::Put { key: record.key(), body: serde_json::to_string(record)?, expect, expires: expires.into() })
}
