//! The signed messages that prove what was built and deployed, and the index of artifacts that leads to them.
//!
//! | pk | sk | what |
//! |---|---|---|
//! | `job#<id>` | `order#<dispatch>` | the order as it was sent |
//! | `install#<install>` | `hello#<key>` | the first announcement of a runner's key |
//! | `artifact#<digest>` | `build#<app>#<build>` | a build that made the artifact, with the report of its success |
//! | `artifact#<digest>` | `use#<install>#<component>#<job>` | a job that deployed the artifact, with the report of its
//! success |
//!
//! A report is stored in the index row that it proves and not in a row of its own: both would be written in one
//! transaction, and DynamoDB bills every row of a transaction twice.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use freehold_protocol::envelope::{EnvelopeSignature, PublicKey};
use freehold_protocol::report::Fence;
use freehold_protocol::{
    AppName, BuildId, ComponentName, Digest, Envelope, InstallId, JobId, KeyId, Timestamp, WorkflowId,
};
use serde::{Deserialize, Serialize};

use super::install::install_pk;
use super::job::job_pk;
use super::record::{Record, Stored, load, put};
use crate::AppError;
use crate::ports::{Committed, Expect, Key, Store};

/// A stored signed message. The payload is stored as plain text, which deflates to half the size of its base64.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Signed {
    payload_type: String,
    payload: String,
    signatures: Vec<Signature>,
}

/// One signature of a stored message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Signature {
    keyid: KeyId,
    sig: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    cert: Option<Box<Signed>>,
}

impl Signed {
    /// Returns `envelope` in its stored form.
    ///
    /// # Errors
    /// Internal when the payload is not text; all payloads are JSON.
    pub fn of(envelope: &Envelope) -> Result<Self, AppError> {
        let bytes = BASE64.decode(&envelope.payload).ok();
        let payload = bytes.and_then(|bytes| String::from_utf8(bytes).ok());
        let payload = payload.ok_or_else(|| AppError::internal("the payload of a signed message is not UTF-8 text"))?;
        let signatures = envelope.signatures.iter().map(|one| {
            let cert = one.cert.as_deref().map(Self::of).transpose()?.map(Box::new);
            Ok(Signature { keyid: one.keyid.clone(), sig: one.sig.clone(), cert })
        });
        let signatures = signatures.collect::<Result<_, AppError>>()?;
        Ok(Self { payload_type: envelope.payload_type.clone(), payload, signatures })
    }

    /// Returns the message as it was sent.
    pub fn envelope(&self) -> Envelope {
        let signatures = self.signatures.iter().map(|one| EnvelopeSignature {
            keyid: one.keyid.clone(),
            sig: one.sig.clone(),
            cert: one.cert.as_ref().map(|cert| Box::new(cert.envelope())),
        });
        Envelope {
            payload_type: self.payload_type.clone(),
            payload: BASE64.encode(&self.payload),
            signatures: signatures.collect(),
        }
    }
}

/// A signed message that has a row of its own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "evidence", rename_all = "snake_case")]
pub enum Evidence {
    Order {
        job: JobId,
        dispatch: u32,
        signed: Signed,
    },
    /// A runner's announcement, with the enrolment key that co-signed it; the install may have another enrolment key by
    /// now.
    Hello {
        install: InstallId,
        runner: KeyId,
        enrolment_key: Box<PublicKey>,
        signed: Signed,
    },
}

impl Evidence {
    /// Returns the signed message.
    pub const fn signed(&self) -> &Signed {
        match self {
            Self::Order { signed, .. } | Self::Hello { signed, .. } => signed,
        }
    }
}

/// A build that made an artifact.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MadeBy {
    pub artifact: Digest,
    pub app: AppName,
    pub component: ComponentName,
    pub build: BuildId,
    pub proof: ProofRecord,
}

/// A job that deployed an artifact.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UsedBy {
    pub artifact: Digest,
    pub component: ComponentName,
    pub build: BuildId,
    pub workflow: WorkflowId,
    pub proof: ProofRecord,
}

/// The attempt that made or deployed the artifact, and its report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProofRecord {
    pub install: InstallId,
    pub job: JobId,
    pub fence: Fence,
    pub runner: KeyId,
    pub at: Timestamp,
    pub report: Signed,
}

/// Returns an artifact's partition.
pub fn artifact_pk(artifact: &Digest) -> String {
    format!("artifact#{artifact}")
}

/// Returns the row of a sent order.
pub fn order_key(job: &JobId, dispatch: u32) -> Key {
    Key { pk: job_pk(job), sk: format!("order#{dispatch}") }
}

/// Returns the row of a runner key's announcement.
pub fn hello_key(install: &InstallId, runner: &KeyId) -> Key {
    Key { pk: install_pk(install), sk: format!("hello#{runner}") }
}

impl Record for Evidence {
    fn key(&self) -> Key {
        match self {
            Self::Order { job, dispatch, .. } => order_key(job, *dispatch),
            Self::Hello { install, runner, .. } => hello_key(install, runner),
        }
    }
}

impl Record for MadeBy {
    fn key(&self) -> Key {
        Key { pk: artifact_pk(&self.artifact), sk: format!("build#{}#{}", self.app, self.build) }
    }
}

impl Record for UsedBy {
    fn key(&self) -> Key {
        let ProofRecord { install, job, .. } = &self.proof;
        Key { pk: artifact_pk(&self.artifact), sk: format!("use#{install}#{}#{job}", self.component) }
    }
}

/// Stores `evidence` unless its row exists already; returns the stored evidence.
///
/// # Errors
/// The store's errors.
pub async fn keep_first(store: &dyn Store, evidence: Evidence) -> Result<Evidence, AppError> {
    match store.commit(vec![put(&evidence, Expect::Absent)?]).await? {
        Committed::Done => Ok(evidence),
        Committed::Conflict(key) => {
            let first: Option<Stored<Evidence>> = load(store, &key).await?;
            Ok(first.map_or(evidence, |first| first.value))
        }
    }
}

/// Returns the evidence at `key`, if it was stored.
///
/// # Errors
/// The store's errors.
pub async fn kept(store: &dyn Store, key: &Key) -> Result<Option<Evidence>, AppError> {
    Ok(load::<Evidence>(store, key).await?.map(|stored| stored.value))
}

#[cfg(test)]
mod tests {
    use ed25519_dalek::SigningKey;
    use freehold_protocol::envelope::Delegate;

    use super::*;

    #[test]
    fn a_message_that_was_kept_is_byte_for_byte_the_one_that_travelled() {
        let (root, key) = (SigningKey::from_bytes(&[1; 32]), SigningKey::from_bytes(&[2; 32]));
        let delegate = Delegate {
            tenant: "acme".parse().unwrap(),
            public_key: key.verifying_key().into(),
            not_before: Timestamp::from_millis(1),
            not_after: Timestamp::from_millis(2),
        };
        let cert = Envelope::seal(&delegate, &[&root]).unwrap();
        let travelled = Envelope::seal_delegated(&delegate, &key, &cert).unwrap();

        let kept = serde_json::to_string(&Signed::of(&travelled).unwrap()).unwrap();
        let back = serde_json::from_str::<Signed>(&kept).unwrap().envelope();

        assert_eq!(back.to_json().unwrap(), travelled.to_json().unwrap());
    }
}
