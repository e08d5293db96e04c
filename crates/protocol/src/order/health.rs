//! Health: the work of asking whether a deployed component is healthy, and its result.

use serde::{Deserialize, Serialize};

use serde_json::Value;

use super::ClusterOf;
use crate::ComponentName;
use crate::app_version::{Component, ComponentHealth, ComponentSpec};
use crate::flag::is_false;

/// The output of the job that has the [`Health`].
pub const OUTPUT: &str = "health";

/// The longest time that a check apart from a deploy waits for a component to be healthy, in seconds.
const ALONE_SECS: u32 = 60;

/// The maximum length of a reason, in characters. The rest of a longer one is cut off.
pub const MAX_REASON_CHARS: usize = 500;

/// The maximum number of probes of a component.
pub const MAX_PROBES: usize = 20;

/// The maximum length of a probe's name, in characters.
pub const MAX_PROBE_NAME: usize = 64;

/// Asks whether a component is healthy. It changes nothing. The job has the output [`OUTPUT`].
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

/// The health check that the kind of a component offers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "of", rename_all = "snake_case")]
pub enum Asks {
    /// The kind offers nothing; only probes decide.
    Nothing,
    /// The objects of a Helm release. `release` and `namespace` are templates.
    Release { cluster: ClusterOf, release: String, namespace: String, storage_driver: String },
    /// The objects that the component's manifest made.
    Objects { cluster: ClusterOf },
    /// The status of a CloudFormation stack. The name is a template.
    Stack { stack_name: String },
}

/// A question of the app's own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Probe {
    /// The name in messages.
    pub name: String,
    #[serde(flatten)]
    pub kind: ProbeKind,
}

impl Probe {
    /// Returns a probe of an app config; `None` for one that the runner does not ask, such as a command.
    pub fn of(config: &Value) -> Option<Self> {
        let text = |key: &str| config.get(key).and_then(Value::as_str).filter(|text| !text.is_empty());
        let url = text("url")?.to_owned();
        // An address may be longer than a name.
        let name = text("name").unwrap_or(&url).chars().take(MAX_PROBE_NAME).collect();
        let kind = match text("type")? {
            "http" => ProbeKind::Http { url },
            "tcp" => ProbeKind::Tcp { url },
            _ => return None,
        };
        Some(Self { name, kind })
    }
}

/// The kind of a probe.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ProbeKind {
    /// Requests an address, a template. An answer with a status from 200 to 399 is healthy.
    Http { url: String },
    /// Opens a connection to `host:port`, a template.
    Tcp { url: String },
}

/// Returns the health checks of a component that has something to ask; `None` for any other.
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
    /// and another one in which it stays so. Without a gate, the first check that finds the component healthy is
    /// enough.
    pub const fn after_deploy(health: &ComponentHealth) -> Self {
        let window = health.stabilization_window_secs;
        if health.block_deploy {
            Self { hold_secs: window, limit_secs: window.saturating_mul(2) }
        } else {
            Self { hold_secs: 0, limit_secs: window }
        }
    }

    /// Returns the times of the checks without a deploy. The first check that finds the component healthy is enough. A
    /// component that is just being replaced has a minute to become healthy.
    pub const fn alone(health: &ComponentHealth) -> Self {
        let window = health.stabilization_window_secs;
        Self { hold_secs: 0, limit_secs: if window < ALONE_SECS { window } else { ALONE_SECS } }
    }
}

/// The health of a component.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Health {
    pub state: HealthState,
    /// Why the component is not healthy, or why nobody knows; empty for a healthy one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

/// The state of a component's health. The later one of two is the worse one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum HealthState {
    Healthy,
    /// The component could not be asked, or offers nothing to be asked.
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
        assert_eq!(probe(json!({ "type": "exec", "command": ["check"] })), None);
        assert_eq!(probe(json!({ "type": "http", "url": "" })), None);
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
