//! The end of an install's chain as its reports name it, and the receipt with which the control plane confirms it.

use serde::{Deserialize, Serialize};

use crate::envelope::{Delegated, Payload};
use crate::{Digest, InstallId, KeyId, KeyUse, TenantName, Timestamp};

/// The last record of a chain that a runner knows to be in the customer's bucket.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ChainHead {
    /// The number of the record.
    pub seq: u64,
    /// The digest of the record's bytes.
    pub digest: Digest,
}

/// The control plane's signed statement that a runner's report named the record `head`. The receipt travels in the next
/// order. It proves that the record existed, so a chain without the record was cut.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Receipt {
    pub tenant: TenantName,
    pub install: InstallId,
    pub head: ChainHead,
    /// The key of the runner that reported the record.
    pub runner: KeyId,
    /// The time at which the reports queue took the report.
    pub received_at: Timestamp,
    /// The time of the signature, for the certificate of the key that made it.
    pub issued_at: Timestamp,
}

impl Payload for Receipt {
    const TYPE: &'static str = "application/vnd.freehold.receipt.v1+json";
}

impl Delegated for Receipt {
    const USE: KeyUse = KeyUse::Receipts;
}
