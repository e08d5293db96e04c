//! Finds the hosts that an app contacts from the customer's account, as far as the app version names them.
//!
//! This module reads URLs (`scheme://host`) in everything that runs in the customer's account: values, environment,
//! var files, values files and manifests of components; steps of actions; sandbox and runner values; health probes;
//! defaults of inputs that are not sensitive. It also reads the registries of images that are pulled in the
//! customer's account (`job`, and `image:` lines of manifests and values files). It leaves out: hosts that only the
//! vendor's build contacts (the sources of components, the sandbox and steps reach the customer through the tenant
//! registry), the settings of the stack and of the runner's machine that have no effect, such as addresses of nested
//! stacks, hosts in the files of a source (the version has only their digest), hosts without a scheme, and the local
//! machine (`localhost`).

use std::collections::{BTreeMap, BTreeSet};

use freehold_protocol::app_version::{AppVersion, ComponentSpec};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The hosts that only the second version names (`added`), and the hosts that only the first version names (`removed`).
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct EgressChange {
    pub added: Vec<Egress>,
    pub removed: Vec<Egress>,
}

impl EgressChange {
    /// Returns whether both versions name the same hosts.
    pub const fn is_empty(&self) -> bool {
        self.added.is_empty() && self.removed.is_empty()
    }
}

/// A host, and the places in the app version that name it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Egress {
    /// The host, with its port if the text names one. The host may be a template or a shell variable whose value only
    /// the install knows.
    pub host: String,
    /// The places that name the host, such as ``component `api` env_vars.URL``.
    pub places: Vec<String>,
}

type Hosts = BTreeMap<String, BTreeSet<String>>;

/// Returns the hosts that only one of the two versions names.
pub(crate) fn change(from: &AppVersion, to: &AppVersion) -> EgressChange {
    let (before, after) = (hosts(from), hosts(to));
    let beyond = |these: &Hosts, those: &Hosts| {
        let only = these.iter().filter(|(host, _)| !those.contains_key(*host));
        only.map(|(host, places)| Egress { host: host.clone(), places: places.iter().cloned().collect() }).collect()
    };
    EgressChange { added: beyond(&after, &before), removed: beyond(&before, &after) }
}

/// The hosts that were found so far, each with the places that name it.
struct Finder {
    found: Hosts,
}

/// Returns the hosts of `version`, each with the places that name it.
pub(crate) fn hosts(version: &AppVersion) -> Hosts {
    let mut finder = Finder { found: Hosts::new() };
    for component in &version.components {
        let owner = format!("component `{}`", component.name);
        finder.values(&owner, &json_of(&component.spec));
        finder.images(&owner, &component.spec);
        if let Some(health) = &component.settings.health {
            finder.values(&owner, &json_of(&health.probes));
        }
    }
    for action in &version.actions {
        let owner = format!("action `{}`", action.name);
        finder.values(&owner, &json_of(&action.env_vars));
        finder.values(&owner, &json_of(&action.steps));
        finder.values(&owner, &json_of(&action.image));
    }
    if let Some(sandbox) = &version.sandbox {
        finder.values("sandbox", &json_of(&(&sandbox.vars, &sandbox.env_vars, &sandbox.var_files)));
    }
    if let Some(runner) = &version.runner {
        finder.values("runner", &json_of(&runner.env_vars));
        runner.inside_hosts.iter().for_each(|host| finder.add(host.clone(), "runner inside_hosts"));
    }
    for input in version.inputs.iter().filter(|input| !input.sensitive) {
        finder.values(&format!("default of input `{}`", input.name), &json_of(&input.default));
    }
    finder.found
}

/// Returns `value` as JSON. This cannot fail, because the value was read from JSON.
fn json_of<T: Serialize>(value: &T) -> Value {
    serde_json::to_value(value).unwrap_or_default()
}

impl Finder {
    fn values(&mut self, place: &str, value: &Value) {
        match value {
            Value::String(text) => self.text(place, text),
            Value::Array(all) => {
                for (at, value) in all.iter().enumerate() {
                    let name = value.get("name").and_then(Value::as_str);
                    let key = name.map_or_else(|| at.to_string(), str::to_owned);
                    self.values(&below(place, &key), value);
                }
            }
            Value::Object(map) => map.iter().for_each(|(key, value)| self.values(&below(place, key), value)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    fn text(&mut self, place: &str, text: &str) {
        for host in hosts_in(text) {
            self.add(host, place);
        }
    }

    fn add(&mut self, host: String, place: &str) {
        if !is_this_machine(&host) {
            self.found.entry(host).or_default().insert(place.to_owned());
        }
    }

    fn images(&mut self, owner: &str, spec: &ComponentSpec) {
        match spec {
            ComponentSpec::KubernetesManifest { manifest, .. } => self.image_lines(owner, manifest),
            ComponentSpec::HelmChart { values_files, .. } => {
                values_files.iter().for_each(|file| self.image_lines(owner, file));
            }
            ComponentSpec::ContainerImage { .. }
            | ComponentSpec::TerraformModule { .. }
            | ComponentSpec::CloudformationStack { .. }
            | ComponentSpec::DockerBuild { .. }
            // The image of a job comes from the install registry.
            | ComponentSpec::Job { .. }
            | ComponentSpec::Pulumi { .. } => {}
        }
    }

    /// Adds the registry of each `image:` line in `text`. An image that begins with a template is left out: a component
    /// of the app provides it, so it comes from the install's own registry.
    fn image_lines(&mut self, owner: &str, text: &str) {
        for line in text.lines() {
            let line = line.trim_start_matches([' ', '-', '\t']);
            let Some(reference) = line.strip_prefix("image:") else { continue };
            let reference = reference.trim().trim_matches(['"', '\'']);
            if !reference.is_empty() && !reference.starts_with(['{', '#', '&', '*']) {
                self.add(registry(reference), &format!("{owner} image"));
            }
        }
    }
}

fn below(place: &str, key: &str) -> String {
    let plain = place.rsplit(' ').next().is_some_and(|last| last.ends_with('`') || !place.contains('`'));
    let between = if plain { " " } else { "." };
    format!("{place}{between}{key}")
}

/// Returns the registry of an image; `docker.io` when the reference does not name a registry.
fn registry(reference: &str) -> String {
    match reference.split_once('/') {
        Some((host, _)) if host.contains(['.', ':', '{', '$']) || host == "localhost" => host.to_lowercase(),
        Some(_) | None => "docker.io".to_owned(),
    }
}

fn is_this_machine(host: &str) -> bool {
    let name = if host.starts_with('[') { host } else { host.split(':').next().unwrap_or(host) };
    name == "localhost" || name.starts_with("127.") || name == "0.0.0.0" || name.starts_with("[::1]")
}

/// Returns the hosts of the URLs in `text`, without user and password, in the order of the text.
fn hosts_in(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find("://") {
        let (before, after) = (rest.get(..at).unwrap_or_default(), rest.get(at + 3..).unwrap_or_default());
        let scheme: String =
            before.chars().rev().take_while(|c| c.is_ascii_alphanumeric() || "+-.".contains(*c)).collect();
        let scheme: String = scheme.chars().rev().collect::<String>().to_lowercase();
        let host = authority(after);
        match scheme.as_str() {
            "file" | "unix" => {}
            // These URLs name a bucket and not a host.
            "s3" | "gs" if !host.is_empty() => found.push(format!("{scheme}://{host}")),
            _ if !host.is_empty() => found.push(host),
            _ => {}
        }
        rest = after;
    }
    found
}

/// Returns the host and port at the beginning of `text`. A user and a password before the host are skipped; they may
/// contain almost any character.
fn authority(text: &str) -> String {
    let mut out = String::new();
    let end = text.find(|c: char| c.is_whitespace() || "/?#\"<>\\`".contains(c)).unwrap_or(text.len());
    let user = text.get(..end).and_then(|text| text.rfind('@')).map_or(0, |at| at + 1);
    let mut rest = text.get(user..).unwrap_or_default();
    while let Some(c) = rest.chars().next() {
        let group = [("{{", "}}"), ("${", "}"), ("[", "]")].into_iter().find_map(|(open, close)| {
            let inside = rest.strip_prefix(open)?;
            let length = inside.find(close)?;
            Some((open, inside.get(..length)?, close))
        });
        if let Some((open, inside, close)) = group {
            let spaced =
                if open == "{{" { format!(" {} ", inside.trim_matches('-').trim()) } else { inside.to_owned() };
            out.push_str(&format!("{open}{spaced}{close}"));
            rest = rest.get(open.len() + inside.len() + close.len()..).unwrap_or_default();
            continue;
        }
        if !(c.is_alphanumeric() || ".-_:@$%~!".contains(c)) {
            break;
        }
        out.extend(c.to_lowercase());
        rest = rest.get(c.len_utf8()..).unwrap_or_default();
    }
    let host = out.rsplit('@').next().unwrap_or_default();
    host.trim_end_matches(['.', ':', '!', '-', '_', '~']).to_owned()
}
