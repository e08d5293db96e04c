//! The contract of a version: the permissions and actions of the version in a customer's account. The customer agrees
//! to its terms, which the crate `permissions` compares between versions.

use std::collections::{BTreeMap, BTreeSet};

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use crate::app_version::{PolicyEngine, Reference, RolePolicy, SyncedSecret};
use crate::envelope::{Delegated, Payload, PublicKey};
use crate::mode::Mode;
use crate::packed_text::{UnpackError, pack, unpack};
use crate::succession::Roots;
use crate::{
    ActionName, AppName, ComponentName, Digest, Envelope, EnvelopeError, KeyUse, TenantName, Timestamp, canonical,
    limits,
};

/// The format of [`Terms`] and [`Contract`].
pub const FORMAT: u32 = 1;

/// The terms that a customer agrees to. They contain no data that changes with every release or differs between
/// installs. A document with an unknown key is refused, because the key might allow more than the customer agreed to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Terms {
    pub format: u32,
    pub app: AppName,
    /// The roles of the modes, followed by the app's own roles. A document that has two roles of one name is refused.
    #[serde(deserialize_with = "distinct_roles")]
    #[cfg_attr(feature = "schema", schemars(with = "Vec<RoleTerms>"))]
    pub roles: Vec<RoleTerms>,
    /// The defaults of the inputs that templates of policies use, by name; null for an input without a default. A
    /// changed default changes the permissions. The vendor or the customer can give another value.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub policy_inputs: BTreeMap<String, Value>,
    /// The inputs that the customer answers, by name. Terms never contain an answer.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub customer_inputs: BTreeMap<String, CustomerInputTerms>,
    /// The app's secrets, by name. Terms never contain a value.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub secrets: BTreeMap<String, SecretTerms>,
    /// The hosts that the app contacts from the customer's account, as far as the version names them.
    pub hosts: BTreeSet<String>,
    /// The hosts among `hosts` that may be in a private network, such as the customer's own network.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub inside_hosts: BTreeSet<String>,
    /// The actions, sorted by name. A document that has two actions of one name is refused.
    #[serde(deserialize_with = "distinct_actions")]
    #[cfg_attr(feature = "schema", schemars(with = "Vec<ActionTerms>"))]
    pub actions: Vec<ActionTerms>,
    /// The component in whose image jobs run their programs; absent for the file system of the runner's machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_image: Option<ComponentName>,
    /// The vendor's policies, with which its own plans and manifests must comply.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub policies: BTreeSet<PolicyTerms>,
    /// The commands that health checks run as probes.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub probes: BTreeSet<ProbeTerms>,
}

/// One role of the install stack.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct RoleTerms {
    /// The name of a mode, or the key of one of the app's own roles. The role's name in the account ends with it.
    pub role: String,
    /// Whether the install stack enables the role by default; the customer can change this.
    pub on: bool,
    /// The role's policies, unchanged from the app version; their texts are templates.
    pub policies: Vec<RolePolicy>,
    /// The permissions boundary from the app version, a template. The install stack denies what the boundary does not
    /// allow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub boundary: Option<String>,
}

/// One input that the customer answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct CustomerInputTerms {
    /// Whether the answer stays in the customer's account as a secret. Every other answer is sent to the vendor.
    #[serde(default, skip_serializing_if = "crate::flag::is_false")]
    pub sensitive: bool,
    /// The parts of the app that read the answer, except actions: the terms of an action list the values that it reads.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub read_by: BTreeSet<Reader>,
}

/// One secret of the app.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct SecretTerms {
    /// Whether the install stack generates the value; otherwise the customer enters it.
    #[serde(default, skip_serializing_if = "crate::flag::is_false")]
    pub generated: bool,
    /// Whether the app reads the secret's ARN, so that roles of the app can read the secret in the account.
    #[serde(default, skip_serializing_if = "crate::flag::is_false")]
    pub shared: bool,
    /// The parts of the app that read the value or the ARN, except actions: the terms of an action list the values that
    /// it reads.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub read_by: BTreeSet<Reader>,
    /// The Kubernetes secret into which the value is copied; its namespace and name are templates.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kubernetes: Option<SyncedSecret>,
}

/// A part of the app whose templates read an input or a secret.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "part", content = "name", rename_all = "snake_case", deny_unknown_fields)]
pub enum Reader {
    Sandbox,
    Component(ComponentName),
    /// The policies of a role, as [`RoleTerms::role`] writes it.
    Role(String),
}

/// One action: its role, its schedules, the values that it reads, and its steps by digest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ActionTerms {
    pub name: ActionName,
    /// The role that the action runs under, as [`RoleTerms::role`] writes it.
    pub role: String,
    /// The modes under whose roles the action runs when an event of such a workflow starts it: `provision` for the first
    /// deploy, `deprovision` for a removal. Empty when the config names a role, and in terms of earlier versions.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub event_modes: BTreeSet<Mode>,
    /// The roles that a person or a runbook may choose for a run, besides `role`, as [`RoleTerms::role`] writes them.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub other_roles: BTreeSet<String>,
    /// The schedules on which the action runs automatically: cron expressions of five fields, in UTC.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub schedules: BTreeSet<String>,
    /// The values that the action's templates read.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub reads: BTreeSet<Reference>,
    /// Whether the action gets access to a cluster.
    #[serde(default, skip_serializing_if = "crate::flag::is_false")]
    pub cluster: bool,
    /// The image in which the steps run, as the config names it; empty when they run in the image of all jobs.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub image: String,
    /// The digest of what the action executes (`RunAction::executed`). Absent in terms of earlier versions, which permit
    /// all steps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steps: Option<Digest>,
}

/// One policy of the vendor: in Rego for its own plans and manifests, or of Kyverno for the app's cluster.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct PolicyTerms {
    pub name: String,
    /// The type of component that the policy checks, such as `terraform_module`.
    #[serde(rename = "type")]
    pub kind: String,
    pub engine: PolicyEngine,
    /// The components that the policy checks; empty for every component of the type.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub components: BTreeSet<ComponentName>,
    /// The SHA-256 of the policy's text.
    pub contents: Digest,
}

/// One command that a health check of a component runs as a probe, with a session that only reads.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ProbeTerms {
    pub component: ComponentName,
    /// The program and its arguments, with templates that are not rendered.
    pub command: Vec<String>,
    /// The role that the command runs under, as [`RoleTerms::role`] writes it. Empty for the role of the workflow's
    /// mode: `provision` in the first deploy, otherwise `maintenance`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub role: String,
}

/// Reads roles, and refuses two roles of the same name: a person could read one of them while the stack has the other.
fn distinct_roles<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<RoleTerms>, D::Error> {
    let roles = Vec::<RoleTerms>::deserialize(deserializer)?;
    let mut names = BTreeSet::new();
    match roles.iter().find(|role| !names.insert(role.role.as_str())) {
        Some(twice) => Err(D::Error::custom(format!("role `{}` is given twice", twice.role))),
        None => Ok(roles),
    }
}

/// Reads actions, and refuses two actions of the same name: a customer could agree to one of them while the other is executed.
fn distinct_actions<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<ActionTerms>, D::Error> {
    let actions = Vec::<ActionTerms>::deserialize(deserializer)?;
    let mut names = BTreeSet::new();
    match actions.iter().find(|action| !names.insert(&action.name)) {
        Some(twice) => Err(D::Error::custom(format!("action `{}` is given twice", twice.name))),
        None => Ok(actions),
    }
}

impl Terms {
    /// Returns the digest of the canonical bytes, by which the terms are named.
    ///
    /// # Errors
    /// As [`canonical::digest`].
    pub fn digest(&self) -> Result<Digest, serde_json::Error> {
        canonical::digest(self)
    }

    /// Returns whether the terms name the secret `name`.
    pub fn names_secret(&self, name: &str) -> bool {
        self.secrets.contains_key(name)
    }

    /// Returns whether the terms name the input `name` as one whose answer stays in the customer's account.
    pub fn names_sensitive_input(&self, name: &str) -> bool {
        self.customer_inputs.get(name).is_some_and(|input| input.sensitive)
    }
}

/// The contract of one version: its terms, and the digests of the artifacts and steps that it executes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Contract {
    pub format: u32,
    pub app: AppName,
    pub version: Digest,
    pub terms: Terms,
    /// The artifacts by component. A component that is not built yet is absent.
    pub artifacts: BTreeMap<ComponentName, Digest>,
    /// The digests of what actions execute: their steps and environment, with templates that are not rendered.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub steps: BTreeMap<ActionName, Digest>,
}

/// The message in which the tenant's key signs a contract.
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

impl Delegated for SignedContract {
    const USE: KeyUse = KeyUse::Contracts;
}

impl SignedContract {
    /// Returns the contract in `envelope` after checking the signature. `root` must have certified the signing key for
    /// the tenant and the time that the contract names.
    ///
    /// # Errors
    /// Every [`EnvelopeError`].
    pub fn open(envelope: &Envelope, root: &PublicKey) -> Result<Self, EnvelopeError> {
        let claimed: Self = envelope.peek()?;
        let roots = Roots::given(claimed.tenant, root.clone(), None);
        roots.open_delegated(envelope, claimed.signed_at)
    }
}

/// The part of an order about the terms of its version.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OrderTerms {
    /// The digest of the terms of the order's version.
    pub digest: Digest,
    /// The accepted and the requested terms. Present when the customer accepted other terms than the requested ones,
    /// the control plane has the text of both, and both fit into the order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub change: Option<TermsChange>,
    /// The requested terms. Present when the control plane has no other accepted terms to compare with, and the
    /// requested terms fit into the order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub document: Option<PackedTerms>,
}

impl OrderTerms {
    /// Returns the terms of the version, or `None` when the order does not contain them.
    ///
    /// # Errors
    /// [`TermsError`] when the terms in the order cannot be read or have another digest.
    pub fn asked(&self) -> Result<Option<Terms>, TermsError> {
        let packed = self.change.as_ref().map(|change| &change.asked).or(self.document.as_ref());
        packed.map(|packed| packed.open(&self.digest)).transpose()
    }

    /// Removes the documents and keeps the digest. Returns whether there were any documents.
    pub fn drop_documents(&mut self) -> bool {
        let change = self.change.take().is_some();
        self.document.take().is_some() || change
    }
}

/// The terms that the customer accepted, and the terms that the order requests.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TermsChange {
    pub accepted: PackedTerms,
    pub asked: PackedTerms,
}

/// Terms in the form for an order: canonical bytes, gzipped and in base64.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PackedTerms(String);

/// The reason why packed terms are refused.
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

    /// Returns whether the packed text is empty, which it never is.
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
    fn terms_with_two_roles_of_one_name_are_refused() {
        let role = |on: bool| json!({ "role": "provision", "on": on, "policies": [] });
        let bytes = terms(&json!({ "roles": [role(true), role(false)] }));

        let error = PackedTerms::of(&bytes).unwrap().open(&Digest::of(&bytes)).unwrap_err();

        assert!(error.to_string().contains("role `provision` is given twice"), "{error}");
    }

    #[test]
    fn terms_with_two_actions_of_one_name_are_refused() {
        let action = |cluster: bool| json!({ "name": "backup", "role": "maintenance", "cluster": cluster });
        let bytes = terms(&json!({ "actions": [action(true), action(false)] }));

        let error = PackedTerms::of(&bytes).unwrap().open(&Digest::of(&bytes)).unwrap_err();

        assert!(error.to_string().contains("action `backup` is given twice"), "{error}");
    }

    #[test]
    fn an_unknown_field_makes_terms_unreadable() {
        let bytes = terms(&json!({ "tunnels": ["everywhere"] }));

        let error = PackedTerms::of(&bytes).unwrap().open(&Digest::of(&bytes)).unwrap_err();

        assert!(error.to_string().contains("cannot be read by this release: unknown field `tunnels`"), "{error}");
    }
}
