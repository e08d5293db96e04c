//! An app that a seed draws, and its next versions.

use std::collections::{BTreeMap, BTreeSet};

use freehold_protocol::ComponentName;
use freehold_protocol::app_version::AppVersion;
use serde_json::{Map, Value, json};

use crate::support::walk::Rng;

/// The inputs of the app. Each has a default.
pub(super) const INPUTS: [&str; 3] = ["size", "name", "greeting"];

/// The most components of an app.
const MOST: usize = 7;

/// The kinds of component whose work has values in it, and images.
const KINDS: [&str; 6] =
    ["container_image", "terraform_module", "cloudformation_stack", "helm_chart", "kubernetes_manifest", "pulumi"];

/// The components of the version that was drawn last.
#[derive(Debug, Clone)]
pub(super) struct DrawnApp {
    components: Vec<Component>,
    /// The number of the version; its images are of another source in each.
    version: usize,
}

#[derive(Debug, Clone)]
struct Component {
    kind: usize,
    source: usize,
    /// A value in the config itself.
    constant: usize,
    reads: BTreeSet<usize>,
    after: BTreeSet<usize>,
    /// Whether a new install has it, when installs may leave it out. Nothing depends on such a component.
    toggle: Option<bool>,
    is_gated: bool,
}

impl DrawnApp {
    pub(super) fn draw(rng: &mut Rng) -> Self {
        let mut app = Self { components: Vec::new(), version: 0 };
        for _ in 0..3 + rng.below(3) {
            app.add(rng);
        }
        app
    }

    pub(super) fn names(&self) -> BTreeSet<ComponentName> {
        (0..self.components.len()).map(name).collect()
    }

    /// Returns the components that an install may leave out.
    pub(super) fn toggleable(&self) -> BTreeSet<ComponentName> {
        self.components.iter().enumerate().filter(|(_, one)| one.toggle.is_some()).map(|(at, _)| name(at)).collect()
    }

    /// Draws the next version: up to three components change, or there is another one.
    pub(super) fn change(&mut self, rng: &mut Rng) {
        self.version += 1;
        for _ in 0..1 + rng.below(3) {
            let count = self.components.len();
            let at = rng.below(count);
            let (version, constant) = (self.version, rng.below(1000));
            let component = &mut self.components[at];
            match rng.below(6) {
                0 | 1 => component.source = version,
                2 => component.constant = constant,
                3 => component.reads = draw_reads(rng),
                4 => component.is_gated = !component.is_gated,
                _ if count < MOST => self.add(rng),
                _ => component.source = version,
            }
        }
    }

    /// Draws choices for components that an install may leave out.
    pub(super) fn draw_toggles(&self, rng: &mut Rng) -> BTreeMap<ComponentName, Option<bool>> {
        let mut toggles = BTreeMap::new();
        for component in self.toggleable() {
            if rng.below(2) == 0 {
                toggles.insert(component, [None, Some(true), Some(false)][rng.below(3)]);
            }
        }
        toggles
    }

    fn add(&mut self, rng: &mut Rng) {
        let stays = |at: &usize| self.components[*at].toggle.is_none();
        let after: BTreeSet<usize> = (0..self.components.len()).filter(stays).filter(|_| rng.below(3) == 0).collect();
        self.components.push(Component {
            kind: rng.below(KINDS.len()),
            source: self.version,
            constant: rng.below(1000),
            reads: draw_reads(rng),
            after,
            toggle: [None, None, Some(true), Some(false)][rng.below(4)],
            is_gated: rng.below(2) == 0,
        });
    }

    pub(super) fn document(&self) -> AppVersion {
        let inputs = INPUTS.map(|name| json!({ "name": name, "type": "string", "default": format!("{name}-0") }));
        let components: Vec<Value> = self.components.iter().enumerate().map(|(at, one)| one.document(at)).collect();
        serde_json::from_value(json!({
            "format": 1, "app": "demo", "inputs": inputs, "components": components,
            "roles": [{ "mode": "provision", "policies": [{ "managed": "PowerUserAccess" }] }],
        }))
        .unwrap()
    }
}

impl Component {
    fn document(&self, at: usize) -> Value {
        // An image has no templates.
        let reads: Vec<&str> = self.reads.iter().filter(|_| self.kind > 0).map(|input| INPUTS[*input]).collect();
        let after: Vec<ComponentName> = self.after.iter().map(|other| name(*other)).collect();
        let mut values: Map<String, Value> =
            [("constant".to_owned(), json!(self.constant.to_string()))].into_iter().collect();
        for input in &reads {
            values.insert((*input).to_owned(), json!(format!("{{{{ .nuon.inputs.inputs.{input} }}}}")));
        }
        for other in &after {
            values.insert(other.to_string(), json!(format!("{{{{ .nuon.components.{other}.outputs.name }}}}")));
        }
        let mut references: Vec<Value> = reads.iter().map(|input| json!({ "to": "input", "name": input })).collect();
        references
            .extend(after.iter().filter(|_| self.kind > 0).map(|other| json!({ "to": "component", "name": other })));
        let mut settings = Map::new();
        if let Some(toggle) = self.toggle {
            settings.insert("toggle".to_owned(), json!(toggle));
        }
        if self.is_gated {
            let probes = [json!({ "type": "http", "url": format!("https://{}.example/up", name(at)) })];
            let health = json!({ "block_deploy": true, "stabilization_window_secs": 30, "probes": probes });
            settings.insert("health".to_owned(), health);
        }
        json!({
            "name": name(at), "dependencies": after, "references": references, "deploy_timeout_secs": 600,
            "source": { "from": "image", "reference": self.reference(at) }, "spec": self.spec(at, &values), "settings": settings,
        })
    }

    /// Returns the source. A manifest is in its artifact, so that another one is another artifact.
    fn reference(&self, at: usize) -> String {
        let (source, name) = (self.source, name(at));
        match KINDS[self.kind] {
            "kubernetes_manifest" => format!("example/{name}:{source}.{}.{:?}", self.constant, self.reads),
            _ => format!("example/{name}:{source}"),
        }
    }

    fn spec(&self, at: usize, values: &Map<String, Value>) -> Value {
        match KINDS[self.kind] {
            "terraform_module" => json!({ "kind": "terraform_module", "terraform_version": "1.9.0", "vars": values }),
            "cloudformation_stack" => {
                json!({ "kind": "cloudformation_stack", "stack_name": name(at), "parameters": values })
            }
            "helm_chart" => json!({ "kind": "helm_chart", "chart_name": name(at), "values": values }),
            "kubernetes_manifest" => {
                let manifest = serde_json::to_string(values).unwrap();
                json!({ "kind": "kubernetes_manifest", "namespace": "web", "manifest": manifest })
            }
            "pulumi" => json!({ "kind": "pulumi", "runtime": "go", "config": values }),
            _ => json!({ "kind": "container_image" }),
        }
    }
}

fn draw_reads(rng: &mut Rng) -> BTreeSet<usize> {
    (0..INPUTS.len()).filter(|_| rng.below(2) == 0).collect()
}

fn name(at: usize) -> ComponentName {
    format!("c{at}").parse().unwrap()
}
