//! The deployed parts of an install, each with its description in the version that deployed it.

use std::collections::BTreeMap;

use freehold_domain::plan::Deployed;
use freehold_domain::plan::teardown::Standing;
use freehold_protocol::{AppName, ComponentName, Digest};

use crate::AppError;
use crate::app_version::versions::{Version, Versions};

/// The deployed parts of an install, and the versions that deployed them.
pub(crate) struct StandingParts<'a> {
    deployed: &'a BTreeMap<ComponentName, Deployed>,
    versions: BTreeMap<Digest, Version>,
}

impl<'a> StandingParts<'a> {
    /// Loads the versions of `deployed`.
    ///
    /// # Errors
    /// The errors of [`Versions::load`].
    pub(crate) async fn load(
        versions: &Versions,
        app: &AppName,
        deployed: &'a BTreeMap<ComponentName, Deployed>,
    ) -> Result<Self, AppError> {
        let mut loaded: BTreeMap<Digest, Version> = BTreeMap::new();
        for one in deployed.values() {
            if !loaded.contains_key(&one.version) {
                loaded.insert(one.version.clone(), versions.load(app, Some(&one.version)).await?);
            }
        }
        Ok(Self { deployed, versions: loaded })
    }

    /// Returns the parts.
    ///
    /// # Errors
    /// Internal when a version lacks a part that was deployed from it.
    pub(crate) fn parts(&self) -> Result<Vec<Standing<'_>>, AppError> {
        self.deployed.iter().map(|(name, one)| self.part(name, one)).collect()
    }

    fn part(&self, name: &ComponentName, one: &Deployed) -> Result<Standing<'_>, AppError> {
        let document = self.versions.get(&one.version).map(|version| &*version.document);
        let part = document.and_then(|document| Some((document, document.part(name)?.into_owned())));
        let (document, part) = part.ok_or_else(|| {
            // INVARIANT: a part was deployed from the version that its row names.
            AppError::internal(format!("version `{}` has no component `{name}`", one.version))
        })?;
        Ok(Standing { part, document, version: one.version.clone(), artifact: one.artifact.clone() })
    }
}
