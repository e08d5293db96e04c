//! An inventory: a list of the objects that a component has applied, or of the copies of secrets, in the runner's
//! bucket. By this list, the runner finds the objects that are not wanted any more.
//!
//! The list is not in the cluster, because it would be lost when its namespace is deleted. It names the cluster,
//! because a new cluster does not have the objects of an old one.

use freehold_protocol::ComponentName;
use serde::{Deserialize, Serialize};

use crate::job::bucket::JobBucket;
use crate::job::failure::Failure;
use crate::kubernetes::Id;
use crate::state_objects;

const MAX_BYTES: usize = 16 * 1024 * 1024;

/// The objects that may exist in one cluster for a component, or as copies of secrets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Inventory {
    /// The ARN of the cluster.
    cluster: String,
    objects: Vec<Id>,
}

impl Inventory {
    pub(super) fn new(cluster: &str, objects: Vec<Id>) -> Self {
        Self { cluster: cluster.to_owned(), objects }
    }

    /// Reads the inventory of the component in `cluster`. It is empty when there is none, or only one of another
    /// cluster.
    pub(super) async fn read(bucket: &JobBucket, component: &ComponentName, cluster: &str) -> Result<Self, Failure> {
        Self::read_at(bucket, &state_objects::inventory(component), cluster).await
    }

    /// Reads the inventory `key` in `cluster`.
    pub(super) async fn read_at(bucket: &JobBucket, key: &str, cluster: &str) -> Result<Self, Failure> {
        let Some(bytes) = bucket.get(key, MAX_BYTES).await? else { return Ok(Self::new(cluster, Vec::new())) };
        let found: Self = serde_json::from_slice(&bytes)
            .map_err(|error| Failure::because(&format!("could not read the inventory `{key}`"), &error))?;
        Ok(if found.cluster == cluster { found } else { Self::new(cluster, Vec::new()) })
    }

    pub(super) async fn write(&self, bucket: &JobBucket, component: &ComponentName) -> Result<(), Failure> {
        self.write_at(bucket, &state_objects::inventory(component)).await
    }

    pub(super) async fn write_at(&self, bucket: &JobBucket, key: &str) -> Result<(), Failure> {
        let bytes =
            serde_json::to_vec(self).map_err(|error| Failure::because("could not write the inventory", &error))?;
        bucket.put(key, bytes).await
    }

    /// Returns the objects of the inventory that are not in `wanted`.
    pub(super) fn without(&self, wanted: &[Id]) -> Vec<Id> {
        self.objects.iter().filter(|old| !wanted.iter().any(|new| new.is_same_object(old))).cloned().collect()
    }

    /// Returns the inventory with the objects `wanted` added.
    pub(super) fn with(&self, wanted: &[Id]) -> Self {
        let objects = self.without(wanted).into_iter().chain(wanted.iter().cloned()).collect();
        Self { cluster: self.cluster.clone(), objects }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(api_version: &str, name: &str) -> Id {
        Id { api_version: api_version.into(), kind: "A".into(), namespace: Some("web".into()), name: name.into() }
    }

    #[test]
    fn an_inventory_of_the_version_before_is_read_and_nothing_of_it_is_lost() {
        crate::testing::check_golden_values::<Inventory>("Inventory");
    }

    #[test]
    fn what_the_manifest_no_longer_has_is_what_is_pruned() {
        let before = Inventory::new("arn:one", vec![id("v1", "a"), id("x/v1beta1", "b")]);
        let wanted = [id("x/v1", "b"), id("v1", "c")];

        assert_eq!(before.without(&wanted), [id("v1", "a")]);
        assert_eq!(before.with(&wanted).objects, [id("v1", "a"), id("x/v1", "b"), id("v1", "c")]);
        // After a kill, the next attempt still knows the object that is to be pruned.
        assert_eq!(before.with(&wanted).without(&wanted), [id("v1", "a")]);
    }
}
