//! Grants: one artifact, once, for the attempt that holds the job.

use std::collections::BTreeMap;

use freehold_app::messages::{GrantMessage, Wants};
use freehold_app::ports::{Committed, Expect, Key, Row, Store};
use freehold_app::table::{self, Record, grant_key, install_key};
use freehold_app::testing::Fault;
use freehold_domain::Job;
use freehold_domain::build::Build;
use freehold_domain::install::Install;
use freehold_protocol::grant::{GrantAnswer, GrantRefusal};
use freehold_protocol::order::Artifact;
use freehold_protocol::provenance::{BuildFacts, Expected, Provenance, Statement};
use freehold_protocol::report::{Fence, Outcome};
use freehold_protocol::{Digest, GrantId, Timestamp};

use crate::support::grants::grant_request;
use crate::support::runner::Behaviour;
use crate::support::{World, app, with_input};

/// Returns a world in which the job of `storage` runs, its artifact, and a request for one of its two blobs.
async fn running() -> (World, Artifact, GrantMessage) {
    let mut world = World::with_install().await;
    world.runner("globex").behaviours.insert("storage".into(), Behaviour::Hangs);
    let workflow = world.deploy(&with_input("days", 8), "deploy-1").await.unwrap();
    world.run().await;
    let job = world.workflow(&workflow).await.active_jobs().next().unwrap().clone();
    let artifact = world.runners["globex"].attempts[&job].order.work.artifact().unwrap().clone();
    let request = grant_request(&job, &artifact.digest, vec![artifact.blobs[1].digest.clone()], 2);
    world.forget_orders();
    (world, artifact, request)
}

fn blobs(digest: &Digest) -> Wants {
    Wants::Blobs { missing: vec![digest.clone()], round: 0 }
}

fn refused(refusal: GrantRefusal, reason: &str) -> GrantAnswer {
    GrantAnswer::Refused { refusal, reason: reason.into() }
}

#[tokio::test]
async fn the_first_request_is_answered_with_the_missing_blobs_alone() {
    let (world, artifact, request) = running().await;

    world.grant_artifact().answer(&request).await.unwrap();

    let [(dedup, grant)] = &world.grants()[..] else { panic!("expected one answer") };
    let GrantAnswer::Granted { manifests, blobs } = &grant.answer else { panic!("{:?}", grant.answer) };
    assert_eq!(*dedup, request.grant.to_string());
    assert_eq!((&grant.job, grant.fence, &grant.artifact), (&request.job, request.fence, &artifact.digest));
    assert_eq!(manifests.iter().map(|m| &m.digest).collect::<Vec<_>>(), [&artifact.digest]);
    assert_eq!(
        blobs.iter().map(|b| (&b.digest, b.size)).collect::<Vec<_>>(),
        [(&artifact.blobs[1].digest, artifact.blobs[1].size)]
    );
    assert!(world.refusals().is_empty());
}

#[tokio::test]
async fn the_same_request_again_is_answered_again() {
    let (world, _, request) = running().await;
    world.grant_artifact().answer(&request).await.unwrap();
    let sent = world.grants();
    world.memory.orders.lock().unwrap().clear();
    world.memory.advance_secs(30);

    world.grant_artifact().answer(&request).await.unwrap();

    let again = world.grants();
    assert_eq!((&again[0].0, &again[0].1.answer), (&sent[0].0, &sent[0].1.answer));
    assert!(world.refusals().is_empty());
}

#[tokio::test]
async fn a_second_use_of_a_grant_is_refused_and_put_on_record() {
    let (world, _, request) = running().await;
    world.grant_artifact().answer(&request).await.unwrap();

    world.grant_artifact().answer(&GrantMessage { seq: 7, ..request.clone() }).await.unwrap();

    let all = world.grants();
    assert_eq!(all.len(), 2);
    assert_eq!(all[1].1.answer, refused(GrantRefusal::UsedBefore, "grant was used before"));
    assert_eq!(world.refusals(), ["grant was used before"]);
}

/// A runner that repeats one report would otherwise get new URLs as soon as SQS has forgotten the deduplication id.
#[tokio::test]
async fn the_same_report_again_gets_no_other_blobs_and_nothing_once_sqs_may_have_forgotten_it() {
    let (mut world, artifact, request) = running().await;
    world.grant_artifact().answer(&request).await.unwrap();
    world.forget_orders();
    let other = GrantMessage { wants: blobs(&artifact.blobs[0].digest), ..request.clone() };

    world.grant_artifact().answer(&other).await.unwrap();
    for _ in 0..8 {
        world.memory.advance_secs(250);
        world.grant_artifact().answer(&request).await.unwrap();
    }

    let all = world.grants();
    assert!(all.iter().all(|(_, grant)| matches!(grant.answer, GrantAnswer::Refused { .. })), "{all:?}");
}

#[tokio::test]
async fn a_request_that_got_no_answer_is_answered_however_late_it_is_delivered_again() {
    let (world, _, request) = running().await;
    world.memory.faults.set(|call| (call == "send").then_some(Fault::Before));
    let error = world.grant_artifact().answer(&request).await.unwrap_err();
    world.memory.faults.set(|_| None);
    world.memory.advance_secs(120);

    world.grant_artifact().answer(&request).await.unwrap();

    assert!(error.is_transient());
    assert!(matches!(world.grants()[0].1.answer, GrantAnswer::Granted { .. }));
}

#[tokio::test]
async fn requests_beyond_the_job_are_refused_and_burn_nothing() {
    let (world, artifact, request) = running().await;
    let other = Digest::of(b"other artifact");
    let fence = Fence { dispatch: 1, receive: 2 };
    let bad = [
        (
            "other artifact",
            GrantMessage {
                artifact: other.clone(),
                grant: GrantId::derive(&request.job, 1, 1, &other),
                ..request.clone()
            },
        ),
        (
            "other attempt",
            GrantMessage { fence, grant: GrantId::derive(&request.job, 1, 2, &artifact.digest), ..request.clone() },
        ),
        (
            "other attempt's grant",
            GrantMessage { grant: GrantId::derive(&request.job, 1, 2, &artifact.digest), ..request.clone() },
        ),
        ("foreign blob", GrantMessage { wants: blobs(&Digest::of(b"foreign")), ..request.clone() }),
    ];

    for (at, (what, bad)) in bad.into_iter().enumerate() {
        world.grant_artifact().answer(&GrantMessage { seq: 10 + at as u64, ..bad }).await.unwrap();

        let all = world.grants();
        assert!(matches!(all[at].1.answer, GrantAnswer::Refused { .. }), "{what}");
        world.memory.advance_secs(1);
    }
    assert!(!world.memory.rows().iter().any(|row| row.key == grant_key(&request.job, &request.grant)));
    assert!(!world.refusals().is_empty());
    world.grant_artifact().answer(&request).await.unwrap();
    assert!(matches!(world.grants().last().unwrap().1.answer, GrantAnswer::Granted { .. }));
}

#[tokio::test]
async fn each_refusal_is_kept_though_one_report_caused_several() {
    let (world, _, request) = running().await;
    let one = GrantMessage { wants: blobs(&Digest::of(b"foreign")), ..request.clone() };
    let two = GrantMessage { seq: 3, ..one.clone() };

    for request in [&one, &two, &one] {
        world.grant_artifact().answer(request).await.unwrap();
    }

    assert_eq!(world.refusals().len(), 2);
}

#[tokio::test]
async fn a_job_that_has_ended_gets_nothing() {
    let (mut world, _, request) = running().await;
    let now = world.now();
    let end = world.runner("globex").finish(&request.job, Outcome::Failed { reason: "no".into(), partial: false }, now);
    world.accept_report().accept(&end[0], world.now()).await.unwrap();

    world.grant_artifact().answer(&request).await.unwrap();

    assert!(matches!(world.grants()[0].1.answer, GrantAnswer::Refused { .. }));
    assert_eq!(world.refusals(), [format!("attempt 1.1 is not the current attempt of job `{}`", request.job)]);
}

#[tokio::test]
async fn a_registry_that_fails_leaves_the_grant_to_the_same_request() {
    let (world, _, request) = running().await;
    for what in ["manifest", "blob_url"] {
        world.memory.faults.set(move |call| (call == what).then_some(Fault::Before));

        let error = world.grant_artifact().answer(&request).await.unwrap_err();

        assert!(error.is_transient());
        assert!(world.grants().is_empty());
    }
    world.memory.faults.set(|_| None);

    world.grant_artifact().answer(&request).await.unwrap();

    assert!(matches!(world.grants()[0].1.answer, GrantAnswer::Granted { .. }));
}

#[tokio::test]
async fn a_registry_with_other_bytes_is_not_passed_on() {
    let (world, artifact, request) = running().await;
    world.registry.manifests.lock().unwrap().insert(artifact.digest.clone(), b"moved".to_vec());

    let error = world.grant_artifact().answer(&request).await.unwrap_err();

    assert_eq!(
        error.message,
        format!("tenant registry holds a manifest with another digest under `{}`", artifact.digest)
    );
    assert!(world.grants().is_empty());
}

/// Changes a stored record.
async fn change<R: Record>(world: &World, key: &Key, change: impl FnOnce(&mut R)) {
    let store: &dyn Store = &*world.memory;
    let mut known = table::load::<R>(store, key).await.unwrap().unwrap();
    change(&mut known.value);
    let write = table::put(&known.value, Expect::Any).unwrap();
    assert_eq!(store.commit(vec![write]).await.unwrap(), Committed::Done);
}

/// The name of the refusal in the one answer.
fn answered(world: &World) -> &'static str {
    match &world.grants().last().unwrap().1.answer {
        GrantAnswer::Refused { refusal, .. } => refusal.as_str(),
        GrantAnswer::Granted { .. } => "granted",
        GrantAnswer::Attested { .. } => "attested",
    }
}

#[tokio::test]
async fn each_refusal_has_its_own_reason() {
    let (world, artifact, request) = running().await;
    let ask = |request: &GrantMessage| {
        let (grants, request) = (world.grant_artifact(), request.clone());
        async move { grants.answer(&request).await.unwrap() }
    };
    let job_key = table::job_key(&request.job);
    let install_key = install_key(&request.install);

    change::<Install>(&world, &install_key, |install| install.disabled = Some("unpaid".into())).await;
    ask(&request).await;
    assert_eq!(answered(&world), "install_disabled");
    change::<Install>(&world, &install_key, |install| install.disabled = None).await;

    let mut until = Timestamp::default();
    change::<Job>(&world, &job_key, |job| until = std::mem::replace(&mut job.not_after, Timestamp::from_millis(1)))
        .await;
    ask(&GrantMessage { seq: 3, ..request.clone() }).await;
    assert_eq!(answered(&world), "expired");
    change::<Job>(&world, &job_key, |job| job.not_after = until).await;

    let holds = |row: &Row| row.key.sk.starts_with("build#") && row.body.contains(artifact.digest.as_str());
    let build_key = world.memory.rows().into_iter().find(holds).unwrap().key;
    change::<Build>(&world, &build_key, |build| build.revoked = Some("CVE-2026-1".into())).await;
    ask(&GrantMessage { seq: 4, ..request.clone() }).await;
    assert_eq!(answered(&world), "revoked");
    change::<Build>(&world, &build_key, |build| build.revoked = None).await;

    ask(&GrantMessage { seq: 5, wants: blobs(&Digest::of(b"foreign")), ..request.clone() }).await;
    assert_eq!(answered(&world), "other_blob");
    ask(&request).await;
    assert_eq!(answered(&world), "granted");
    ask(&GrantMessage { seq: 6, ..request.clone() }).await;
    assert_eq!(answered(&world), "used_before");
}

#[tokio::test]
async fn urls_that_expired_are_granted_again_in_turn_and_a_bounded_number_of_times() {
    let (world, artifact, request) = running().await;
    let again = |round: u32| GrantMessage {
        seq: 10 + u64::from(round),
        grant: GrantId::of_round(&request.job, request.fence, &artifact.digest, round),
        wants: Wants::Blobs { missing: vec![artifact.blobs[1].digest.clone()], round },
        ..request.clone()
    };

    let mut words = Vec::new();
    for round in [2, 0, 1, 2, 3, 4] {
        world.grant_artifact().answer(&again(round)).await.unwrap();
        words.push(answered(&world));
    }

    assert_eq!(words, ["too_many", "granted", "granted", "granted", "granted", "too_many"]);
}

#[tokio::test]
async fn what_a_build_pushed_is_attested_for_its_attempt_alone() {
    let mut world = World::with_app().await;
    world.sync(&app::with_source("storage", "example/storage:2")).await;
    world.runner("build").behaviours.insert("build:storage".into(), Behaviour::Hangs);
    let workflow = world.build("build-2").await.workflow.unwrap();
    world.run().await;
    let job = world.workflow(&workflow).await.active_jobs().next().unwrap().clone();
    let fence = Fence { dispatch: 1, receive: 1 };
    let artifact = world.registry.push("image");
    let now = world.now();
    let facts = || BuildFacts { resolved: Vec::new(), versions: BTreeMap::new(), started_at: now, finished_at: now };
    world.forget_orders();
    let request = GrantMessage {
        install: "build".parse().unwrap(),
        grant: GrantId::of_statement(&job, fence, &artifact.digest),
        job: job.clone(),
        fence,
        seq: 2,
        artifact: artifact.digest.clone(),
        wants: Wants::Statement { artifact: Box::new(artifact.clone()), facts: facts() },
    };
    let absent = Artifact { digest: Digest::of(b"absent"), ..artifact.clone() };

    world.grant_artifact().answer(&request).await.unwrap();

    let answer = world.grants().pop().unwrap().1.answer;
    let GrantAnswer::Attested { statement } = answer else { panic!("{answer:?}") };
    let provenance = Provenance { statement, referrer: Digest::of(b"referrer") };
    let statement = provenance.statement.peek::<Statement>().unwrap();
    let component = statement.predicate.build_definition.external_parameters.component.clone();
    let expected =
        Expected { tenant: &world.tenant, artifact: &artifact.digest, app: Some("demo"), component: &component };
    assert_eq!(provenance.verify(&world.keys.public(), &expected).unwrap(), statement);
    let other = Fence { dispatch: 1, receive: 9 };
    let bad = [
        ("other_attempt", GrantMessage { fence: other, ..request.clone() }),
        (
            "other_attempt",
            GrantMessage { grant: GrantId::of_statement(&job, other, &artifact.digest), ..request.clone() },
        ),
        (
            "other_digest",
            GrantMessage {
                grant: GrantId::of_statement(&job, fence, &absent.digest),
                artifact: absent.digest.clone(),
                wants: Wants::Statement { artifact: Box::new(absent), facts: facts() },
                ..request.clone()
            },
        ),
    ];
    for (refusal, bad) in bad {
        world.grant_artifact().answer(&bad).await.unwrap();
        assert_eq!(answered(&world), refusal);
    }
    world.registry.manifests.lock().unwrap().insert(artifact.digest.clone(), b"moved".to_vec());
    world.grant_artifact().answer(&GrantMessage { seq: 9, ..request }).await.unwrap();
    assert_eq!(answered(&world), "not_in_registry");
}
