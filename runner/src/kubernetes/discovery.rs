//! The kinds that a cluster serves, as its discovery documents list them.

use std::collections::BTreeMap;

use serde::Deserialize;
use tokio::sync::Mutex;

/// A kind, and how the paths of the API name it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct Resource {
    /// The plural name in paths, such as `deployments`.
    pub(crate) name: String,
    pub(crate) kind: String,
    pub(crate) namespaced: bool,
}

/// The discovery document of one group and version (Kubernetes API, `APIResourceList`).
#[derive(Debug, Deserialize)]
pub(super) struct ResourceList {
    #[serde(default)]
    pub(super) resources: Vec<Resource>,
}

/// A cache of the resources that were discovered, by `apiVersion`.
pub(super) type Discovered = Mutex<BTreeMap<String, Vec<Resource>>>;

/// Returns the path segments of a group and version. The core API, `v1`, does not have a group.
pub(super) fn group_path(api_version: &str) -> Vec<&str> {
    match api_version.split_once('/') {
        Some((group, version)) => vec!["apis", group, version],
        None => vec!["api", api_version],
    }
}

/// Returns the resource of `kind`. It skips subresources such as `pods/eviction`, which the document also lists with a
/// kind.
pub(super) fn of_kind(resources: &[Resource], kind: &str) -> Option<Resource> {
    resources.iter().find(|one| one.kind == kind && !one.name.contains('/')).cloned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subresources_are_not_kinds_of_their_own() {
        let list = r#"{"kind":"APIResourceList","resources":[
            {"name":"pods/eviction","kind":"Eviction","namespaced":true},
            {"name":"deployments/scale","kind":"Scale","namespaced":true},
            {"name":"pods","singularName":"","kind":"Pod","namespaced":true,"verbs":["get"]}]}"#;

        let list: ResourceList = serde_json::from_str(list).unwrap();

        assert_eq!(of_kind(&list.resources, "Pod").unwrap().name, "pods");
        assert_eq!(of_kind(&list.resources, "Scale"), None);
        assert_eq!(group_path("apps/v1"), ["apis", "apps", "v1"]);
        assert_eq!(group_path("v1"), ["api", "v1"]);
    }
}
