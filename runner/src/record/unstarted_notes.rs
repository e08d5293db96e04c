//! The notes about orders that went back to the queue before any attempt at their job had started. They are in the
//! customer's bucket, where jobs cannot write. The other machines of the install, which have not seen that delivery, read
//! them there. Without the note, another machine does not start a job that must not start twice, and ends it as
//! interrupted. A note names the message of the delivery by the time at which the queue took it: another message with
//! the order has deliveries of its own.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use aws_sdk_s3::error::ProvideErrorMetadata as _;
use aws_sdk_s3::primitives::ByteStream;
use freehold_protocol::report::Fence;
use freehold_protocol::{JobId, Timestamp};
use tracing::warn;

use crate::aws;

/// The time limit of one call. An order goes back to the queue only after the call.
const DEADLINE: Duration = Duration::from_secs(5);
/// The maximum length of a note, in bytes.
const LONGEST: usize = 1024;

/// The storage for the notes: one object for each note.
#[async_trait]
pub trait Notes: std::fmt::Debug + Send + Sync {
    /// Puts an object; the same object may be put again.
    ///
    /// # Errors
    /// The reason, for people. The object may exist nevertheless.
    async fn put(&self, key: &str, text: String) -> Result<(), String>;

    /// Returns the object, or `None` when there is none.
    ///
    /// # Errors
    /// The reason, for people.
    async fn get(&self, key: &str) -> Result<Option<String>, String>;
}

/// The notes of an install; a build runner has none.
#[derive(Debug, Clone, Default)]
pub struct Unstarted(Option<Arc<dyn Notes>>);

impl Unstarted {
    /// Returns the notes that are in `bucket`.
    pub fn in_bucket(bucket: Option<(aws_sdk_s3::Client, String)>) -> Self {
        Self(bucket.map(|(client, name)| Arc::new(S3Notes { client, name }) as Arc<dyn Notes>))
    }

    /// Returns the notes that are in `notes`.
    #[cfg(test)]
    pub(crate) fn over(notes: Arc<dyn Notes>) -> Self {
        Self(Some(notes))
    }

    /// Writes the note that no attempt at `job` has started up to the delivery `fence` of the message that was sent at
    /// `sent_at`. This machine gives the delivery back. Without the note, another machine ends the job as interrupted.
    pub async fn note(&self, job: &JobId, fence: Fence, sent_at: Option<Timestamp>) {
        let Some(notes) = &self.0 else { return };
        if let Err(why) = limited(notes.put(&key(job, fence, sent_at), text(job, fence, sent_at))).await {
            warn!(
                job.id = %job,
                "Job `{job}` may end as interrupted if another machine receives its order, because the bucket did not \
                 get the note that the job has not started: {why}"
            );
        }
    }

    /// Returns whether there is a note that no attempt at `job` had started up to the delivery `fence` of the message
    /// that was sent at `sent_at`. A note of an earlier version, which names no message, counts too.
    pub async fn is_noted(&self, job: &JobId, fence: Fence, sent_at: Option<Timestamp>) -> bool {
        self.has_note(job, fence, sent_at).await || (sent_at.is_some() && self.has_note(job, fence, None).await)
    }

    async fn has_note(&self, job: &JobId, fence: Fence, sent_at: Option<Timestamp>) -> bool {
        let Some(notes) = &self.0 else { return false };
        match limited(notes.get(&key(job, fence, sent_at))).await {
            Ok(found) => found.is_some_and(|found| found == text(job, fence, sent_at)),
            Err(why) => {
                warn!(
                    job.id = %job,
                    "Cannot look for the note that job `{job}` had not started before its order went back to the \
                     queue; without the note, the job ends as interrupted: {why}"
                );
                false
            }
        }
    }
}

fn key(job: &JobId, fence: Fence, sent_at: Option<Timestamp>) -> String {
    let message = sent_at.map(|sent_at| format!(".{}", sent_at.as_millis())).unwrap_or_default();
    format!("logs/{job}/{fence}{message}.unstarted")
}

fn text(job: &JobId, fence: Fence, sent_at: Option<Timestamp>) -> String {
    let message = sent_at.map(|sent_at| format!(" of the message sent at {}", sent_at.as_millis())).unwrap_or_default();
    format!("No attempt at job {job} had started when its delivery {fence}{message} went back to the queue.\n")
}

async fn limited<T>(call: impl Future<Output = Result<T, String>>) -> Result<T, String> {
    let late = |_| Err(format!("no answer within {} s", DEADLINE.as_secs()));
    tokio::time::timeout(DEADLINE, call).await.unwrap_or_else(late)
}

#[derive(Debug)]
struct S3Notes {
    client: aws_sdk_s3::Client,
    name: String,
}

#[async_trait]
impl Notes for S3Notes {
    async fn put(&self, key: &str, text: String) -> Result<(), String> {
        let call = self.client.put_object().bucket(&self.name).key(key).content_type("text/plain; charset=utf-8");
        let sent = call.body(ByteStream::from(text.into_bytes())).send().await;
        sent.map(drop).map_err(|error| format!("{}; allow `s3:PutObject` on `logs/*`", aws::explain(&error)))
    }

    async fn get(&self, key: &str) -> Result<Option<String>, String> {
        let range = format!("bytes=0-{}", LONGEST - 1);
        match self.client.get_object().bucket(&self.name).key(key).range(range).send().await {
            Ok(found) => {
                let bytes = found.body.collect().await.map_err(|error| aws::explain(&error))?;
                Ok(Some(String::from_utf8_lossy(&bytes.into_bytes()).into_owned()))
            }
            // S3 returns `AccessDenied` for a missing object if the role may not list the whole bucket.
            Err(error) if error.code() == Some("NoSuchKey") || aws::is_denied(error.code()) => Ok(None),
            Err(error) => Err(aws::explain(&error)),
        }
    }
}
