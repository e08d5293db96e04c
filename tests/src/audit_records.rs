//! The records of an install's audit log, as they are in the customer's bucket.

use anyhow::Context as _;
use freehold_protocol::Envelope;
use freehold_protocol::audit::{AuditRecord, record_number};

use crate::harness::{Install, World};

/// The folder of the bucket in which the records are, beside the public keys and the messages.
const FOLDER: &str = "audit/";

impl World {
    /// Returns the first 1,000 records of the audit log, oldest first.
    ///
    /// # Errors
    /// When a record cannot be read, with its name.
    pub async fn audit_records(&self, install: &Install) -> anyhow::Result<Vec<AuditRecord>> {
        let s3 = aws_sdk_s3::Client::new(&self.administrator(&install.account)?);
        let bucket = format!("fh-{}--{}--{}", self.tenant(), install.name, install.account);
        let page = s3.list_objects_v2().bucket(&bucket).prefix(FOLDER).send().await?;
        let mut records = Vec::new();
        for key in page.contents().iter().filter_map(|object| object.key()) {
            if key.strip_prefix(FOLDER).and_then(record_number).is_none() {
                continue;
            }
            let object = s3.get_object().bucket(&bucket).key(key).send().await?.body.collect().await?;
            let record = Envelope::parse(&object.to_vec()).and_then(|envelope| envelope.peek());
            records.push(record.with_context(|| format!("reading `{key}`"))?);
        }
        Ok(records)
    }
}
