//! The response of the API about a contract.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::contract::Contract;
use crate::{Digest, Envelope};

/// `GET /v1/apps/{app}/versions/{version}/contract`: the contract of a version.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ContractView {
    /// The version's number.
    pub number: u64,
    /// The digest of the contract's terms, which a customer's consent names.
    pub terms: Digest,
    pub contract: Contract,
    /// The components that contact each host of the terms, by host.
    #[serde(default)]
    pub hosts: BTreeMap<String, BTreeSet<String>>,
    /// The contract with the tenant's signature (`application/vnd.freehold.contract.v1+json`); absent until the version
    /// is built or deployed for the first time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<serde_json::Value>"))]
    pub signed: Option<Envelope>,
}
