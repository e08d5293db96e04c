//! SQS: the queue that triggers a function, and the dead-letter queue behind it.

use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use aws_config::SdkConfig;
use aws_sdk_sqs::Client;
use aws_sdk_sqs::types::{Message, MessageAttributeValue, MessageSystemAttributeName as System};
use freehold_app::ports::{
    DeadLetter, DeadLetters, LOOK_HIDES_SECS, MAX_WHOLE_BYTES, PortError, ReceivedDeadLetter, SourceQueue, role_of,
};
use freehold_protocol::names::{is_reports_queue, queue_of};
use freehold_protocol::{Arn, TenantName, Timestamp};

use crate::error::port_error;

/// How long SQS waits for a message before it responds to a request, in seconds. With a wait, SQS queries all its
/// servers. Without a wait, it queries only some of them, and the response may be empty although the queue has messages
/// (Amazon SQS developer guide, "Amazon SQS short and long polling").
const WAIT_SECS: i32 = 1;
/// The maximum size of the body of a refused message, in bytes. A longer body is cut, because SQS accepts at most 1 MiB for
/// the body and the attributes together (Amazon SQS quotas, "Messages").
const MAX_BODY_BYTES: usize = 1_000_000;
/// The maximum length of a stored reason, in characters.
const MAX_REASON_CHARS: usize = 1000;

/// The queues that trigger a function.
#[derive(Debug, Clone)]
pub struct SqsSource {
    client: Client,
    queues: Queues,
    dead_letters_url: String,
}

impl SqsSource {
    /// Returns the queues of a function: the queue with this URL, and others of the same account. Dead letters go to
    /// `dead_letters_url`.
    pub fn new(config: &SdkConfig, url: impl Into<String>, dead_letters_url: impl Into<String>) -> Self {
        let queues = Queues::new(config, vec![url.into()]);
        Self { client: Client::new(config), queues, dead_letters_url: dead_letters_url.into() }
    }
}

/// The URLs of queues by name. The URL of a queue that is not among the first queues is requested once from SQS.
#[derive(Debug, Clone)]
struct Queues {
    client: Client,
    known: Arc<Mutex<Vec<String>>>,
}

impl Queues {
    fn new(config: &SdkConfig, known: Vec<String>) -> Self {
        Self { client: Client::new(config), known: Arc::new(Mutex::new(known)) }
    }

    fn known(&self, name: &str) -> Option<String> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.iter().find(|url| queue_of(url) == name).cloned()
    }

    async fn url(&self, name: &str) -> Result<String, PortError> {
        if let Some(url) = self.known(name) {
            return Ok(url);
        }
        let found = self.client.get_queue_url().queue_name(name).send().await.map_err(|e| port_error("queue", e))?;
        let missing = || PortError::Failed { what: "queue".into(), reason: format!("SQS gave no URL of `{name}`") };
        let url = found.queue_url.ok_or_else(missing)?;
        self.known.lock().unwrap_or_else(PoisonError::into_inner).push(url.clone());
        Ok(url)
    }
}

#[async_trait]
impl SourceQueue for SqsSource {
    async fn pause(&self, source: &str, receipt: &str, secs: u32) -> Result<(), PortError> {
        let secs = i32::try_from(secs).unwrap_or(i32::MAX);
        let url = self.queues.url(source).await?;
        let request = self.client.change_message_visibility().queue_url(url).receipt_handle(receipt);
        request.visibility_timeout(secs).send().await.map_err(|e| port_error("queue", e))?;
        Ok(())
    }

    async fn send_to_dead_letters(&self, letter: &DeadLetter) -> Result<(), PortError> {
        let body = body_of(letter)?;
        let request = self.client.send_message().queue_url(&self.dead_letters_url).message_body(body);
        let request = request.message_attributes(DeadLetter::SENT_AT, attribute("Number", letter.sent_at.as_millis())?);
        let request = match &letter.reason {
            Some(reason) => {
                let reason: String =
                    reason.chars().map(|c| if c.is_control() { ' ' } else { c }).take(MAX_REASON_CHARS).collect();
                request.message_attributes(DeadLetter::REASON, attribute("String", reason)?)
            }
            None => request
                .message_attributes(DeadLetter::SOURCE, attribute("String", &letter.source)?)
                .message_attributes(DeadLetter::PUT_BACK, attribute("Number", letter.put_back)?),
        };
        let request = match &letter.sender {
            Some(sender) => request.message_attributes(DeadLetter::SENDER, attribute("String", sender)?),
            None => request,
        };
        let request = match &letter.charged {
            Some(charged) => request.message_attributes(DeadLetter::CHARGED, attribute("String", charged)?),
            None => request,
        };
        request.send().await.map_err(|e| port_error("dead-letter queue", e))?;
        Ok(())
    }
}

/// Returns the body of a dead letter.
///
/// # Errors
/// Failed for a message that has to stay whole and does not fit. This message stays in its queue.
fn body_of(letter: &DeadLetter) -> Result<&str, PortError> {
    if letter.reason.is_none() && letter.body.len() > MAX_WHOLE_BYTES {
        let reason = format!(
            "a message of {} bytes and its attributes are together too large for SQS; the message stays in its queue",
            letter.body.len()
        );
        return Err(PortError::Failed { what: "dead-letter queue".into(), reason });
    }
    let end = if letter.reason.is_some() { letter.body.floor_char_boundary(MAX_BODY_BYTES) } else { letter.body.len() };
    Ok(letter.body.get(..end).filter(|body| !body.is_empty()).unwrap_or("(empty)"))
}

/// The dead-letter queue, and the queues to which its messages can return.
#[derive(Debug, Clone)]
pub struct SqsDeadLetters {
    client: Client,
    tenant: TenantName,
    url: String,
    sources: Queues,
    putter: Option<String>,
}

impl SqsDeadLetters {
    /// Returns the dead-letter queue of `tenant` with this URL; `sources` are the URLs of the queues that it belongs
    /// to, besides the later reports queues. `putter` is the unique id of the role that puts messages back.
    pub fn new(
        config: &SdkConfig,
        tenant: TenantName,
        url: impl Into<String>,
        sources: Vec<String>,
        putter: Option<String>,
    ) -> Self {
        let sources = Queues::new(config, sources);
        Self { client: Client::new(config), tenant, url: url.into(), sources, putter }
    }

    /// Returns the URL of the queue to which a message returns.
    async fn source(&self, name: Option<&str>) -> Result<Option<String>, PortError> {
        let Some(name) = name else { return Ok(None) };
        if let Some(known) = self.sources.known(name) {
            return Ok(Some(known));
        }
        // The queues of the stack are known, so this is a later reports queue, or a queue to which no messages return.
        if !is_reports_queue(&self.tenant, name) {
            return Ok(None);
        }
        self.sources.url(name).await.map(Some)
    }
}

#[async_trait]
impl DeadLetters for SqsDeadLetters {
    async fn look(&self, waits: bool) -> Result<Vec<ReceivedDeadLetter>, PortError> {
        let request = self.client.receive_message().queue_url(&self.url).max_number_of_messages(10);
        let request = request.wait_time_seconds(if waits { WAIT_SECS } else { 0 });
        let hides = i32::try_from(LOOK_HIDES_SECS).unwrap_or(i32::MAX);
        let request = request.visibility_timeout(hides).message_attribute_names("All");
        let request = request
            .message_system_attribute_names(System::SentTimestamp)
            .message_system_attribute_names(System::SenderId)
            .message_system_attribute_names(System::DeadLetterQueueSourceArn);
        let answer = request.send().await.map_err(|e| port_error("dead-letter queue", e))?;
        Ok(answer.messages().iter().filter_map(|message| dead_letter(message, self.putter.as_deref())).collect())
    }

    async fn put_back(&self, message: &ReceivedDeadLetter) -> Result<bool, PortError> {
        let Some(source) = self.source(message.source.as_deref()).await? else { return Ok(false) };
        let request = self.client.send_message().queue_url(source).message_body(&message.body);
        let request = request
            .message_attributes(DeadLetter::SENT_AT, attribute("Number", message.sent_at.as_millis())?)
            .message_attributes(DeadLetter::PUT_BACK, attribute("Number", message.put_back + 1)?);
        let request = match &message.sender {
            Some(sender) => request.message_attributes(DeadLetter::SENDER, attribute("String", sender)?),
            None => request,
        };
        let request = match &message.charged {
            Some(charged) => request.message_attributes(DeadLetter::CHARGED, attribute("String", charged)?),
            None => request,
        };
        request.send().await.map_err(|e| port_error("queue", e))?;
        self.remove(message).await?;
        Ok(true)
    }

    async fn remove(&self, message: &ReceivedDeadLetter) -> Result<(), PortError> {
        let delete = self.client.delete_message().queue_url(&self.url).receipt_handle(&message.receipt);
        delete.send().await.map_err(|e| port_error("dead-letter queue", e))?;
        Ok(())
    }
}

fn dead_letter(message: &Message, putter: Option<&str>) -> Option<ReceivedDeadLetter> {
    let system = |name: &System| message.attributes().and_then(|all| all.get(name));
    let own = |name: &str| {
        let found = message.message_attributes().and_then(|all| all.get(name));
        found.and_then(|value| value.string_value())
    };
    let moved_at: u64 = system(&System::SentTimestamp).and_then(|text| text.parse().ok()).unwrap_or(0);
    let moved_from = system(&System::DeadLetterQueueSourceArn).and_then(|arn| Some(Arn::parse(arn)?.resource));
    // If SQS moved the message, its sender could have written the attribute, so the name from SQS takes precedence.
    let source = moved_from.or_else(|| own(DeadLetter::SOURCE));
    // A message that SQS moved has its own sender and time, unless it is a copy that was put back. All other messages name
    // the sender and the time of the first copy.
    let moved_by = moved_from.and_then(|_| system(&System::SenderId)).and_then(|id| role_of(id));
    let is_copy = moved_from.is_none() || (putter.is_some() && moved_by == putter);
    let sender = moved_by.filter(|role| putter != Some(*role)).or_else(|| own(DeadLetter::SENDER).filter(|_| is_copy));
    let first = own(DeadLetter::SENT_AT).filter(|_| is_copy).and_then(|text| text.parse().ok()).unwrap_or(moved_at);
    Some(ReceivedDeadLetter {
        sender: sender.map(str::to_owned),
        receipt: message.receipt_handle()?.to_owned(),
        body: message.body()?.to_owned(),
        source: source.map(str::to_owned),
        sent_at: Timestamp::from_millis(first.min(moved_at)),
        put_back: own(DeadLetter::PUT_BACK).filter(|_| is_copy).and_then(|text| text.parse().ok()).unwrap_or(0),
        charged: own(DeadLetter::CHARGED).filter(|_| is_copy).map(str::to_owned),
        reason: own(DeadLetter::REASON).map(str::to_owned),
    })
}

fn attribute(kind: &str, value: impl ToString) -> Result<MessageAttributeValue, PortError> {
    let built = MessageAttributeValue::builder().data_type(kind).string_value(value.to_string()).build();
    built.map_err(|e| PortError::Failed { what: "message attribute".into(), reason: e.to_string() })
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use aws_config::BehaviorVersion;

    use super::*;

    const ARN: &str = "arn:aws:sqs:eu-west-1:111111111111:fh-acme--reports";

    fn message(own: &[(&str, &str)]) -> Message {
        let own = own.iter().map(|(name, value)| ((*name).to_owned(), attribute("String", value).unwrap()));
        Message::builder()
            .receipt_handle("r")
            .body("{}")
            .attributes(System::SentTimestamp, "5000")
            .attributes(System::DeadLetterQueueSourceArn, ARN)
            .attributes(System::SenderId, "AROARUNNER:i-1")
            .set_message_attributes(Some(own.collect::<HashMap<_, _>>()))
            .build()
    }

    #[test]
    fn a_message_that_sqs_moved_names_its_queue_and_a_refused_one_its_reason() {
        let received = |own: &[(&str, &str)], putter| dead_letter(&message(own), putter).unwrap();
        let moved = received(&[], None);
        let refused = received(&[(DeadLetter::REASON, "no"), (DeadLetter::SENT_AT, "9000")], None);
        let again = received(&[(DeadLetter::SENT_AT, "70"), (DeadLetter::PUT_BACK, "2")], Some("AROARUNNER"));

        assert_eq!((moved.source.as_deref(), moved.reason, moved.put_back), (Some("fh-acme--reports"), None, 0));
        assert_eq!((refused.reason.as_deref(), refused.sent_at.as_millis()), (Some("no"), 5000));
        assert_eq!((again.put_back, again.sent_at.as_millis()), (2, 70));
    }

    #[test]
    fn only_a_refused_message_is_cut() {
        let letter = |bytes: usize, reason: Option<&str>| DeadLetter {
            body: "x".repeat(bytes),
            source: "fh-acme--reports".into(),
            sender: None,
            sent_at: Timestamp::from_millis(1),
            put_back: 0,
            charged: None,
            reason: reason.map(str::to_owned),
        };
        let stored = |bytes, reason| body_of(&letter(bytes, reason)).ok().map(str::len);

        assert_eq!([stored(0, None), stored(2_000_000, Some("no"))], [Some(7), Some(MAX_BODY_BYTES)]);
        assert_eq!([stored(1_040_000, None), stored(1_048_000, None)], [Some(1_040_000), None]);
    }

    #[test]
    fn a_sender_cannot_choose_the_queue_to_which_its_message_returns() {
        let forged = dead_letter(&message(&[(DeadLetter::SOURCE, "fh-acme--dispatch")]), None).unwrap();
        let aside = Message::builder()
            .receipt_handle("r")
            .body("{}")
            .message_attributes(DeadLetter::SOURCE, attribute("String", "fh-acme--grants").unwrap());
        let aside = dead_letter(&aside.build(), None).unwrap();

        assert_eq!(forged.source.as_deref(), Some("fh-acme--reports"));
        assert_eq!((aside.source.as_deref(), aside.reason), (Some("fh-acme--grants"), None));
    }

    /// SQS cannot be asked here: nothing answers.
    #[tokio::test]
    async fn a_message_returns_to_the_queue_with_its_name_alone() {
        let urls = ["https://sqs/1/fh-acme--dispatch", "https://sqs/1/fh-acme--reports"].map(str::to_owned);
        let config = SdkConfig::builder().behavior_version(BehaviorVersion::latest()).build();
        let letters = SqsDeadLetters::new(&config, "acme".parse().unwrap(), "https://sqs/1/d", urls.to_vec(), None);

        assert_eq!(letters.source(Some("fh-acme--reports")).await.unwrap().as_ref(), urls.get(1));
        for none in [Some("reports"), Some("fh-acme--globex.fifo"), Some("fh-other--reports--2"), None] {
            assert_eq!(letters.source(none).await.unwrap(), None);
        }
    }

    #[test]
    fn a_sender_cannot_claim_that_its_message_was_sent_earlier() {
        let claim = [(DeadLetter::SENT_AT, "70")];
        let aside = Message::builder()
            .receipt_handle("r")
            .body("{}")
            .attributes(System::SentTimestamp, "5000")
            .attributes(System::SenderId, "AROAACCEPT:accept-report")
            .message_attributes(DeadLetter::SENT_AT, attribute("Number", 70).unwrap())
            .build();
        let sent_at = |message: &Message, putter| dead_letter(message, putter).unwrap().sent_at.as_millis();

        // Moved by SQS, moved after it was put back, and set aside by a function.
        assert_eq!(sent_at(&message(&claim), Some("AROASWEEP")), 5000);
        assert_eq!(sent_at(&message(&claim), None), 5000);
        assert_eq!(sent_at(&message(&claim), Some("AROARUNNER")), 70);
        assert_eq!(sent_at(&aside, Some("AROASWEEP")), 70);
    }

    #[test]
    fn a_sender_cannot_claim_that_its_message_was_put_back() {
        let claim = [(DeadLetter::PUT_BACK, "1000")];
        let put_back = |putter| dead_letter(&message(&claim), putter).unwrap().put_back;

        assert_eq!([Some("AROASWEEP"), None, Some("AROARUNNER")].map(put_back), [0, 0, 1000]);
    }

    #[test]
    fn a_sender_cannot_choose_whose_room_its_message_gives_back() {
        let claim = [(DeadLetter::CHARGED, "of another")];
        let charged = |putter| dead_letter(&message(&claim), putter).unwrap().charged;

        let known = Some("of another".to_owned());
        assert_eq!([Some("AROASWEEP"), None, Some("AROARUNNER")].map(charged), [None, None, known]);
    }

    #[test]
    fn a_sender_cannot_send_in_the_name_of_another() {
        let claim = [(DeadLetter::SENDER, "AROAOTHER")];
        let aside = Message::builder()
            .receipt_handle("r")
            .body("{}")
            .attributes(System::SenderId, "AROAACCEPT:accept-report")
            .message_attributes(DeadLetter::SENDER, attribute("String", "AROARUNNER").unwrap())
            .build();
        let sender = |message: &Message, putter| dead_letter(message, putter).unwrap().sender;

        // Moved by SQS, moved after it was put back, and set aside by a function.
        assert_eq!(sender(&message(&claim), Some("AROASWEEP")).as_deref(), Some("AROARUNNER"));
        assert_eq!(sender(&message(&claim), Some("AROARUNNER")).as_deref(), Some("AROAOTHER"));
        assert_eq!(sender(&aside, Some("AROASWEEP")).as_deref(), Some("AROARUNNER"));
    }
}
