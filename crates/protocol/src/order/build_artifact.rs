//! The work that makes an artifact.

use serde::{Deserialize, Serialize};

use crate::build::{Package, Recipe, Source};
use crate::{BuildId, ComponentName};

/// Makes one artifact and pushes it to the tenant registry.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BuildArtifact {
    pub build: BuildId,
    pub component: ComponentName,
    pub package: Package,
    pub source: Source,
    /// The settings of the build in the app version, in addition to the source.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recipe: Option<Recipe>,
    /// The name of the repository in the tenant registry.
    pub repository: String,
}
