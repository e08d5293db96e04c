//! Texts that many signed orders have in common. Each text has its own row, which its digest names.

use freehold_protocol::Digest;
use serde::{Deserialize, Serialize};

use super::record::{Record, Stored, key, load, put};
use crate::AppError;
use crate::ports::{Expect, Key, Store};

/// A text that is stored once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SharedText {
    text: String,
}

impl SharedText {
    pub(super) const fn new(text: String) -> Self {
        Self { text }
    }

    /// Returns the digest that names the text.
    pub(super) fn digest(&self) -> Digest {
        Digest::of(self.text.as_bytes())
    }

    /// Stores the text unless it is stored already. A read costs a fifth of a write, and the text is nearly always
    /// stored already.
    pub(super) async fn keep(&self, store: &dyn Store) -> Result<(), AppError> {
        if load::<Self>(store, &self.key()).await?.is_none() {
            let _ = store.commit(vec![put(self, Expect::Absent)?]).await?;
        }
        Ok(())
    }
}

impl Record for SharedText {
    fn key(&self) -> Key {
        text_key(&self.digest())
    }
}

/// Returns the text with this digest, if it was stored.
pub(super) async fn text(store: &dyn Store, digest: &Digest) -> Result<Option<String>, AppError> {
    let found: Option<Stored<SharedText>> = load(store, &text_key(digest)).await?;
    Ok(found.map(|stored| stored.value.text))
}

fn text_key(digest: &Digest) -> Key {
    key(format!("text#{digest}"), "state")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_read_and_written_as_in_the_golden_rows() {
        for rows in [include_str!("../../golden/rows.json"), include_str!("../../golden/previous/rows.json")] {
            let rows: Vec<serde_json::Value> = serde_json::from_str(rows).unwrap();
            let row = rows.iter().find(|row| row["type"] == "SharedText").unwrap();
            let text: SharedText = serde_json::from_value(row["body"].clone()).unwrap();

            assert_eq!(text.key().pk, row["pk"]);
            assert_eq!(serde_json::to_value(text).unwrap(), row["body"]);
        }
    }
}
