//! The sandbox in a plan.

use freehold_protocol::order::Mode;

use super::*;

/// `web` reads the sandbox's `vpc`, `worker` depends on `web`, and `site` reads nothing.
fn version(size: u32) -> AppVersion {
    let mut web = component("web", &[], &[]);
    web["references"] = json!([{ "to": "sandbox", "name": "vpc" }]);
    serde_json::from_value(json!({
        "format": 1,
        "app": "demo",
        "sandbox": {
            "tool": { "tool": "terraform", "version": "1.11.3" }, "source": { "from": "version" }, "vars": { "size": size },
            "operation_roles": { "reprovision": "support" },
        },
        "components": [component("site", &[], &[]), web, component("worker", &["web"], &[])],
        "roles": [{ "mode": "provision", "policies": [] }],
        "named_roles": [{ "name": "support", "policies": [] }],
    }))
    .unwrap()
}

fn planned(version: &AppVersion, deployed: &BTreeMap<ComponentName, Deployed>, scope: &DeployScope) -> Vec<Node> {
    try_planned(version, deployed, scope).unwrap()
}

fn try_planned(
    version: &AppVersion,
    deployed: &BTreeMap<ComponentName, Deployed>,
    scope: &DeployScope,
) -> Result<Vec<Node>, PlanError> {
    let (builds, inputs) = (builds(version), BTreeMap::new());
    let required = BTreeMap::from([("web".parse().unwrap(), BTreeSet::from(["vpc".to_owned()]))]);
    let input = DeployInput {
        version,
        builds: &builds,
        inputs: &inputs,
        secrets: SecretsState::none(),
        healthy: &BTreeSet::new(),
        toggles: TogglesState::none(),
        deployed,
        required: &required,
        licence: None,
        serial: 5,
    };
    deploy_nodes(input, scope)
}

/// Returns what is deployed after `nodes`, where the sandbox has the output `vpc`.
fn deployed(nodes: &[Node], vpc: &str) -> BTreeMap<ComponentName, Deployed> {
    let outputs: BTreeMap<String, Value> = [("vpc".to_owned(), json!(vpc))].into();
    let mut deployed = after(nodes);
    for node in nodes {
        let Some(Deploys { part, reads, .. }) = node.target.deploys() else { continue };
        let one = deployed.get_mut(&part).unwrap();
        one.sandbox = reads.and_then(|reads| reads.digest(&outputs).unwrap());
        if part.is_sandbox() {
            one.outputs = outputs.clone();
        }
    }
    deployed
}

fn only(name: &str) -> DeployScope {
    DeployScope { only: BTreeSet::from([name.parse().unwrap()]), ..DeployScope::default() }
}

#[test]
fn the_sandbox_comes_before_all_components_and_runs_as_provision() {
    let first = planned(&version(1), &BTreeMap::new(), &DeployScope::default());

    assert_eq!(names(&first), ["sandbox", "site", "web", "worker"]);
    assert!(first.iter().skip(1).all(|node| node.dependencies.contains("sandbox")));
    assert!(first[0].dependencies.is_empty());
    assert_eq!(first[0].runs_as, Some(RunsAs { mode: Mode::Provision, role: None }));
    assert!(first.iter().skip(1).all(|node| node.runs_as.is_none()));
    assert_eq!(first[0].target.group().unwrap().as_str(), "sandbox");
}

#[test]
fn a_changed_sandbox_is_made_again_with_what_reads_it_and_under_its_role() {
    let live = deployed(&planned(&version(1), &BTreeMap::new(), &DeployScope::default()), "vpc-1");

    let nothing = planned(&version(1), &live, &DeployScope::default());
    let changed = planned(&version(2), &live, &DeployScope::default());
    let by_hand = planned(&version(1), &live, &only("sandbox"));

    assert_eq!(names(&nothing), [""; 0]);
    assert_eq!(names(&changed), ["sandbox", "web", "worker"]);
    assert_eq!(names(&by_hand), ["sandbox", "web", "worker"]);
    let role = Some("custom-support".parse().unwrap());
    assert_eq!(changed[0].runs_as, Some(RunsAs { mode: Mode::Provision, role }));
}

#[test]
fn a_role_that_the_app_does_not_have_is_refused_also_when_nothing_has_changed() {
    let live = deployed(&planned(&version(1), &BTreeMap::new(), &DeployScope::default()), "vpc-1");
    let under = |role: &str| DeployScope { role: Some(role.to_owned()), ..DeployScope::default() };

    let known = try_planned(&version(1), &live, &under("support"));
    let unknown = try_planned(&version(1), &live, &under("suport"));

    assert_eq!(known.map(|nodes| nodes.len()), Ok(0));
    assert!(matches!(&unknown, Err(PlanError::UnknownRole(error)) if error.role() == "suport"), "{unknown:?}");
}

#[test]
fn a_component_runs_again_when_what_it_read_of_the_sandbox_is_another_now() {
    let mut live = deployed(&planned(&version(1), &BTreeMap::new(), &DeployScope::default()), "vpc-1");
    let sandbox = live.get_mut(&ComponentName::sandbox()).unwrap();

    sandbox.outputs.insert("dns".into(), json!("new"));
    let other = planned(&version(1), &live, &DeployScope::default());
    live.get_mut(&ComponentName::sandbox()).unwrap().outputs.insert("vpc".into(), json!("vpc-2"));
    let read = planned(&version(1), &live, &DeployScope::default());

    assert_eq!(names(&other), [""; 0]);
    assert_eq!(names(&read), ["web", "worker"]);
}

#[test]
fn a_chosen_component_brings_a_sandbox_that_is_not_there_yet() {
    let live = deployed(&planned(&version(1), &BTreeMap::new(), &DeployScope::default()), "vpc-1");

    assert_eq!(names(&planned(&version(1), &BTreeMap::new(), &only("site"))), ["sandbox", "site"]);
    assert_eq!(names(&planned(&version(2), &live, &only("site"))), ["site"]);
}

#[test]
fn an_output_that_the_sandbox_lacks_is_refused_by_name() {
    let mut live = deployed(&planned(&version(1), &BTreeMap::new(), &DeployScope::default()), "vpc-1");
    live.get_mut(&ComponentName::sandbox()).unwrap().outputs.clear();

    let error = try_planned(&version(1), &live, &only("web")).unwrap_err().to_string();

    assert!(
        error.starts_with("component `web` reads output `vpc` of the sandbox, but the sandbox does not have it"),
        "{error}"
    );
    assert_eq!(names(&planned(&version(1), &live, &only("site"))), ["site"]);
}

#[test]
fn a_sandbox_that_was_not_built_stops_the_plan() {
    let version = version(1);
    let input = DeployInput {
        version: &version,
        secrets: SecretsState::none(),
        healthy: &BTreeSet::new(),
        toggles: TogglesState::none(),
        builds: &BTreeMap::new(),
        inputs: &BTreeMap::new(),
        deployed: &BTreeMap::new(),
        required: &BTreeMap::new(),
        licence: None,
        serial: 1,
    };

    let error = deploy_nodes(input, &DeployScope::default()).unwrap_err();

    assert_eq!(error.to_string(), "the sandbox has no artifact; run `freehold build demo` and deploy again");
}
