//! Handles a batch of SQS messages one by one. A message that can never be handled goes to the dead-letter queue with
//! its reason, and a message that is set aside goes there without one, so that `sweep` puts it back. Every other message
//! that fails returns to its queue after a pause that grows with each receive.

use std::future::Future;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use aws_lambda_events::event::sqs::{BatchItemFailure, SqsBatchResponse, SqsEvent, SqsMessage};
use freehold_app::ports::{DeadLetter, SourceQueue};
use freehold_app::{AppError, Kind};
use freehold_protocol::Timestamp;

use crate::log_failure;

/// The longest pause between two receives of a failed message, in seconds.
const MAX_PAUSE_SECS: u32 = 900;

/// A time later than any other, for a message without a time stamp of the queue.
const NEVER: Timestamp = Timestamp::from_millis(u64::MAX);

/// A message from the queue that triggers the function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    pub body: String,
    /// The time at which the queue took the message. A message that `sweep` put back has the time of its first copy.
    pub sent_at: Timestamp,
    /// The time at which the queue took this copy of the message.
    pub taken_at: Timestamp,
    /// The unique id of the role that sent this copy of the message, according to SQS.
    pub sender: Option<String>,
}

/// The result of a message that does not fail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Handled {
    /// The message was handled.
    Done,
    /// The message may be handled later, and must not wait in its queue for the given reason.
    Aside(String),
}

/// Handles every message of `event` with `take`. Returns the messages that SQS must deliver again. `what` describes a
/// failure in the log.
pub async fn each<F, T>(event: SqsEvent, what: &str, queue: &dyn SourceQueue, take: F) -> SqsBatchResponse
where
    F: Fn(Message) -> T,
    T: Future<Output = Result<Handled, AppError>>,
{
    let mut answer = SqsBatchResponse::default();
    for record in event.records {
        let body = record.body.clone().unwrap_or_default();
        let (sent_at, taken_at) = (sent_at(&record), taken_at(&record).unwrap_or(NEVER));
        let message = Message { body, sent_at, taken_at, sender: sender(&record) };
        let buried = match take(message).await {
            Ok(Handled::Done) => continue,
            Ok(Handled::Aside(why)) => {
                tracing::warn!("{what}; the message is set aside for a later try: {why}");
                is_buried(&record, None, queue).await
            }
            Err(error) => {
                log_failure(what, &error);
                error.kind == Kind::Invalid && is_buried(&record, Some(error.to_string()), queue).await
            }
        };
        if buried {
            continue;
        }
        pause(&record, queue).await;
        let mut failure = BatchItemFailure::default();
        failure.item_identifier = record.message_id.unwrap_or_default();
        answer.batch_item_failures.push(failure);
    }
    answer
}

/// Sends a message to the dead-letter queue. Returns false when that failed; the message then returns to its queue.
async fn is_buried(record: &SqsMessage, reason: Option<String>, queue: &dyn SourceQueue) -> bool {
    let put_back = record.message_attributes.get(DeadLetter::PUT_BACK).and_then(|found| found.string_value.as_deref());
    let put_back = put_back.and_then(|text| text.parse().ok()).unwrap_or(0);
    let body = record.body.clone().unwrap_or_default();
    let letter = DeadLetter { body, sent_at: sent_at(record), put_back, reason };
    match queue.bury(&letter).await {
        Ok(()) => true,
        Err(error) => {
            log_failure("could not move a message to the dead-letter queue", &error.into());
            false
        }
    }
}

/// Sets the time until the message is received again. If that fails, the visibility timeout of the queue applies.
async fn pause(record: &SqsMessage, queue: &dyn SourceQueue) {
    let Some(receipt) = &record.receipt_handle else { return };
    let receives = attribute(record, "ApproximateReceiveCount").unwrap_or(1);
    let id = record.message_id.as_deref().unwrap_or_default();
    if let Err(error) = queue.pause(receipt, pause_secs(receives, id)).await {
        log_failure("could not set the pause until a message is delivered again", &error.into());
    }
}

/// Returns the pause after the given number of receives: it doubles up to [`MAX_PAUSE_SECS`]. Messages that failed at
/// the same time return at different times, because up to half of the pause depends on the message.
fn pause_secs(receives: u64, id: &str) -> u32 {
    let doublings = u32::try_from(receives.clamp(1, 10)).unwrap_or(10);
    let longest = MAX_PAUSE_SECS.min(2_u32.saturating_pow(doublings));
    let mut hasher = DefaultHasher::new();
    (id, receives).hash(&mut hasher);
    let spread = u64::from(longest / 2) + 1;
    let part = u32::try_from(hasher.finish() % spread).unwrap_or(0);
    (longest - part).max(1)
}

/// Returns the time at which the queue took the message. The attribute of a message that was put back counts only if it
/// is earlier, so a sender gains nothing by setting it.
fn sent_at(record: &SqsMessage) -> Timestamp {
    let taken = taken_at(record).unwrap_or_default();
    let first = record.message_attributes.get(DeadLetter::SENT_AT).and_then(|found| found.string_value.as_deref());
    let first = first.and_then(|text| text.parse().ok()).map(Timestamp::from_millis);
    first.map_or(taken, |first| first.min(taken))
}

fn taken_at(record: &SqsMessage) -> Option<Timestamp> {
    attribute(record, "SentTimestamp").map(Timestamp::from_millis)
}

/// Returns the part of the sender's id that names its role. The rest names the session.
fn sender(record: &SqsMessage) -> Option<String> {
    let role = record.attributes.get("SenderId")?.split(':').next()?;
    (!role.is_empty()).then(|| role.to_owned())
}

fn attribute(record: &SqsMessage, name: &str) -> Option<u64> {
    record.attributes.get(name)?.parse().ok()
}

/// Parses a message of an internal queue.
///
/// # Errors
/// Invalid: the message can never be handled.
pub fn parse<T: serde::de::DeserializeOwned>(body: &str) -> Result<T, AppError> {
    serde_json::from_str(body).map_err(|e| AppError::invalid(format!("message is not readable: {e}")))
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use freehold_app::ports::PortError;
    use serde_json::json;

    use super::*;

    /// A queue that records what it is asked for, and refuses everything if it is told to.
    #[derive(Default)]
    struct Recorded {
        paused: Mutex<Vec<(String, u32)>>,
        dead: Mutex<Vec<DeadLetter>>,
        down: bool,
    }

    impl Recorded {
        fn answer(&self) -> Result<(), PortError> {
            let (what, reason) = ("queue".to_owned(), "down".to_owned());
            if self.down { Err(PortError::Transient { what, reason }) } else { Ok(()) }
        }
    }

    #[async_trait::async_trait]
    impl SourceQueue for Recorded {
        async fn pause(&self, receipt: &str, secs: u32) -> Result<(), PortError> {
            self.paused.lock().unwrap().push((receipt.to_owned(), secs));
            self.answer()
        }

        async fn bury(&self, letter: &DeadLetter) -> Result<(), PortError> {
            self.answer()?;
            self.dead.lock().unwrap().push(letter.clone());
            Ok(())
        }
    }

    fn event(bodies: &[&str]) -> SqsEvent {
        let records: Vec<_> = bodies
            .iter()
            .map(|body| {
                json!({
                    "messageId": format!("id-{body}"), "receiptHandle": format!("receipt-{body}"), "body": body,
                    "attributes": { "ApproximateReceiveCount": "3", "SentTimestamp": "1000" },
                    "messageAttributes": { DeadLetter::PUT_BACK: { "stringValue": "2", "dataType": "Number" } },
                })
            })
            .collect();
        serde_json::from_value(json!({ "Records": records })).unwrap()
    }

    /// Handles `good`, `bad`, `aside` and `later` as their names say, and returns the ids that SQS delivers again.
    async fn handled(queue: &Recorded) -> Vec<String> {
        let take = |message: Message| async move {
            match message.body.as_str() {
                "good" => Ok(Handled::Done),
                "aside" => Ok(Handled::Aside("too many".into())),
                "bad" => Err(AppError::invalid("bad signature")),
                _ => Err(AppError::new(Kind::Transient, "table did not answer")),
            }
        };
        let answer = each(event(&["good", "bad", "aside", "later"]), "not taken", queue, take).await;
        answer.batch_item_failures.into_iter().map(|failure| failure.item_identifier).collect()
    }

    #[tokio::test]
    async fn a_message_that_can_never_be_handled_becomes_a_dead_letter_and_others_return() {
        let queue = Recorded::default();

        let again = handled(&queue).await;

        assert_eq!(again, ["id-later"]);
        let sent_at = Timestamp::from_millis(1000);
        let bad = DeadLetter { body: "bad".into(), sent_at, put_back: 2, reason: Some("bad signature".into()) };
        let aside = DeadLetter { body: "aside".into(), sent_at, put_back: 2, reason: None };
        assert_eq!(*queue.dead.lock().unwrap(), [bad, aside]);
        let paused = queue.paused.lock().unwrap().clone();
        assert!(matches!(&paused[..], [(receipt, 4..=8)] if receipt == "receipt-later"), "{paused:?}");
    }

    #[tokio::test]
    async fn without_a_dead_letter_queue_no_message_is_dropped() {
        let queue = Recorded { down: true, ..Recorded::default() };

        assert_eq!(handled(&queue).await, ["id-bad", "id-aside", "id-later"]);
    }

    #[test]
    fn the_pause_grows_to_a_quarter_of_an_hour_and_differs_between_messages() {
        let longest = |receives| (0..200).map(|id| pause_secs(receives, &id.to_string())).max().unwrap();
        let shortest = |receives| (0..200).map(|id| pause_secs(receives, &id.to_string())).min().unwrap();

        assert_eq!([1, 2, 5].map(longest), [2, 4, 32]);
        assert!((490..=512).contains(&longest(9)) && (880..=900).contains(&longest(10)) && longest(999) <= 900);
        assert!(shortest(1) >= 1 && (450..500).contains(&shortest(999)));
    }

    #[test]
    fn the_sender_is_a_role_whatever_its_session() {
        let of = |id: &str| {
            let mut event = event(&["x"]);
            event.records[0].attributes.insert("SenderId".into(), id.into());
            sender(&event.records[0])
        };

        assert_eq!(
            [of("AROAEXAMPLE:i-1"), of("AROAEXAMPLE:i-2"), of("")],
            [Some("AROAEXAMPLE".into()), Some("AROAEXAMPLE".into()), None]
        );
    }

    #[test]
    fn a_message_that_was_put_back_keeps_its_first_time_and_cannot_claim_a_later_one() {
        let with = |first: &str| {
            let mut event = event(&["x"]);
            let attribute = json!({ "stringValue": first, "dataType": "Number" });
            event.records[0].message_attributes =
                serde_json::from_value(json!({ DeadLetter::SENT_AT: attribute })).unwrap();
            sent_at(&event.records[0]).as_millis()
        };

        assert_eq!([with("400"), with("9000"), with("x")], [400, 1000, 1000]);
    }
}
