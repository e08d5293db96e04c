//! The types of resources that CloudFormation has, as the specifications of cfn-lint list them for all regions.
//! `tests/infra/resources/test_resource_types.py` writes the list.

use freehold_template::nearest;

/// A line with the version of cfn-lint, and a line for each service with the names of its types.
const LIST: &str = include_str!("resource-types.txt");
/// The prefix of the types of AWS. Types with another prefix are custom resources, or are types that anybody can
/// register.
const PREFIX: &str = "AWS::";
/// The suffix of types that are CloudFormation modules.
const MODULE: &str = "::MODULE";

/// Returns whether CloudFormation may have the type: the type is in the list, or the list does not cover types like it.
pub(super) fn may_exist(kind: &str) -> bool {
    match parts(kind) {
        Some((service, name)) => kinds(service).any(|known| known == name),
        None => !kind.starts_with(PREFIX) || kind.ends_with(MODULE),
    }
}

/// Returns the type of the list that is most similar to `kind`.
pub(super) fn similar(kind: &str) -> Option<String> {
    let (service, name) = parts(kind)?;
    let service = nearest(service, services().map(|(service, _)| service))?;
    nearest(name, kinds(service)).map(|name| format!("{PREFIX}{service}::{name}"))
}

/// Returns the name and the version of the program from which the list comes.
pub(super) fn source() -> &'static str {
    LIST.lines().next().unwrap_or_default()
}

fn parts(kind: &str) -> Option<(&str, &str)> {
    kind.strip_prefix(PREFIX)?.split_once("::").filter(|(_, name)| !name.contains("::"))
}

fn services() -> impl Iterator<Item = (&'static str, &'static str)> {
    LIST.lines().skip(1).filter_map(|line| line.split_once(' '))
}

fn kinds(service: &str) -> impl Iterator<Item = &'static str> {
    services().filter(move |(known, _)| *known == service).flat_map(|(_, kinds)| kinds.split(' '))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_that_aws_does_not_have_are_known_with_the_similar_one() {
        for (wrong, similar_one) in [
            ("AWS::SQS::Queu", Some("AWS::SQS::Queue")),
            ("AWS::Sqs::Queue", Some("AWS::SQS::Queue")),
            ("AWS::SQSS::Queue", Some("AWS::SQS::Queue")),
            ("AWS::Nothing::LikeIt", None),
            ("AWS::SQS", None),
            ("AWS::SQS::Queue::More", None),
        ] {
            assert!(!may_exist(wrong), "{wrong}");
            assert_eq!(similar(wrong).as_deref(), similar_one, "{wrong}");
        }
    }

    #[test]
    fn what_exists_or_is_nobody_elses_to_know_passes() {
        for kind in [
            "AWS::SQS::Queue",
            "AWS::CloudFormation::CustomResource",
            "AWS::CloudFormation::Stack",
            "AWS::S3::Bucket",
            "Custom::Anything",
            "Acme::Svc::Resource",
            "Acme::Svc::Resource::MODULE",
            "AWS::Svc::Resource::MODULE",
        ] {
            assert!(may_exist(kind), "{kind}");
        }
        assert!(source().starts_with("cfn-lint "), "{}", source());
    }
}
