//! Requests of the API about health checks apart from deploys.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::ComponentName;

/// `POST /v1/installs/{install}/health`: asks whether deployed components are healthy. A check changes nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct CheckHealthRequest {
    /// The components to ask; empty for all that have something to ask.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub components: BTreeSet<ComponentName>,
}
