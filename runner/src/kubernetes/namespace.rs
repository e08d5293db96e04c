//! Makes the namespaces of objects.

use std::collections::BTreeMap;

use serde_json::json;

use super::api::{Api, Applied};
use super::error::ClusterError;
use super::object::{Id, Object};

impl Api {
    /// Makes the namespace `name` with `labels` if it is missing, and returns whether it was missing. The runner never
    /// deletes the namespace, because other objects may be in it.
    pub(crate) async fn make_namespace(
        &self,
        name: &str,
        labels: &BTreeMap<&'static str, String>,
    ) -> Result<bool, ClusterError> {
        let id = Id { api_version: "v1".into(), kind: "Namespace".into(), namespace: None, name: name.to_owned() };
        if self.get(&id).await?.is_some() {
            return Ok(false);
        }
        let value =
            json!({ "apiVersion": id.api_version, "kind": id.kind, "metadata": { "name": name, "labels": labels } });
        let place = format!("namespace `{name}`");
        self.apply(&Object { place, id, value }, Applied::Done).await.map(|_| true)
    }
}
