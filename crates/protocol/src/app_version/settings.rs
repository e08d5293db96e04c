//! Settings of the sandbox, the runner and the install stack.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::components::{Component, ComponentSettings, ComponentSpec, Reference};
use crate::ComponentName;
use crate::build::Source;
use crate::flag::is_false;
use crate::terraform::ProviderSource;

/// The sandbox: the Terraform module or Pulumi program that makes what the components of an app need, such as a
/// cluster. String values are templates.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Sandbox {
    pub tool: SandboxTool,
    pub source: Source,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub vars: BTreeMap<String, Value>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env_vars: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub var_files: Vec<String>,
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub references: BTreeSet<Reference>,
    /// The cron expression of drift checks; empty for no checks.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub drift_schedule: String,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub operation_roles: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_auto_retries: Option<u32>,
    #[serde(default, skip_serializing_if = "is_false")]
    pub skip_noops: bool,
    #[serde(default, skip_serializing_if = "is_false")]
    pub auto_approve_on_policies_passing: bool,
}

/// The time limit of one run of a sandbox, in seconds. The creation of a cluster with its nodes takes up to half an
/// hour.
const SANDBOX_TIMEOUT_SECS: u32 = 2 * 60 * 60;

impl Sandbox {
    /// Returns the sandbox as a component, so that builds and deploys treat it like one. The tool decides the kind.
    pub fn part(&self) -> Component {
        let spec = match self.tool.clone() {
            SandboxTool::Terraform { version, providers } => ComponentSpec::TerraformModule {
                terraform_version: version,
                providers,
                vars: self.vars.clone(),
                env_vars: self.env_vars.clone(),
                var_files: self.var_files.clone(),
            },
            SandboxTool::Pulumi { runtime, version } => ComponentSpec::Pulumi {
                runtime,
                pulumi_version: version,
                config: self.vars.clone(),
                env_vars: self.env_vars.clone(),
            },
        };
        Component {
            name: ComponentName::sandbox(),
            var_name: String::new(),
            dependencies: BTreeSet::new(),
            references: self.references.clone(),
            deploy_timeout_secs: SANDBOX_TIMEOUT_SECS,
            build_timeout_secs: None,
            source: self.source.clone(),
            spec,
            settings: ComponentSettings {
                operation_roles: self.operation_roles.clone(),
                max_auto_retries: self.max_auto_retries,
                skip_noops: self.skip_noops,
                auto_approve_on_policies_passing: self.auto_approve_on_policies_passing,
                drift_schedule: self.drift_schedule.clone(),
                ..ComponentSettings::default()
            },
        }
    }
}

/// The tool that applies a sandbox's module or program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "tool", rename_all = "snake_case", deny_unknown_fields)]
pub enum SandboxTool {
    Terraform {
        version: String,
        #[serde(default, skip_serializing_if = "ProviderSource::is_packed")]
        providers: ProviderSource,
    },
    Pulumi {
        runtime: String,
        version: String,
    },
}

/// The config's settings for the runner.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct RunnerSettings {
    /// The type of runner in the config, such as `aws`.
    pub runner_type: String,
    /// Environment variables; values are templates.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env_vars: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub helm_driver: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub instance_type: String,
    /// The address of a start script for the runner of another system. Freehold never runs it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub init_script_url: String,
    /// The component whose image jobs run their programs in; absent for the file system of the runner's machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_image: Option<ComponentName>,
    /// The hosts that the app contacts and that may be in a private network: `host`, `host:port`, or `*.host`.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub inside_hosts: BTreeSet<String>,
}

/// The config's settings for the install stack.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct StackSettings {
    pub platform: Platform,
    /// The name of the install stack; a template.
    pub name: String,
    /// The description of the install stack; a template.
    pub description: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub vpc_nested_template_url: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub runner_nested_template_url: String,
    /// The nested stacks, sorted by index, then by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub custom_nested_stacks: Vec<NestedStack>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub deployment_scope: String,
}

/// The cloud on which an app runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Platform {
    AwsCloudformation,
    AzureBicep,
    GcpTerraform,
}

impl Platform {
    /// Returns the word for the cloud in configs.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::AwsCloudformation => "aws-cloudformation",
            Self::AzureBicep => "azure-bicep",
            Self::GcpTerraform => "gcp-terraform",
        }
    }
}

/// A nested stack of the install stack.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct NestedStack {
    pub name: String,
    pub template_url: String,
    #[serde(default)]
    pub index: u32,
    /// The parameters of the nested stack; strings are templates.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub parameters: BTreeMap<String, Value>,
}

/// The name of a cluster that a component creates. Other components use the name to deploy into the cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct KubernetesContext {
    pub name: String,
    pub component: ComponentName,
}
