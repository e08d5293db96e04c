//! Implements the inbox and the outbox on SQS.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use aws_config::SdkConfig;
use aws_sdk_sqs::Client;
use aws_sdk_sqs::config::interceptors::BeforeDeserializationInterceptorContextRef;
use aws_sdk_sqs::config::retry::RetryConfig;
use aws_sdk_sqs::config::{ConfigBag, Intercept, RuntimeComponents};
use aws_sdk_sqs::error::{BoxError, ProvideErrorMetadata, SdkError};
use aws_sdk_sqs::types::{Message, MessageSystemAttributeName as Attribute, SendMessageBatchRequestEntry};
use aws_smithy_types::DateTime;
use aws_smithy_types::date_time::Format;
use freehold_aws_errors::Meaning;
use freehold_protocol::{Timestamp, limits};
use tokio::time::Instant;
use tracing::warn;

use crate::aws;
use crate::process::clock::{STALE, ServerClock};
use crate::wire::inbox::{Delivery, Inbox, InboxError, Outbox, Sent};

/// The longest wait of a long poll that SQS allows, in seconds.
const WAIT_SECS: i32 = 20;
/// The time limit of a long poll. It ends a poll whose connection hangs.
const POLL_DEADLINE: Duration = Duration::from_secs(28);
/// The `Date` of a response has whole seconds, so a lease may have begun up to this much earlier.
const DATE_STEP: Duration = Duration::from_secs(1);

/// The install's orders queue.
#[derive(Debug)]
pub struct SqsInbox {
    client: Client,
    queue_url: String,
    clock: Arc<ServerClock>,
}

/// The tenant's reports queue.
#[derive(Debug)]
pub struct SqsOutbox {
    client: Client,
    queue_url: String,
}

impl SqsInbox {
    /// Returns the inbox at `queue_url`. The `Date` of each response sets `clock`.
    pub fn new(config: &SdkConfig, queue_url: &str, clock: Arc<ServerClock>) -> Self {
        Self { client: Client::new(config), queue_url: queue_url.to_owned(), clock }
    }

    fn delivery(&self, message: Message, leased_at: Instant, now: Instant) -> Option<Delivery> {
        let attributes = message.attributes.unwrap_or_default();
        let number = |name| attributes.get(&name).and_then(|text: &String| text.parse::<u64>().ok());
        let sent_at = Timestamp::from_millis(number(Attribute::SentTimestamp).unwrap_or_default());
        self.clock.at_least(sent_at, now);
        let receive = number(Attribute::ApproximateReceiveCount).and_then(|count| u32::try_from(count).ok());
        Some(Delivery {
            body: message.body.unwrap_or_default(),
            handle: message.receipt_handle?,
            receive: receive.unwrap_or(1).max(1),
            sent_at,
            group: attributes.get(&Attribute::MessageGroupId).cloned(),
            leased_at,
        })
    }
}

#[async_trait]
impl Inbox for SqsInbox {
    async fn receive(&self, wait_secs: u64) -> Result<Vec<Delivery>, InboxError> {
        let started = Instant::now();
        let date = DateHeader::default();
        let override_config = aws_sdk_sqs::config::Builder::new()
            .retry_config(RetryConfig::disabled())
            .timeout_config(aws::timeouts(POLL_DEADLINE, POLL_DEADLINE));
        let answer = self
            .client
            .receive_message()
            .queue_url(&self.queue_url)
            .wait_time_seconds(i32::try_from(wait_secs).unwrap_or(WAIT_SECS).min(WAIT_SECS))
            .max_number_of_messages(10)
            .visibility_timeout(i32::try_from(limits::LEASE_SECS).unwrap_or(30))
            .message_system_attribute_names(Attribute::ApproximateReceiveCount)
            .message_system_attribute_names(Attribute::MessageGroupId)
            .message_system_attribute_names(Attribute::SentTimestamp)
            .customize()
            .config_override(override_config)
            .interceptor(date.clone())
            .send()
            .await
            .map_err(|error| wrong(&error))?;
        let now = Instant::now();
        let age = date.get().map_or(Duration::ZERO, |(server, at)| self.clock.observe(server, at));
        let messages = answer.messages.unwrap_or_default();
        if age > STALE && !messages.is_empty() {
            // The leases of these messages may have ended: this process was stopped while the response waited to be
            // read.
            warn!(
                age_secs = age.as_secs(),
                "Left {} messages in the queue: their leases may have ended before this process could read them",
                messages.len()
            );
            return Ok(Vec::new());
        }
        let leased_at = now.checked_sub(age + DATE_STEP).unwrap_or(now).max(started);
        Ok(messages.into_iter().filter_map(|message| self.delivery(message, leased_at, now)).collect())
    }

    async fn lease(&self, handle: &str, secs: u64) -> Result<(), InboxError> {
        let call = self.client.change_message_visibility().queue_url(&self.queue_url).receipt_handle(handle);
        let call = call.visibility_timeout(i32::try_from(secs).unwrap_or(i32::MAX));
        call.send().await.map(drop).map_err(|error| wrong(&error))
    }

    async fn delete(&self, handle: &str) -> Result<(), InboxError> {
        let call = self.client.delete_message().queue_url(&self.queue_url).receipt_handle(handle);
        call.send().await.map(drop).map_err(|error| wrong(&error))
    }
}

impl SqsOutbox {
    /// Returns the outbox at `queue_url`.
    pub fn new(config: &SdkConfig, queue_url: &str) -> Self {
        Self { client: Client::new(config), queue_url: queue_url.to_owned() }
    }

    async fn send_one(&self, body: &str) -> Result<Sent, InboxError> {
        match self.client.send_message().queue_url(&self.queue_url).message_body(body).send().await {
            Ok(_) => Ok(Sent::Taken),
            Err(error) if is_message_fault(error.code()) => Ok(Sent::Never(aws::explain(&error.into_service_error()))),
            Err(error) => Err(wrong(&error)),
        }
    }
}

#[async_trait]
impl Outbox for SqsOutbox {
    async fn send(&self, bodies: &[String]) -> Result<Vec<Sent>, InboxError> {
        if let [body] = bodies {
            return Ok(vec![self.send_one(body).await?]);
        }
        let mut call = self.client.send_message_batch().queue_url(&self.queue_url);
        for (at, body) in bodies.iter().enumerate() {
            let entry = SendMessageBatchRequestEntry::builder().id(at.to_string()).message_body(body).build();
            call = call.entries(entry.map_err(|error| InboxError::Transient(error.to_string()))?);
        }
        let answer = call.send().await.map_err(|error| wrong(&error))?;
        let mut sent = vec![Sent::Later; bodies.len()];
        let mut put = |id: &str, what: Sent| {
            if let Some(slot) = id.parse::<usize>().ok().and_then(|at| sent.get_mut(at)) {
                *slot = what;
            }
        };
        for entry in answer.successful() {
            put(entry.id(), Sent::Taken);
        }
        for entry in answer.failed().iter().filter(|entry| is_message_fault(Some(entry.code()))) {
            put(entry.id(), Sent::Never(entry.message().unwrap_or(entry.code()).to_owned()));
        }
        Ok(sent)
    }
}

/// Stores the `Date` of a response, and the time when the response was read.
#[derive(Debug, Clone, Default)]
struct DateHeader(Arc<Mutex<Option<(Timestamp, Instant)>>>);

impl DateHeader {
    fn get(&self) -> Option<(Timestamp, Instant)> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Intercept for DateHeader {
    fn name(&self) -> &'static str {
        "DateHeader"
    }

    fn read_before_deserialization(
        &self,
        context: &BeforeDeserializationInterceptorContextRef<'_>,
        _: &RuntimeComponents,
        _: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let date = context.response().headers().get("date");
        let date = date.and_then(|text| DateTime::from_str(text, Format::HttpDate).ok());
        if let Some(millis) = date.and_then(|date| u64::try_from(date.secs()).ok()).map(|secs| secs * 1000) {
            let seen = (Timestamp::from_millis(millis), Instant::now());
            *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(seen);
        }
        Ok(())
    }
}

/// Returns whether the queue will refuse the message at every attempt.
fn is_message_fault(code: Option<&str>) -> bool {
    code.is_some_and(|code| matches!(code, "InvalidMessageContents" | "InvalidParameterValue" | "MessageTooLong"))
}

fn wrong<E, R>(error: &SdkError<E, R>) -> InboxError
where
    E: ProvideErrorMetadata + std::error::Error + 'static,
    R: std::fmt::Debug,
{
    inbox_error(error.code(), aws::explain(error))
}

/// Returns the error for a call that failed with `code`; `None` when there was no response.
fn inbox_error(code: Option<&str>, text: String) -> InboxError {
    match Meaning::of(code) {
        _ if code.is_some_and(has_ended) => InboxError::Gone(text),
        // Only the queue can be missing.
        Meaning::Denied | Meaning::Credentials | Meaning::NotFound => InboxError::Denied(text),
        Meaning::Transient | Meaning::Quota | Meaning::Conflict | Meaning::Invalid | Meaning::Unknown => {
            InboxError::Transient(text)
        }
    }
}

/// Returns whether SQS returns this code for a receipt handle whose delivery has ended (Amazon SQS API reference,
/// "ChangeMessageVisibility" and "DeleteMessage").
fn has_ended(code: &str) -> bool {
    code.ends_with("MessageNotInflight") || matches!(code, "ReceiptHandleIsInvalid" | "InvalidParameterValue")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_tells_a_closed_queue_from_an_ended_delivery_and_from_a_failure_that_passes() {
        let of = |code| inbox_error(code, String::new());

        for code in ["AccessDenied", "ExpiredToken", "QueueDoesNotExist", "AWS.SimpleQueueService.NonExistentQueue"] {
            assert_eq!(of(Some(code)), InboxError::Denied(String::new()), "{code}");
        }
        for code in [
            "ReceiptHandleIsInvalid",
            "MessageNotInflight",
            "AWS.SimpleQueueService.MessageNotInflight",
            "InvalidParameterValue",
        ] {
            assert_eq!(of(Some(code)), InboxError::Gone(String::new()), "{code}");
        }
        for code in [Some("RequestThrottled"), Some("InternalError"), Some("InvalidAddress"), None] {
            assert_eq!(of(code), InboxError::Transient(String::new()), "{code:?}");
        }
    }
}
