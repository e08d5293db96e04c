//! Grants: one artifact, for the attempt that holds the job, once.

use freehold_app::memory::Fault;
use freehold_app::messages::GrantMessage;
use freehold_app::records::grant_key;
use freehold_protocol::grant::{ArtifactGrant, GrantAnswer};
use freehold_protocol::order::Artifact;
use freehold_protocol::report::{Fence, Outcome};
use freehold_protocol::{Digest, Envelope, GrantId};

use crate::support::runner::Behaviour;
use crate::support::{World, with_input};

/// Returns a world in which the job of `storage` runs, its artifact, and a request for one of its two blobs.
async fn running() -> (World, Artifact, GrantMessage) {
    let mut world = World::with_install().await;
    world.runner("globex").behaviours.insert("storage".into(), Behaviour::Hangs);
    let workflow = world.deploy(&with_input("days", 8), "deploy-1").await.unwrap();
    world.run().await;
    let job = world.workflow(&workflow).await.active_jobs().next().unwrap().clone();
    let artifact = world.runners["globex"].attempts[&job].order.work.artifact().unwrap().clone();
    let request = GrantMessage {
        install: "globex".parse().unwrap(),
        grant: GrantId::derive(&job, 1, 1, &artifact.digest),
        job,
        fence: Fence { dispatch: 1, receive: 1 },
        seq: 2,
        artifact: artifact.digest.clone(),
        missing: vec![artifact.blobs[1].digest.clone()],
    };
    world.forget_orders();
    (world, artifact, request)
}

/// Returns the grants in the install's orders queue, with their deduplication ids.
fn answers(world: &World) -> Vec<(String, ArtifactGrant)> {
    let orders = world.memory.orders.lock().unwrap().clone();
    let open = |body: &str| {
        let envelope = Envelope::parse(body.as_bytes()).unwrap();
        envelope.open_delegated(&world.keys.public(), &world.tenant, world.now()).unwrap()
    };
    orders
        .into_iter()
        .filter(|(_, group, ..)| group == "grants")
        .map(|(_, _, dedup, body)| (dedup, open(&body)))
        .collect()
}

#[tokio::test]
async fn the_first_request_is_answered_with_the_missing_blobs_alone() {
    let (world, artifact, request) = running().await;

    world.grant_artifact().answer(&request).await.unwrap();

    let [(dedup, grant)] = &answers(&world)[..] else { panic!("expected one answer") };
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
    let sent = answers(&world);
    world.memory.orders.lock().unwrap().clear();
    world.memory.advance_secs(30);

    world.grant_artifact().answer(&request).await.unwrap();

    let again = answers(&world);
    assert_eq!((&again[0].0, &again[0].1.answer), (&sent[0].0, &sent[0].1.answer));
    assert!(world.refusals().is_empty());
}

#[tokio::test]
async fn a_second_use_of_a_grant_is_refused_and_put_on_record() {
    let (world, _, request) = running().await;
    world.grant_artifact().answer(&request).await.unwrap();

    world.grant_artifact().answer(&GrantMessage { seq: 7, ..request.clone() }).await.unwrap();

    let all = answers(&world);
    assert_eq!(all.len(), 2);
    assert_eq!(all[1].1.answer, GrantAnswer::Refused { reason: "grant was used before".into() });
    assert_eq!(world.refusals(), ["grant was used before"]);
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
        ("foreign blob", GrantMessage { missing: vec![Digest::of(b"foreign")], ..request.clone() }),
    ];

    for (at, (what, bad)) in bad.into_iter().enumerate() {
        world.grant_artifact().answer(&GrantMessage { seq: 10 + at as u64, ..bad }).await.unwrap();

        let all = answers(&world);
        assert!(matches!(all[at].1.answer, GrantAnswer::Refused { .. }), "{what}");
        world.memory.advance_secs(1);
    }
    assert!(!world.memory.rows().iter().any(|row| row.key == grant_key(&request.grant)));
    assert!(!world.refusals().is_empty());
    world.grant_artifact().answer(&request).await.unwrap();
    assert!(matches!(answers(&world).last().unwrap().1.answer, GrantAnswer::Granted { .. }));
}

#[tokio::test]
async fn each_refusal_is_kept_though_one_report_caused_several() {
    let (world, _, request) = running().await;
    let one = GrantMessage { missing: vec![Digest::of(b"foreign")], ..request.clone() };
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
    world.accept_report().accept(&end[0]).await.unwrap();

    world.grant_artifact().answer(&request).await.unwrap();

    assert!(matches!(answers(&world)[0].1.answer, GrantAnswer::Refused { .. }));
    assert_eq!(world.refusals(), [format!("attempt 1.1 does not hold job `{}`", request.job)]);
}

#[tokio::test]
async fn a_registry_that_fails_leaves_the_grant_to_the_same_request() {
    let (world, _, request) = running().await;
    for what in ["manifest", "blob_url"] {
        world.memory.faults.set(move |call| (call == what).then_some(Fault::Before));

        let error = world.grant_artifact().answer(&request).await.unwrap_err();

        assert!(error.is_transient());
        assert!(answers(&world).is_empty());
    }
    world.memory.faults.set(|_| None);

    world.grant_artifact().answer(&request).await.unwrap();

    assert!(matches!(answers(&world)[0].1.answer, GrantAnswer::Granted { .. }));
}

#[tokio::test]
async fn a_registry_with_other_bytes_is_not_passed_on() {
    let (world, artifact, request) = running().await;
    world.registry.manifests.lock().unwrap().insert(artifact.digest.clone(), b"moved".to_vec());

    let error = world.grant_artifact().answer(&request).await.unwrap_err();

    assert_eq!(error.message, format!("tenant registry holds other bytes for `{}`", artifact.digest));
    assert!(answers(&world).is_empty());
}
