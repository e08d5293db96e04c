//! Reports: which are authentic, what they change, and the answer to late reports.

mod attempted_parts;
mod heads;
mod last_log;
mod last_report;
mod policies;
mod replaced_runner;
mod role;
mod role_switches;
mod unknown_keys;

use freehold_app::AppError;
use freehold_app::Kind;
use freehold_app::messages::DispatchMessage;
use freehold_app::ports::Store as _;
use freehold_app::read;
use freehold_app::table::contact_key;
use freehold_app::workflow::accept_report::{Accepted, Arrival};
use freehold_domain::JobState;
use freehold_protocol::envelope::PublicKey;
use freehold_protocol::limits::{MAX_ENVELOPE_BYTES, MAX_LOG_BYTES_PER_REPORT};
use freehold_protocol::order::Cancel;
use freehold_protocol::report::{AttemptEvent, AttemptReport, Fence, Outcome, ReportBody};
use freehold_protocol::{Envelope, JobId, WorkflowId};
use proptest::prelude::*;

use crate::support::doubles::queue_url;
use crate::support::runner::{Behaviour, Runner};
use crate::support::walk::At;
use crate::support::{World, globex, member};

const FIRST: Fence = Fence { dispatch: 1, receive: 1 };
const SECOND: Fence = Fence { dispatch: 1, receive: 2 };

/// Returns a world in which `globex` is deploying, with the job of `storage` under way.
async fn deploying(behaviour: Behaviour) -> (World, WorkflowId, JobId) {
    let (world, workflow) = World::deploying(behaviour).await;
    let job = world.workflow(&workflow).await.active_jobs().next().unwrap().clone();
    (world, workflow, job)
}

async fn accept(world: &World, body: &str) -> Result<Accepted, AppError> {
    world.accept_report().accept(body, world.now()).await
}

fn progress(log: &str) -> AttemptEvent {
    AttemptEvent::Progress { log: log.to_owned() }
}

fn finished(outcome: Outcome) -> AttemptEvent {
    AttemptEvent::finished(outcome, "")
}

fn success() -> Outcome {
    Outcome::Succeeded {
        outputs: [("name".to_owned(), "x".into())].into(),
        sensitive: Default::default(),
        artifact: None,
    }
}

#[tokio::test]
async fn a_report_that_cannot_be_believed_is_invalid_and_changes_nothing() {
    let (mut world, _, job) = deploying(Behaviour::Hangs).await;
    world.runners.insert("initech".into(), Runner::new(&world.tenant, "initech", queue_url("initech"), 30));
    world.create_install().create(&world.creation("initech"), member()).await.unwrap();
    let hello = world.runners["initech"].hello(world.now());
    accept(&world, &hello).await.unwrap();
    let now = world.now();
    let globex = &world.runners["globex"];
    let good = globex.says(&job, FIRST, 9, finished(success()), now);
    let mut envelope = Envelope::parse(good.as_bytes()).unwrap();
    let mut claimed = globex.clone();
    claimed.key = ed25519_dalek::SigningKey::from_bytes(&[99; 32]);
    let mut forged = envelope.clone();
    forged.signatures[0].sig =
        Envelope::parse(claimed.says(&job, FIRST, 9, finished(success()), now).as_bytes()).unwrap().signatures[0]
            .sig
            .clone();
    envelope.signatures.clear();
    let mut other_tenant = globex.clone();
    other_tenant.tenant = "umbrella".parse().unwrap();
    let mut unknown_install = globex.clone();
    unknown_install.install = "nobody".parse().unwrap();
    let cancel = Cancel {
        tenant: world.tenant.clone(),
        install: globex.install.clone(),
        job: job.clone(),
        dispatch: 1,
        receive: None,
        runner: None,
        asked_by: None,
        asker: None,
        asked_why: None,
        issued_at: now,
        not_after: now,
    };
    let unknown_job = JobId::derive(&WorkflowId::derive("x", "y"), "z");
    let says = |runner: &Runner| runner.says(&job, FIRST, 9, finished(success()), now);
    let bad = [
        ("with the signature of another key", forged.to_json().unwrap()),
        ("without signature", envelope.to_json().unwrap()),
        ("of another tenant", says(&other_tenant)),
        ("of another install about this job", says(&world.runners["initech"])),
        ("about an unknown job", globex.says(&unknown_job, FIRST, 1, progress(""), now)),
        ("of another kind", Envelope::seal(&cancel, &[&globex.key]).unwrap().to_json().unwrap()),
        ("that is too large", "x".repeat(MAX_ENVELOPE_BYTES + 1)),
        ("that is not JSON", "{".into()),
        ("that is empty", String::new()),
    ];
    let before = world.believed();
    let rows = world.memory.rows();

    let nobody = accept(&world, &says(&unknown_install)).await.unwrap();
    assert!(matches!(nobody, Accepted::Refused(_)), "{nobody:?}");
    assert_eq!(world.memory.rows(), rows, "nobody would remove a row of an install that does not exist");

    for (what, body) in bad {
        let error = accept(&world, &body).await.expect_err(what);

        assert_eq!(error.kind, Kind::Invalid, "a report {what}");
        assert_eq!(world.believed(), before, "a report {what}");
        assert!(world.memory.take_dispatched().is_empty(), "a report {what}");
    }
    assert_eq!(accept(&world, &good).await.unwrap(), Accepted::Taken);
}

/// Reports and hellos can overtake each other on the way, so a report may come before the hello that announces its key.
#[tokio::test]
async fn a_report_of_an_unknown_key_waits_for_its_hello() {
    let (world, _, job) = deploying(Behaviour::Hangs).await;
    let new = Runner::new(&world.tenant, "globex", queue_url("globex"), 21);
    let end = new.says(&job, SECOND, 1, finished(success()), world.now());
    let before = world.believed();

    let early = accept(&world, &end).await.unwrap_err();
    let unchanged = world.believed();
    accept(&world, &new.hello(world.now())).await.unwrap();
    let later = accept(&world, &end).await.unwrap();

    assert_eq!((early.kind, unchanged), (Kind::Conflict, before));
    assert_eq!(later, Accepted::Taken);
    assert!(matches!(world.job(&job).await.state, JobState::Succeeded { fence: SECOND, .. }));
}

#[tokio::test]
async fn messages_that_nobody_can_believe_are_kept_up_to_a_hundred_a_day_for_each_install_and_for_unknown_roles_together()
 {
    let (world, _, _) = deploying(Behaviour::Hangs).await;
    let send = async |world: &World, role: &str, install: Option<&str>| {
        let install = install.map(|name| name.parse().unwrap());
        let arrival = Arrival { sender: Some(role.to_owned()), install, ..Arrival::from(world.now()) };
        match world.accept_report().accept_or_drop("{", arrival).await {
            Err(error) if error.kind == Kind::Invalid => "kept",
            Ok(Accepted::Refused(_)) => "dropped",
            other => panic!("{other:?}"),
        }
    };
    for at in 0..100 {
        assert_eq!(send(&world, "AROAGLOBEX", Some("globex")).await, "kept", "{at}");
        assert_eq!(send(&world, &format!("AROA{at}"), None).await, "kept", "{at}");
    }

    assert_eq!(send(&world, "AROAGLOBEX", Some("globex")).await, "dropped");
    assert_eq!(send(&world, "AROANEW", None).await, "dropped");
    assert_eq!(send(&world, "AROAINITECH", Some("initech")).await, "kept");
    let (heard, now) = (world.runners["globex"].hello(world.now()), world.now());
    assert_eq!(world.accept_report().accept_or_drop(&heard, now.into()).await.unwrap(), Accepted::Taken);
    world.memory.advance_secs(24 * 3600);
    assert_eq!(send(&world, "AROAGLOBEX", Some("globex")).await, "kept");
}

#[tokio::test]
async fn an_install_is_heard_of_by_the_reports_of_its_jobs_without_a_write_of_its_own() {
    let (world, _, job) = deploying(Behaviour::Ignores).await;
    let heard = async || {
        read::show_install(&world.versions(), &globex(), world.now()).await.unwrap().runner.unwrap().last_contact
    };
    let contact = async || world.memory.get(&contact_key(&globex())).await.unwrap();
    let before = contact().await;

    for (event, seq) in [(AttemptEvent::Started, 1), (progress("one\n"), 2), (finished(success()), 3)] {
        world.memory.advance_secs(90);
        let report = world.runners["globex"].says(&job, FIRST, seq, event, world.now());
        let _ = accept(&world, &report).await.unwrap();

        assert_eq!(heard().await, Some(world.now()), "report {seq}");
    }
    let installs = read::list_installs(&*world.memory, None, world.now(), &|_| true).await.unwrap();

    assert_eq!(contact().await, before);
    assert_eq!(installs.items[0].runner.as_ref().unwrap().last_contact, Some(world.now()));
}

#[tokio::test]
async fn a_heartbeat_is_always_a_sign_of_life() {
    let world = World::with_install().await;
    world.memory.advance_secs(120);
    let heartbeat = world.runners["globex"].sign(&world.runners["globex"].report(ReportBody::Heartbeat, world.now()));

    let _ = accept(&world, &heartbeat).await.unwrap();

    let view = read::show_install(&world.versions(), &globex(), world.now()).await.unwrap();
    assert_eq!(view.runner.unwrap().last_contact, Some(world.now()));
}

#[tokio::test]
async fn a_stale_attempt_is_recorded_and_cancelled() {
    let (mut world, _, job) = deploying(Behaviour::Hangs).await;
    let (now, runner) = (world.now(), world.runners["globex"].clone());
    accept(&world, &runner.says(&job, SECOND, 1, AttemptEvent::Started, now)).await.unwrap();
    let before = world.believed();

    let answer = accept(&world, &runner.says(&job, FIRST, 5, finished(success()), now)).await.unwrap();

    let reason = format!("attempt 1.1 of job `{job}` is stale: attempt 1.2 has replaced it");
    assert_eq!(answer, Accepted::Refused(reason.clone()));
    assert_eq!(world.refusals(), [reason]);
    assert_eq!(world.believed(), before);
    let key: PublicKey = runner.key.verifying_key().into();
    let cancel =
        DispatchMessage::Cancel { job: job.clone(), dispatch: 1, receive: Some(1), runner: Some(key.key_id()) };
    assert_eq!(world.memory.take_dispatched(), std::slice::from_ref(&cancel));
    world.dispatch_job().perform(&cancel).await.unwrap();
    world.run().await;
    assert!(matches!(world.job(&job).await.state, JobState::Running { fence: SECOND, .. }));
}

#[tokio::test]
async fn an_attempt_that_was_never_dispatched_is_refused() {
    let (world, _, job) = deploying(Behaviour::Hangs).await;
    let fence = Fence { dispatch: 2, receive: 1 };
    let before = world.believed();

    let answer =
        accept(&world, &world.runners["globex"].says(&job, fence, 1, finished(success()), world.now())).await.unwrap();

    assert!(matches!(answer, Accepted::Refused(_)));
    assert_eq!((world.believed(), world.refusals().len()), (before, 1));
}

#[tokio::test]
async fn a_runner_that_names_a_job_of_another_install_writes_nothing_into_it() {
    use freehold_protocol::report::{Refusal, RefusalReason};
    let (mut world, _, job) = deploying(Behaviour::Hangs).await;
    world.runners.insert("initech".into(), Runner::new(&world.tenant, "initech", queue_url("initech"), 30));
    world.create_install().create(&world.creation("initech"), member()).await.unwrap();
    let hello = world.runners["initech"].hello(world.now());
    accept(&world, &hello).await.unwrap();
    let refusal = Refusal {
        reason: RefusalReason::Expired,
        detail: "words of another customer".into(),
        message: freehold_protocol::Digest::of(b"order"),
        job: Some((job.clone(), FIRST)),
        given_back: false,
        until: None,
    };
    let runner = &world.runners["initech"];
    let report = runner.sign(&runner.report(ReportBody::Refused(refusal), world.now()));

    let taken = accept(&world, &report).await.unwrap();

    assert_eq!((taken, world.refusals().len()), (Accepted::Taken, 1));
    let rows = world.memory.rows();
    let refused: Vec<_> = rows.iter().filter(|row| row.key.sk.starts_with("refused#")).map(|row| &row.key.pk).collect();
    assert_eq!(refused, ["install#initech"]);
}

#[tokio::test]
async fn outputs_and_texts_over_their_limits_end_the_job_with_a_reason_that_fits() {
    let (world, _, job) = deploying(Behaviour::Hangs).await;
    let outputs = [("name".to_owned(), "x".repeat(200_000).into())].into();
    let success = Outcome::Succeeded { outputs, sensitive: Default::default(), artifact: None };
    let end = AttemptEvent::finished(success, &"y".repeat(150_000));

    let taken = accept(&world, &world.runners["globex"].says(&job, FIRST, 2, end, world.now())).await.unwrap();

    assert_eq!(taken, Accepted::Taken);
    let state = world.job(&job).await.state;
    assert!(state.reason().is_some_and(|reason| reason.contains("bytes of outputs")), "{state:?}");
    let logs = freehold_app::read::list_logs(&*world.memory, &job, None).await.unwrap();
    assert!(logs.chunks.iter().all(|chunk| chunk.text.len() <= MAX_LOG_BYTES_PER_REPORT));
}

#[tokio::test]
async fn the_log_of_a_stale_attempt_is_not_kept() {
    let (world, _, job) = deploying(Behaviour::Ignores).await;
    let runner = &world.runners["globex"];
    accept(&world, &runner.says(&job, SECOND, 1, AttemptEvent::Started, world.now())).await.unwrap();

    let stale = accept(&world, &runner.says(&job, FIRST, 5, progress("stale\n"), world.now())).await.unwrap();

    assert!(matches!(stale, Accepted::Refused(_)));
    assert!(freehold_app::read::list_logs(&*world.memory, &job, None).await.unwrap().chunks.is_empty());
}

#[tokio::test]
async fn frequent_progress_is_written_down_once_a_minute() {
    let (world, _, job) = deploying(Behaviour::Hangs).await;
    let runner = &world.runners["globex"];
    let (rows, beats) = (world.memory.rows(), world.memory.beats.lock().unwrap().len());

    accept(&world, &runner.says(&job, FIRST, 2, progress(""), world.now())).await.unwrap();
    let quiet = (world.memory.rows(), world.memory.beats.lock().unwrap().len());
    world.memory.advance_secs(60);
    accept(&world, &runner.says(&job, FIRST, 3, progress(""), world.now())).await.unwrap();

    assert_eq!(quiet, (rows, beats));
    let JobState::Running { last_contact, last_seq, .. } = world.job(&job).await.state else { panic!("not running") };
    assert_eq!((last_contact, last_seq), (world.now(), 3));
    assert_eq!(world.memory.beats.lock().unwrap().len(), beats + 1);
}

#[tokio::test]
async fn the_end_of_a_job_is_sent_again_when_the_callback_was_lost() {
    let outcomes = [success(), Outcome::Failed { reason: "no".into(), partial: true }, Outcome::Cancelled];
    for outcome in outcomes {
        let (mut world, workflow, job) = deploying(Behaviour::Hangs).await;
        world.runner("globex").behaviours.insert("info".into(), Behaviour::Hangs);
        world.runner("globex").started.clear();
        let end = world.runners["globex"].says(&job, FIRST, 2, finished(outcome.clone()), world.now());
        world
            .memory
            .faults
            .set(|what| ["succeed", "dispatch"].contains(&what).then_some(freehold_app::testing::Fault::Before));
        let lost = accept(&world, &end).await.unwrap_err();
        world.memory.faults.set(|_| None);

        let again = accept(&world, &end).await.unwrap();
        world.run().await;

        assert!(lost.is_transient());
        assert_eq!(again, Accepted::Taken);
        match outcome {
            Outcome::Succeeded { .. } => assert_eq!(world.runners["globex"].started.last().unwrap(), "info"),
            _ => assert!(matches!(world.machines[&workflow].at, At::Ended("failed")), "{outcome:?}"),
        }
        assert!(world.refusals().is_empty());
    }
}

#[tokio::test]
async fn a_refused_order_is_put_on_record_and_ends_nothing() {
    use freehold_protocol::report::{Refusal, RefusalReason};
    let (world, _, job) = deploying(Behaviour::Ignores).await;
    let before = world.believed();
    let refusal = Refusal {
        reason: RefusalReason::Cancelled,
        detail: "attempt was replaced".into(),
        message: freehold_protocol::Digest::of(b"order"),
        job: Some((job.clone(), FIRST)),
        given_back: false,
        until: None,
    };
    let runner = &world.runners["globex"];
    let report = runner.sign(&runner.report(ReportBody::Refused(refusal), world.now()));

    accept(&world, &report).await.unwrap();

    // Nobody asked to cancel the job itself.
    assert_eq!(world.believed(), before);
    assert_eq!(world.refusals(), ["order refused as cancelled: attempt was replaced"]);
}

#[tokio::test]
async fn an_order_that_its_runner_does_not_understand_ends_its_job_with_the_way_out() {
    use freehold_protocol::report::{Refusal, RefusalReason};
    let (world, _, job) = deploying(Behaviour::Ignores).await;
    let detail = "the order needs `plan_only`, which a runner of version 0.1.0 does not know; update the runner";
    let refusal = |fence| Refusal {
        reason: RefusalReason::NotUnderstood,
        detail: detail.into(),
        message: freehold_protocol::Digest::of(b"order"),
        job: Some((job.clone(), fence)),
        given_back: false,
        until: None,
    };
    let runner = &world.runners["globex"];
    let report = |fence| runner.sign(&runner.report(ReportBody::Refused(refusal(fence)), world.now()));

    // A dispatch that does not exist ends nothing.
    let never = accept(&world, &report(Fence { dispatch: 2, receive: 1 })).await.unwrap();
    assert_eq!((never, world.job(&job).await.state.as_str()), (Accepted::Taken, "queued"));
    // The report may come twice.
    accept(&world, &report(FIRST)).await.unwrap();
    accept(&world, &report(FIRST)).await.unwrap();

    let ended = world.job(&job).await;
    assert_eq!(ended.state.as_str(), "failed");
    assert_eq!(ended.reason().unwrap(), format!("order refused as not_understood: {detail}"));
    assert!(!ended.may_have_changed());
}

fn outcomes() -> impl Strategy<Value = Outcome> {
    prop_oneof![
        Just(success()),
        Just(Outcome::Failed { reason: "no".into(), partial: false }),
        Just(Outcome::Interrupted { reason: "died".into() }),
        Just(Outcome::Cancelled),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]

    #[test]
    fn reports_in_any_order_end_in_the_same_state(
        outcome in outcomes(),
        order in Just(vec![0, 0, 1, 1, 2, 2, 3, 3]).prop_shuffle(),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let (mut world, workflow, job) = deploying(Behaviour::Ignores).await;
            let runner = world.runners["globex"].clone();
            let events = [
                AttemptEvent::Started,
                progress("one\n"),
                progress("two\n"),
                AttemptEvent::finished(outcome.clone(), "three\n"),
            ];
            let reports: Vec<_> = events
                .into_iter()
                .zip(1..)
                .map(|(event, seq)| runner.says(&job, FIRST, seq, event, world.now()))
                .collect();

            for at in order {
                accept(&world, &reports[at]).await.unwrap();
            }
            world.run().await;

            let state = world.job(&job).await.state;
            let expected = match &outcome {
                Outcome::Succeeded { .. } => "succeeded",
                Outcome::Failed { .. } => "failed",
                Outcome::Interrupted { .. } => "interrupted",
                Outcome::Blocked { .. } => "blocked",
                Outcome::Cancelled => "cancelled",
                Outcome::NeedsApproval { .. } => "waiting_for_approval",
            };
            assert_eq!(state.as_str(), expected);
            assert!(world.workflow(&workflow).await.state.is_terminal());
            let logs = freehold_app::read::list_logs(&*world.memory, &job, None).await.unwrap();
            let text: String = logs.chunks.into_iter().map(|chunk| chunk.text).collect();
            assert_eq!((text.as_str(), logs.ended), ("one\ntwo\nthree\n", true));
        });
    }
}
