//! Names the objects of the runner's bucket that hold a component's state: Terraform's, and what it has in a cluster.

use freehold_protocol::ComponentName;

/// Returns the object that holds the state of `component`.
pub fn state(component: &ComponentName) -> String {
    format!("terraform/{component}.tfstate")
}

/// Returns the object that is Terraform's lock while it exists.
pub fn lock(component: &ComponentName) -> String {
    format!("{}.tflock", state(component))
}

/// Returns the object that says which attempt last worked on the state.
pub fn mark(component: &ComponentName) -> String {
    format!("terraform/{component}.fence.json")
}

/// Returns the object that lists what `component` has applied to a cluster.
pub fn inventory(component: &ComponentName) -> String {
    format!("kubernetes/{component}.inventory.json")
}

/// Returns the object that says which attempt last worked on the Helm release of `component`.
pub fn kubernetes_mark(component: &ComponentName) -> String {
    format!("kubernetes/{component}.fence.json")
}
