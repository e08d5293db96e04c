//! Checks the name of the AWS region that the options, the environment or the profile choose.

use std::sync::Once;

use freehold_domain::region::{REGIONS, RegionError, check_region};
use freehold_domain::suggestion::nearest;

use crate::error::{Error, Result};
use crate::output::note;

/// The variables that name a region, in the order in which the AWS SDK reads them.
const VARIABLES: [&str; 2] = ["AWS_REGION", "AWS_DEFAULT_REGION"];

/// Whether the warning was printed. A command may read the region several times.
static WARNED: Once = Once::new();

/// Returns the region that the two options of `freehold tenant` name, if they do not contradict each other.
pub(crate) fn one_of(region: Option<String>, aws_region: Option<String>) -> Result<Option<String>> {
    match (region, aws_region) {
        (Some(region), Some(other)) if region != other => Err(Error::invalid(format!(
            "`--region` names region `{region}`, and `--aws-region` names `{other}`; pass one of them"
        ))),
        (region, aws_region) => Ok(region.or(aws_region)),
    }
}

/// Refuses a text that is not the name of a region, and warns about a region that this version does not know.
/// `is_option` means that an option names the region.
pub(crate) fn check(region: &str, is_option: bool) -> Result<()> {
    let place = place(is_option, |name| std::env::var_os(name).is_some());
    if let Some(warning) = checked(region, place)? {
        WARNED.call_once(|| note(&warning));
    }
    Ok(())
}

/// Returns the setting that names the region.
fn place(is_option: bool, is_set: impl Fn(&str) -> bool) -> &'static str {
    if is_option {
        return "`--aws-region`";
    }
    VARIABLES.into_iter().find(|name| is_set(name)).unwrap_or("the region of your AWS profile")
}

/// Returns a warning about a region that this version does not know.
fn checked(region: &str, place: &str) -> Result<Option<String>> {
    let near = nearest(&region.to_lowercase(), REGIONS);
    match check_region(region, false) {
        Ok(()) => Ok(None),
        Err(RegionError::Unknown { .. }) => {
            let near = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
            Ok(Some(format!("warning: this version does not know region `{region}`, which {place} names{near}")))
        }
        Err(RegionError::Malformed(_)) if region.is_empty() => Err(Error::invalid(format!(
            "{place} is empty; write a region such as `eu-west-1`, or leave it out to use the region of your profile"
        ))),
        Err(RegionError::Malformed(_)) => {
            let wrong = Error::invalid(format!("{place} is `{region}`, which is not an AWS region"));
            Err(wrong
                .or(near.map_or("write one such as `eu-west-1`".to_owned(), |near| format!("did you mean `{near}`?"))))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_no_region_has_is_refused_with_its_place_and_the_nearest_region() {
        let error_of = |region: &str, place: &str| checked(region, place).unwrap_err().to_string();

        assert_eq!(
            error_of("EU-WEST-1", "AWS_REGION"),
            "AWS_REGION is `EU-WEST-1`, which is not an AWS region; did you mean `eu-west-1`?"
        );
        assert_eq!(
            error_of("Ireland", "the region of your AWS profile"),
            "the region of your AWS profile is `Ireland`, which is not an AWS region; write one such as `eu-west-1`"
        );
        assert!(error_of("", "AWS_REGION").starts_with("AWS_REGION is empty; "));
        assert!(error_of("../x", "AWS_REGION").contains("is not an AWS region"));
        assert_eq!(checked("", "AWS_REGION").unwrap_err().kind().exit_code(), 2);
    }

    #[test]
    fn a_region_that_this_version_does_not_know_is_used_with_a_warning() {
        assert_eq!(
            checked("eu-wst-1", "AWS_REGION").unwrap().unwrap(),
            "warning: this version does not know region `eu-wst-1`, which AWS_REGION names; did you mean `eu-west-1`?"
        );
        assert_eq!(checked("eu-west-1", "AWS_REGION"), Ok(None));
    }

    #[test]
    fn the_place_of_a_region_is_the_setting_that_wins() {
        assert_eq!(place(true, |_| true), "`--aws-region`");
        assert_eq!(place(false, |_| true), "AWS_REGION");
        assert_eq!(place(false, |name| name == "AWS_DEFAULT_REGION"), "AWS_DEFAULT_REGION");
        assert_eq!(place(false, |_| false), "the region of your AWS profile");
    }

    #[test]
    fn two_options_that_name_two_regions_are_refused() {
        let named = |region: &str, aws_region: &str| one_of(Some(region.to_owned()), Some(aws_region.to_owned()));

        assert_eq!(
            named("eu-west-1", "us-east-1").unwrap_err().to_string(),
            "`--region` names region `eu-west-1`, and `--aws-region` names `us-east-1`; pass one of them"
        );
        assert_eq!(named("eu-west-1", "eu-west-1").unwrap().as_deref(), Some("eu-west-1"));
        assert_eq!(one_of(None, Some("us-east-1".to_owned())).unwrap().as_deref(), Some("us-east-1"));
    }
}
