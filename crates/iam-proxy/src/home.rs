//! The place of a role: the partition, the account and the region.

/// The place of a role. Principals of another place count as outside principals.
#[derive(Debug, Clone, Copy)]
pub struct Home<'a> {
    /// The partition, such as `aws` or `aws-cn`.
    pub partition: &'a str,
    pub account: &'a str,
    pub region: &'a str,
}

impl Home<'_> {
    /// Returns the prefix of every IAM ARN of the account.
    pub(crate) fn arn_prefix(&self) -> String {
        format!("arn:{}:iam::{}:", self.partition, self.account)
    }

    /// Returns the prefix of the OpenID issuers of EKS clusters in the region, without `https://`.
    pub(crate) fn issuer_prefix(&self) -> String {
        format!("oidc.eks.{}.{}/id/", self.region, dns_suffix(self.region))
    }
}

/// The domains of AWS's endpoints in all partitions.
pub const DOMAINS: [&str; 14] = [
    "amazonaws.com",
    "amazonaws.com.cn",
    "amazonaws.eu",
    "api.amazonwebservices.com.cn",
    "api.amazonwebservices.eu",
    "api.aws",
    "api.aws.hci.ic.gov",
    "api.aws.ic.gov",
    "api.aws.scloud",
    "api.cloud-aws.adc-e.uk",
    "c2s.ic.gov",
    "cloud.adc-e.uk",
    "csp.hci.ic.gov",
    "sc2s.sgov.gov",
];

/// Returns the suffix of AWS's host names in a region.
pub fn dns_suffix(region: &str) -> &'static str {
    let starts = |prefix: &str| region.starts_with(prefix);
    match () {
        () if starts("cn-") => "amazonaws.com.cn",
        () if starts("eu-isoe-") => "cloud.adc-e.uk",
        () if starts("eusc-") => "amazonaws.eu",
        () if starts("us-iso-") => "c2s.ic.gov",
        () if starts("us-isob-") => "sc2s.sgov.gov",
        () if starts("us-isof-") => "csp.hci.ic.gov",
        () => "amazonaws.com",
    }
}

/// Returns the domain of AWS's endpoints for IPv4 and IPv6 in the partition of a region.
pub(crate) fn dual_stack_suffix(region: &str) -> &'static str {
    let starts = |prefix: &str| region.starts_with(prefix);
    match () {
        () if starts("cn-") => "api.amazonwebservices.com.cn",
        () if starts("eu-isoe-") => "api.cloud-aws.adc-e.uk",
        () if starts("eusc-") => "api.amazonwebservices.eu",
        () if starts("us-iso-") => "api.aws.ic.gov",
        () if starts("us-isob-") => "api.aws.scloud",
        () if starts("us-isof-") => "api.aws.hci.ic.gov",
        () => "api.aws",
    }
}
