//! The last part of a log is in the report that ends its attempt. It is stored whatever the end is, and before it.

use std::sync::{Arc, Mutex};

use freehold_app::read;
use freehold_app::workflow::accept_report::AcceptReport;
use freehold_protocol::limits::MAX_LOG_BYTES_PER_REPORT;
use freehold_protocol::report::{AttemptEvent, Fence, Outcome, Refusal, RefusalReason, ReportBody};
use futures_util::FutureExt as _;

use crate::support::World;
use crate::support::interleaving::Interleaved;
use crate::support::member;
use crate::support::runner::Behaviour;

#[tokio::test]
async fn whoever_sees_the_end_of_a_job_finds_the_last_part_of_its_log() {
    let (mut before, mut after) = (0, 0);
    for succeeds in [true, false] {
        for at in 0..30 {
            let (mut world, workflow) = World::deploying(Behaviour::Hangs).await;
            let job = world.workflow(&workflow).await.active_jobs().next().unwrap().clone();
            let outcome = if succeeds {
                Outcome::Succeeded { outputs: Default::default(), sensitive: Default::default(), artifact: None }
            } else {
                Outcome::Failed { reason: "exit status 1".into(), partial: false }
            };
            let now = world.now();
            let end = world.runner("globex").finish(&job, outcome, now).pop().unwrap();
            let seen = Arc::new(Mutex::new(None));
            let (memory, page) = (world.memory.clone(), seen.clone());
            // Between two calls of the function, somebody reads the log.
            let act = move || {
                let (memory, job, page) = (memory.clone(), job.clone(), page.clone());
                async move { *page.lock().unwrap() = Some(read::list_logs(&*memory, &job, None).await.unwrap()) }
                    .boxed()
            };
            let store = Arc::new(Interleaved::new(world.memory.clone(), at, Box::new(act)));

            AcceptReport { store, ..world.accept_report() }.accept(&end, now).await.unwrap();

            let Some(page) = seen.lock().unwrap().take() else { break };
            assert!(!page.ended || !page.chunks.is_empty(), "an end without its log before call {at}");
            (before, after) = (before + u32::from(!page.ended), after + u32::from(page.ended));
        }
    }
    assert!(before > 0 && after > 0, "{before} readers came before the end, {after} after it");
}

#[tokio::test]
async fn the_log_of_an_attempt_that_ends_after_its_job_was_cancelled_is_kept() {
    let (world, workflow) = World::deploying(Behaviour::Ignores).await;
    let job = world.workflow(&workflow).await.active_jobs().next().unwrap().clone();
    let (runner, now) = (&world.runners["globex"], world.now());
    let (first, second) = (Fence { dispatch: 1, receive: 1 }, Fence { dispatch: 1, receive: 2 });
    let accept = async |report: String| world.accept_report().accept(&report, now).await.unwrap();
    let _ = accept(runner.says(&job, first, 1, AttemptEvent::Started, now)).await;
    world.cancel_workflow().cancel(&workflow, &Default::default(), member()).await.unwrap();
    // A second delivery of the order is refused, which ends the job before the first attempt has stopped.
    let refusal = Refusal {
        reason: RefusalReason::Cancelled,
        detail: String::new(),
        message: freehold_protocol::Digest::of(b"order"),
        job: Some((job.clone(), second)),
        given_back: false,
        until: None,
    };
    let _ = accept(runner.sign(&runner.report(ReportBody::Refused(refusal), now))).await;
    assert_eq!(world.job(&job).await.state.as_str(), "cancelled");

    let end = AttemptEvent::finished(Outcome::Cancelled, "stopped\n");
    let _ = accept(runner.says(&job, first, 2, end, now)).await;

    let page = read::list_logs(&*world.memory, &job, None).await.unwrap();
    assert_eq!(page.chunks.into_iter().map(|chunk| chunk.text).collect::<String>(), "stopped\n");
}

/// The response of a Lambda function has at most 6 MB. Inside of it the page is a text, in which the escape of a
/// control character has another backslash.
#[tokio::test]
async fn a_full_page_with_a_long_log_of_a_modified_runner_fits_into_a_response() {
    let (world, workflow) = World::deploying(Behaviour::Hangs).await;
    let job = world.workflow(&workflow).await.active_jobs().next().unwrap().clone();
    let (runner, now) = (&world.runners["globex"], world.now());
    let fence = Fence { dispatch: 1, receive: 1 };
    let says = async |seq: u64, event: AttemptEvent| {
        world.accept_report().accept(&runner.says(&job, fence, seq, event, now), now).await.unwrap();
    };
    for seq in 2..51 {
        says(seq, AttemptEvent::Progress { log: "\u{1}".repeat(MAX_LOG_BYTES_PER_REPORT) }).await;
    }
    let success = Outcome::Succeeded {
        outputs: [("name".to_owned(), "x".into())].into(),
        sensitive: Default::default(),
        artifact: None,
    };
    says(51, AttemptEvent::finished(success, &"\u{1}".repeat(MAX_LOG_BYTES_PER_REPORT + 1))).await;
    assert_eq!(world.job(&job).await.state.as_str(), "succeeded");

    let page = read::list_logs(&*world.memory, &job, None).await.unwrap();

    let last = &page.chunks.last().unwrap().text;
    assert_eq!((page.chunks.len(), page.ended, last.len()), (50, true, MAX_LOG_BYTES_PER_REPORT));
    assert!(last.ends_with(" [cut]"));
    let body = serde_json::to_string(&page).unwrap();
    assert!(serde_json::to_string(&body).unwrap().len() < 6 * 1024 * 1024);
}
