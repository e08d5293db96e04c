//! Names the objects of the runner's bucket that hold a state: Terraform's of a component, or of the sandbox, which is apart from
//! those of all components; and what a component has in a cluster.

use freehold_protocol::ComponentName;
use freehold_protocol::order::Work;

/// The objects of one state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StateObjects {
    /// What all names begin with; no component's name has a slash.
    base: String,
}

impl StateObjects {
    /// Returns the objects of the state that `work` may change, if it may change one.
    pub fn of(work: &Work) -> Option<Self> {
        match work {
            Work::TerraformModule(work) => Some(Self::of_component(&work.component)),
            Work::Remove(work) => Self::of(&work.what),
            Work::Sandbox(_) => Some(Self { base: "terraform/sandbox/sandbox".to_owned() }),
            Work::ContainerImage(_)
            | Work::CloudformationStack(_)
            | Work::HelmChart(_)
            | Work::KubernetesManifest(_)
            | Work::CopySecrets(_)
            | Work::Action(_)
            | Work::Build(_)
            | Work::Preflight(_) => None,
        }
    }

    /// Returns the objects of the state of `component`.
    pub fn of_component(component: &ComponentName) -> Self {
        Self { base: format!("terraform/{component}") }
    }

    /// Returns the object that holds the state.
    pub fn state(&self) -> String {
        format!("{}.tfstate", self.base)
    }

    /// Returns the object that is Terraform's lock while it exists.
    pub fn lock(&self) -> String {
        format!("{}.tflock", self.state())
    }

    /// Returns the object that says which attempt last worked on the state.
    pub fn mark(&self) -> String {
        format!("{}.fence.json", self.base)
    }
}

/// Returns the object that lists what `component` has applied to a cluster.
pub fn inventory(component: &ComponentName) -> String {
    format!("kubernetes/{component}.inventory.json")
}

/// Returns the object that says which attempt last worked on the Helm release of `component`.
pub fn kubernetes_mark(component: &ComponentName) -> String {
    format!("kubernetes/{component}.fence.json")
}
