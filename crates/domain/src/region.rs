//! The regions of AWS. An install is bound to its region for life, so a mistyped region has to be refused.

use freehold_protocol::Shape;

use crate::suggestion::{hint, nearest};

/// The known regions. `tests/infra/resources/test_regions.py` compares them with the regions that cfn-lint knows.
pub const REGIONS: [&str; 46] = [
    "af-south-1",
    "ap-east-1",
    "ap-east-2",
    "ap-northeast-1",
    "ap-northeast-2",
    "ap-northeast-3",
    "ap-south-1",
    "ap-south-2",
    "ap-southeast-1",
    "ap-southeast-2",
    "ap-southeast-3",
    "ap-southeast-4",
    "ap-southeast-5",
    "ap-southeast-6",
    "ap-southeast-7",
    "ca-central-1",
    "ca-west-1",
    "cn-north-1",
    "cn-northwest-1",
    "eu-central-1",
    "eu-central-2",
    "eu-isoe-west-1",
    "eu-north-1",
    "eu-south-1",
    "eu-south-2",
    "eu-west-1",
    "eu-west-2",
    "eu-west-3",
    "eusc-de-east-1",
    "il-central-1",
    "me-central-1",
    "me-south-1",
    "mx-central-1",
    "sa-east-1",
    "us-east-1",
    "us-east-2",
    "us-gov-east-1",
    "us-gov-west-1",
    "us-iso-east-1",
    "us-iso-west-1",
    "us-isob-east-1",
    "us-isob-west-1",
    "us-isof-east-1",
    "us-isof-south-1",
    "us-west-1",
    "us-west-2",
];

/// The reason why a region is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RegionError {
    #[error("`{0}` is not an AWS region; expected one like `eu-west-1`")]
    Malformed(String),
    #[error(
        "this version does not know region `{region}`; if AWS has it, pass `--unknown-region`{}", hint(.nearest)
    )]
    Unknown { region: String, nearest: Option<String> },
}

/// Checks that `region` is a known AWS region. If `unknown` is true, only the form of its name is checked.
///
/// # Errors
/// [`RegionError`].
pub fn check_region(region: &str, unknown: bool) -> Result<(), RegionError> {
    if !Shape::Region.accepts(region) {
        return Err(RegionError::Malformed(region.to_owned()));
    }
    if unknown || REGIONS.contains(&region) {
        return Ok(());
    }
    Err(RegionError::Unknown { region: region.to_owned(), nearest: nearest(region, REGIONS) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_known_region_is_taken_and_has_the_form_of_one() {
        assert!(REGIONS.is_sorted());
        for region in REGIONS {
            assert_eq!(check_region(region, false), Ok(()));
            assert_eq!(check_region(region, true), Ok(()));
        }
    }

    #[test]
    fn a_typo_is_refused_with_the_nearest_region() {
        let error_of = |region: &str| check_region(region, false).unwrap_err().to_string();

        assert_eq!(
            error_of("eu-wst-1"),
            "this version does not know region `eu-wst-1`; if AWS has it, pass `--unknown-region`; did you mean `eu-west-1`?"
        );
        assert!(error_of("xx-nowhere-7").ends_with("if AWS has it, pass `--unknown-region`"));
        for bad in ["Ireland", "eu-west", "eu--1", "1-2-3", ""] {
            assert!(matches!(check_region(bad, true), Err(RegionError::Malformed(_))), "{bad}");
        }
        assert_eq!(check_region("eu-wst-1", true), Ok(()));
    }
}
