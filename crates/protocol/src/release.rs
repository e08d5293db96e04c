//! Releases. A release fixes an app version together with the artifact of each component.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{AppName, ComponentName, Digest, canonical};

/// The contents of a release, without its name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Release {
    /// The format, always 1.
    pub format: u32,
    pub app: AppName,
    pub version: Digest,
    /// The artifact of each component that has one.
    pub artifacts: BTreeMap<ComponentName, Digest>,
}

impl Release {
    /// Returns a release of `version` with these artifacts.
    pub const fn new(app: AppName, version: Digest, artifacts: BTreeMap<ComponentName, Digest>) -> Self {
        Self { format: 1, app, version, artifacts }
    }

    /// Returns the digest of the release's canonical bytes. The same digest means the same artifacts.
    ///
    /// # Errors
    /// Never: a release can be written as JSON.
    pub fn digest(&self) -> Result<Digest, serde_json::Error> {
        canonical::digest(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_digest_is_that_of_the_canonical_bytes_and_changes_with_every_part() {
        let part = |text: &str| Digest::of(text.as_bytes());
        let artifacts = |web: &str| BTreeMap::from([("web".parse().unwrap(), part(web))]);
        let release = Release::new("shop".parse().unwrap(), part("version"), artifacts("web"));

        let bytes = canonical::to_vec(&release).unwrap();

        let expected = r#"{"app":"shop","artifacts":{"web":"sha256:4b5e57f6eb2f42b9039b3d1e13929295f231749c510cbe341cd68036d9af97e2"},"format":1,"version":"sha256:5ca4f3850ccc331aaf8a257d6086e526a3b42a63e18cb11d020847985b31d188"}"#;
        assert_eq!(String::from_utf8(bytes.clone()).unwrap(), expected);
        assert_eq!(release.digest().unwrap(), Digest::of(&bytes));
        let others = [
            Release { version: part("another"), ..release.clone() },
            Release { artifacts: artifacts("another"), ..release.clone() },
            Release { artifacts: BTreeMap::new(), ..release.clone() },
            Release { app: "shop-2".parse().unwrap(), ..release.clone() },
        ];
        for other in others {
            assert_ne!(other.digest().unwrap(), release.digest().unwrap(), "{other:?}");
        }
    }
}
