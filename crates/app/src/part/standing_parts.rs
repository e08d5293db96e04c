//! The parts of an install. The version that deployed a part, or tried to deploy it, describes the part.

use std::collections::BTreeMap;

use freehold_domain::plan::Deployed;
use freehold_domain::plan::teardown::Standing;
use freehold_protocol::{AppName, ComponentName, Digest};

use crate::AppError;
use crate::app_version::versions::{Version, Versions};

/// The parts of an install, and the versions that deployed them or tried to.
pub(crate) struct StandingParts<'a> {
    parts: &'a BTreeMap<ComponentName, Deployed>,
    versions: BTreeMap<Digest, Version>,
}

impl<'a> StandingParts<'a> {
    /// Loads the versions of `parts`.
    ///
    /// # Errors
    /// The errors of [`Versions::load`].
    pub(crate) async fn load(
        versions: &Versions,
        app: &AppName,
        parts: &'a BTreeMap<ComponentName, Deployed>,
    ) -> Result<Self, AppError> {
        let mut loaded: BTreeMap<Digest, Version> = BTreeMap::new();
        for one in parts.values() {
            if !loaded.contains_key(&one.version) {
                loaded.insert(one.version.clone(), versions.load(app, Some(&one.version)).await?);
            }
        }
        Ok(Self { parts, versions: loaded })
    }

    /// Returns the parts.
    ///
    /// # Errors
    /// Internal when a version lacks a part that was ordered from it.
    pub(crate) fn parts(&self) -> Result<Vec<Standing<'_>>, AppError> {
        self.parts.iter().map(|(name, one)| self.part(name, one)).collect()
    }

    fn part(&self, name: &ComponentName, one: &Deployed) -> Result<Standing<'_>, AppError> {
        let document = self.versions.get(&one.version).map(|version| &*version.document);
        let part = document.and_then(|document| Some((document, document.part(name)?.into_owned())));
        let (document, part) = part.ok_or_else(|| {
            // INVARIANT: the order for a part was made from the version that its row names.
            AppError::internal(format!("version `{}` has no component `{name}`", one.version))
        })?;
        let (version, artifact) = (one.version.clone(), one.artifact.clone());
        Ok(Standing { part, document, version, artifact, attempted: one.attempted })
    }
}
