//! What the spool promises, against a queue that drops answers, fails and refuses.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use freehold_protocol::EnvelopeError;
use proptest::prelude::*;

use super::*;
use crate::process::watchdog::Beat;
use crate::wire::inbox::{InboxError, Outbox, Sent};

/// An envelope that says `text`.
fn report(text: &str) -> String {
    let envelope =
        Envelope { payload_type: text.into(), payload: String::new(), signatures: Vec::new(), attached: Vec::new() };
    envelope.to_json().unwrap()
}

fn text_of(body: &str) -> Result<String, EnvelopeError> {
    Envelope::parse(body.as_bytes()).map(|envelope| envelope.payload_type)
}

fn waiting(spool: &Spool) -> Vec<String> {
    let mut texts = Vec::new();
    loop {
        let batch = spool.batch();
        if batch.is_empty() {
            return texts;
        }
        for (at, body) in batch {
            texts.push(text_of(&body).unwrap());
            spool.remove_sent(at);
        }
    }
}

/// What happens to one call.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Fate {
    Taken,
    /// The queue has everything, the runner hears nothing.
    AnswerLost,
    Refused,
    /// The queue takes the first message only.
    Partly,
}

/// A queue in memory whose calls meet the given fates, and then work.
#[derive(Debug)]
struct Queue {
    fates: Mutex<Vec<Fate>>,
    taken: Mutex<Vec<String>>,
    calls: AtomicUsize,
}

impl Queue {
    fn with(fates: Vec<Fate>) -> Self {
        Self { fates: Mutex::new(fates), taken: Mutex::default(), calls: AtomicUsize::new(0) }
    }
}

#[async_trait]
impl Outbox for Queue {
    async fn send(&self, bodies: &[String]) -> Result<Vec<Sent>, InboxError> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        let fate = self.fates.lock().unwrap().pop().unwrap_or(Fate::Taken);
        let take = |bodies: &[String]| {
            self.taken.lock().unwrap().extend(bodies.iter().map(|body| text_of(body).unwrap()));
        };
        let lost = Err(InboxError::Transient("no answer".into()));
        match fate {
            Fate::Taken => take(bodies),
            Fate::AnswerLost => {
                take(bodies);
                return lost;
            }
            Fate::Refused => return lost,
            Fate::Partly => {
                take(&bodies[..1]);
                let mut sent = vec![Sent::Later; bodies.len()];
                sent[0] = Sent::Taken;
                return Ok(sent);
            }
        }
        Ok(vec![Sent::Taken; bodies.len()])
    }
}

fn send_all(spool: &Arc<Spool>, fates: Vec<Fate>) -> Vec<String> {
    let queue = Queue::with(fates);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    runtime.block_on(async {
        let beat = Beat::default();
        tokio::select! {
            () = sender::run(spool, &queue, &beat) => {}
            () = spool.emptied() => {}
            () = tokio::time::sleep(Duration::from_secs(86_400)) => panic!("not sent in a day"),
        }
    });
    queue.taken.into_inner().unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn everything_arrives_and_first_arrivals_are_in_order(
        count in 1..25_usize,
        fates in prop::collection::vec(prop_oneof![
            Just(Fate::Taken), Just(Fate::AnswerLost), Just(Fate::Refused), Just(Fate::Partly)
        ], 0..8),
    ) {
        let directory = tempfile::tempdir().unwrap();
        let spool = Arc::new(Spool::open(directory.path()).unwrap());
        let expected: Vec<String> = (0..count).map(|n| n.to_string()).collect();
        for text in &expected {
            spool.add(&report(text), Class::Keep, false).unwrap();
        }

        let taken = send_all(&spool, fates);

        let mut first = Vec::new();
        for text in taken {
            if !first.contains(&text) {
                first.push(text);
            }
        }
        prop_assert_eq!(first, expected);
        prop_assert!(Spool::open(directory.path()).unwrap().is_empty());
    }
}

#[test]
fn reports_survive_a_restart_in_order_and_half_written_ones_do_not_matter() {
    let directory = tempfile::tempdir().unwrap();
    let first = Spool::open(directory.path()).unwrap();
    for text in ["a", "b"] {
        first.add(&report(text), Class::Keep, true).unwrap();
    }
    drop(first);
    std::fs::write(directory.path().join("spool/00000000000000000009.keep.json.new"), "{").unwrap();

    let second = Spool::open(directory.path()).unwrap();
    second.add(&report("c"), Class::Keep, true).unwrap();

    assert_eq!(waiting(&second), ["a", "b", "c"]);
}

#[test]
fn log_reports_go_first_when_the_spool_is_full_and_others_never() {
    let directory = tempfile::tempdir().unwrap();
    let spool = Spool::bounded(directory.path(), 1_000_000, 3).unwrap();
    for (text, class) in [("k1", Class::Keep), ("l1", Class::Log), ("l2", Class::Log)] {
        spool.add(&report(text), class, false).unwrap();
    }

    spool.add(&report("k2"), Class::Keep, false).unwrap();
    spool.add(&report("k3"), Class::Keep, false).unwrap();
    spool.add(&report("k4"), Class::Keep, false).unwrap();
    spool.add(&report("l3"), Class::Log, false).unwrap();

    assert_eq!(waiting(&spool), ["k1", "k2", "k3", "k4"]);
}

#[test]
fn only_the_newest_hello_waits() {
    let directory = tempfile::tempdir().unwrap();
    let spool = Spool::open(directory.path()).unwrap();
    for (text, class) in [("h1", Class::Hello), ("k", Class::Keep), ("h2", Class::Hello)] {
        spool.add(&report(text), class, false).unwrap();
    }

    assert_eq!(waiting(&spool), ["k", "h2"]);
}

#[test]
fn a_report_that_a_power_failure_emptied_does_not_block_the_others() {
    let directory = tempfile::tempdir().unwrap();
    let spool = Spool::open(directory.path()).unwrap();
    spool.add(&report("lost"), Class::Log, false).unwrap();
    spool.add(&report("kept"), Class::Keep, true).unwrap();
    std::fs::write(spool.path(0, Class::Log), "").unwrap();

    assert_eq!(waiting(&spool), ["kept"]);
}

#[tokio::test(start_paused = true)]
async fn reports_that_follow_at_once_go_in_one_request() {
    let directory = tempfile::tempdir().unwrap();
    let (spool, queue, beat) = (Spool::open(directory.path()).unwrap(), Queue::with(Vec::new()), Beat::default());
    let reports = async {
        tokio::task::yield_now().await;
        spool.add(&report("started"), Class::Keep, false).unwrap();
        tokio::time::sleep(Duration::from_millis(1)).await;
        spool.add(&report("log"), Class::Log, false).unwrap();
        spool.emptied().await;
    };

    tokio::select! {
        () = sender::run(&spool, &queue, &beat) => panic!("the sender ended"),
        () = reports => {}
    }

    assert_eq!(queue.taken.into_inner().unwrap(), ["started", "log"]);
    assert_eq!(queue.calls.into_inner(), 1);
}

/// A queue that will never accept anything.
#[derive(Debug)]
struct Refusing;

#[async_trait]
impl Outbox for Refusing {
    async fn send(&self, bodies: &[String]) -> Result<Vec<Sent>, InboxError> {
        Ok(vec![Sent::Never("too long".into()); bodies.len()])
    }
}

#[tokio::test(start_paused = true)]
async fn a_hello_is_accepted_when_the_queue_has_it_and_not_when_it_was_dropped() {
    let directory = tempfile::tempdir().unwrap();
    let spool = Spool::open(directory.path()).unwrap();
    let taking = Queue::with(vec![Fate::Refused]);
    let queues: [&dyn Outbox; 2] = [&Refusing, &taking];
    let mut accepted = Vec::new();

    for queue in queues {
        let number = spool.add(&report("hello"), Class::Hello, false).unwrap();
        let beat = Beat::default();
        tokio::select! {
            () = sender::run(&spool, queue, &beat) => panic!("the sender ended"),
            is_accepted = spool.accepted_hello(number) => accepted.push(is_accepted),
        }
    }

    assert_eq!(accepted, [false, true]);
}

#[tokio::test(start_paused = true)]
async fn a_hello_that_a_newer_one_replaced_was_not_accepted() {
    let directory = tempfile::tempdir().unwrap();
    let spool = Spool::open(directory.path()).unwrap();
    let [first, second] = ["1", "2"].map(|text| spool.add(&report(text), Class::Hello, false).unwrap());

    spool.remove_sent(second);

    assert!(!spool.accepted_hello(first).await && spool.accepted_hello(second).await);
}
