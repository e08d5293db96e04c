//! The record of a plan. People approve its digest.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::{PlanSummary, Side};
use crate::{Digest, InstallId, JobId, TenantName, Timestamp, canonical};

/// The record of a plan: everything that an approval covers. It stays in the customer's bucket, below [`super::PLANS`]. People
/// approve its digest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlanRecord {
    pub tenant: TenantName,
    pub install: InstallId,
    pub job: JobId,
    /// The thing that the job changes ([`crate::order::Work::changes`]).
    pub changes: String,
    pub removal: bool,
    /// The digest of the order's work: artifacts, templates and options.
    pub work: Digest,
    /// The digest of the values that the plan was made from, with [`Self::salt`].
    pub inputs: Digest,
    /// The state that the plan was compared with, such as the lineage and the serial of a Terraform state.
    pub state: String,
    /// The digest of the plan's bytes, and the object that holds them.
    pub bytes: Digest,
    pub object: String,
    /// Random text. Without it, somebody who guesses the values could confirm the guess by their digest.
    pub salt: String,
    pub planned_at: Timestamp,
    pub until: Timestamp,
    pub asks: BTreeSet<Side>,
    pub summary: PlanSummary,
    pub policies: Digest,
}

impl PlanRecord {
    /// Returns the canonical bytes, and their digest, which names the plan.
    ///
    /// # Errors
    /// As [`canonical::to_vec`].
    pub fn to_bytes(&self) -> Result<(Vec<u8>, Digest), serde_json::Error> {
        let bytes = canonical::to_vec(self)?;
        let plan = Digest::of(&bytes);
        Ok((bytes, plan))
    }
}
