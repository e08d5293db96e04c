//! An app version: the immutable, content-addressed form of an app config directory.

mod actions;
mod components;
mod input_schema;
mod input_value;
mod inputs;
mod machine_type;
mod network;
mod permissions;
mod settings;
mod size;
mod verification;
mod version;

pub use crate::build::BuildInput;
pub use actions::{
    Action, ActionStep, RunInput, Runbook, RunbookStep, StepKind, StepRepo, StepSource, Trigger, TriggerIndex,
};
pub use components::{Component, ComponentHealth, ComponentSettings, ComponentSpec, Kustomize, Reference};
pub use input_schema::inputs_schema;
pub use input_value::InputError;
pub use inputs::{Input, InputGroup, InputKind, Secret, SecretFormat, SyncedSecret, parameter_id};
pub use machine_type::{graviton_instead_of, is_graviton_type};
pub use network::{NETWORK_OUTPUTS, network_zones};
pub use permissions::{ModeRole, NamedRole, OperationRole, Policy, PolicyEngine, RolePolicy};
pub use settings::{KubernetesContext, NestedStack, Platform, RunnerSettings, Sandbox, SandboxTool, StackSettings};
pub use size::{TooLarge, check_size};
pub use verification::Verification;
pub use version::{AppVersion, FORMAT};
