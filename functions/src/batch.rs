//! Handles a batch of SQS messages one by one. A message that can never be handled goes to the dead-letter queue with
//! its reason, and a message that is set aside goes there without a reason, so that `sweep` puts it back. Every other
//! message that fails returns to its queue after a pause that grows with each receive.

use std::future::Future;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use aws_lambda_events::event::sqs::{BatchItemFailure, SqsBatchResponse, SqsEvent, SqsMessage};
use freehold_app::ports::{DeadLetter, SourceQueue, role_of};
use freehold_app::table::Budgeted;
use freehold_app::workflow::admit_report::Waiting;
use freehold_app::{AppError, Kind, subject};
use freehold_protocol::{Arn, Timestamp};
use tracing::Instrument as _;

use crate::log_failure;

/// The longest pause between two receives of a failed message, in seconds.
const MAX_PAUSE_SECS: u32 = 900;

/// A time later than any other, for a message without a time stamp of the queue.
const NEVER: Timestamp = Timestamp::from_millis(u64::MAX);

/// A message from the queue that triggers the function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    pub body: String,
    /// The time at which the queue received the first copy of the message. Only a copy that `sweep` put back names
    /// another time than its own, so no other sender can choose this time.
    pub sent_at: Timestamp,
    /// The time at which the queue received this copy of the message.
    pub taken_at: Timestamp,
    /// The unique id of the role that sent the first copy of the message, according to SQS.
    pub sender: Option<String>,
    /// Whether `sweep` put the message back.
    pub has_waited: bool,
    /// The owner of the budget in which the message was counted when it began to wait, if a copy names it.
    pub charged: Option<Budgeted>,
}

/// The result of a message that does not fail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Handled {
    /// The message was handled, or is dropped.
    Done,
    /// The message may be handled later, and must not wait in its queue for the given reason.
    Aside(Waiting),
}

/// Handles every message of `event` with `take`. Returns the messages that SQS must deliver again. `what` describes a
/// failure in the log.
///
/// `putter` is the unique id of the role of `sweep`: each message that `sweep` puts back is a copy that names the sender
/// and the time of the first copy.
pub async fn each<F, T>(
    event: SqsEvent,
    what: &str,
    (queue, putter): (&dyn SourceQueue, Option<&str>),
    take: F,
) -> SqsBatchResponse
where
    F: Fn(Message) -> T,
    T: Future<Output = Result<Handled, AppError>>,
{
    let mut answer = SqsBatchResponse::default();
    for record in event.records {
        let body = record.body.clone().unwrap_or_default();
        let (sent_at, taken_at) = (sent_at(&record, putter), taken_at(&record).unwrap_or(NEVER));
        let (sender, has_waited) = (sender(&record, putter), is_copy(&record, putter));
        let charged = charged(&record, putter);
        let message = Message { body, sent_at, taken_at, sender, has_waited, charged: charged.clone() };
        let work = subject::span();
        let taken = take(message).instrument(work.clone()).await;
        let is_moved = match taken {
            Ok(Handled::Done) => continue,
            Ok(Handled::Aside(waiting)) => {
                // A message can be set aside many times, and one log line for it is enough.
                if !has_waited {
                    let why = &waiting.why;
                    work.in_scope(|| tracing::warn!("{what}; the message is set aside for a later try: {why}"));
                }
                let charged = charged.or(waiting.charged);
                move_to_dead_letters(&record, (None, charged), (queue, putter)).instrument(work.clone()).await
            }
            Err(error) => {
                work.in_scope(|| log_failure(what, &error));
                error.kind == Kind::Invalid
                    && move_to_dead_letters(&record, (Some(error.to_string()), None), (queue, putter))
                        .instrument(work.clone())
                        .await
            }
        };
        if is_moved {
            continue;
        }
        pause(&record, queue).instrument(work).await;
        let mut failure = BatchItemFailure::default();
        failure.item_identifier = record.message_id.unwrap_or_default();
        answer.batch_item_failures.push(failure);
    }
    answer
}

/// Sends a message to the dead-letter queue. Returns false when that failed; the message then returns to its queue.
async fn move_to_dead_letters(
    record: &SqsMessage,
    (reason, charged): (Option<String>, Option<Budgeted>),
    (queue, putter): (&dyn SourceQueue, Option<&str>),
) -> bool {
    let put_back = if is_copy(record, putter) { own(record, DeadLetter::PUT_BACK) } else { None };
    let put_back = put_back.and_then(|text| text.parse().ok()).unwrap_or(0);
    let body = record.body.clone().unwrap_or_default();
    let (source, sender) = (source(record).to_owned(), sender(record, putter));
    let charged = charged.and_then(|of| serde_json::to_string(&of).ok());
    let letter = DeadLetter { body, source, sender, sent_at: sent_at(record, putter), put_back, charged, reason };
    match queue.send_to_dead_letters(&letter).await {
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
    if let Err(error) = queue.pause(source(record), receipt, pause_secs(receives, id)).await {
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

/// Returns the time at which the queue received the first copy of the message. Only a copy that the role `putter` sent
/// names this time; a report of a replaced key counts if it was sent before the key was replaced, so its sender must not
/// choose the time.
fn sent_at(record: &SqsMessage, putter: Option<&str>) -> Timestamp {
    let taken = taken_at(record).unwrap_or_default();
    let first = if is_copy(record, putter) { own(record, DeadLetter::SENT_AT) } else { None };
    let first = first.and_then(|text| text.parse().ok()).map(Timestamp::from_millis);
    first.map_or(taken, |first| first.min(taken))
}

fn taken_at(record: &SqsMessage) -> Option<Timestamp> {
    attribute(record, "SentTimestamp").map(Timestamp::from_millis)
}

/// Returns the part of the sender's id that names its role; the rest names the session. A copy that the role `putter`
/// sent names the first sender. No other role can name another sender. Returns `None` for a sender that is not a role.
fn sender(record: &SqsMessage, putter: Option<&str>) -> Option<String> {
    let first = if is_copy(record, putter) { own(record, DeadLetter::SENDER)? } else { sending_role(record)? };
    Some(first.to_owned())
}

/// Returns whether the role `putter` sent the message.
fn is_copy(record: &SqsMessage, putter: Option<&str>) -> bool {
    putter.is_some() && sending_role(record) == putter
}

/// Returns the owner of the budget in which a copy was counted. No sender can choose it.
fn charged(record: &SqsMessage, putter: Option<&str>) -> Option<Budgeted> {
    if !is_copy(record, putter) {
        return None;
    }
    serde_json::from_str(own(record, DeadLetter::CHARGED)?).ok()
}

fn sending_role(record: &SqsMessage) -> Option<&str> {
    role_of(record.attributes.get("SenderId")?)
}

/// Returns the name of the queue that the message is in.
fn source(record: &SqsMessage) -> &str {
    let arn = record.event_source_arn.as_deref().unwrap_or_default();
    Arn::parse(arn).map_or(arn, |arn| arn.resource)
}

/// Returns an attribute that the sender of the message has set.
fn own<'a>(record: &'a SqsMessage, name: &str) -> Option<&'a str> {
    record.message_attributes.get(name)?.string_value.as_deref()
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
        async fn pause(&self, source: &str, receipt: &str, secs: u32) -> Result<(), PortError> {
            self.paused.lock().unwrap().push((format!("{source} {receipt}"), secs));
            self.answer()
        }

        async fn send_to_dead_letters(&self, letter: &DeadLetter) -> Result<(), PortError> {
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
                    "eventSourceARN": "arn:aws:sqs:eu-west-1:111111111111:fh-acme--reports",
                    "messageId": format!("id-{body}"), "receiptHandle": format!("receipt-{body}"), "body": body,
                    "attributes": { "ApproximateReceiveCount": "3", "SentTimestamp": "1000" },
                    "messageAttributes": { DeadLetter::PUT_BACK: { "stringValue": "2", "dataType": "Number" } },
                })
            })
            .collect();
        serde_json::from_value(json!({ "Records": records })).unwrap()
    }

    /// Returns the event of a message with this sender and these attributes of its own.
    fn event_of(body: &str, sender: &str, own: &[(&str, &str)]) -> SqsEvent {
        let mut event = event(&[body]);
        let own =
            own.iter().map(|(name, value)| ((*name).to_owned(), json!({ "stringValue": value, "dataType": "String" })));
        let own: serde_json::Map<_, _> = own.collect();
        event.records[0].attributes.insert("SenderId".into(), sender.into());
        event.records[0].message_attributes = serde_json::from_value(own.into()).unwrap();
        event
    }

    /// The text of the budget of all unknown roles.
    const UNKNOWN: &str = "\"unknown_roles\"";

    fn globex() -> Budgeted {
        Budgeted::Install("globex".parse().unwrap())
    }

    fn too_many(charged: Budgeted) -> Waiting {
        Waiting { why: "too many".into(), charged: Some(charged) }
    }

    /// Handles `good`, `bad`, `aside` and `later` as their names say, and returns the ids that SQS delivers again.
    async fn handled(queue: &Recorded) -> Vec<String> {
        let take = |message: Message| async move {
            match message.body.as_str() {
                "good" => Ok(Handled::Done),
                "aside" => Ok(Handled::Aside(too_many(Budgeted::UnknownRoles))),
                "bad" => Err(AppError::invalid("bad signature")),
                _ => Err(AppError::new(Kind::Transient, "table did not answer")),
            }
        };
        let answer = each(event(&["good", "bad", "aside", "later"]), "not taken", (queue, None), take).await;
        answer.batch_item_failures.into_iter().map(|failure| failure.item_identifier).collect()
    }

    #[tokio::test]
    async fn a_message_that_can_never_be_handled_becomes_a_dead_letter_and_others_return() {
        let queue = Recorded::default();

        let again = handled(&queue).await;

        assert_eq!(again, ["id-later"]);
        let sent_at = Timestamp::from_millis(1000);
        let letter = |body: &str, charged: Option<&str>, reason: Option<&str>| DeadLetter {
            body: body.into(),
            source: "fh-acme--reports".into(),
            sender: None,
            sent_at,
            put_back: 0,
            charged: charged.map(str::to_owned),
            reason: reason.map(str::to_owned),
        };
        let (bad, aside) = (letter("bad", None, Some("bad signature")), letter("aside", Some(UNKNOWN), None));
        assert_eq!(*queue.dead.lock().unwrap(), [bad, aside]);
        let paused = queue.paused.lock().unwrap().clone();
        assert!(matches!(&paused[..], [(which, 4..=8)] if which == "fh-acme--reports receipt-later"), "{paused:?}");
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
    fn the_sender_is_a_role_whatever_its_session_and_only_sweep_can_name_another() {
        let of = |id: &str| {
            let event = event_of("x", id, &[(DeadLetter::SENDER, "AROAFIRST")]);
            sender(&event.records[0], Some("AROASWEEP"))
        };

        assert_eq!(
            [of("AROAEXAMPLE:i-1"), of("AROAEXAMPLE:i-2"), of("111111111111"), of("AROASWEEP:sweep")],
            [Some("AROAEXAMPLE".into()), Some("AROAEXAMPLE".into()), None, Some("AROAFIRST".into())]
        );
    }

    #[test]
    fn a_message_that_was_put_back_keeps_its_first_time_and_no_other_sender_can_claim_one() {
        let with = |sender: &str, first: &str| {
            let event = event_of("x", sender, &[(DeadLetter::SENT_AT, first)]);
            sent_at(&event.records[0], Some("AROASWEEP")).as_millis()
        };

        let from_sweep = ["400", "9000", "x"].map(|first| with("AROASWEEP:sweep", first));
        let from_others = ["AROARUNNER:i-1", "AROASWEEPER:sweep", "111111111111"].map(|sender| with(sender, "400"));

        assert_eq!((from_sweep, from_others), ([400, 1000, 1000], [1000; 3]));
    }

    /// A report can be set aside many times before its turn comes.
    #[tokio::test]
    async fn only_a_letter_of_a_copy_has_what_its_attributes_claim_about_the_first_copy() {
        let claimed = [
            (DeadLetter::SENT_AT, "400"),
            (DeadLetter::SENDER, "AROAFIRST"),
            (DeadLetter::PUT_BACK, "7"),
            (DeadLetter::CHARGED, UNKNOWN),
        ];
        let letter = async |sender: &str| {
            let queue = Recorded::default();
            let aside = |_: Message| async { Ok::<_, AppError>(Handled::Aside(too_many(globex()))) };
            let _ = each(event_of("x", sender, &claimed), "not handled", (&queue, Some("AROASWEEP")), aside).await;
            let letter = queue.dead.lock().unwrap().pop().unwrap();
            (letter.sender, letter.sent_at.as_millis(), letter.put_back, letter.charged)
        };

        assert_eq!(letter("AROASWEEP:sweep").await, (Some("AROAFIRST".into()), 400, 7, Some(UNKNOWN.into())));
        let of_globex = r#"{"install":"globex"}"#.to_owned();
        assert_eq!(letter("AROARUNNER:i-1").await, (Some("AROARUNNER".into()), 1000, 0, Some(of_globex)));
    }
}
