//! Artifacts as the API shows them.

use serde::{Deserialize, Serialize};

use crate::lineage::Lineage;

/// `GET /v1/artifacts/{digest}/lineage`: every page has all builds, and some of the uses.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LineagePage {
    pub lineage: Lineage,
    /// Pass as `after` to go on; absent on the last page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}
