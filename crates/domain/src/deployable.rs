//! What of an app version cannot be deployed here yet, in words that name it.

use freehold_protocol::app_version::{AppVersion, ComponentSpec, Platform, RolePolicy};

/// The thing in the way, as a person may read it after "app `x` cannot be deployed here yet:".
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Undeployable {
    /// Such as ``component `api` ``.
    pub what: String,
    /// Such as "is a `helm_chart`".
    pub why: String,
}

impl std::fmt::Display for Undeployable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.what, self.why)
    }
}

/// Whether a component of this kind can be built and deployed.
pub const fn is_deployable(spec: &ComponentSpec) -> bool {
    match spec {
        ComponentSpec::ContainerImage { .. }
        | ComponentSpec::TerraformModule { .. }
        | ComponentSpec::CloudformationStack { .. } => true,
        ComponentSpec::HelmChart { .. }
        | ComponentSpec::KubernetesManifest { .. }
        | ComponentSpec::DockerBuild { .. }
        | ComponentSpec::Job { .. }
        | ComponentSpec::Pulumi { .. } => false,
    }
}

/// Returns everything in the way of installing `version`; nothing when it can be installed.
pub fn undeployable(version: &AppVersion) -> Vec<Undeployable> {
    let mut found = Vec::new();
    if let Some(platform) =
        version.stack.as_ref().map(|stack| stack.platform).filter(|p| *p != Platform::AwsCloudformation)
    {
        found.push(Undeployable { what: "the stack".into(), why: format!("is of type `{}`", platform.as_str()) });
    }
    for component in version.components.iter().filter(|component| !is_deployable(&component.spec)) {
        let what = format!("component `{}`", component.name);
        found.push(Undeployable { what, why: format!("is a `{}`", component.spec.kind()) });
    }
    for role in &version.roles {
        if role.policies.iter().any(|policy| matches!(policy, RolePolicy::GcpPredefined(_))) {
            let what = format!("the role of mode `{}`", role.mode.as_str());
            found.push(Undeployable { what, why: "has permissions of Google Cloud".into() });
        }
    }
    found
}
