//! The upgrade of a runner: the order carries the program and the proof of its release, and the program is granted once.

use freehold_app::Kind;
use freehold_domain::workflow::WorkflowState;
use freehold_protocol::api::{DeployComponentsRequest, UpgradeRunnerRequest};
use freehold_protocol::grant::{GrantAnswer, GrantRefusal};
use freehold_protocol::order::{Mode, Redelivery, UpgradeRunner, Work};
use freehold_protocol::report::{Block, Outcome};
use freehold_protocol::{Digest, JobId, WorkflowId};

use crate::support::app::runner_release;
use crate::support::grants::grant_request;
use crate::support::runner::Behaviour;
use crate::support::{World, globex};

/// Returns a world in which the runner of `globex` has an order to upgrade itself, and ends it like this.
async fn upgrading(behaviour: Behaviour) -> (World, WorkflowId, JobId) {
    let mut world = World::with_install().await;
    world.runner("globex").behaviours.insert("runner".into(), behaviour);
    let workflow = world.upgrade(&runner_release(), "upgrade-1").await.unwrap();
    world.run().await;
    let job = world.workflow(&workflow).await.nodes[0].clone();
    let job = JobId::derive(&workflow, &job.name);
    (world, workflow, job)
}

#[tokio::test]
async fn the_order_has_the_program_and_its_release_and_goes_to_the_group_of_the_runner() {
    let (world, workflow, job) = upgrading(Behaviour::Hangs).await;

    let order = &world.runners["globex"].attempts[&job].order;

    let wanted: UpgradeRunner = (&runner_release()).into();
    assert_eq!(order.work, Work::Upgrade(wanted));
    assert_eq!((order.group.as_str(), order.mode, order.redelivery), ("runner", Mode::Maintenance, Redelivery::Resume));
    assert_eq!((&order.terms, &order.workflow), (&None, &workflow));
}

#[tokio::test]
async fn the_end_of_the_job_is_the_end_of_the_workflow_and_a_refusal_of_the_customers_is_shown() {
    let mut world = World::with_install().await;
    let workflow = world.upgrade(&runner_release(), "upgrade-1").await.unwrap();
    world.settle().await;
    assert_eq!(world.node_states(&workflow).await, ["runner succeeded"]);

    let no = Outcome::Blocked { block: Block::Policy, reason: "the install stack names no release key".into() };
    let (world, workflow, _) = upgrading(Behaviour::Ends(no)).await;

    let WorkflowState::Failed { reason, .. } = world.workflow(&workflow).await.state else { panic!("it succeeded") };
    assert_eq!(reason, "`runner` blocked: the install stack names no release key");
}

#[tokio::test]
async fn a_deploy_starts_while_the_runner_is_upgraded() {
    let (mut world, upgrade, _) = upgrading(Behaviour::Hangs).await;

    let deploy = world.deploy(&DeployComponentsRequest { all: true, ..Default::default() }, "deploy-1").await.unwrap();
    world.run().await;

    assert!(matches!(world.workflow(&deploy).await.state, WorkflowState::Succeeded { .. }));
    assert!(matches!(world.workflow(&upgrade).await.state, WorkflowState::Running { .. }));
}

#[tokio::test]
async fn the_same_request_again_is_the_same_upgrade_and_another_one_under_its_key_is_refused() {
    let (world, workflow, _) = upgrading(Behaviour::Hangs).await;

    let again = world.upgrade(&runner_release(), "upgrade-1").await.unwrap();
    let other = UpgradeRunnerRequest { version: "0.3.0".into(), ..runner_release() };
    let refused = world.upgrade(&other, "upgrade-1").await.unwrap_err();

    assert_eq!((again, refused.kind), (workflow, Kind::Conflict));
}

#[tokio::test]
async fn values_out_of_range_and_an_install_without_a_runner_are_refused() {
    let world = World::with_install().await;
    for wrong in [
        UpgradeRunnerRequest { health_secs: 9, ..runner_release() },
        UpgradeRunnerRequest { archive_size: u64::MAX, ..runner_release() },
    ] {
        assert_eq!(world.upgrade(&wrong, "upgrade-1").await.unwrap_err().kind, Kind::Invalid, "{wrong:?}");
    }
    let mut large = runner_release();
    large.release.sums = "x".repeat(70_000);
    assert_eq!(world.upgrade(&large, "upgrade-1").await.unwrap_err().kind, Kind::Invalid);

    let mut world = World::with_app().await;
    world.create().await;
    assert_eq!(world.upgrade(&runner_release(), "upgrade-1").await.unwrap_err().kind, Kind::Conflict);
    assert!(world.runners.contains_key(globex().as_str()));
}

#[tokio::test]
async fn the_program_of_the_order_is_granted_once_to_its_attempt_and_no_other_is() {
    let (mut world, _, job) = upgrading(Behaviour::Hangs).await;
    let asked = |artifact: &Digest, seq| grant_request(&job, artifact, vec![artifact.clone()], seq);
    let first: Vec<_> = world.grants().into_iter().filter(|(_, grant)| grant.job == job).collect();
    world.forget_orders();

    world.grant_artifact().answer(&asked(&runner_release().archive, 7)).await.unwrap();
    world.grant_artifact().answer(&asked(&Digest::of(b"other"), 8)).await.unwrap();

    let [(_, granted)] = &first[..] else { panic!("{first:?}") };
    let GrantAnswer::Granted { manifests, blobs } = &granted.answer else { panic!("{granted:?}") };
    assert!(manifests.is_empty());
    let url = format!("https://bucket.invalid/{}?get&900", runner_release().archive.hex());
    assert_eq!((blobs[0].url.as_str(), blobs[0].size, blobs.len()), (url.as_str(), 7, 1));
    let refusals: Vec<_> = world.grants().into_iter().map(|(_, grant)| grant.answer).collect();
    let word = |answer: &GrantAnswer| match answer {
        GrantAnswer::Refused { refusal, .. } => *refusal,
        other => panic!("{other:?}"),
    };
    assert_eq!(refusals.iter().map(word).collect::<Vec<_>>(), [GrantRefusal::UsedBefore, GrantRefusal::OtherDigest]);
}
