//! The fault proxy between a real server and a real SDK client: the effect of each fault on a caller.

#![cfg(test)]

use std::time::Duration;

use aws_sdk_sqs::config::retry::RetryConfig;
use aws_sdk_sqs::config::timeout::TimeoutConfig;
use aws_sdk_sqs::config::{BehaviorVersion, Credentials, Region};
use aws_sdk_sqs::error::ProvideErrorMetadata;
use freehold_tests::fast_sqs::FastSqs;
use freehold_tests::http::Wire;
use freehold_tests::proxy::{Proxy, parse_rules};
use tokio::time::Instant;

struct Bench {
    sqs: FastSqs,
    proxy: Proxy,
}

impl Bench {
    async fn new(rules: &str) -> Self {
        let sqs = FastSqs::start("127.0.0.1:0").await.unwrap();
        let proxy = Proxy::start("127.0.0.1:0", &sqs.url(), 7, parse_rules(rules).unwrap()).await.unwrap();
        Self { sqs, proxy }
    }

    /// Returns a client that tries each call `attempts` times.
    fn client(&self, attempts: u32) -> aws_sdk_sqs::Client {
        let timeouts = TimeoutConfig::builder().operation_attempt_timeout(Duration::from_secs(100));
        let config = aws_sdk_sqs::Config::builder()
            .behavior_version(BehaviorVersion::latest())
            .region(Region::new("eu-west-1"))
            .credentials_provider(Credentials::new("111111111111", "local", None, None, "test"))
            .endpoint_url(self.proxy.url())
            .retry_config(
                RetryConfig::standard().with_max_attempts(attempts).with_initial_backoff(Duration::from_millis(5)),
            )
            .timeout_config(timeouts.build())
            .http_client(aws_smithy_http_client::Builder::new().build_http());
        aws_sdk_sqs::Client::from_conf(config.build())
    }

    async fn send(&self, attempts: u32) -> Result<(), aws_sdk_sqs::Error> {
        let call = self.client(attempts).send_message().queue_url(self.sqs.queue_url("q")).message_body("hello");
        call.send().await.map(drop).map_err(Into::into)
    }

    async fn waiting(&self) -> usize {
        let mut count = 0;
        while self.sqs.take("q", Instant::now()).await.is_some() {
            count += 1;
        }
        count
    }
}

#[tokio::test]
async fn without_rules_calls_pass_and_are_counted() {
    let bench = Bench::new("").await;

    bench.send(1).await.unwrap();

    assert_eq!(bench.waiting().await, 1);
    let counts = bench.proxy.counts();
    assert_eq!((counts.forwarded("sqs.SendMessage"), counts.messages_sent, counts.injected("*")), (1, 1, 0));
    assert_eq!(counts.callers.keys().collect::<Vec<_>>(), ["111111111111"]);
}

#[tokio::test]
async fn each_fault_fails_the_call_and_does_to_the_service_what_it_says() {
    let cases =
        [("drop-request", 0), ("drop-answer", 1), ("throttle", 0), ("error", 0), ("truncate", 1), ("black-hole:1", 0)];
    for (fault, arrived) in cases {
        let bench = Bench::new(&format!("sqs.SendMessage 1 {fault}")).await;

        let result = bench.send(1).await;

        assert!(result.is_err(), "{fault}");
        assert_eq!(bench.waiting().await, arrived, "{fault}");
        assert_eq!(bench.proxy.counts().injected("sqs.*"), 1, "{fault}");
    }
}

#[tokio::test]
async fn a_throttle_is_worded_as_the_service_words_it() {
    let bench = Bench::new("sqs.SendMessage 1 throttle").await;

    let error = bench.send(1).await.unwrap_err();

    assert_eq!(error.code(), Some("RequestThrottled"));
}

#[tokio::test]
async fn the_sdk_tries_again_unless_the_rule_is_stubborn() {
    let mild = Bench::new("sqs.SendMessage 1 drop-answer times=1").await;
    let stubborn = Bench::new("sqs.SendMessage 1 drop-answer times=1 stubborn").await;

    let results = (mild.send(3).await, stubborn.send(3).await);

    assert!(results.0.is_ok(), "{results:?}");
    assert!(results.1.is_err(), "{results:?}");
    assert_eq!((mild.waiting().await, stubborn.waiting().await), (2, 3));
}

#[tokio::test]
async fn a_duplicated_request_is_done_twice_and_answered_once() {
    let bench = Bench::new("sqs.SendMessage 1 duplicate").await;

    bench.send(1).await.unwrap();

    assert_eq!(bench.waiting().await, 2);
}

#[tokio::test]
async fn a_replayed_request_arrives_again_after_a_later_one() {
    let bench = Bench::new("sqs.SendMessage 1 replay:200 times=1").await;

    bench.send(1).await.unwrap();
    bench.send(1).await.unwrap();

    let deadline = Instant::now() + Duration::from_secs(100);
    let mut bodies = 0;
    while bodies < 3 && bench.sqs.take("q", deadline).await.is_some() {
        bodies += 1;
    }
    assert_eq!(bodies, 3);
}

#[tokio::test]
async fn a_delayed_answer_comes_after_the_effect() {
    let bench = Bench::new("sqs.SendMessage 1 delay-answer:60000").await;

    let mut sending = std::pin::pin!(bench.send(1));
    let taken = tokio::select! {
        sent = &mut sending => panic!("it was answered before its effect was seen: {sent:?}"),
        taken = bench.sqs.take("q", Instant::now() + Duration::from_secs(50)) => taken,
    };
    let early = tokio::time::timeout(Duration::from_millis(300), sending).await;

    assert!(taken.is_some());
    assert!(early.is_err(), "{early:?}");
}

#[tokio::test]
async fn a_held_request_continues_with_other_rules() {
    let bench = Bench::new("sqs.SendMessage 1 hold").await;

    let (sent, ()) = tokio::join!(bench.send(1), async {
        while bench.proxy.counts().injected("*") == 0 {
            tokio::task::yield_now().await;
        }
        bench.proxy.set_faults(7, Vec::new());
    });

    assert!(sent.is_ok(), "{sent:?}");
    assert_eq!(bench.waiting().await, 1);
}

/// A program with the name of a function's, since the proxy kills no others.
#[tokio::test]
async fn the_process_that_asks_is_killed_before_or_after_its_call() {
    if !freehold_skips::have(&["curl"]) {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let program = directory.path().join("bootstrap");
    let path = std::env::var_os("PATH").unwrap();
    let mut curl = std::env::split_paths(&path).map(|folder| folder.join("curl"));
    std::fs::copy(curl.find(|path| path.is_file()).unwrap(), &program).unwrap();
    for (fault, arrived) in [("kill-before", 0), ("kill-after", 1)] {
        let bench = Bench::new(&format!("sqs.SendMessage 1 {fault}")).await;
        let body = format!("{{\"QueueUrl\": \"{}\", \"MessageBody\": \"hello\"}}", bench.sqs.queue_url("q"));

        let asked = tokio::process::Command::new(&program)
            .args(["-sS", "-H", "X-Amz-Target: AmazonSQS.SendMessage", "--data", &body, &bench.proxy.url()])
            .status()
            .await
            .unwrap();

        assert_eq!(std::os::unix::process::ExitStatusExt::signal(&asked), Some(9), "{fault}: {asked}");
        assert_eq!(bench.waiting().await, arrived, "{fault}");
        assert_eq!(bench.proxy.counts().injected("sqs.SendMessage"), 1, "{fault}");
    }
}

#[tokio::test]
async fn a_job_stands_still_at_its_first_line_while_jobs_are_held() {
    let bench = Bench::new("").await;
    let effects = bench.proxy.effects();
    effects.hold(true);
    let mut job = Wire::connect(bench.proxy.url().trim_start_matches("http://")).await.unwrap();
    job.write(b"POST /__proxy/effect?begin%20note%200%20one HTTP/1.1\r\nContent-Length: 0\r\n\r\n").await.unwrap();
    effects.more_than(0).await;

    let early = tokio::time::timeout(Duration::from_millis(300), job.answer("POST")).await;
    effects.hold(false);
    let answer = job.answer("POST").await.unwrap();

    assert!(early.is_err(), "{early:?}");
    assert_eq!(answer.status(), 200);
    assert_eq!(effects.lines(), ["begin note 0 one"]);
}

#[tokio::test]
async fn a_repeated_answer_hands_a_message_out_twice() {
    let bench = Bench::new("sqs.ReceiveMessage 1 repeat-answer").await;
    bench.sqs.send("q", "once", None, None);
    let receive = || async {
        let call = bench.client(1).receive_message().queue_url(bench.sqs.queue_url("q"));
        call.send().await.unwrap().messages.unwrap_or_default().pop().and_then(|message| message.receipt_handle)
    };

    let (first, second) = (receive().await, receive().await);

    assert!(first.is_some());
    assert_eq!(first, second);
}

#[tokio::test]
async fn a_long_poll_passes_and_wakes() {
    let bench = Bench::new("").await;
    let call = bench.client(1).receive_message().queue_url(bench.sqs.queue_url("q")).wait_time_seconds(20);
    let poll = tokio::spawn(call.send());
    while bench.proxy.counts().operations.is_empty() {
        tokio::task::yield_now().await;
    }

    bench.sqs.send("q", "late", None, None);

    let messages = poll.await.unwrap().unwrap().messages.unwrap_or_default();
    assert_eq!(messages.len(), 1);
}

#[tokio::test]
async fn a_poll_whose_answer_comes_after_its_rules_are_gone_gets_it() {
    let bench = Bench::new("sqs.ReceiveMessage 1 drop-answer").await;
    let call = bench.client(1).receive_message().queue_url(bench.sqs.queue_url("q")).wait_time_seconds(20);
    let poll = tokio::spawn(call.send());
    while bench.proxy.counts().injected("*") == 0 {
        tokio::task::yield_now().await;
    }

    bench.proxy.set_faults(7, Vec::new());
    bench.sqs.send("q", "late", None, None);

    let messages = poll.await.unwrap().unwrap().messages.unwrap_or_default();
    assert_eq!(messages.len(), 1);
}

#[tokio::test]
async fn fifo_groups_wait_for_their_first_message_and_duplicates_are_dropped() {
    let sqs = FastSqs::start("127.0.0.1:0").await.unwrap();
    for (body, group, id) in [("a1", "a", "1"), ("a2", "a", "2"), ("a1 again", "a", "1"), ("b1", "b", "3")] {
        sqs.send("q.fifo", body, Some(group), Some(id));
    }

    let mut bodies = Vec::new();
    while let Some(body) = sqs.take("q.fifo", Instant::now()).await {
        bodies.push(body);
    }

    assert_eq!(bodies, ["a1", "a2", "b1"]);
}
