//! Names the objects in the runner's bucket that hold a state. Such a state is the Terraform or Pulumi state of a
//! component or of the sandbox, the list of the objects that a component applied to a cluster, or the list of the
//! copies of secrets or of the policies in a cluster.

use freehold_protocol::order::Work;
use freehold_protocol::{ComponentName, Digest};

/// The names of the objects of one Terraform state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StateObjects {
    /// The prefix of all names. A component's name cannot contain a slash, so two prefixes are never equal.
    base: String,
}

impl StateObjects {
    /// Returns the objects of the Terraform state that `work` may change; `None` when it changes no such state.
    pub fn of(work: &Work) -> Option<Self> {
        match work {
            Work::TerraformModule(work) => Some(Self::of_component(&work.component)),
            Work::Remove(work) => Self::of(&work.what),
            Work::DetectDrift(work) => Self::of(&work.what),
            Work::Sandbox(_) => Some(Self { base: "terraform/sandbox/sandbox".to_owned() }),
            Work::Pulumi(_)
            | Work::PulumiSandbox(_)
            | Work::ContainerImage(_)
            | Work::CloudformationStack(_)
            | Work::HelmChart(_)
            | Work::KubernetesManifest(_)
            | Work::KubernetesJob(_)
            | Work::CopySecrets(_)
            | Work::Action(_)
            | Work::Build(_)
            | Work::Preflight(_)
            | Work::Leftovers(_)
            | Work::Health(_)
            | Work::Upgrade(_) => None,
        }
    }

    /// Returns the objects of the Terraform state of `component`.
    pub fn of_component(component: &ComponentName) -> Self {
        Self { base: format!("terraform/{component}") }
    }

    /// Returns the name of the object that holds the state.
    pub fn state(&self) -> String {
        format!("{}.tfstate", self.base)
    }

    /// Returns the object that locks the state for Terraform. The lock is held while the object exists.
    pub fn lock(&self) -> String {
        format!("{}.tflock", self.state())
    }

    /// Returns the object that records the last attempt that worked on the state.
    pub fn mark(&self) -> String {
        format!("{}.fence.json", self.base)
    }
}

/// Returns the prefix of all objects of the Pulumi state of `component`, or of the sandbox, which has the name `sandbox`.
/// It is below `terraform/`, because the roles of modes and the bucket's rule for old versions name that prefix.
pub fn pulumi(component: &ComponentName) -> String {
    format!("terraform/{component}/")
}

/// Returns the object that lists what `component` has applied to a cluster.
pub fn inventory(component: &ComponentName) -> String {
    format!("kubernetes/{component}.inventory.json")
}

/// Returns the object that lists the copies of secrets in a cluster. A component's name cannot contain a slash, so no
/// component has an inventory with this name.
pub fn copies() -> String {
    "kubernetes/secrets/copies.inventory.json".to_owned()
}

/// Returns the object that lists the app's Kyverno policies in the cluster with this ARN.
pub fn cluster_policies(cluster: &str) -> String {
    policies_of(Digest::of(cluster.as_bytes()).hex())
}

/// Returns the pattern of [`cluster_policies`] for all clusters, as a policy of IAM writes it.
pub fn all_cluster_policies() -> String {
    policies_of("*")
}

fn policies_of(cluster: &str) -> String {
    format!("kubernetes/policies/{cluster}.inventory.json")
}

/// Returns the object that records the last attempt that worked on the Helm release of `component`.
pub fn kubernetes_mark(component: &ComponentName) -> String {
    format!("kubernetes/{component}.fence.json")
}
