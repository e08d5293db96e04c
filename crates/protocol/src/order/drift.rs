//! Drift checks: the work of comparing a deployed part with its artifact and values, and the result. The result has
//! names of resources and attributes, and no values.

use serde::{Deserialize, Serialize};

use crate::approval::ChangeKind;

/// The name of the job's output that contains the [`DriftFound`].
pub const OUTPUT: &str = "drift";

/// The largest number of resources in a result; the others are only counted.
pub const MAX_RESOURCES: usize = 50;
/// The largest number of attributes of one resource; the others are only counted.
pub const MAX_ATTRIBUTES: usize = 20;
/// The largest number of characters of an address, a type or the name of an attribute. A longer one is cut.
pub const MAX_NAME: usize = 200;
/// The largest size of all addresses, types and names of attributes together, in bytes of JSON. The others are only
/// counted, so that a result is never larger than the outputs of a job may be.
pub const MAX_NAMES_BYTES: usize = 40 * 1024;

/// The resources of a part that differ from what its deploy made.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DriftFound {
    /// The resources, sorted by address.
    #[serde(default)]
    pub resources: Vec<DriftedResource>,
    /// The number of further resources. The list has at most 50 resources and 40 KiB of names.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub more: u64,
}

/// One resource that differs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DriftedResource {
    /// The address in its program, such as `aws_sqs_queue.jobs`, or the kind and name of an object in a cluster.
    pub address: String,
    /// The type of the resource; empty when its program has none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub kind: String,
    /// The change that a deploy would make to the resource. A deploy creates a missing resource.
    pub change: ChangeKind,
    /// The names of the attributes that differ, sorted, such as `tags.Owner`; empty for a resource that is missing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attributes: Vec<String>,
    /// The number of further attributes. The list has at most 20, or fewer if the result has 40 KiB of names.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub more_attributes: u64,
}

impl DriftFound {
    /// Returns the result with these resources, within its limits.
    pub fn of(resources: Vec<DriftedResource>) -> Self {
        let mut resources: Vec<DriftedResource> = resources.into_iter().map(DriftedResource::limited).collect();
        let all = resources.len();
        resources.sort_by(|one, other| one.address.cmp(&other.address));
        // Two addresses may be equal once they are cut, or without their secrets.
        resources.dedup_by(|one, other| one.address == other.address);
        resources.truncate(MAX_RESOURCES);
        let mut left = MAX_NAMES_BYTES;
        if let Some(full) = resources.iter_mut().position(|one| !one.fit(&mut left)) {
            resources.truncate(full);
        }
        let more = all.saturating_sub(resources.len()) as u64;
        Self { resources, more }
    }

    /// Returns the result within its limits, as a control plane takes it from a runner that it does not trust.
    #[must_use]
    pub fn limited(self) -> Self {
        let limited = Self::of(self.resources);
        Self { more: limited.more.saturating_add(self.more), ..limited }
    }

    /// Returns whether nothing differs.
    pub const fn is_empty(&self) -> bool {
        self.resources.is_empty() && self.more == 0
    }
}

impl DriftedResource {
    /// Removes the attributes that do not fit into `left` bytes, and subtracts the size of the others from `left`.
    /// Returns whether the address and the type fit.
    fn fit(&mut self, left: &mut usize) -> bool {
        let mut take = |text: &str| {
            let rest = serde_json::to_string(text).ok().and_then(|json| left.checked_sub(json.len() + 1));
            *left = rest.unwrap_or(*left);
            rest.is_some()
        };
        if !take(&self.address) || !take(&self.kind) {
            return false;
        }
        let fitting = self.attributes.iter().take_while(|name| take(name)).count();
        self.more_attributes = self.more_attributes.saturating_add((self.attributes.len() - fitting) as u64);
        self.attributes.truncate(fitting);
        true
    }

    fn limited(mut self) -> Self {
        self.address = cut(self.address);
        self.kind = cut(self.kind);
        self.attributes = self.attributes.into_iter().map(cut).collect();
        self.attributes.sort();
        self.attributes.dedup();
        let more = self.attributes.len().saturating_sub(MAX_ATTRIBUTES) as u64;
        self.attributes.truncate(MAX_ATTRIBUTES);
        self.more_attributes = self.more_attributes.saturating_add(more);
        self
    }
}

fn cut(text: String) -> String {
    if text.chars().count() > MAX_NAME { text.chars().take(MAX_NAME).collect() } else { text }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
const fn is_zero(number: &u64) -> bool {
    *number == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resource(address: &str, attributes: Vec<String>) -> DriftedResource {
        DriftedResource {
            address: address.to_owned(),
            kind: "aws_sqs_queue".to_owned(),
            change: ChangeKind::Update,
            attributes,
            more_attributes: 0,
        }
    }

    #[test]
    fn a_long_result_is_cut_and_counted() {
        let many = (0..120).rev().map(|at| resource(&format!("aws_sqs_queue.q{at:03}"), Vec::new())).collect();

        let found = DriftFound::of(many);

        assert_eq!((found.resources.len(), found.more), (MAX_RESOURCES, 70));
        assert_eq!(found.resources[0].address, "aws_sqs_queue.q000");
        assert!(!found.is_empty() && DriftFound::default().is_empty());
    }

    #[test]
    fn the_largest_result_fits_into_the_outputs_of_a_job() {
        for text in ["é", "\"", "\u{1}"] {
            let names = |of: usize| (0..30).map(|at| format!("{of:02}{at:02}{}", text.repeat(180))).collect();
            let many = (0..60).map(|at| resource(&format!("{at:02}{}", text.repeat(180)), names(at))).collect();

            let found = DriftFound::of(many);

            let total: u64 = found.more + found.resources.len() as u64;
            assert!(serde_json::to_vec(&found).unwrap().len() < crate::limits::MAX_OUTPUTS_BYTES * 3 / 4, "{text:?}");
            assert!(total == 60 && found.resources.iter().any(|one| one.more_attributes > 0), "{text:?}: {total}");
            assert_eq!(found.clone().limited(), found);
        }
    }

    #[test]
    fn a_resource_whose_address_is_like_another_one_is_counted() {
        let long = "a".repeat(MAX_NAME);

        let found =
            DriftFound::of(vec![resource(&format!("{long}1"), Vec::new()), resource(&format!("{long}2"), Vec::new())]);

        assert_eq!((found.resources.len(), found.more), (1, 1));
    }

    #[test]
    fn a_result_of_a_runner_is_limited_again() {
        let names = (0..30).map(|at| format!("{at:02}{}", "é".repeat(400))).collect();
        let sent = DriftFound { resources: vec![resource(&"a".repeat(1000), names)], more: 3 };

        let taken = sent.limited();

        let one = &taken.resources[0];
        assert_eq!((one.address.len(), one.attributes.len(), one.more_attributes), (MAX_NAME, MAX_ATTRIBUTES, 10));
        assert!(one.attributes.iter().all(|name| name.chars().count() == MAX_NAME));
        assert_eq!(taken.more, 3);
        assert_eq!(taken.clone().limited(), taken);
    }
}
