//! The URL from which a machine downloads a program of Freehold.

use std::fmt;
use std::str::FromStr;

use serde::Serialize;

use crate::shape::Shape;

/// The characters that are permitted after `https://`, besides letters and digits. `?` and `*` are not permitted: the
/// install stack writes the URL into the policy of its VPC endpoint of S3, where they are wildcards.
const AFTER_HTTPS: Shape = Shape::Letters { max: 2000, also: "._~:/&=%+-" };

/// An https URL without a user name, a query or a fragment, or the empty text for none.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct DownloadUrl(String);

/// The reason why a text is not a [`DownloadUrl`]. The templates have the same text as a constraint of their
/// parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be empty, or an https URL without a user name, a query (?) or a fragment (#)")]
pub struct NotDownloadUrl;

impl FromStr for DownloadUrl {
    type Err = NotDownloadUrl;

    fn from_str(text: &str) -> Result<Self, NotDownloadUrl> {
        let is_url = text.is_empty() || text.strip_prefix("https://").is_some_and(|rest| AFTER_HTTPS.accepts(rest));
        if is_url { Ok(Self(text.to_owned())) } else { Err(NotDownloadUrl) }
    }
}

impl fmt::Display for DownloadUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INSTALL: &str = include_str!("../../../infra/install.yaml");
    const TENANT: &str = include_str!("../../../infra/tenant.yaml");

    #[test]
    fn a_url_is_not_a_pattern_and_has_no_user_name() {
        for url in ["", "https://example.s3.eu-west-1.amazonaws.com/runner-1.0_x86", "https://a.example:8443/b%20c"] {
            assert_eq!(url.parse::<DownloadUrl>().unwrap().to_string(), url);
        }
        for url in [
            "https://",
            "http://a.example/b",
            "https://????????.s3.eu-west-1.amazonaws.com/runner",
            "https://a.example/b?version=1",
            "https://a.example/b#c",
            "https://user:password@a.example/b",
            "https://a.example/$(reboot)",
            "https://a.example/*",
        ] {
            assert_eq!(url.parse::<DownloadUrl>(), Err(NotDownloadUrl), "{url}");
        }
    }

    #[test]
    fn the_parameters_of_the_templates_refuse_the_same_texts_with_the_same_words() {
        let Shape::Letters { also, .. } = AFTER_HTTPS else { panic!("{AFTER_HTTPS:?}") };
        let pattern = format!(
            "    AllowedPattern: ^(https://[A-Za-z0-9{also}]+)?$\n    ConstraintDescription: {NotDownloadUrl}\n"
        );
        for (template, parameters) in [(INSTALL, &["RunnerUrl"][..]), (TENANT, &["RunnerUrl", "BuilderUrl"])] {
            for name in parameters {
                let (_, rest) = template.split_once(&format!("\n  {name}:\n")).unwrap();
                let (parameter, _) = rest.split_once("\n  Runner").or_else(|| rest.split_once("\n  Builder")).unwrap();
                assert!(format!("{parameter}\n").contains(&pattern), "{name}: {parameter}");
            }
        }
    }
}
