//! Components that are switched off: not deployed, removed in order, and deployed again.

use proptest::prelude::*;

use super::*;
use crate::graph::order;
use crate::plan::teardown::Standing;
use crate::toggles;
use crate::workflow::NodeState;

const COMPONENTS: usize = 5;

/// The events of one component, before and after.
const EVENTS: [&str; 4] = ["deploy-component", "enable-component", "teardown-component", "disable-component"];

/// One deploy: the version, the choices that change, the inputs that change, and the components whose jobs fail.
#[derive(Debug, Clone)]
struct Round {
    version: usize,
    choices: BTreeMap<usize, Option<bool>>,
    changed: BTreeSet<usize>,
    fail: BTreeSet<usize>,
}

impl Round {
    fn of(version: usize) -> Self {
        Self { version, choices: BTreeMap::new(), changed: BTreeSet::new(), fail: BTreeSet::new() }
    }
}

fn name_of(at: usize) -> ComponentName {
    format!("c{at}").parse().unwrap()
}

/// A version whose component `c<n>` depends on some of the components before it, with an action for each event.
fn version_of(graph: &[BTreeSet<usize>], defaults: &[Option<bool>]) -> AppVersion {
    let one = |at: usize| {
        let before: Vec<String> =
            graph[at].iter().filter(|other| **other < at).map(|other| format!("c{other}")).collect();
        let before: Vec<&str> = before.iter().map(String::as_str).collect();
        let mut component = component(&format!("c{at}"), &before, &[&format!("i{at}")]);
        component["settings"] = json!({ "toggle": defaults[at] });
        component
    };
    let actions = (0..graph.len()).flat_map(|at| {
        EVENTS.iter().flat_map(move |event| ["pre", "post"].map(|moment| (at, format!("{moment}-{event}"))))
    });
    let actions = actions.map(|(at, event)| {
        let triggers = json!([{ "on": "event", "event": event, "component": format!("c{at}") }]);
        json!({ "name": format!("{event}-c{at}"), "timeout_secs": 60, "steps": [], "triggers": triggers })
    });
    let components: Vec<Value> = (0..graph.len()).map(one).collect();
    let actions: Vec<Value> = actions.collect();
    serde_json::from_value(json!({ "format": 1, "app": "demo", "components": components, "actions": actions })).unwrap()
}

/// An install, as far as the planner sees it.
#[derive(Debug, Default)]
struct Site {
    choices: BTreeMap<ComponentName, bool>,
    values: BTreeMap<String, Value>,
    deployed: BTreeMap<ComponentName, Deployed>,
    /// The components whose first deploy failed half way.
    attempted: BTreeMap<ComponentName, Deployed>,
    /// The version that deployed each component.
    made_by: BTreeMap<ComponentName, usize>,
    serial: u64,
}

impl Site {
    fn plan(&self, versions: &[AppVersion], round: &Round) -> Result<Vec<Node>, PlanError> {
        let version = &versions[round.version];
        let builds = builds(version);
        let off = toggles::off(version, &self.choices);
        let on = self.choices.iter().filter(|(_, on)| **on).map(|(name, _)| name.clone()).collect();
        let there: Vec<Standing<'_>> =
            self.deployed.iter().chain(&self.attempted).map(|(name, one)| self.standing(versions, name, one)).collect();
        let input = DeployInput {
            version,
            builds: &builds,
            inputs: &self.values,
            secrets: SecretsState::none(),
            healthy: &BTreeSet::new(),
            toggles: TogglesState { off: &off, on: &on, there: &there },
            deployed: &self.deployed,
            required: &BTreeMap::new(),
            licence: None,
            serial: self.serial,
        };
        deploy_nodes(input, &DeployScope { first: self.deployed.is_empty(), ..DeployScope::default() })
    }

    fn standing<'a>(&self, versions: &'a [AppVersion], name: &ComponentName, one: &Deployed) -> Standing<'a> {
        let document = &versions[self.made_by[name]];
        let part = document.component(name).unwrap().clone();
        let (version, artifact) = (one.version.clone(), one.artifact.clone());
        Standing { part, document, version, artifact, attempted: one.attempted }
    }

    /// Runs a node whose dependencies have succeeded.
    fn run(
        &mut self,
        versions: &[AppVersion],
        version: usize,
        node: &Node,
        left: &[&Node],
    ) -> Result<(), TestCaseError> {
        let on = |name: &ComponentName| !toggles::off(&versions[version], &self.choices).contains(name);
        match &node.target {
            Target::Component { component, .. } => {
                prop_assert!(on(component), "{component} is off and was deployed");
                for dependency in &versions[version].component(component).unwrap().dependencies {
                    prop_assert!(self.deployed.contains_key(dependency), "{component} came before {dependency}");
                }
                self.attempted.remove(component);
                self.deployed.extend(after(std::slice::from_ref(node)));
                self.made_by.insert(component.clone(), version);
            }
            Target::Teardown { part, .. } => {
                prop_assert!(!on(part), "{part} is on and was removed");
                let is_there = self.deployed.remove(part).or_else(|| self.attempted.remove(part)).is_some();
                prop_assert!(is_there, "{part} was removed and is not there");
                for other in self.deployed.keys() {
                    let now = versions[version].component(other).unwrap().dependencies.contains(part);
                    prop_assert!(!now, "{part} was removed before {other}");
                    let waits = left.iter().any(|node| node.name == other.as_str());
                    let before = versions[self.made_by[other]].component(other).unwrap().dependencies.contains(part);
                    prop_assert!(!(waits && before), "{part} was removed before {other} stopped using it");
                }
                self.made_by.remove(part);
            }
            _ => {}
        }
        Ok(())
    }
}

impl Site {
    /// Fails the first deploy of a component half way.
    fn attempt(&mut self, version: usize, node: &Node) {
        for (name, one) in after(std::slice::from_ref(node)) {
            if !self.deployed.contains_key(&name) {
                self.made_by.insert(name.clone(), version);
                self.attempted.insert(name, Deployed { partial: true, attempted: true, ..one });
            }
        }
    }
}

/// Plans a deploy and executes it: a node runs when everything before it has succeeded. Returns the number of nodes.
fn deploy(site: &mut Site, versions: &[AppVersion], round: &Round) -> Result<usize, TestCaseError> {
    let version = &versions[round.version];
    for (at, choice) in &round.choices {
        if let Ok(next) = toggles::changed(version, &site.choices, &[(name_of(*at), *choice)].into()) {
            site.choices = next;
        }
    }
    site.serial += 1;
    for at in &round.changed {
        site.values.insert(format!("i{at}"), json!(site.serial));
    }
    let off = toggles::off(version, &site.choices);
    let on = version.components.iter().filter(|one| !off.contains(&one.name));
    let expected = toggles::dependent_on_off(on, &off).map(PlanError::NeedsOff);
    let nodes = match site.plan(versions, round) {
        Ok(nodes) => nodes,
        Err(refused) => {
            prop_assert_eq!(Some(refused), expected);
            return Ok(0);
        }
    };
    prop_assert_eq!(expected, None);
    let named: Vec<order::Named<'_>> =
        nodes.iter().map(|node| (node.name.as_str(), node.dependencies.iter().map(String::as_str).collect())).collect();
    prop_assert_eq!(order::check(&named), Ok(()));
    each_event_once(site, &nodes)?;
    let fails = |node: &Node| {
        round.fail.iter().any(|at| node.name.ends_with(&format!("c{at}")) && !node.name.contains("action"))
    };
    let mut left: Vec<&Node> = nodes.iter().collect();
    let mut succeeded = BTreeSet::new();
    // The last ready node is taken, so that a missing dependency shows: nodes are in the order of names.
    while let Some(at) = left.iter().rposition(|node| node.dependencies.is_subset(&succeeded)) {
        let node = left.remove(at);
        if fails(node) {
            site.attempt(round.version, node);
        } else {
            site.run(versions, round.version, node, &left)?;
            succeeded.insert(node.name.clone());
        }
    }
    Ok(nodes.len())
}

/// Checks that each event of a component has one node for its action, before and after, and that there are no others.
fn each_event_once(site: &Site, nodes: &[Node]) -> Result<(), TestCaseError> {
    let mut expected = BTreeSet::new();
    for node in nodes {
        let events: &[&str] = match &node.target {
            Target::Component { component, .. } => {
                let switched_on = site.choices.get(component) == Some(&true) && !site.deployed.contains_key(component);
                if switched_on && !site.deployed.is_empty() { &EVENTS[..2] } else { &EVENTS[..1] }
            }
            Target::Teardown { part, .. } if site.deployed.contains_key(part) => &EVENTS[2..],
            _ => &[],
        };
        let component = node.name.strip_prefix("remove:").unwrap_or(&node.name);
        for event in events {
            expected.extend(["pre", "post"].map(|moment| format!("action:{moment}-{event}-{component}")));
        }
    }
    let mut fired: Vec<&str> = names(nodes).into_iter().filter(|name| name.starts_with("action:")).collect();
    fired.sort_unstable();
    prop_assert_eq!(fired, expected.iter().map(String::as_str).collect::<Vec<_>>());
    Ok(())
}

fn graph() -> impl Strategy<Value = Vec<BTreeSet<usize>>> {
    prop::collection::vec(prop::collection::btree_set(0..COMPONENTS, 0..3), COMPONENTS)
}

fn round() -> impl Strategy<Value = Round> {
    let choices = prop::collection::btree_map(0..COMPONENTS, prop::option::weighted(0.8, any::<bool>()), 0..4);
    let some = || prop::collection::btree_set(0..COMPONENTS, 0..3);
    (0..2_usize, choices, some(), some()).prop_map(|(version, choices, changed, fail)| Round {
        version,
        choices,
        changed,
        fail,
    })
}

proptest! {
    #[test]
    fn whatever_is_switched_and_whatever_fails_nothing_off_is_deployed_and_each_event_happens_once(
        graphs in prop::array::uniform2(graph()),
        defaults in prop::collection::vec(prop::option::weighted(0.8, any::<bool>()), COMPONENTS),
        rounds in prop::collection::vec(round(), 1..7),
    ) {
        let versions = graphs.map(|graph| version_of(&graph, &defaults));
        let values = (0..COMPONENTS).map(|at| (format!("i{at}"), json!(0))).collect();
        let mut site = Site { values, ..Site::default() };
        for round in &rounds {
            deploy(&mut site, &versions, round)?;
        }

        let everything = (0..COMPONENTS).map(|at| (at, Some(true))).collect();
        let last = Round { choices: everything, ..Round::of(1) };
        deploy(&mut site, &versions, &last)?;
        let again = deploy(&mut site, &versions, &Round::of(1))?;

        let off = toggles::off(&versions[1], &site.choices);
        if toggles::dependent_on_off(versions[1].components.iter().filter(|one| !off.contains(&one.name)), &off).is_none() {
            let on = versions[1].components.iter().map(|one| one.name.clone()).filter(|name| !off.contains(name));
            prop_assert_eq!(site.deployed.keys().cloned().collect::<BTreeSet<_>>(), on.collect::<BTreeSet<_>>());
            prop_assert_eq!(site.attempted.keys().collect::<Vec<_>>(), Vec::<&ComponentName>::new());
        }
        prop_assert_eq!(again, 0);
    }
}

fn shown(nodes: &[Node]) -> String {
    let line = |node: &Node| {
        let after: Vec<&str> = node.dependencies.iter().map(String::as_str).collect();
        format!("{} <- {}", node.name, after.join(" ")).trim_end().to_owned()
    };
    let deploys = |node: &&Node| !node.name.starts_with("action:") && node.name != "preflight:install";
    nodes.iter().filter(deploys).map(line).collect::<Vec<_>>().join("\n")
}

/// Returns a site that has all of `version`, and the plan after `choices`.
fn planned_after(versions: &[AppVersion], choices: &[(usize, bool)], version: usize, changed: &[usize]) -> Vec<Node> {
    let values = (0..COMPONENTS).map(|at| (format!("i{at}"), json!(0))).collect();
    let mut site = Site { values, ..Site::default() };
    deploy(&mut site, versions, &Round::of(0)).unwrap();
    site.choices = choices.iter().map(|(at, on)| (name_of(*at), *on)).collect();
    site.values.extend(changed.iter().map(|at| (format!("i{at}"), json!(1))));
    site.plan(versions, &Round::of(version)).unwrap()
}

fn version_with(dependencies: [&[usize]; 3]) -> AppVersion {
    version_of(&dependencies.map(|of| of.iter().copied().collect()), &[Some(true); 3])
}

#[test]
fn a_component_is_removed_after_its_dependents_and_before_its_dependencies_change() {
    let versions = [version_with([&[], &[0], &[1]])];

    let nodes = planned_after(&versions, &[(1, false), (2, false)], 0, &[0]);

    assert_eq!(
        shown(&nodes),
        "c0 <- action:pre-deploy-component-c0 remove:c1\n\
         remove:c1 <- action:pre-disable-component-c1 action:pre-teardown-component-c1 remove:c2\n\
         remove:c2 <- action:pre-disable-component-c2 action:pre-teardown-component-c2"
    );
    let removal = nodes.iter().find(|node| node.name == "remove:c1").unwrap();
    let action = nodes.iter().find(|node| node.name == "action:pre-disable-component-c1").unwrap();
    let deprovision = Some(RunsAs { mode: Mode::Deprovision, role: None });
    assert_eq!((&removal.runs_as, &action.runs_as), (&deprovision, &deprovision));
    assert_eq!(removal.target.group().unwrap().as_str(), "component:c1");
}

#[test]
fn a_component_that_another_one_stops_using_is_removed_after_that_one_was_deployed() {
    let versions = [version_with([&[], &[], &[1]]), version_with([&[], &[], &[0]])];

    let nodes = planned_after(&versions, &[(1, false)], 1, &[2]);

    assert_eq!(
        shown(&nodes),
        "c2 <- action:pre-deploy-component-c2\n\
         remove:c1 <- action:pre-disable-component-c1 action:pre-teardown-component-c1 c2"
    );
}

#[test]
fn a_deploy_of_named_components_refuses_those_that_are_off_and_removes_nothing() {
    let versions = [version_with([&[], &[0], &[]])];
    let mut site = Site { values: (0..3).map(|at| (format!("i{at}"), json!(0))).collect(), ..Site::default() };
    deploy(&mut site, &versions, &Round::of(0)).unwrap();
    site.choices = [(name_of(1), false)].into();
    let off = toggles::off(&versions[0], &site.choices);
    let there: Vec<Standing<'_>> =
        site.deployed.iter().map(|(name, one)| site.standing(&versions, name, one)).collect();
    let builds = builds(&versions[0]);
    let input = DeployInput {
        version: &versions[0],
        builds: &builds,
        inputs: &site.values,
        secrets: SecretsState::none(),
        healthy: &BTreeSet::new(),
        toggles: TogglesState { off: &off, on: &BTreeSet::new(), there: &there },
        deployed: &site.deployed,
        required: &BTreeMap::new(),
        licence: None,
        serial: 3,
    };
    let only = |at: usize| DeployScope { only: [name_of(at)].into(), ..DeployScope::default() };

    let refused = deploy_nodes(input, &only(1)).unwrap_err();
    let other = deploy_nodes(input, &only(0)).unwrap();

    assert_eq!(
        refused.to_string(),
        "component `c1` is switched off in this install; switch it on with `freehold install toggles`"
    );
    assert_eq!(shown(&other), "c0 <- action:pre-deploy-component-c0");
}

#[test]
fn an_action_that_needs_a_component_that_is_off_is_skipped_and_both_are_named() {
    let mut version = version_with([&[], &[], &[]]);
    for action in &mut version.actions {
        if ["post-deploy-component-c0", "pre-teardown-component-c1"].contains(&action.name.as_str()) {
            action.dependencies.insert(name_of(1));
        }
    }

    let nodes = planned_after(&[version], &[(1, false)], 0, &[0]);

    let state = |name: &str| &nodes.iter().find(|node| node.name == name).unwrap().state;
    let because = "action `post-deploy-component-c0` needs component `c1`, which is switched off in this install";
    assert_eq!(
        *state("action:post-deploy-component-c0"),
        NodeState::Skipped { because: because.to_owned(), left_out: true }
    );
    // Before the component is removed, its outputs are still there.
    assert_eq!(*state("action:pre-teardown-component-c1"), NodeState::Waiting);
}

#[test]
fn a_component_of_an_earlier_version_keeps_what_it_needs() {
    let first = version_with([&[], &[0], &[]]);
    let mut second = version_with([&[], &[], &[]]);
    second.components.remove(1);
    let versions = [first, second];
    let mut site = Site { values: (0..3).map(|at| (format!("i{at}"), json!(0))).collect(), ..Site::default() };
    deploy(&mut site, &versions, &Round::of(0)).unwrap();
    site.choices = [(name_of(0), false)].into();

    let refused = site.plan(&versions, &Round::of(1)).unwrap_err();

    assert_eq!(
        refused.to_string(),
        "component `c0` is switched off and cannot be removed while component `c1` of an earlier version needs it; \
         remove both with `freehold teardown --component c0`"
    );
}

#[test]
fn copies_of_secrets_that_no_version_wants_go_after_all_deploys_and_removals() {
    let versions = [version_with([&[], &[], &[]])];
    let mut site = Site { values: (0..3).map(|at| (format!("i{at}"), json!(0))).collect(), ..Site::default() };
    deploy(&mut site, &versions, &Round::of(0)).unwrap();
    site.choices = [(name_of(1), false)].into();
    site.values.insert("i0".to_owned(), json!(1));
    let version = AppVersion { actions: Vec::new(), ..versions[0].clone() };
    let off = toggles::off(&version, &site.choices);
    let there: Vec<Standing<'_>> =
        site.deployed.iter().map(|(name, one)| site.standing(&versions, name, one)).collect();
    let earlier = Digest::of(b"copies of an earlier version");
    let copied = Some(Copied { fingerprint: &earlier, others: false });
    let input = DeployInput {
        version: &version,
        builds: &builds(&version),
        inputs: &site.values,
        secrets: SecretsState { digests: &BTreeMap::new(), copied },
        healthy: &BTreeSet::new(),
        toggles: TogglesState { off: &off, on: &BTreeSet::new(), there: &there },
        deployed: &site.deployed,
        required: &BTreeMap::new(),
        licence: None,
        serial: 3,
    };

    let nodes = deploy_nodes(input, &DeployScope::default()).unwrap();

    assert_eq!(shown(&nodes), "c0 <-\nremove:c1 <-\nsecrets:unwanted <- c0 remove:c1");
}
