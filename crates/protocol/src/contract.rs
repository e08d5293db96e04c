//! What a version may do in a customer's account: the terms that the customer agrees to, and the contract of one
//! version. The crate `permissions` compares terms.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::app_version::{PolicyEngine, Reference, RolePolicy};
use crate::envelope::{Payload, PublicKey};
use crate::packed::{UnpackError, pack, unpack};
use crate::{
    ActionName, AppName, ComponentName, Digest, Envelope, EnvelopeError, TenantName, Timestamp, canonical, limits,
};

/// The format of [`Terms`] and [`Contract`].
pub const FORMAT: u32 = 1;

/// What a customer agrees to. It holds nothing that changes with every release and nothing about a single install. A
/// document with an unknown key is refused, because the key might allow more than the customer agreed to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Terms {
    pub format: u32,
    pub app: AppName,
    /// Modes first, then the roles that the app names itself.
    pub roles: Vec<RoleTerms>,
    /// Defaults of the inputs that policies use in their templates, by name. A changed default changes the permissions.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub policy_inputs: BTreeMap<String, Value>,
    /// Hosts that the app contacts from the customer's account, as far as the version names them.
    pub hosts: BTreeSet<String>,
    /// Sorted by name.
    pub actions: Vec<ActionTerms>,
    /// What the vendor's own plans and manifests are held against.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub policies: BTreeSet<PolicyTerms>,
}

/// One role of the install stack.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct RoleTerms {
    /// A mode's word, or the key of a role that the app names itself: the last part of the role's name in the account.
    pub role: String,
    /// Whether the install stack has it switched on unless the customer says otherwise.
    pub on: bool,
    /// Unchanged from the app version; texts are templates.
    pub policies: Vec<RolePolicy>,
}

/// One action: its role and what it reads, without its steps.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ActionTerms {
    pub name: ActionName,
    /// The role that it runs under, as [`RoleTerms::role`] writes it.
    pub role: String,
    /// What its templates read.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub reads: BTreeSet<Reference>,
    /// Whether the action gets access to a cluster.
    #[serde(default, skip_serializing_if = "crate::flag::is_false")]
    pub cluster: bool,
}

/// One policy of the vendor's.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct PolicyTerms {
    pub name: String,
    /// What it judges, such as `terraform_module`.
    #[serde(rename = "type")]
    pub kind: String,
    pub engine: PolicyEngine,
    /// Empty: every component of the type.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub components: BTreeSet<ComponentName>,
    /// SHA-256 of the policy's text.
    pub contents: Digest,
}

impl Terms {
    /// Returns the name of the terms: the digest of their canonical bytes.
    ///
    /// # Errors
    /// As [`canonical::digest`].
    pub fn digest(&self) -> Result<Digest, serde_json::Error> {
        canonical::digest(self)
    }
}

/// What one version may do: its terms, and by digest all that it does it with.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Contract {
    pub format: u32,
    pub app: AppName,
    pub version: Digest,
    pub terms: Terms,
    /// By component; one without an artifact is not built yet.
    pub artifacts: BTreeMap<ComponentName, Digest>,
    /// Digests of what actions execute: their steps and environment, before values are filled in.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub steps: BTreeMap<ActionName, Digest>,
}

/// A contract as the tenant's key signs it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SignedContract {
    pub tenant: TenantName,
    pub signed_at: Timestamp,
    pub contract: Contract,
}

impl Payload for SignedContract {
    const TYPE: &'static str = "application/vnd.freehold.contract.v1+json";

    fn bytes(&self) -> Result<Vec<u8>, serde_json::Error> {
        canonical::to_vec(self)
    }
}

impl SignedContract {
    /// Returns the contract in `envelope` after checking the signature: `root` must have certified the key, for the
    /// tenant and the time that the contract names.
    ///
    /// # Errors
    /// Every [`EnvelopeError`].
    pub fn open(envelope: &Envelope, root: &PublicKey) -> Result<Self, EnvelopeError> {
        let claimed: Self = envelope.peek()?;
        envelope.open_delegated(root, &claimed.tenant, claimed.signed_at)
    }
}

/// The part of an order that describes the terms of its version.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OrderTerms {
    /// The terms of the version that the order belongs to.
    pub digest: Digest,
    /// Both documents, where the customer is known to have accepted others and they fit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub change: Option<TermsChange>,
    /// The terms themselves, where no change carries them and they fit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub document: Option<PackedTerms>,
}

impl OrderTerms {
    /// Returns the terms of the version, where the order carries them.
    ///
    /// # Errors
    /// [`TermsError`] when what it carries are others.
    pub fn asked(&self) -> Result<Option<Terms>, TermsError> {
        let packed = self.change.as_ref().map(|change| &change.asked).or(self.document.as_ref());
        packed.map(|packed| packed.open(&self.digest)).transpose()
    }

    /// Leaves the documents out; returns whether there were any.
    pub fn drop_documents(&mut self) -> bool {
        let change = self.change.take().is_some();
        self.document.take().is_some() || change
    }
}

/// Canonical bytes of terms, gzipped and in base64.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TermsChange {
    pub accepted: PackedTerms,
    pub asked: PackedTerms,
}

/// Terms as an order carries them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PackedTerms(String);

/// Why packed terms are refused.
#[derive(Debug, thiserror::Error)]
pub enum TermsError {
    #[error(transparent)]
    Packed(#[from] UnpackError),
    #[error("terms have the digest {found}, not {expected}")]
    OtherDigest { found: Digest, expected: Digest },
    #[error("terms cannot be read by this release: {0}")]
    Unreadable(#[from] serde_json::Error),
}

impl PackedTerms {
    /// Packs the canonical bytes of terms.
    ///
    /// # Errors
    /// Never: writing to memory does not fail.
    pub fn of(canonical: &[u8]) -> std::io::Result<Self> {
        pack(canonical).map(Self)
    }

    /// Returns how many bytes the packed terms add to an order.
    pub const fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns whether the packed text is empty. Packed terms never are.
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the terms after checking that their digest is `digest`.
    ///
    /// # Errors
    /// [`TermsError`].
    pub fn open(&self, digest: &Digest) -> Result<Terms, TermsError> {
        let bytes = unpack(&self.0, limits::MAX_TERMS_BYTES)?;
        let found = Digest::of(&bytes);
        if found != *digest {
            return Err(TermsError::OtherDigest { found, expected: digest.clone() });
        }
        Ok(serde_json::from_slice(&bytes)?)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn terms(more: &Value) -> Vec<u8> {
        let mut all = json!({ "format": 1, "app": "demo", "roles": [], "hosts": [], "actions": [] });
        all.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        canonical::to_vec(&all).unwrap()
    }

    #[test]
    fn packed_terms_are_opened_by_their_own_digest_alone() {
        let bytes = terms(&json!({}));
        let packed = PackedTerms::of(&bytes).unwrap();

        let opened = packed.open(&Digest::of(&bytes)).unwrap();

        assert_eq!(opened.digest().unwrap(), Digest::of(&bytes));
        let other = packed.open(&Digest::of(b"other")).unwrap_err().to_string();
        assert!(other.starts_with("terms have the digest sha256:"), "{other}");
        assert!(packed.len() > 10 && !packed.is_empty());
    }

    #[test]
    fn an_unknown_field_makes_terms_unreadable() {
        let bytes = terms(&json!({ "tunnels": ["everywhere"] }));

        let error = PackedTerms::of(&bytes).unwrap().open(&Digest::of(&bytes)).unwrap_err();

        assert!(error.to_string().contains("cannot be read by this release: unknown field `tunnels`"), "{error}");
    }
}
