//! Health: the work of checking whether a deployed component is healthy, and the result.

use serde::{Deserialize, Serialize};

use serde_json::Value;

use super::ClusterOf;
use crate::ComponentName;
use crate::app_version::{Component, ComponentHealth, ComponentSpec};
use crate::flag::is_false;

/// The name of the job's output that contains the [`Health`].
pub const OUTPUT: &str = "health";

/// The longest time that a check without a deploy waits for a component to be healthy, in seconds.
const ALONE_SECS: u32 = 60;

/// The maximum length of a reason, in characters. The rest of a longer one is cut off.
pub const MAX_REASON_CHARS: usize = 500;

/// The maximum number of probes of a component.
pub const MAX_PROBES: usize = 20;

/// The maximum length of a probe's name, in characters.
pub const MAX_PROBE_NAME: usize = 64;

/// The maximum length of a probe's command, in characters: the program and its arguments together.
pub const MAX_PROBE_COMMAND: usize = 1_000;

/// The maximum number of required checks of a component.
pub const MAX_REQUIRED_CHECKS: usize = 10;

/// Checks whether a component is healthy, and changes nothing. The job has the output [`OUTPUT`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckHealth {
    pub component: ComponentName,
    /// The health check that the kind of the component offers.
    pub asks: Asks,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub probes: Vec<Probe>,
    /// How long the component must stay healthy, in seconds.
    pub hold_secs: u32,
    /// The time after which the component counts as not healthy, in seconds from the first check.
    pub limit_secs: u32,
    /// Whether the job fails when the component is not healthy, so that its dependents do not start.
    #[serde(default, skip_serializing_if = "is_false")]
    pub gate: bool,
}

impl CheckHealth {
    /// Returns the commands of the app that the check runs.
    pub fn commands(&self) -> impl Iterator<Item = &[String]> {
        self.probes.iter().filter_map(Probe::command)
    }

    /// Returns whether the check runs a command of the app.
    pub fn runs_commands(&self) -> bool {
        self.commands().next().is_some()
    }
}

/// The health check that the kind of a component offers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "of", rename_all = "snake_case")]
pub enum Asks {
    /// The kind offers no health check; only probes decide.
    Nothing,
    /// The objects of a Helm release. `release` and `namespace` are templates.
    Release { cluster: ClusterOf, release: String, namespace: String, storage_driver: String },
    /// The objects that the component's manifest made.
    Objects { cluster: ClusterOf },
    /// The status of a CloudFormation stack. The name is a template.
    Stack { stack_name: String },
}

/// A health check that the app config defines.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Probe {
    /// The name in messages.
    pub name: String,
    #[serde(flatten)]
    pub kind: ProbeKind,
}

impl Probe {
    /// Returns a probe of an app config; `None` for a probe of an unknown type or without a target.
    pub fn of(config: &Value) -> Option<Self> {
        let text = |key: &str| config.get(key).and_then(Value::as_str).filter(|text| !text.is_empty());
        let url = || text("url").map(str::to_owned);
        let kind = match text("type")? {
            "http" => ProbeKind::Http { url: url()? },
            "tcp" => ProbeKind::Tcp { url: url()? },
            "exec" => ProbeKind::Exec { command: command_of(config)? },
            _ => return None,
        };
        let asked = match &kind {
            ProbeKind::Http { url } | ProbeKind::Tcp { url } => url.clone(),
            ProbeKind::Exec { command } => command.join(" "),
        };
        // An address or a command may be longer than a name, and a command may have several lines.
        let letters = text("name").unwrap_or(&asked).chars().take(MAX_PROBE_NAME);
        let name = letters.map(|letter| if letter.is_control() { ' ' } else { letter }).collect();
        Some(Self { name, kind })
    }

    /// Returns the command that the probe runs; `None` for a probe of an address.
    pub fn command(&self) -> Option<&[String]> {
        match &self.kind {
            ProbeKind::Exec { command } => Some(command),
            ProbeKind::Http { .. } | ProbeKind::Tcp { .. } => None,
        }
    }
}

/// Returns the program and the arguments of a probe of an app config; `None` if it names no program.
fn command_of(config: &Value) -> Option<Vec<String>> {
    let words = config.get("command")?.as_array()?.iter();
    let words: Vec<String> = words.map(|word| word.as_str().map(str::to_owned)).collect::<Option<_>>()?;
    words.first().is_some_and(|program| !program.trim().is_empty()).then_some(words)
}

/// The kind of a probe.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ProbeKind {
    /// Requests an address, a template. A response with a status from 200 to 399 is healthy.
    Http { url: String },
    /// Opens a connection to `host:port`, a template.
    Tcp { url: String },
    /// Runs a program with its arguments, which are templates. The exit code 0 is healthy. A runner of an earlier
    /// version cannot read an order with this kind, and refuses it.
    Exec { command: Vec<String> },
}

/// Returns the health checks of a component whose health can be checked; `None` for any other.
pub fn checked(component: &Component) -> Option<&ComponentHealth> {
    let health = component.settings.health.as_ref().filter(|health| !health.disabled)?;
    let offers = match &component.spec {
        ComponentSpec::HelmChart { .. }
        | ComponentSpec::KubernetesManifest { .. }
        | ComponentSpec::CloudformationStack { .. } => true,
        ComponentSpec::ContainerImage { .. }
        | ComponentSpec::DockerBuild { .. }
        | ComponentSpec::TerraformModule { .. }
        | ComponentSpec::Pulumi { .. }
        | ComponentSpec::Job { .. } => false,
    };
    (offers || health.probes.iter().any(|probe| Probe::of(probe).is_some())).then_some(health)
}

/// The times of the checks of a component's health, in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Times {
    pub hold_secs: u32,
    pub limit_secs: u32,
}

impl Times {
    /// Returns the times of the checks after a deploy. A gate has one window in which the component becomes healthy,
    /// and a second window in which it must stay healthy. Without a gate, the first check that finds the component
    /// healthy is enough.
    pub const fn after_deploy(health: &ComponentHealth) -> Self {
        let window = health.stabilization_window_secs;
        if health.block_deploy {
            Self { hold_secs: window, limit_secs: window.saturating_mul(2) }
        } else {
            Self { hold_secs: 0, limit_secs: window }
        }
    }

    /// Returns the times of the checks without a deploy. The first check that finds the component healthy is enough. A
    /// component that is just being replaced has at most a minute to become healthy.
    pub const fn alone(health: &ComponentHealth) -> Self {
        let window = health.stabilization_window_secs;
        Self { hold_secs: 0, limit_secs: if window < ALONE_SECS { window } else { ALONE_SECS } }
    }
}

/// The health of a component.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Health {
    pub state: HealthState,
    /// Why the component is not healthy, or why its health is unknown; empty for a healthy component.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

/// The state of a component's health, from best to worst.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum HealthState {
    Healthy,
    /// The health could not be determined, or the component has no health check.
    Unknown,
    Unhealthy,
}

impl HealthState {
    /// Returns the word of the state in tables and messages.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Healthy => "healthy",
            Self::Unknown => "unknown",
            Self::Unhealthy => "unhealthy",
        }
    }
}

impl Health {
    /// Returns the health with its reason cut to [`MAX_REASON_CHARS`].
    pub fn new(state: HealthState, reason: &str) -> Self {
        Self { state, reason: reason.chars().take(MAX_REASON_CHARS).collect() }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_worst_state_is_the_greatest() {
        let mut all = [HealthState::Unhealthy, HealthState::Healthy, HealthState::Unknown];

        all.sort_unstable();

        assert_eq!(all.map(HealthState::as_str), ["healthy", "unknown", "unhealthy"]);
    }

    #[test]
    fn a_probe_is_named_by_its_address_unless_it_has_a_name() {
        let probe = |config: Value| Probe::of(&config).map(|probe| probe.name);

        assert_eq!(
            probe(json!({ "type": "http", "url": "https://a.example/up" })).as_deref(),
            Some("https://a.example/up")
        );
        assert_eq!(probe(json!({ "type": "tcp", "url": "a.example:5432", "name": "db" })).as_deref(), Some("db"));
        assert_eq!(probe(json!({ "type": "exec", "command": ["check", "-q"] })).as_deref(), Some("check -q"));
        assert_eq!(probe(json!({ "type": "exec", "command": ["sh", "-c", "a\nb"] })).as_deref(), Some("sh -c a b"));
    }

    #[test]
    fn a_probe_without_an_address_or_a_program_asks_nothing() {
        for config in [
            json!({ "type": "http", "url": "" }),
            json!({ "type": "tcp", "command": ["check"] }),
            json!({ "type": "exec", "url": "a.example:1" }),
            json!({ "type": "exec", "command": [] }),
            json!({ "type": "exec", "command": [" ", "x"] }),
            json!({ "type": "exec", "command": ["check", 7] }),
            json!({ "type": "grpc", "url": "a.example:1" }),
        ] {
            assert_eq!(Probe::of(&config), None, "{config}");
        }
    }

    #[test]
    fn a_check_names_the_commands_that_it_runs() {
        let probes = [
            json!({ "type": "tcp", "url": "a.example:1" }),
            json!({ "type": "exec", "command": ["check", "{{ .nuon.install.id }}"] }),
        ];
        let of = |probes: &[Value]| CheckHealth {
            component: "web".parse().unwrap(),
            asks: Asks::Nothing,
            probes: probes.iter().filter_map(Probe::of).collect(),
            hold_secs: 0,
            limit_secs: 0,
            gate: false,
        };

        assert_eq!(of(&probes).commands().collect::<Vec<_>>(), [["check", "{{ .nuon.install.id }}"]]);
        assert!(of(&probes).runs_commands() && !of(&probes[..1]).runs_commands());
    }

    #[test]
    fn only_a_gate_waits_until_the_component_has_stayed_healthy() {
        let health = |block_deploy| ComponentHealth {
            schedule: String::new(),
            disabled: false,
            block_deploy,
            stabilization_window_secs: 180,
            required_checks: Vec::new(),
            probes: Vec::new(),
        };

        assert_eq!(Times::after_deploy(&health(true)), Times { hold_secs: 180, limit_secs: 360 });
        assert_eq!(Times::after_deploy(&health(false)), Times { hold_secs: 0, limit_secs: 180 });
        assert_eq!(Times::alone(&health(true)), Times { hold_secs: 0, limit_secs: 60 });
    }

    #[test]
    fn a_long_reason_is_cut() {
        let long = "é".repeat(MAX_REASON_CHARS + 7);

        assert_eq!(Health::new(HealthState::Unhealthy, &long).reason.chars().count(), MAX_REASON_CHARS);
    }
}
