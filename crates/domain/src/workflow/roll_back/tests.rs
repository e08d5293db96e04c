use freehold_protocol::order::AskedBy;
use freehold_protocol::{BuildId, ComponentName, Digest, Timestamp};
use proptest::prelude::*;

use super::*;
use crate::sandbox::SandboxReads;
use crate::workflow::tests::{node, pending};
use crate::workflow::{Node, NotSame, Target};

#[test]
fn a_refusal_of_any_length_fits_a_row_and_keeps_the_way_out() {
    let refused = |why: &str| match RolledBack::refused(why, "deploy again") {
        RolledBack::Refused { reason } => reason,
        other @ RolledBack::By { .. } => panic!("{other:?}"),
    };

    assert_eq!(refused("it was revoked"), "it was revoked; deploy again");
    let long = refused(&"ü".repeat(100_000));
    assert_eq!((long.chars().count(), long.ends_with("ü; deploy again")), (MAX_REASON_CHARS + 14, true));
}

fn digest(text: &str) -> Digest {
    Digest::of(text.as_bytes())
}

fn before(artifacts: &[(&str, &str)]) -> Before {
    let artifacts = artifacts.iter().map(|(part, artifact)| (part.parse().unwrap(), digest(artifact))).collect();
    Before { version: digest("v1"), inputs: BTreeMap::new(), toggles: BTreeMap::new(), artifacts }
}

fn verified() -> RollBack {
    RollBack::Verified { before: Box::new(before(&[])), followed: None }
}

fn failed() -> WorkflowState {
    WorkflowState::Failed { ended_at: Timestamp::default(), reason: "`web` blocked: sick".to_owned() }
}

fn deploys(part: &str, artifact: &str) -> Node {
    let component: ComponentName = part.parse().unwrap();
    let build = BuildId::derive(&"demo".parse().unwrap(), &digest("source"), &component);
    let (artifact, fingerprint) = (digest(artifact), digest("fingerprint"));
    let target = Target::Component { component, build, artifact, fingerprint, sandbox: SandboxReads::default() };
    Node { target, ..node(part, &[]) }
}

fn ended(state: WorkflowState, roll_back: RollBack) -> Workflow {
    let mut workflow = pending();
    let reason = String::new();
    let job = freehold_protocol::JobId::derive(&workflow.id, "web");
    let ended = NodeState::Failed { job, outcome: "failed".to_owned(), reason };
    workflow.nodes = vec![Node { state: ended, ..deploys("web", "a") }];
    Workflow { state, roll_back, ..workflow }
}

#[test]
fn a_roll_back_names_what_it_follows_and_why_and_nothing_follows_it() {
    let deploy = ended(failed(), verified());

    let roll_back = Workflow { roll_back: deploy.rolled_back_as(), ..ended(failed(), RollBack::None) };

    assert_eq!(roll_back.why(), Some(format!("roll back of {}: `web` blocked: sick", deploy.id)));
    assert_eq!(roll_back.to_roll_back(), None);
    assert_ne!(deploy.roll_back_id(), deploy.id);
}

#[test]
fn a_verified_deploy_is_rolled_back_once() {
    let deploy = ended(failed(), verified());

    assert!(deploy.to_roll_back().is_some());
    assert_eq!(deploy.followed_by(RolledBack::Refused { reason: "revoked".into() }).to_roll_back(), None);
    assert_eq!(deploy.followed_by(RolledBack::By { workflow: deploy.roll_back_id() }).to_roll_back(), None);
}

#[test]
fn former_inputs_are_kept_only_while_a_roll_back_may_need_them() {
    let mut before = before(&[]);
    before.inputs.insert("size".into(), "small".into());
    let with = |state| {
        let roll_back = RollBack::Verified { before: Box::new(before.clone()), followed: None };
        ended(state, roll_back).without_former_inputs()
    };
    let kept = |workflow: &Workflow| match &workflow.roll_back {
        RollBack::Verified { before, .. } => before.inputs.len(),
        other => panic!("{other:?}"),
    };

    assert_eq!(kept(&with(failed())), 1);
    assert_eq!(kept(&with(WorkflowState::Succeeded { ended_at: Timestamp::default() })), 0);
    assert_eq!(kept(&with(failed()).followed_by(RolledBack::Refused { reason: String::new() })), 0);
}

#[test]
fn nothing_follows_a_deploy_that_never_began_or_that_a_person_cancelled() {
    let deploy = ended(failed(), verified());
    let mut unbegun = deploy.clone();
    unbegun.nodes.iter_mut().for_each(|node| node.state = NodeState::not_reached("the plan failed"));
    let cancelled =
        Workflow { cancel_requested: Some(Timestamp::default()), cancelled_by: Some(AskedBy::Sweep), ..deploy };

    assert_eq!((unbegun.to_roll_back(), cancelled.to_roll_back()), (None, None));
}

#[test]
fn a_roll_back_removes_nothing_that_ran() {
    let removes = |name: &str| {
        let part: ComponentName = name.parse().unwrap();
        let target =
            Target::Teardown { part, version: digest("v1"), build: None, artifact: digest("a"), sandbox: false };
        before(&[("cache", "a")]).check(&[Node { target, ..node(name, &[]) }])
    };

    assert_eq!(removes("cache"), Err(NotSame::Removed("cache".parse().unwrap())));
    assert_eq!(removes("new"), Ok(()));
}

#[test]
fn a_health_check_that_is_not_a_gate_does_not_fail_a_deploy() {
    let looked = |gate: bool| {
        let mut deploy = ended(failed(), verified());
        let component = "web".parse().unwrap();
        deploy.nodes[0].target = Target::Health { component, gate, version: None, checks: Default::default() };
        deploy.failure()
    };

    assert_eq!(looked(false), None);
    assert!(looked(true).is_some());
}

fn any_state() -> impl Strategy<Value = WorkflowState> {
    let ended_at = Timestamp::default();
    prop_oneof![
        Just(WorkflowState::Pending),
        Just(WorkflowState::Running { slots: 1 }),
        Just(WorkflowState::Succeeded { ended_at }),
        Just(failed()),
        Just(WorkflowState::Cancelled { ended_at }),
    ]
}

proptest! {
    /// Only a failed deploy that was verified is rolled back, and what follows it is never rolled back itself.
    #[test]
    fn a_roll_back_never_leads_to_another_one(state in any_state(), is_verified in any::<bool>()) {
        let deploy = ended(state.clone(), if is_verified { verified() } else { RollBack::None });
        prop_assert_eq!(deploy.to_roll_back().is_some(), is_verified && matches!(state, WorkflowState::Failed { .. }));

        let follower = ended(state, deploy.rolled_back_as());
        prop_assert_eq!(follower.to_roll_back(), None);
    }

    /// Nodes are what ran before only if each of them has the artifact that its part had.
    #[test]
    fn only_the_artifacts_that_ran_before_pass(
        ran in proptest::collection::btree_map("[a-d]", "[xyz]", 0..4),
        planned in proptest::collection::btree_map("[a-d]", "[xyz]", 0..4),
    ) {
        let ran_pairs: Vec<_> = ran.iter().map(|(part, artifact)| (part.as_str(), artifact.as_str())).collect();
        let nodes: Vec<Node> = planned.iter().map(|(part, artifact)| deploys(part, artifact)).collect();

        let same = planned.iter().all(|(part, artifact)| ran.get(part) == Some(artifact));
        prop_assert_eq!(before(&ran_pairs).check(&nodes).is_ok(), same);
    }
}
