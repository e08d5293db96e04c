//! Looks through the dead letters: puts messages back into their queues, and removes the messages of installs that are
//! being forgotten. SQS moves a message to a dead-letter queue after too many failed receives, for example after a
//! failure that lasted for days, and a function sets a report aside that its sender may not have handled yet. A message
//! that a function refused is left there.
//!
//! All customers share this queue. A report that comes back too early is set aside again, behind the other messages. So
//! each message has its turn after about one run for each thousand messages before it, whoever sent them.

use std::collections::BTreeSet;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use freehold_domain::Job;
use freehold_protocol::{Envelope, InstallId, JobId, Timestamp};
use futures_util::future::join_all;
use serde::Deserialize;

use crate::AppError;
use crate::messages::{DispatchMessage, GrantMessage};
use crate::ports::{Clock, DeadLetters, LOOK_HIDES_SECS, MAX_WHOLE_BYTES, ReceivedDeadLetter, Store};
use crate::table::{job_key, load};

/// The maximum number of messages that one run puts back. With ten at a time, this takes a few seconds.
const MAX_A_RUN: u32 = 1_000;
/// The maximum number of times that one message is put back. A message that a function sets aside comes back every minute;
/// a message that SQS moved was delivered 1,000 times before.
const MAX_PUT_BACK: u32 = 1_000;
/// The maximum age of a message that is put back, in seconds: 28 days, which is twice the time that a queue keeps a message.
const MAX_AGE_SECS: u64 = 28 * 24 * 3600;
/// The maximum time for which one run reads one queue, in seconds. It is shorter than the time for which a read hides
/// messages, so a run sees no message twice.
const MAX_SECS: u64 = LOOK_HIDES_SECS as u64 - 2;

/// The use case that looks through the dead letters, with its ports.
#[derive(Clone)]
pub struct PutBackMessages {
    pub store: Arc<dyn Store>,
    /// The dead letters of the functions' queues.
    pub letters: Arc<dyn DeadLetters>,
    /// The dead letters of the orders queues.
    pub orders_letters: Arc<dyn DeadLetters>,
    pub clock: Arc<dyn Clock>,
}

/// The result of one run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LookedThrough {
    /// The number of messages that were put back.
    pub put_back: u32,
    /// Whether the run saw every message, so that no message of the forgotten installs is left.
    pub all: bool,
}

/// The part of a signed message that names its install.
#[derive(Deserialize)]
struct Named {
    install: InstallId,
}

impl PutBackMessages {
    /// Puts back messages that may be handled now, and removes the messages of the installs in `forgotten`. The rows of
    /// the jobs of these installs must still exist, because a message of the dispatch queue names only its job. One run
    /// serves all these installs, because a look hides its messages from the next look.
    ///
    /// # Errors
    /// The errors of the dead-letter queues and the store. A message that cannot be put back is logged, and stays there.
    pub async fn put_back(&self, forgotten: &BTreeSet<InstallId>) -> Result<LookedThrough, AppError> {
        let mut run = LookedThrough::default();
        run.all = self.look_through(&*self.letters, forgotten, &mut run.put_back).await?;
        if !forgotten.is_empty() {
            // No order returns to a queue, so this queue is of interest for forgotten installs only.
            run.all &= self.look_through(&*self.orders_letters, forgotten, &mut run.put_back).await?;
        }
        Ok(run)
    }

    /// Returns whether every message of the queue was seen.
    async fn look_through(
        &self,
        letters: &dyn DeadLetters,
        forgotten: &BTreeSet<InstallId>,
        put_back: &mut u32,
    ) -> Result<bool, AppError> {
        let must_see_all = !forgotten.is_empty();
        let since = self.clock.now();
        loop {
            let is_full = !must_see_all && *put_back >= MAX_A_RUN;
            if is_full || self.clock.now().since(since) >= MAX_SECS * 1000 {
                return Ok(false);
            }
            let messages = letters.look(must_see_all).await?;
            if messages.is_empty() {
                return Ok(true);
            }
            let room = usize::try_from(MAX_A_RUN.saturating_sub(*put_back)).unwrap_or(usize::MAX);
            let mut returning = Vec::new();
            for message in &messages {
                let install = if must_see_all { install_of(&*self.store, &message.body).await? } else { None };
                if install.is_some_and(|install| forgotten.contains(&install)) {
                    letters.remove(message).await?;
                } else if is_worth_it(message, self.clock.now()) && returning.len() < room {
                    returning.push(letters.put_back(message));
                }
            }
            for returned in join_all(returning).await {
                // A message that could not be put back is still among the dead letters. The others must return to their
                // queues nevertheless.
                *put_back += u32::from(returned.unwrap_or_else(|error| {
                    tracing::error!("Could not put a message back into its queue; the next sweep tries again: {error}");
                    false
                }));
            }
        }
    }
}

/// Returns whether another try is useful: no function refused the message, it was not put back too often or for too
/// long, and it fits into its queue together with the attributes of a copy.
fn is_worth_it(message: &ReceivedDeadLetter, now: Timestamp) -> bool {
    message.reason.is_none()
        && message.put_back < MAX_PUT_BACK
        && now.since(message.sent_at) < MAX_AGE_SECS * 1000
        && message.body.len() <= MAX_WHOLE_BYTES
}

/// Returns the install that a message is about; `None` for a message that names none.
async fn install_of(store: &dyn Store, body: &str) -> Result<Option<InstallId>, AppError> {
    if let Ok(envelope) = Envelope::parse(body.as_bytes()) {
        let payload = BASE64.decode(&envelope.payload).unwrap_or_default();
        return Ok(serde_json::from_slice::<Named>(&payload).ok().map(|named| named.install));
    }
    if let Ok(message) = serde_json::from_str::<GrantMessage>(body) {
        return Ok(Some(message.install));
    }
    match serde_json::from_str::<DispatchMessage>(body) {
        Ok(DispatchMessage::Order { job, .. } | DispatchMessage::Cancel { job, .. }) => {
            install_of_job(store, &job).await
        }
        Ok(DispatchMessage::Retired { install, .. }) => Ok(Some(install)),
        Ok(DispatchMessage::Contract { .. }) | Err(_) => Ok(None),
    }
}

async fn install_of_job(store: &dyn Store, job: &JobId) -> Result<Option<InstallId>, AppError> {
    Ok(load::<Job>(store, &job_key(job)).await?.map(|job| job.value.install))
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use async_trait::async_trait;

    use super::*;
    use crate::ports::PortError;
    use crate::testing::Memory;

    /// A dead-letter queue that shows each message once. A look takes `look_secs` seconds. The queue `deleted` does not
    /// exist.
    struct Letters {
        memory: Arc<Memory>,
        look_secs: u64,
        messages: Mutex<Vec<ReceivedDeadLetter>>,
        returned: Mutex<Vec<String>>,
        looks: Mutex<u32>,
    }

    #[async_trait]
    impl DeadLetters for Letters {
        async fn look(&self, _: bool) -> Result<Vec<ReceivedDeadLetter>, PortError> {
            *self.looks.lock().unwrap() += 1;
            self.memory.advance_secs(self.look_secs);
            let mut messages = self.messages.lock().unwrap();
            let end = messages.len().min(10);
            Ok(messages.drain(..end).collect())
        }

        async fn put_back(&self, message: &ReceivedDeadLetter) -> Result<bool, PortError> {
            if message.source.as_deref() == Some("deleted") {
                return Err(PortError::Failed { what: "queue".into(), reason: "it does not exist".into() });
            }
            self.returned.lock().unwrap().push(message.body.clone());
            Ok(true)
        }

        async fn remove(&self, _: &ReceivedDeadLetter) -> Result<(), PortError> {
            Ok(())
        }
    }

    fn dead_letter(body: &str) -> ReceivedDeadLetter {
        ReceivedDeadLetter {
            receipt: body.to_owned(),
            body: body.to_owned(),
            sender: None,
            source: Some("fh-acme--reports".into()),
            sent_at: Memory::default().now(),
            put_back: 0,
            charged: None,
            reason: None,
        }
    }

    fn letters(memory: &Arc<Memory>, messages: Vec<ReceivedDeadLetter>, look_secs: u64) -> Arc<Letters> {
        Arc::new(Letters {
            memory: memory.clone(),
            look_secs,
            messages: Mutex::new(messages),
            returned: Mutex::default(),
            looks: Mutex::default(),
        })
    }

    fn use_case(letters: &Arc<Letters>) -> PutBackMessages {
        let memory = letters.memory.clone();
        let orders_letters = self::letters(&memory, Vec::new(), letters.look_secs);
        PutBackMessages { store: memory.clone(), letters: letters.clone(), orders_letters, clock: memory }
    }

    /// Runs once, with looks that take a second.
    async fn run(messages: Vec<ReceivedDeadLetter>, forgotten: &[&str]) -> (LookedThrough, Vec<String>, u32) {
        let letters = letters(&Arc::new(Memory::default()), messages, 1);
        let use_case = use_case(&letters);
        let forgotten = forgotten.iter().map(|name| name.parse().unwrap()).collect();
        let seen = use_case.put_back(&forgotten).await.unwrap();
        let returned = letters.returned.lock().unwrap().clone();
        let looks = *letters.looks.lock().unwrap();
        (seen, returned, looks)
    }

    fn many(count: u32) -> Vec<ReceivedDeadLetter> {
        (0..count).map(|at| dead_letter(&at.to_string())).collect()
    }

    #[tokio::test]
    async fn what_sqs_moved_returns_and_what_a_function_refused_stays() {
        let refused = ReceivedDeadLetter { reason: Some("bad signature".into()), ..dead_letter("refused") };
        let worn_out = ReceivedDeadLetter { put_back: MAX_PUT_BACK, ..dead_letter("worn out") };
        let old = ReceivedDeadLetter { sent_at: Timestamp::from_millis(7), ..dead_letter("old") };

        for forgotten in [&[][..], &["globex"]] {
            let (seen, returned, _) =
                run(vec![refused.clone(), dead_letter("report"), worn_out.clone(), old.clone()], forgotten).await;

            assert_eq!((seen, returned), (LookedThrough { put_back: 1, all: true }, vec!["report".to_owned()]));
        }
    }

    #[tokio::test]
    async fn a_message_that_cannot_be_put_back_does_not_stop_the_others() {
        let deleted = ReceivedDeadLetter { source: Some("deleted".into()), ..dead_letter("of a deleted queue") };
        let long = dead_letter(&"x".repeat(MAX_WHOLE_BYTES + 1));
        let mut messages = vec![deleted, long];
        messages.extend(many(15));

        let (seen, returned, _) = run(messages, &["globex"]).await;

        let others: Vec<String> = (0..15).map(|at| at.to_string()).collect();
        assert_eq!((seen, returned), (LookedThrough { put_back: 15, all: true }, others));
    }

    #[tokio::test]
    async fn one_run_is_bounded_by_time() {
        let (seen, _, looks) = run(many(200), &[]).await;

        let secs = u32::try_from(MAX_SECS).unwrap();
        assert_eq!((seen, looks), (LookedThrough { put_back: 10 * secs, all: false }, secs));
    }

    /// A report of one customer is behind 5,000 reports of another one.
    #[tokio::test]
    async fn a_message_behind_a_flood_returns_after_one_run_for_each_thousand() {
        let mut messages = many(5_000);
        messages.push(dead_letter("of another customer"));
        let letters = letters(&Arc::new(Memory::default()), messages, 0);
        let use_case = use_case(&letters);

        let mut put_back = Vec::new();
        while !letters.returned.lock().unwrap().contains(&"of another customer".to_owned()) {
            put_back.push(use_case.put_back(&BTreeSet::new()).await.unwrap().put_back);
        }

        assert_eq!(put_back, [vec![MAX_A_RUN; 5], vec![1]].concat());
    }

    #[tokio::test]
    async fn a_run_for_a_forgotten_install_sees_all_messages_or_says_that_it_did_not() {
        let (all, _, _) = run(many(70), &["globex"]).await;
        let (some, _, looks) = run(many(200), &["globex"]).await;

        assert_eq!(all, LookedThrough { put_back: 70, all: true });
        assert_eq!((some, u64::from(looks)), (LookedThrough { put_back: 80, all: false }, MAX_SECS));
    }
}
