//! Where roles are: the partition, the account and the region.

/// Where a role is: who belongs to the same place is no stranger.
#[derive(Debug, Clone, Copy)]
pub struct Home<'a> {
    /// Such as `aws` or `aws-cn`.
    pub partition: &'a str,
    pub account: &'a str,
    pub region: &'a str,
}

impl<'a> Home<'a> {
    /// Returns the home of the role `arn`, whose ARN does not name the region.
    pub fn of_role(arn: &'a str, region: &'a str) -> Self {
        let part = |at: usize| arn.split(':').nth(at).unwrap_or_default();
        Self { partition: part(1), account: part(4), region }
    }

    /// Returns what every IAM ARN of the account begins with.
    pub(crate) fn arn_prefix(&self) -> String {
        format!("arn:{}:iam::{}:", self.partition, self.account)
    }

    /// Returns what the URL of an EKS cluster's OpenID issuer in the region begins with, without its scheme.
    pub(crate) fn issuer_prefix(&self) -> String {
        format!("oidc.eks.{}.{}/id/", self.region, dns_suffix(self.region))
    }
}

/// Returns the end of the names of AWS's hosts in a region.
pub(crate) fn dns_suffix(region: &str) -> &'static str {
    let starts = |prefix: &str| region.starts_with(prefix);
    match () {
        () if starts("cn-") => "amazonaws.com.cn",
        () if starts("eusc-") => "amazonaws.eu",
        () if starts("us-isob-") => "sc2s.sgov.gov",
        () if starts("us-iso-") => "c2s.ic.gov",
        () => "amazonaws.com",
    }
}
