//! Approvals between the plan and the apply, with real programs: kinds whose plan each order makes anew, and work without a plan.

use std::sync::Arc;

use freehold_protocol::approval::{
    ApprovalRule, OrderApproval, PlanRecord, ProposedPlan, Side, WrittenDecision, approval_object, record_object,
    use_object,
};
use freehold_protocol::audit::AuditEvent;
use freehold_protocol::order::{
    ActionStep, ApplyManifest, Artifact, AskedBy, ClusterOf, MANIFEST_ARTIFACT, MANIFEST_LAYER, Package, RemovePart,
    RunAction, Work,
};
use freehold_protocol::report::{Block, Outcome};
use freehold_protocol::{Digest, Timestamp};
use freehold_runner::kinds::execute;
use freehold_skips::have;
use serde_json::{Value, json};

use crate::artifacts::of_layer;
use crate::cloud::Cloud;
use crate::cluster::{self, Cluster, DEPLOYER};
use crate::fixture::{Bench, KeptPlans, outputs};
use crate::{helm_chart, kubernetes_manifest};

/// Lets the customer ask for these plans.
fn asks(bench: &mut Bench, what: &str) -> Arc<KeptPlans> {
    let kept = Arc::new(KeptPlans::default());
    *kept.asks.lock().unwrap() = Some(what.to_owned());
    bench.job.plans = kept.clone();
    kept
}

fn proposed(outcome: Outcome) -> ProposedPlan {
    match outcome {
        Outcome::NeedsApproval { plan } => *plan,
        other => panic!("{other:?}"),
    }
}

fn refused(outcome: Outcome) -> String {
    match outcome {
        Outcome::Blocked { block: Block::NotApproved, reason } => reason,
        other => panic!("{other:?}"),
    }
}

/// The next order of the job, which names the plan, as approved by the vendor.
fn order_with(bench: &mut Bench, plan: &ProposedPlan, dispatch: u32) {
    bench.next_attempt();
    bench.job.fence.dispatch = dispatch;
    let approval = OrderApproval {
        plan: plan.plan.clone(),
        by: Some(AskedBy::Schedule),
        at: plan.until,
        until: plan.until,
        policies: plan.policies.clone(),
    };
    bench.change_order(|order| {
        order.dispatch = dispatch;
        order.approved = Some(Box::new(approval));
    });
}

/// The next order of the job, which names the plan although its approval has expired.
fn order_too_late(bench: &mut Bench, plan: &ProposedPlan, dispatch: u32) {
    order_with(bench, plan, dispatch);
    bench.change_order(|order| order.approved.as_mut().unwrap().until = Timestamp::from_millis(1));
}

/// The customer approves or rejects the plan.
fn says(bench: &Bench, kept: &KeptPlans, plan: &ProposedPlan, approved: bool) {
    let decision = WrittenDecision {
        tenant: bench.job.order.tenant.clone(),
        install: bench.job.order.install.clone(),
        plan: plan.plan.clone(),
        approved,
        by: "arn:aws:iam::222222222222:user/eva".into(),
        at: plan.until,
        reason: "no".into(),
    };
    let object = approval_object(&plan.plan);
    kept.objects.lock().unwrap().insert(object, serde_json::to_vec(&decision).unwrap());
}

fn manifest(artifact: &Artifact) -> Work {
    Work::KubernetesManifest(ApplyManifest {
        component: "network".parse().unwrap(),
        artifact: artifact.clone(),
        cluster: ClusterOf::Sandbox,
        namespace: "{{ .nuon.install.id }}".into(),
    })
}

#[tokio::test]
async fn a_manifest_is_applied_when_both_sides_approved_the_same_objects_and_planned_anew_when_they_changed() {
    let test =
        "approvals::a_manifest_is_applied_when_both_sides_approved_the_same_objects_and_planned_anew_when_they_changed";
    if !have(&["bwrap"]) {
        return;
    }
    let Some(cloud) = cluster::with_clusters(test).await else { return };
    let cluster = Cluster::make(&cloud).await;
    let text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: one}\ndata: {token: the-value}\n";
    let layer = text.as_bytes().to_vec();
    let artifact = of_layer(&cloud, Package::KubernetesManifest, layer, (MANIFEST_LAYER, MANIFEST_ARTIFACT)).await;
    let mut bench = Cluster::bench(&cloud, DEPLOYER, manifest(&artifact), &artifact).await;
    let kept = asks(&mut bench, "all");
    bench.change_order(|order| order.approval = Some(ApprovalRule::Prompt));

    let first = proposed(execute(&bench.job).await);
    order_too_late(&mut bench, &first, 2);
    let late = refused(execute(&bench.job).await);
    let untouched = cluster.object("configmap", "globex-prod", "one");
    order_with(&mut bench, &first, 2);
    let alone = refused(execute(&bench.job).await);
    // Somebody else makes the object, so that the same order would update it.
    cluster.kubectl(&["create", "namespace", "globex-prod"]).unwrap();
    cluster.kubectl(&["create", "configmap", "one", "--namespace=globex-prod"]).unwrap();
    says(&bench, &kept, &first, true);
    order_with(&mut bench, &first, 3);
    let anew = proposed(execute(&bench.job).await);
    order_with(&mut bench, &anew, 4);
    says(&bench, &kept, &anew, true);
    outputs(execute(&bench.job).await);
    let applied = cluster.object("configmap", "globex-prod", "one");
    bench.next_attempt();
    bench.change_order(|order| order.approved = None);
    outputs(execute(&bench.job).await);
    let noop = bench.log();
    cluster.kubectl(&["delete", "configmap", "one", "--namespace=globex-prod"]).unwrap();
    order_with(&mut bench, &anew, 5);
    let replayed = proposed(execute(&bench.job).await).instead.unwrap_or_default();

    assert_eq!((first.asks.len(), first.summary.create, untouched), (2, 1, Value::Null));
    assert!(!serde_json::to_string(&first).unwrap().contains("the-value"));
    assert!(late.contains("its approval expired at"), "{late}");
    assert!(alone.contains("the customer has not approved it"), "{alone}");
    assert!(anew.instead.as_ref().unwrap().contains("would now make other changes"), "{anew:?}");
    assert_eq!((anew.summary.update, &applied["data"]["token"]), (1, &Value::from("the-value")));
    assert!(replayed.contains("dispatch 4 has begun to apply"), "{replayed}");
    assert!(noop.contains("nothing is applied, and nobody has to approve it"), "{noop}");
    let events = kept.events.lock().unwrap().clone();
    let last = events.iter().rev().find_map(|event| match event {
        AuditEvent::Approval { stage, vendor, customer, plan, .. } if stage == "applied" => {
            Some((vendor.clone(), customer.clone(), plan.clone()))
        }
        _ => None,
    });
    assert_eq!(last, Some((Some(AskedBy::Schedule), Some("arn:aws:iam::222222222222:user/eva".to_owned()), anew.plan)));
}

#[tokio::test]
async fn an_action_runs_only_with_the_steps_and_values_that_the_customer_approved() {
    let test = "approvals::an_action_runs_only_with_the_steps_and_values_that_the_customer_approved";
    if !have(&["bwrap"]) {
        return;
    }
    let Some(_cloud) = Cloud::here(test).await else { return };
    let action = |command: &str| {
        let step = ActionStep {
            name: "say".into(),
            command: command.into(),
            inline_contents: String::new(),
            env_vars: Default::default(),
        };
        Work::Action(RunAction {
            action: "say".parse().unwrap(),
            steps: vec![step],
            directories: Vec::new(),
            env_vars: Default::default(),
            idempotent: true,
            cluster: None,
            image: String::new(),
        })
    };
    let mut bench = Bench::new(action("echo said"));
    let kept = asks(&mut bench, "destructive");

    let plan = proposed(execute(&bench.job).await);
    says(&bench, &kept, &plan, true);
    let context = bench.job.order.context.clone();
    order_too_late(&mut bench, &plan, 2);
    let late = refused(execute(&bench.job).await);
    order_with(&mut bench, &plan, 2);
    bench.change_order(|order| {
        order.context = serde_json::json!({ "nuon": { "inputs": { "inputs": { "cmd": "other" } } } })
    });
    let values = proposed(execute(&bench.job).await);
    order_with(&mut bench, &plan, 3);
    bench.change_order(|order| {
        order.context = context;
        order.work = action("echo other");
    });
    let other = proposed(execute(&bench.job).await);
    order_with(&mut bench, &plan, 4);
    bench.change_order(|order| order.work = action("echo said"));
    outputs(execute(&bench.job).await);
    let log = bench.log();
    says(&bench, &kept, &other, false);
    order_with(&mut bench, &other, 5);
    bench.change_order(|order| order.work = action("echo other"));
    let rejected = refused(execute(&bench.job).await);

    assert!(late.contains("its approval expired at"), "{late}");
    assert!(values.instead.unwrap().contains("the values have changed"));
    assert_eq!((plan.asks, plan.summary.run), ([Side::Customer].into(), 1));
    assert!(other.instead.unwrap().contains("the artifact or the config has changed"));
    assert!(log.contains("said") && !log.contains("other"), "{log}");
    assert!(rejected.contains("user/eva (customer) rejected plan"), "{rejected}");
}

/// Why the runner refuses the plans of [`refusals`], in this order.
const REFUSED: [&str; 7] = [
    "the bytes of its record have changed",
    "the install's bucket has no record of it",
    "it is for `component:other`, and this job is for `component:network`",
    "it is for install `initech` of `acme`",
    "it is the plan of job `job_00000000000000000009`",
    "dispatch 1 of job `job_00000000000000000009` has applied it already",
    "its approval expired at",
];

/// Stores a changed record of a plan under its own digest, with the approval of the customer. Returns the plan of it.
fn forged(bench: &Bench, kept: &KeptPlans, plan: &ProposedPlan, change: impl FnOnce(&mut PlanRecord)) -> ProposedPlan {
    let bytes = kept.objects.lock().unwrap()[&record_object(&plan.plan)].clone();
    let mut record: PlanRecord = serde_json::from_slice(&bytes).unwrap();
    change(&mut record);
    let (bytes, digest) = record.to_bytes().unwrap();
    kept.objects.lock().unwrap().insert(record_object(&digest), bytes);
    let forged = ProposedPlan { plan: digest, ..plan.clone() };
    says(bench, kept, &forged, true);
    forged
}

/// Tampers with an approved plan in one way after another, and returns why the runner refuses it.
async fn refusals(bench: &mut Bench, kept: &KeptPlans, plan: &ProposedPlan) -> Vec<String> {
    let (record, used) = (record_object(&plan.plan), use_object(&plan.plan));
    let bytes = kept.objects.lock().unwrap()[&record].clone();
    let mut tampered = bytes.clone();
    tampered[40] ^= 1;
    let others = [
        forged(bench, kept, plan, |record| record.changes = "component:other".into()),
        forged(bench, kept, plan, |record| record.install = "initech".parse().unwrap()),
        forged(bench, kept, plan, |record| record.job = "job_00000000000000000009".parse().unwrap()),
    ];
    let mut found = Vec::new();

    kept.objects.lock().unwrap().insert(record.clone(), tampered);
    order_with(bench, plan, 2);
    found.push(refused(execute(&bench.job).await));
    kept.objects.lock().unwrap().remove(&record);
    order_with(bench, plan, 3);
    found.push(refused(execute(&bench.job).await));
    kept.objects.lock().unwrap().insert(record, bytes);
    for (dispatch, other) in (4..).zip(&others) {
        order_with(bench, other, dispatch);
        found.push(refused(execute(&bench.job).await));
    }
    let by_another = json!({ "job": "job_00000000000000000009", "dispatch": 1 }).to_string();
    kept.objects.lock().unwrap().insert(used.clone(), by_another.into_bytes());
    order_with(bench, plan, 7);
    found.push(refused(execute(&bench.job).await));
    kept.objects.lock().unwrap().remove(&used);
    order_too_late(bench, plan, 8);
    found.push(refused(execute(&bench.job).await));
    found
}

#[tokio::test]
async fn a_tampered_plan_of_a_chart_or_a_manifest_is_refused_and_the_approved_one_is_applied_once() {
    let test = "approvals::a_tampered_plan_of_a_chart_or_a_manifest_is_refused_and_the_approved_one_is_applied_once";
    if !have(&["bwrap"]) {
        return;
    }
    let Some(cloud) = cluster::with_clusters(test).await else { return };
    let cluster = Cluster::make(&cloud).await;
    let chart = helm_chart::chart(&cloud).await;
    let text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: one}\ndata: {text: the-value}\n";
    let one = kubernetes_manifest::manifest(&cloud, text).await;
    let parts =
        [(helm_chart::work(&chart, json!({ "text": "the-value" })), &chart, "settings"), (manifest(&one), &one, "one")];

    for (work, artifact, name) in parts {
        let object = || cluster.object("configmap", "globex-prod", name);
        let mut bench = Cluster::bench(&cloud, DEPLOYER, work.clone(), artifact).await;
        let kept = asks(&mut bench, "all");
        bench.change_order(|order| order.approval = Some(ApprovalRule::Prompt));

        let plan = proposed(execute(&bench.job).await);
        says(&bench, &kept, &plan, true);
        let reasons = refusals(&mut bench, &kept, &plan).await;
        let other = forged(&bench, &kept, &plan, |record| record.bytes = Digest::of(b"other"));
        order_with(&mut bench, &other, 9);
        let anew = proposed(execute(&bench.job).await).instead.unwrap_or_default();
        let untouched = object();
        order_with(&mut bench, &plan, 10);
        outputs(execute(&bench.job).await);
        let applied = object();
        // The same approval for the removal, and a deploy that has nothing to change.
        order_with(&mut bench, &plan, 11);
        let removal = RemovePart { what: Box::new(work.clone()), destroy_data: true, removes_policies: false };
        bench.change_order(|order| order.work = Work::Remove(removal));
        let removed = refused(execute(&bench.job).await);
        bench.next_attempt();
        bench.change_order(|order| (order.work, order.approved) = (work, None));
        outputs(execute(&bench.job).await);
        let noop = bench.log();

        for (reason, expected) in reasons.iter().zip(REFUSED) {
            assert!(reason.contains(expected), "`{name}`: {reason}");
        }
        assert_eq!((reasons.len(), untouched), (REFUSED.len(), Value::Null), "`{name}`");
        assert!(anew.contains("the job would now make other changes"), "`{name}`: {anew}");
        assert!(!serde_json::to_string(&plan).unwrap().contains("the-value"));
        let expected = "it is for `component:network`, and this job is for the removal of `component:network`";
        assert!(removed.contains(expected), "`{name}`: {removed}");
        assert!(noop.contains("nothing is applied, and nobody has to approve it"), "`{name}`: {noop}");
        assert_eq!((&applied["data"]["text"], &applied), (&Value::from("the-value"), &object()), "`{name}`");
        let stages = kept.events.lock().unwrap().clone();
        let of_plan = stages.iter().filter_map(|event| match event {
            AuditEvent::Approval { stage, plan: of, bytes, .. } if stage == "applied" => Some((of, bytes)),
            _ => None,
        });
        let record = kept.objects.lock().unwrap()[&record_object(&plan.plan)].clone();
        let record: PlanRecord = serde_json::from_slice(&record).unwrap();
        assert_eq!(of_plan.collect::<Vec<_>>(), [(&plan.plan, &record.bytes)], "`{name}`");
        assert_eq!(Digest::of(&cloud.object(&record.object).await.expect("the bytes of the plan")), record.bytes);
    }
    assert_eq!(cluster.revisions("configmap", "globex-prod", "web"), ["deployed"]);
}
