//! Reports that come after their job was lost, because something kept them from being handled for longer than every timer.

use freehold_app::ports::Store as _;
use freehold_app::table;
use freehold_app::testing::Fault;
use freehold_app::workflow::accept_report::Accepted;
use freehold_domain::JobState;
use freehold_protocol::api::{DeployComponentsRequest, TeardownInstallRequest};
use freehold_protocol::order::leftovers::{Leftovers, OUTPUT};
use freehold_protocol::report::{AttemptEvent, Fence, Outcome};
use freehold_protocol::{Digest, JobId, KeyId, Timestamp, WorkflowId};
use serde_json::json;

use crate::support::doubles::queue_url;
use crate::support::runner::{Behaviour, Runner};
use crate::support::walk::{Mail, Rng};
use crate::support::{LOST_SECS, World, app, globex, with_input};

const FIRST: Fence = Fence { dispatch: 1, receive: 1 };
fn ended() -> AttemptEvent {
    let outputs = [("name".to_owned(), json!("bucket-1"))].into();
    AttemptEvent::finished(Outcome::Succeeded { outputs, sensitive: Default::default(), artifact: None }, "done\n")
}

/// Returns a world in which the job of `storage` was lost an hour ago, and the job.
async fn lost() -> (World, WorkflowId, JobId) {
    let (world, workflow, job) = World::with_lost_job().await;
    world.memory.advance_secs(3600);
    (world, workflow, job)
}

/// Delivers the end of the lost job.
async fn arrives(world: &World, job: &JobId) -> Accepted {
    let end = world.runners["globex"].says(job, FIRST, 2, ended(), world.now());
    world.accept_report().accept(&end, world.now()).await.unwrap()
}

/// Returns the job that deployed `storage`, and its outputs.
async fn storage(world: &World) -> Option<(JobId, serde_json::Value)> {
    let deployed = table::deployed(&*world.memory, &globex()).await.unwrap();
    let storage = deployed.into_iter().find(|(name, _)| name.as_str() == "storage");
    storage.map(|(_, deployed)| (deployed.job, json!(deployed.outputs)))
}

#[tokio::test]
async fn an_outcome_after_the_loss_is_kept_and_the_next_deploy_resumes_from_it() {
    let (mut world, workflow, job) = lost().await;
    let before = world.node_states(&workflow).await;

    let first = arrives(&world, &job).await;
    let again = arrives(&world, &job).await;
    world.run().await;

    assert_eq!((first, again, world.refusals().len()), (Accepted::Taken, Accepted::Taken, 0));
    assert_eq!(
        (&before, world.node_states(&workflow).await),
        (&vec!["info skipped".into(), "storage lost".into()], before.clone())
    );
    assert_eq!(storage(&world).await, Some((job.clone(), json!({ "name": "bucket-1" }))));
    let view = freehold_app::read::show_job(&*world.memory, &job, world.now()).await.unwrap();
    assert_eq!(view.state, "succeeded");
    assert!(
        view.reason.starts_with("was lost at 2") && view.reason.contains(", the report of its end came at "),
        "{view:?}"
    );
    let steps: Vec<_> = view.history.iter().map(|step| format!("{} {} {}", step.what, step.from, step.to)).collect();
    assert_eq!(steps[steps.len() - 2..], ["expire running lost", "finished lost succeeded"]);
    let logs = freehold_app::read::list_logs(&*world.memory, &job, None).await.unwrap();
    assert_eq!(logs.chunks.len(), 1);

    world.deploy(&DeployComponentsRequest::default(), "deploy-2").await.unwrap();
    world.settle().await;
    assert_eq!(world.runners["globex"].started, ["info"], "`storage` is deployed already");
}

#[tokio::test]
async fn an_outcome_after_the_end_of_its_workflow_hides_no_later_deploy() {
    let (mut world, workflow) = World::deploying(Behaviour::Hangs).await;
    let job = world.workflow(&workflow).await.active_jobs().next().unwrap().clone();
    world.finish_workflow().finish(&workflow, 0, Some("States.Timeout")).await.unwrap();
    // The cancel of the job is lost, and its runner works on.
    world.memory.take_dispatched();
    world.runner("globex").behaviours.clear();
    world.deploy(&with_input("days", 9), "deploy-2").await.unwrap();
    world.run().await;
    let later = storage(&world).await;
    assert!(later.as_ref().is_some_and(|(by, _)| *by != job), "{later:?}");

    assert_eq!(arrives(&world, &job).await, Accepted::Taken);

    assert_eq!(world.job(&job).await.state.as_str(), "succeeded");
    assert_eq!(storage(&world).await, later);
}

#[tokio::test]
async fn an_outcome_after_the_loss_hides_no_later_deploy_that_failed_half_way() {
    let (mut world, _, job) = lost().await;
    let failed = Outcome::Failed { reason: "exit status 1".into(), partial: true };
    world.runner("globex").behaviours.insert("storage".into(), Behaviour::Ends(failed));
    world.deploy(&with_input("days", 9), "deploy-2").await.unwrap();
    world.settle().await;
    world.runner("globex").behaviours.clear();

    arrives(&world, &job).await;
    world.runner("globex").started.clear();
    world.deploy(&with_input("days", 8), "deploy-3").await.unwrap();
    world.settle().await;

    assert!(world.runners["globex"].started.contains(&"storage".into()), "the target may be half of `days = 9`");
}

#[tokio::test]
async fn an_outcome_after_the_loss_does_not_replace_the_result_of_a_later_deploy() {
    let (mut world, _, job) = lost().await;
    world.deploy(&with_input("days", 9), "deploy-2").await.unwrap();
    world.settle().await;
    let later = storage(&world).await;

    arrives(&world, &job).await;

    assert!(later.as_ref().is_some_and(|(by, _)| *by != job));
    assert_eq!(storage(&world).await, later);
    assert!(matches!(world.job(&job).await.state, JobState::Succeeded { .. }));
}

#[tokio::test]
async fn an_outcome_after_the_loss_brings_back_nothing_that_a_teardown_removed() {
    let (mut world, _, job) = lost().await;
    world.teardown(&TeardownInstallRequest { destroy_data: true, ..Default::default() }, "down-1").await.unwrap();
    world.settle().await;
    assert_eq!(storage(&world).await, None);

    arrives(&world, &job).await;

    assert_eq!(storage(&world).await, None);
    assert!(matches!(world.job(&job).await.state, JobState::Succeeded { .. }));
}

/// Returns a world in which the job of a teardown that removes the copies of secrets was lost, and in which a later deploy
/// has made them again. Returns the lost job too.
async fn copied_again() -> (World, JobId) {
    let mut world = World::with_app().await;
    let mut document = app::document();
    document.secrets = serde_json::from_value(json!([
        { "name": "token", "auto_generate": true, "kubernetes": { "namespace": "web", "name": "web-token" } },
    ]))
    .unwrap();
    world.sync(&document).await;
    world.create().await;
    world.run().await;
    world.runner("globex").secrets = Some([("token".to_owned(), Digest::of(b"one"))].into());
    world.hello("globex");
    world.settle().await;
    world.runner("globex").behaviours.insert("secrets".into(), Behaviour::Hangs);
    let workflow = world.teardown(&TeardownInstallRequest::default(), "down-1").await.unwrap();
    world.run().await;
    let job = world.workflow(&workflow).await.active_jobs().next().unwrap().clone();
    assert_eq!(world.sweep_with_runner_there(24 * 3600).await.lost, 1);
    world.run().await;
    world.runner("globex").behaviours.clear();
    world.runner("globex").attempts.clear();
    world.deploy(&DeployComponentsRequest::default(), "deploy-1").await.unwrap();
    world.settle().await;
    (world, job)
}

#[tokio::test]
async fn an_end_after_the_loss_changes_nothing_about_copies_of_secrets_that_a_later_deploy_made() {
    let (world, job) = copied_again().await;
    let copies = async |world: &World| world.memory.get(&table::copied_secrets_key(&globex())).await.unwrap();
    let failed = Outcome::Failed { reason: "no answer".into(), partial: true };
    let failed = AttemptEvent::finished(failed, "");

    for event in [ended(), failed] {
        let world = world.copy();
        let before = copies(&world).await;
        let end = world.runners["globex"].says(&job, FIRST, 2, event, world.now());
        let answer = world.accept_report().accept(&end, world.now()).await.unwrap();

        assert_eq!(answer, Accepted::Taken);
        assert!(before.is_some());
        assert_eq!(copies(&world).await, before);
    }
}

/// No report can be handled for three days, while everything else works: the order expires, and the job is lost and the
/// machine replaced, or the job waits for its runner. Then all messages come, in any order and up to three times, from
/// the queue or put back by `sweep`.
#[tokio::test]
async fn trouble_that_lasts_longer_than_every_timer_loses_no_outcome_and_doubles_none() {
    for seed in 0..20 {
        let mut world = World::with_install().await;
        let workflow = world.deploy(&with_input("days", 8), "deploy-1").await.unwrap();
        let waiting = without_reports(&mut world).await;
        assert_eq!(waiting.len(), 2, "`storage` started and ended");
        // For half of the seeds the job is lost and the machine is replaced; for the others it waits for its runner.
        let is_lost = seed % 2 == 0;

        world.memory.faults.set(|what| (what == "get").then_some(Fault::Before));
        for (body, sent_at) in &waiting {
            let error = world.accept_report().accept(body, *sent_at).await.unwrap_err();
            assert!(error.is_transient(), "it is received again: {error}");
        }
        world.memory.faults.set(|_| None);
        if is_lost {
            world.sweep_with_runner_there(3 * 24 * 3600).await;
        } else {
            world.memory.advance_secs(3 * 24 * 3600);
            assert_eq!(world.sweeper().sweep().await.unwrap().waiting, 1);
        }
        world.walk().await;
        let job = world.workflow(&workflow).await.nodes.iter().find_map(|node| match &node.state {
            freehold_domain::workflow::NodeState::Failed { job, .. } if is_lost => Some(job.clone()),
            freehold_domain::workflow::NodeState::Active { job } if !is_lost => Some(job.clone()),
            _ => None,
        });
        let job = job.expect("the job was lost, or waits");

        let mut rng = Rng::new(seed);
        let machine = Runner::new(&world.tenant, "globex", queue_url("globex"), 21);
        // The new machine repeats its hello with a new proof until it is accepted.
        let hello = is_lost.then(|| Mail::Report(machine.hello(world.now()), world.now()));
        let mut mail: Vec<_> = hello.into_iter().collect();
        for (body, sent_at) in waiting {
            for _ in 0..=rng.below(3) {
                let copy = if rng.below(2) == 0 { Mail::Report } else { Mail::PutBack };
                mail.push(copy(body.clone(), sent_at));
            }
        }
        while !mail.is_empty() {
            let next = mail.remove(rng.below(mail.len()));
            world.post(next);
        }
        world.run().await;

        assert_eq!(world.job(&job).await.state.as_str(), "succeeded", "seed {seed}");
        assert_eq!(storage(&world).await.map(|(by, _)| by), Some(job), "seed {seed}");
        assert_eq!(world.runners["globex"].started.iter().filter(|name| *name == "storage").count(), 2, "seed {seed}");
        assert!(world.refusals().is_empty() && world.dead.is_empty(), "seed {seed}: {:?}", world.refusals());
        assert!(world.open().is_empty(), "seed {seed}");
        let runner = table::install(&*world.memory, &globex()).await.unwrap().value.runner.unwrap();
        let is_replaced = runner.public_key.key_id() == KeyId::of(&machine.key.verifying_key());
        assert_eq!(is_replaced, is_lost, "seed {seed}");
    }
}

/// Lets everything happen but the handling of reports. Returns the reports with the times at which the queue took them.
async fn without_reports(world: &mut World) -> Vec<(String, Timestamp)> {
    let mut waiting = Vec::new();
    world.walk().await;
    for _ in 0..4 {
        world.collect();
        for (mail, _) in std::mem::take(&mut world.mail) {
            match mail {
                Mail::Report(body, sent_at) | Mail::PutBack(body, sent_at) => waiting.push((body, sent_at)),
                Mail::Dispatch(message) => {
                    world.dispatch_job().perform(&message).await.unwrap();
                }
                Mail::Grant(message) => world.grant_artifact().answer(&message).await.unwrap(),
            }
        }
    }
    waiting
}

#[tokio::test]
async fn a_list_of_leftovers_that_comes_late_does_not_replace_the_list_of_a_later_teardown() {
    let mut world = World::with_install().await;
    let list = |arns: &[&str]| {
        let found = Leftovers::of(arns.iter().map(|arn| (*arn).to_owned()).collect());
        let outputs = [(OUTPUT.to_owned(), json!(found))].into();
        Outcome::Succeeded { outputs, sensitive: Default::default(), artifact: None }
    };
    world.runner("globex").behaviours.insert("leftovers".into(), Behaviour::Hangs);
    let first = world.teardown(&TeardownInstallRequest::default(), "teardown-1").await.unwrap();
    world.run().await;
    let job = world.workflow(&first).await.active_jobs().next().unwrap().clone();
    assert_eq!(world.sweep_with_runner_there(LOST_SECS).await.lost, 1);
    world.run().await;
    world.runner("globex").attempts.clear();
    world.runner("globex").behaviours.insert("leftovers".into(), Behaviour::Ends(list(&[])));
    world.teardown(&TeardownInstallRequest::default(), "teardown-2").await.unwrap();
    world.settle().await;
    let leftovers = async |world: &World| {
        freehold_app::read::show_install(&world.versions(), &globex(), world.now()).await.unwrap().leftovers.unwrap()
    };
    let later = leftovers(&world).await;

    let outcome = list(&["arn:aws:ec2:eu-west-1:222222222222:volume/vol-1"]);
    let end = AttemptEvent::finished(outcome, "");
    let end = world.runners["globex"].says(&job, FIRST, 2, end, world.now());
    world.accept_report().accept(&end, world.now()).await.unwrap();

    assert!(matches!(world.job(&job).await.state, JobState::Succeeded { .. }));
    assert_eq!(leftovers(&world).await, later);
}
