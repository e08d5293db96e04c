//! Sets the labels of the install on the objects of a release, after Helm has made them. Helm itself keeps labels that no
//! revision of the chart has, so an upgrade neither removes them nor shows them in its plan.

use std::collections::BTreeMap;

use freehold_aws_errors::chain;
use serde_json::Value;

use super::plan::owner;
use super::release::Release;
use crate::job::Job;
use crate::kubernetes::{Api, ClusterError, Id, Object};

/// Sets the labels on each object that belongs to the release. An object that the cluster does not let the job label is
/// only logged: the labels are for people.
pub(super) async fn set(job: &Job, api: &Api, release: &Release, objects: &[Object]) {
    let labels = job.order.labels();
    for Object { id, .. } in objects {
        let Err(error) = set_on(api, id, release, &labels).await else { continue };
        job.log.line(&format!("{id} did not get the labels of the install: {}", chain(&error)));
        if !matches!(error, ClusterError::Forbidden { .. } | ClusterError::Refused { .. }) {
            return;
        }
    }
}

async fn set_on(
    api: &Api,
    id: &Id,
    release: &Release,
    labels: &BTreeMap<&'static str, String>,
) -> Result<(), ClusterError> {
    let Some(live) = api.get(id).await? else { return Ok(()) };
    let is_of_release = owner(&live) == Some((release.name.as_str(), release.namespace.as_str()));
    if !is_of_release || has_all(&live, labels) { Ok(()) } else { api.label(id, labels).await }
}

fn has_all(live: &Value, labels: &BTreeMap<&'static str, String>) -> bool {
    let current = live.pointer("/metadata/labels");
    let value = |name: &str| current.and_then(|current| current.get(name)).and_then(Value::as_str);
    labels.iter().all(|(name, wanted)| value(name) == Some(wanted.as_str()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_object_is_labelled_once() {
        let labels = BTreeMap::from([("freehold.dev/app", "shop".to_owned())]);
        let object = |labels: Value| json!({ "metadata": { "labels": labels } });

        assert!(has_all(&object(json!({ "freehold.dev/app": "shop", "other": "x" })), &labels));
        assert!(!has_all(&object(json!({ "freehold.dev/app": "other" })), &labels));
        assert!(!has_all(&json!({ "metadata": {} }), &labels));
    }
}
