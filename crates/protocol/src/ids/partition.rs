//! The partitions of AWS. Each has regions, ARNs and a domain of its own.

/// A partition of AWS (IAM User Guide, "Identify AWS resources with Amazon Resource Names").
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Partition {
    /// The name in ARNs, such as `aws-cn`.
    pub name: &'static str,
    /// The beginning of the names of its regions. It is empty for `aws`, which has all other regions.
    pub region_prefix: &'static str,
    /// The domain of AWS's endpoints in its regions.
    pub dns_suffix: &'static str,
}

const AWS: Partition = Partition { name: "aws", region_prefix: "", dns_suffix: "amazonaws.com" };

impl Partition {
    /// The known partitions. `aws` is the last, because its empty prefix matches every region.
    /// `tests/infra/resources/test_regions.py` compares them with those that botocore knows.
    pub const ALL: [Self; 8] = [
        Self { name: "aws-cn", region_prefix: "cn-", dns_suffix: "amazonaws.com.cn" },
        Self { name: "aws-eusc", region_prefix: "eusc-", dns_suffix: "amazonaws.eu" },
        Self { name: "aws-iso", region_prefix: "us-iso-", dns_suffix: "c2s.ic.gov" },
        Self { name: "aws-iso-b", region_prefix: "us-isob-", dns_suffix: "sc2s.sgov.gov" },
        Self { name: "aws-iso-e", region_prefix: "eu-isoe-", dns_suffix: "cloud.adc-e.uk" },
        Self { name: "aws-iso-f", region_prefix: "us-isof-", dns_suffix: "csp.hci.ic.gov" },
        Self { name: "aws-us-gov", region_prefix: "us-gov-", dns_suffix: "amazonaws.com" },
        AWS,
    ];

    /// Returns the partition with this name, if it is known.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|partition| partition.name == name)
    }

    /// Returns the partition of a region. A region that no other partition has belongs to `aws`.
    pub fn of_region(region: &str) -> Self {
        Self::ALL.into_iter().find(|partition| region.starts_with(partition.region_prefix)).unwrap_or(AWS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_region_is_in_its_partition() {
        for (region, name, dns_suffix) in [
            ("eu-west-1", "aws", "amazonaws.com"),
            ("us-east-1", "aws", "amazonaws.com"),
            ("mx-central-1", "aws", "amazonaws.com"),
            ("cn-northwest-1", "aws-cn", "amazonaws.com.cn"),
            ("eusc-de-east-1", "aws-eusc", "amazonaws.eu"),
            ("us-iso-west-1", "aws-iso", "c2s.ic.gov"),
            ("us-isob-east-1", "aws-iso-b", "sc2s.sgov.gov"),
            ("eu-isoe-west-1", "aws-iso-e", "cloud.adc-e.uk"),
            ("us-isof-south-1", "aws-iso-f", "csp.hci.ic.gov"),
            ("us-gov-east-1", "aws-us-gov", "amazonaws.com"),
        ] {
            let found = Partition::of_region(region);

            assert_eq!((found.name, found.dns_suffix), (name, dns_suffix), "{region}");
            assert_eq!(Partition::named(name), Some(found), "{region}");
        }
    }

    #[test]
    fn what_only_looks_like_a_partition_is_not_one() {
        for name in ["", "aws-", "aws-iso-", "aws-isob", "AWS", "aws:iam", "evil"] {
            assert_eq!(Partition::named(name), None, "{name}");
        }
    }
}
