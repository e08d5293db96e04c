//! The part of the customer's bucket in which the audit records are.

use std::time::Duration;

use async_trait::async_trait;
use aws_sdk_s3::error::ProvideErrorMetadata as _;
use aws_sdk_s3::operation::put_object::builders::PutObjectFluentBuilder;
use aws_sdk_s3::primitives::{ByteStream, DateTime};
use aws_sdk_s3::types::ObjectLockMode;
use freehold_protocol::Timestamp;
use freehold_protocol::audit::{MAX_OBJECT_BYTES, record_name, record_number};

use super::error::AuditError;
use crate::aws::{self, StreamError};
use crate::config::audit_lock::{AuditLock, LockMode};
use crate::process::clock;

/// The time limit for one call.
const DEADLINE: Duration = Duration::from_secs(20);
/// The prefix of all objects.
const FOLDER: &str = "audit/";

/// The result of a conditional write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Created {
    /// The object did not exist and has these bytes now.
    New,
    /// An object of this name exists. It may have the same bytes, when the response to an earlier try was lost.
    Exists,
    /// Another write of this object is under way; the write has to be tried again.
    Contended,
}

/// An object of the bucket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Object {
    pub bytes: Vec<u8>,
    /// The time of the bucket's own clock when the object was written; `None` if the response did not have it.
    pub written_at: Option<Timestamp>,
}

/// The numbers of the records after a given record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Later {
    /// The highest number of this page; `None` when no record is later.
    pub highest: Option<u64>,
    /// Whether there are records beyond this page.
    pub more: bool,
}

/// The storage for the records of an install. Several machines may write to it at the same time.
#[async_trait]
pub trait Bucket: std::fmt::Debug + Send + Sync {
    /// Puts an object, unless an object of this name exists. Names are below `audit/`.
    ///
    /// # Errors
    /// An [`AuditError`]. The object may have been written nevertheless, or may be written later.
    async fn create(&self, name: &str, bytes: Vec<u8>) -> Result<Created, AuditError>;

    /// Puts an object, also in the place of one that exists. This is for the public keys: the runner's role may not
    /// replace a record.
    ///
    /// # Errors
    /// An [`AuditError`]. The object may have been written nevertheless, or may be written later.
    async fn replace(&self, name: &str, bytes: Vec<u8>) -> Result<(), AuditError>;

    /// Returns an object that exists, of at most [`MAX_OBJECT_BYTES`].
    ///
    /// # Errors
    /// An [`AuditError`]; [`AuditError::TooLarge`] for a larger object.
    async fn read(&self, name: &str) -> Result<Object, AuditError>;

    /// Looks at the first records after `seq`, at most `page`.
    ///
    /// # Errors
    /// An [`AuditError`].
    async fn later(&self, seq: u64, page: u16) -> Result<Later, AuditError>;
}

/// A bucket in S3.
#[derive(Debug)]
pub struct S3Bucket {
    client: aws_sdk_s3::Client,
    name: String,
    lock: Option<AuditLock>,
}

impl S3Bucket {
    /// Returns the bucket `name`, in which each object gets the `lock`.
    pub const fn new(client: aws_sdk_s3::Client, name: String, lock: Option<AuditLock>) -> Self {
        Self { client, name, lock }
    }

    /// Returns the call that writes an object, which S3 then keeps until the end of its lock.
    fn put(&self, name: &str, bytes: Vec<u8>) -> PutObjectFluentBuilder {
        let call = self.client.put_object().bucket(&self.name).key(format!("{FOLDER}{name}"));
        let call = call.body(ByteStream::from(bytes));
        let Some(lock) = self.lock else { return call };
        let mode = match lock.mode {
            LockMode::Governance => ObjectLockMode::Governance,
            LockMode::Compliance => ObjectLockMode::Compliance,
        };
        // Whole seconds, since S3 takes no more than milliseconds and its emulators less.
        let end = i64::try_from(lock.end(clock::local()).as_millis() / 1000).unwrap_or(i64::MAX);
        call.object_lock_mode(mode).object_lock_retain_until_date(DateTime::from_secs(end))
    }

    fn trouble(&self, action: &'static str, reason: String) -> AuditError {
        AuditError::Bucket { bucket: self.name.clone(), action, reason }
    }
}

/// Returns the response to a call, or the reason why there is none.
async fn limited<T, E: std::error::Error + 'static>(
    call: impl Future<Output = Result<T, E>> + Send,
) -> Result<Result<T, E>, String> {
    tokio::time::timeout(DEADLINE, call).await.map_err(|_| format!("no answer within {} s", DEADLINE.as_secs()))
}

/// Returns the content of an object; `None` if it has more than [`MAX_OBJECT_BYTES`].
async fn content(mut body: ByteStream) -> Result<Option<Vec<u8>>, StreamError> {
    let mut bytes = Vec::new();
    while let Some(chunk) = aws::next_bytes(&mut body).await? {
        bytes.extend_from_slice(&chunk);
        if bytes.len() > MAX_OBJECT_BYTES {
            return Ok(None);
        }
    }
    Ok(Some(bytes))
}

#[async_trait]
impl Bucket for S3Bucket {
    async fn create(&self, name: &str, bytes: Vec<u8>) -> Result<Created, AuditError> {
        let answer = limited(self.put(name, bytes).if_none_match("*").send()).await;
        match answer.map_err(|reason| self.trouble("s3:PutObject", reason))? {
            Ok(_) => Ok(Created::New),
            // Amazon S3 User Guide, "How to prevent object overwrites with conditional writes".
            Err(error) if error.code() == Some("PreconditionFailed") => Ok(Created::Exists),
            Err(error) if error.code() == Some("ConditionalRequestConflict") => Ok(Created::Contended),
            Err(error) => Err(self.trouble("s3:PutObject", aws::explain(&error))),
        }
    }

    async fn replace(&self, name: &str, bytes: Vec<u8>) -> Result<(), AuditError> {
        let trouble = |reason| self.trouble("s3:PutObject", reason);
        let answer = limited(self.put(name, bytes).send()).await.map_err(trouble)?;
        answer.map(|_| ()).map_err(|error| trouble(aws::explain(&error)))
    }

    async fn read(&self, name: &str) -> Result<Object, AuditError> {
        let trouble = |reason| self.trouble("s3:GetObject", reason);
        let key = format!("{FOLDER}{name}");
        let call = self.client.get_object().bucket(&self.name).key(&key);
        let object = limited(call.send()).await.map_err(trouble)?.map_err(|error| trouble(aws::explain(&error)))?;
        let millis = object.last_modified().and_then(|time| u64::try_from(time.to_millis().ok()?).ok());
        let written_at = millis.map(Timestamp::from_millis);
        let body = limited(content(object.body)).await.map_err(trouble)?;
        let bytes = body.map_err(|error| trouble(aws::explain(&error)))?;
        let too_large = || {
            let (bucket, most) = (self.name.clone(), MAX_OBJECT_BYTES);
            AuditError::TooLarge { bucket, object: key, most, written_at }
        };
        Ok(Object { bytes: bytes.ok_or_else(too_large)?, written_at })
    }

    async fn later(&self, seq: u64, page: u16) -> Result<Later, AuditError> {
        let trouble = |reason| self.trouble("s3:ListBucket", reason);
        let call = self.client.list_objects_v2().bucket(&self.name).prefix(FOLDER);
        let call = call.start_after(format!("{FOLDER}{}", record_name(seq))).max_keys(page.into());
        let listed = limited(call.send()).await.map_err(trouble)?.map_err(|error| trouble(aws::explain(&error)))?;
        let names: Vec<&str> = listed.contents().iter().filter_map(|object| object.key()).collect();
        let numbers: Vec<u64> =
            names.iter().filter_map(|name| record_number(name.strip_prefix(FOLDER).unwrap_or_default())).collect();
        // The names of public keys sort after the numbers of records. So a page with the name of a key also has the
        // highest number.
        let more = listed.is_truncated() == Some(true) && numbers.len() == names.len();
        Ok(Later { highest: numbers.into_iter().max(), more })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::s3_at;

    /// Returns a bucket whose objects have this many bytes.
    async fn bucket(bytes: usize) -> S3Bucket {
        S3Bucket::new(s3_at(move |_| (200, vec![b'x'; bytes])).await, "b".to_owned(), None)
    }

    #[tokio::test]
    async fn an_object_that_no_runner_wrote_is_read_up_to_the_limit_and_named() {
        let largest = bucket(MAX_OBJECT_BYTES).await.read("1.json").await.unwrap();
        let refused = bucket(MAX_OBJECT_BYTES + 1).await.read("1.json").await.unwrap_err();

        assert_eq!(largest.bytes.len(), MAX_OBJECT_BYTES);
        assert_eq!(
            refused.to_string(),
            "object `audit/1.json` of bucket `b` has more than 2097152 bytes, so no runner wrote it; find out who did, \
             and move it out of `audit/`"
        );
    }
}
