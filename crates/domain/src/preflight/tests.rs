use freehold_protocol::app_version::{Component, Sandbox, StepRepo};
use freehold_protocol::order::Source;
use freehold_protocol::report::{Fence, Outcome};
use freehold_protocol::{BuildId, Digest, KeyId, Timestamp};
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::job::{JobEvent, Step};
use crate::runs_as::RunsAs;
use crate::sandbox::SandboxReads;
use crate::workflow::tests::pending;
use crate::workflow::{NodeState, StepBuild, WorkflowKind};

const NOW: Timestamp = Timestamp::from_millis(1_000_000);

fn version() -> AppVersion {
    let terraform = json!({
        "kind": "terraform_module", "terraform_version": "1.11.3",
        "env_vars": { "URL": "https://registry.example:8443/x", "OWN": "https://{{ .nuon.install.id }}.example.com" },
    });
    let stack = json!({
        "kind": "cloudformation_stack", "stack_name": "{{ .nuon.install.id }}-storage",
        "parameters": { "Site": "https://stack.example/" },
    });
    let policy = json!({ "Statement": [
        { "Effect": "Allow", "Action": ["s3:CreateBucket", "s3:Put*"], "Resource": "arn:aws:s3:::{{ .nuon.install.id }}" },
        { "Effect": "Allow", "Action": "sqs:*", "Resource": "*" },
        { "Effect": "Allow", "Action": "iam:PassRole", "Resource": "*", "Condition": { "StringEquals": {} } },
        { "Effect": "Deny", "Action": "ec2:RunInstances", "Resource": "*" },
    ] });
    serde_json::from_value(json!({
        "format": 1,
        "app": "demo",
        "components": [
            component("net", terraform), component("storage", stack), component("web", json!({ "kind": "container_image" })),
        ],
        "actions": [{ "name": "check", "timeout_secs": 60, "triggers": [], "steps": [] }],
        "roles": [{
            "mode": "provision",
            "policies": [{ "inline": { "name": "own", "document": policy.to_string() } }, { "managed": "ReadOnlyAccess" }],
        }],
    }))
    .unwrap()
}

fn component(name: &str, spec: Value) -> Value {
    json!({
        "name": name, "dependencies": [], "references": [], "deploy_timeout_secs": 600,
        "source": { "from": "image", "reference": "example/x:1" }, "spec": spec,
    })
}

fn node(name: &str, dependencies: &[String]) -> Node {
    let target = match name.strip_prefix("action:") {
        Some(action) => Target::Action { action: action.parse().unwrap(), directories: Vec::new() },
        None => Target::Component {
            component: name.parse().unwrap(),
            build: BuildId::derive(&"demo".parse().unwrap(), &Digest::of(b"source"), &name.parse().unwrap()),
            artifact: Digest::of(b"artifact"),
            fingerprint: Digest::of(b"fingerprint"),
            sandbox: SandboxReads::default(),
        },
    };
    let dependencies = dependencies.iter().cloned().collect();
    Node {
        name: name.into(),
        target,
        dependencies,
        timeout_secs: 60,
        serial: 1,
        retries: 0,
        retried: 0,
        earlier: 0,
        state: NodeState::Waiting,
        runs_as: None,
    }
}

fn workflow(nodes: Vec<Node>) -> Workflow {
    Workflow { kind: WorkflowKind::ProvisionInstall, mode: Mode::Provision, nodes, ..pending() }
}

#[test]
fn what_is_looked_at_is_what_the_nodes_need() {
    let bytes = BTreeMap::from([("net".parse().unwrap(), 1000), ("storage".parse().unwrap(), 10)]);
    let all = workflow(["net", "storage", "web", "action:check"].map(|name| node(name, &[])).to_vec());

    let found = needs(&version(), &all, &bytes);

    let expected = json!({
        "terraform_versions": ["1.11.3"],
        "stacks": ["{{ .nuon.install.id }}-storage"],
        "programs": true,
        "disk_bytes": 8010,
        "hosts": ["registry.example:8443", "stack.example"],
        "permissions": [{ "actions": ["s3:CreateBucket"], "resources": ["arn:aws:s3:::{{ .nuon.install.id }}"] }],
        "permissions_left_out": 3,
    });
    assert_eq!(serde_json::to_value(found).unwrap(), expected);
}

#[test]
fn each_copy_of_a_directory_that_steps_run_in_counts() {
    let mut version = version();
    let action = version.actions[0].name.clone();
    let source = Source::Directory { digest: Digest::of(b"files") };
    version.actions[0].step_repos = [0, 1].map(|step| StepRepo { step, source: source.clone() }).into();
    let component = ComponentName::of_step(&action, 0);
    let build = BuildId::derive(&"demo".parse().unwrap(), &Digest::of(b"source"), &component);
    let built = StepBuild { component: component.clone(), build, artifact: Digest::of(b"artifact") };
    let target = Target::Action { action, directories: vec![built] };

    let needs =
        needs(&version, &workflow(vec![Node { target, ..node("action:check", &[]) }]), &[(component, 100)].into());

    assert_eq!(needs.disk_bytes, 2 * 100 * UNPACKS_TO);
}

#[test]
fn a_cluster_that_the_sandbox_takes_by_name_is_asked_about_the_namespaces_of_the_components_in_it() {
    let mut version = version();
    let charts = [("shop", "shop", ""), ("own", "", ""), ("elsewhere", "data", "other")];
    version.components.extend(charts.map(|(name, namespace, context)| {
        let spec = json!({ "kind": "helm_chart", "chart_name": name, "namespace": namespace });
        let mut chart: Component = serde_json::from_value(component(name, spec)).unwrap();
        chart.settings.kubernetes_context = context.to_owned();
        chart
    }));
    let all = workflow(vec![node("net", &[])]);
    let without = needs(&version, &all, &BTreeMap::new());
    let vars = json!({ "cluster_name": "{{ .nuon.inputs.inputs.cluster_name }}" });
    let tool = json!({ "tool": "terraform", "version": "1.11.3" });
    let sandbox = json!({ "tool": tool, "source": { "from": "version" }, "vars": vars });
    version.sandbox = Some(serde_json::from_value::<Sandbox>(sandbox).unwrap());

    let found = needs(&version, &all, &BTreeMap::new());

    assert!(without.clusters.is_empty());
    let namespaces = ["shop", "{{ .nuon.install.id }}"].map(str::to_owned).into();
    let name = "{{ .nuon.inputs.inputs.cluster_name }}".to_owned();
    assert_eq!(found.clusters, [ExistingCluster { name, namespaces }]);
}

#[test]
fn an_image_alone_needs_no_program_no_stack_and_no_host() {
    let mut deploy = workflow(vec![node("web", &[])]);
    deploy.mode = Mode::Maintenance;

    let found = needs(&version(), &deploy, &BTreeMap::new());

    assert_eq!(found, CheckInstall::default());
}

#[test]
fn the_stack_of_a_component_with_a_role_of_its_own_is_not_asked_of_the_modes_role() {
    let mut deploy = workflow(vec![node("storage", &[])]);
    deploy.nodes[0].runs_as =
        Some(RunsAs { mode: Mode::Provision, role: Some(freehold_protocol::RoleKey::derive(false, "deployer")) });
    let mut same = workflow(vec![node("storage", &[])]);
    same.nodes[0].runs_as = Some(RunsAs { mode: Mode::Provision, role: None });

    let (own, modes) = (needs(&version(), &deploy, &BTreeMap::new()), needs(&version(), &same, &BTreeMap::new()));

    assert!(own.stacks.is_empty(), "{own:?}");
    assert_eq!(modes.stacks.len(), 1);
}

#[test]
fn no_component_can_be_called_as_the_node_is() {
    assert!(NODE.parse::<ComponentName>().is_err());
    assert_eq!(Target::Preflight.group().unwrap().as_str(), "preflight");
}

#[test]
fn an_app_with_a_tool_image_has_time_to_fetch_it() {
    let mut tools = version();
    tools.runner = Some(serde_json::from_value(json!({ "runner_type": "aws", "tool_image": "web" })).unwrap());

    let limits = [version(), tools].map(|version| {
        let mut nodes = vec![node("net", &[])];
        precede(&mut nodes, &version);
        nodes[0].timeout_secs
    });

    assert_eq!(limits, [TIMEOUT_SECS, TIMEOUT_WITH_IMAGE_SECS]);
}

/// Returns graphs in which a node depends on earlier ones only.
fn graphs() -> impl Strategy<Value = Vec<Node>> {
    prop::collection::vec(prop::collection::vec(any::<prop::sample::Index>(), 0..3), 1..8).prop_map(|edges| {
        let names: Vec<String> = (0..edges.len()).map(|at| format!("c{at}")).collect();
        let earlier = |at: usize, edges: &[prop::sample::Index]| -> Vec<String> {
            edges.iter().filter(|_| at > 0).map(|edge| names[edge.index(at)].clone()).collect()
        };
        edges.iter().enumerate().map(|(at, edges)| node(&names[at], &earlier(at, edges))).collect()
    })
}

proptest! {
    #[test]
    fn a_graph_begins_with_it_and_its_failure_skips_all(mut nodes in graphs(), slots in 1_u32..4) {
        precede(&mut nodes, &version());
        let started = workflow(nodes.clone()).start(nodes, slots, NOW).unwrap();
        let job = started.jobs[0].clone();
        let fence = Fence { dispatch: 1, receive: 1 };
        let runner: KeyId = serde_json::from_value("a".into()).unwrap();
        let outcome = Outcome::Failed { reason: "no".into(), partial: false };
        let Ok(Step::Changed { job: failed, .. }) = job.on(&JobEvent::finished(fence, runner, outcome), NOW) else {
            panic!("refused")
        };

        let ended = started.workflow.on_job(&failed, NOW).unwrap();

        prop_assert_eq!(started.jobs.len(), 1);
        prop_assert_eq!(&job.node, NODE);
        prop_assert!(ended.jobs.is_empty() && ended.workflow.is_settled());
        for node in ended.workflow.nodes.iter().skip(1) {
            let skipped = matches!(&node.state, NodeState::Skipped { .. });
            prop_assert!(skipped, "{:?}", node);
        }
    }
}
