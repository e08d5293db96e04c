//! The parts of an ARN, the name of a resource of AWS.

/// A text of the form `arn:PARTITION:SERVICE:REGION:ACCOUNT:RESOURCE` (IAM User Guide, "Identify AWS resources with Amazon
/// Resource Names"). The parts are not checked: `region` and `account` are empty for services that have none, and
/// `resource` may contain colons.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arn<'a> {
    /// The whole ARN.
    pub text: &'a str,
    pub partition: &'a str,
    pub service: &'a str,
    pub region: &'a str,
    pub account: &'a str,
    pub resource: &'a str,
}

impl<'a> Arn<'a> {
    /// Takes an ARN apart. `None` when `text` does not have the form of an ARN.
    pub fn parse(text: &'a str) -> Option<Self> {
        let mut parts = text.strip_prefix("arn:")?.splitn(5, ':');
        let (partition, service, region) = (parts.next()?, parts.next()?, parts.next()?);
        let (account, resource) = (parts.next()?, parts.next()?);
        Some(Self { text, partition, service, region, account, resource })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_arn_has_five_parts_and_its_resource_may_contain_colons() {
        let text = "arn:aws-cn:logs:cn-north-1:111111111111:log-group:/aws/lambda/x:*";
        let found = Arn::parse(text).unwrap();

        assert_eq!((found.text, found.partition, found.service), (text, "aws-cn", "logs"));
        assert_eq!((found.region, found.account), ("cn-north-1", "111111111111"));
        assert_eq!(found.resource, "log-group:/aws/lambda/x:*");
        assert_eq!(
            Arn::parse("arn:aws:s3:::bucket/key").map(|arn| (arn.account, arn.resource)),
            Some(("", "bucket/key"))
        );
    }

    #[test]
    fn what_has_fewer_parts_or_another_beginning_is_not_an_arn() {
        for text in ["", "arn", "arn:aws:iam::111111111111", "urn:aws:iam::111111111111:root", "role/x"] {
            assert_eq!(Arn::parse(text), None, "{text}");
        }
    }
}
