//! Leftovers: the work of looking, after a teardown, for resources of the app that still exist, and its result.

use serde::{Deserialize, Serialize};

use crate::Arn;

/// The name of the job's output that contains the [`Leftovers`].
pub const OUTPUT: &str = "leftovers";

/// The largest number of resources in a list; the others are only counted.
pub const MAX_LISTED: usize = 100;

/// The work of looking for leftovers. It changes nothing. The job has the output [`OUTPUT`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FindLeftovers {}

/// The resources that still exist of an install: those that AWS finds by the tag `freehold:owner`, and the app's roles,
/// which the runner finds by name.
///
/// The search by tag covers one region, and is eventually consistent: it may list a resource for some time after its
/// deletion (an EC2 instance for about an hour). It does not find resources without the tag, such as log groups that a
/// function made itself, or resources of services that it does not support.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Leftovers {
    /// ARNs, sorted.
    #[serde(default)]
    pub resources: Vec<String>,
    /// The number of further resources. The list has at most 100.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub more: u64,
    /// The reason why the list is not complete; absent when AWS answered every request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unknown: Option<String>,
}

impl Leftovers {
    /// Returns the list of the resources with these ARNs.
    pub fn of(mut arns: Vec<String>) -> Self {
        arns.sort();
        arns.dedup();
        let more = arns.len().saturating_sub(MAX_LISTED) as u64;
        arns.truncate(MAX_LISTED);
        Self { resources: arns, more, unknown: None }
    }
}

/// Returns the type and the name of the resource that `arn` names, such as `ec2 volume` and `vol-1`. The type of a
/// resource whose ARN has none, such as a queue, is its service.
pub fn type_and_name(arn: &str) -> (String, &str) {
    let (service, resource) = Arn::parse(arn).map_or(("", arn), |arn| (arn.service, arn.resource));
    match resource.split_once(['/', ':']) {
        Some((kind, name)) if !kind.is_empty() && service != "s3" => (format!("{service} {kind}"), name),
        _ => (service.to_owned(), resource),
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
const fn is_zero(number: &u64) -> bool {
    *number == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_list_is_cut_and_counted() {
        let arns: Vec<String> = (0..250).rev().map(|at| format!("arn:aws:sqs:eu-west-1:1:q-{at:03}")).collect();

        let found = Leftovers::of([arns.clone(), arns].concat());

        assert_eq!((found.resources.len(), found.more), (MAX_LISTED, 150));
        assert_eq!(found.resources.first().map(String::as_str), Some("arn:aws:sqs:eu-west-1:1:q-000"));
        assert_eq!(Leftovers::of(Vec::new()), Leftovers::default());
    }

    #[test]
    fn an_arn_is_shown_by_its_type_and_its_name() {
        let text_of = |arn| {
            let (kind, name) = type_and_name(arn);
            format!("{kind}: {name}")
        };

        assert_eq!(text_of("arn:aws:ec2:eu-west-1:222222222222:volume/vol-1"), "ec2 volume: vol-1");
        assert_eq!(text_of("arn:aws:logs:eu-west-1:222222222222:log-group:/aws/x"), "logs log-group: /aws/x");
        assert_eq!(text_of("arn:aws:sqs:eu-west-1:222222222222:jobs"), "sqs: jobs");
        assert_eq!(text_of("arn:aws:s3:::acme-data"), "s3: acme-data");
        assert_eq!(text_of("not an arn"), ": not an arn");
    }
}
