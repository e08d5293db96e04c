//! The signed messages that prove what was built and deployed, and the index of artifacts that leads to them.
//!
//! | pk | sk | what |
//! |---|---|---|
//! | `job#<id>` | `order#<dispatch>` | the order as it was sent |
//! | `install#<install>` | `hello#<key>` | the first announcement of a runner's key |
//! | `artifact#<digest>` | `build#<app>#<build>` | a build that made the artifact, with the report of its success |
//! | `artifact#<digest>` | `use#<install>#<component>#<job>#<fence>` | a deploy of the artifact, or a run of steps in it, with its report |
//! | `text#<digest>` | `state` | a text that many orders have in common |
//!
//! DynamoDB bills by the size of a row, and bills every row of a transaction twice. So a report is stored in the index
//! row of the build or use that it proves. The row of a use is written before the transaction that ends the job. If the
//! report is then not accepted, the row proves nothing; readers compare the fence in the row with the job's fence.
//! Orders are stored without their work, which is most of their bytes and is the same in the next deploy, and without
//! the certificate of the signing key.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use freehold_domain::job::{Job, JobState};
use freehold_domain::workflow::Use;
use freehold_protocol::envelope::EnvelopeSignature;
use freehold_protocol::order::Work;
use freehold_protocol::report::Fence;
use freehold_protocol::{
    AppName, BuildId, ComponentName, Digest, Envelope, InstallId, JobId, KeyId, Timestamp, WorkflowId,
};
use serde::{Deserialize, Serialize};

use super::change::contended;
use super::graph::find_workflow;
use super::install::install_pk;
use super::job::job_pk;
use super::record::{Record, Stored, load, put, put_until};
use super::text::{SharedText, text};
use crate::ports::{Committed, Expect, Key, Store, Write};
use crate::{AppError, Kind};

/// A stored signed message, without the texts that were attached to it. The payload is stored as plain text and not as
/// base64: the store compresses long rows, and plain text becomes half as large.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Signed {
    payload_type: String,
    payload: String,
    signatures: Vec<Signature>,
    /// The texts that are attached to a certificate. The texts that are attached to the message itself are not stored.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    attached: Vec<String>,
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
    /// Returns the stored form of `envelope`.
    ///
    /// # Errors
    /// Internal when the payload is not text. All payloads are JSON, so this does not happen.
    pub fn of(envelope: &Envelope) -> Result<Self, AppError> {
        let bytes = BASE64.decode(&envelope.payload).ok();
        let payload = bytes.and_then(|bytes| String::from_utf8(bytes).ok());
        let payload = payload.ok_or_else(|| AppError::internal("the payload of a signed message is not UTF-8 text"))?;
        let signatures = envelope.signatures.iter().map(|one| {
            let cert = one.cert.as_deref().map(Self::with_attached).transpose()?.map(Box::new);
            Ok(Signature { keyid: one.keyid.clone(), sig: one.sig.clone(), cert })
        });
        let signatures = signatures.collect::<Result<_, AppError>>()?;
        Ok(Self { payload_type: envelope.payload_type.clone(), payload, signatures, attached: Vec::new() })
    }

    fn with_attached(certificate: &Envelope) -> Result<Self, AppError> {
        Ok(Self { attached: certificate.attached.clone(), ..Self::of(certificate)? })
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
            attached: self.attached.clone(),
        }
    }
}

/// The digests of the texts that were cut out of a stored order.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cut {
    /// The digest of the work, as JSON. [`MARK`] replaces the work in the payload.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    work: Option<Digest>,
    /// The digest of the signing key's certificate, as JSON in its stored form.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    certificate: Option<Digest>,
}

impl Cut {
    fn is_nothing(&self) -> bool {
        *self == Self::default()
    }
}

/// Placeholder for a text that was cut out of a payload. JSON cannot contain this character, because control characters
/// are escaped in JSON.
const MARK: char = '\u{1}';

impl Signed {
    /// Removes from the message the texts that other orders contain too, so that each is stored once: the certificate of the
    /// signing key, and the work if later orders can repeat it. Returns the removed texts and their digests.
    fn cut(&mut self, work: &Work) -> Result<(Cut, Vec<SharedText>), AppError> {
        let (mut cut, mut texts) = (Cut::default(), Vec::new());
        if let [Signature { cert: cert @ Some(_), .. }] = self.signatures.as_mut_slice() {
            let text = SharedText::new(serde_json::to_string(&cert.take())?);
            cut.certificate = Some(text.digest());
            texts.push(text);
        }
        let is_repeated = match work {
            Work::ContainerImage(_)
            | Work::TerraformModule(_)
            | Work::Sandbox(_)
            | Work::Pulumi(_)
            | Work::PulumiSandbox(_)
            | Work::CloudformationStack(_)
            | Work::HelmChart(_)
            | Work::KubernetesManifest(_)
            | Work::KubernetesJob(_)
            | Work::CopySecrets(_)
            | Work::Remove(_)
            | Work::DetectDrift(_)
            | Work::Action(_) => true,
            Work::Build(_) | Work::Preflight(_) | Work::Leftovers(_) | Work::Health(_) | Work::Upgrade(_) => false,
        };
        let work = serde_json::to_string(work)?;
        if is_repeated
            && !self.payload.contains(MARK)
            && let Some((before, after)) = self.payload.split_once(&work)
        {
            self.payload = format!("{before}{MARK}{after}");
            let text = SharedText::new(work);
            cut.work = Some(text.digest());
            texts.push(text);
        }
        Ok((cut, texts))
    }

    /// Puts the texts that [`Signed::cut`] removed back into the message. Returns false when the tenant's table does
    /// not contain one of these texts.
    async fn restore(&mut self, store: &dyn Store, cut: Cut) -> Result<bool, AppError> {
        if let Some(digest) = &cut.certificate {
            let Some(certificate) = text(store, digest).await? else { return Ok(false) };
            let certificate: Option<Box<Self>> = serde_json::from_str(&certificate)?;
            for signature in &mut self.signatures {
                signature.cert.clone_from(&certificate);
            }
        }
        if let Some(digest) = &cut.work {
            let Some(work) = text(store, digest).await? else { return Ok(false) };
            self.payload = self.payload.replacen(MARK, &work, 1);
        }
        Ok(true)
    }
}

/// A signed message that has a row of its own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "evidence", rename_all = "snake_case")]
pub enum Evidence {
    Order {
        job: JobId,
        dispatch: u32,
        /// The time at which the order was stored, before it was sent. It is 0 in rows that were written before this
        /// field existed.
        #[serde(default)]
        at: Timestamp,
        signed: Signed,
        /// The texts that were cut out of the stored message.
        #[serde(default, skip_serializing_if = "Cut::is_nothing")]
        cut: Cut,
    },
    /// The announcement of a runner.
    Hello { install: InstallId, runner: KeyId, signed: Signed },
}

impl Evidence {
    /// Returns the signed message.
    pub const fn signed(&self) -> &Signed {
        match self {
            Self::Order { signed, .. } | Self::Hello { signed, .. } => signed,
        }
    }

    /// Returns the time at which an order was stored; 0 for a hello.
    pub fn stored_at(&self) -> Timestamp {
        match self {
            Self::Order { at, .. } => *at,
            Self::Hello { .. } => Timestamp::default(),
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

/// A job that deployed an artifact, or ran steps of an action in it.
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

/// Returns the partition key of an artifact's rows.
pub fn artifact_pk(artifact: &Digest) -> String {
    format!("artifact#{artifact}")
}

/// Returns the key of the row of a sent order.
pub fn order_key(job: &JobId, dispatch: u32) -> Key {
    Key { pk: job_pk(job), sk: format!("order#{dispatch}") }
}

/// Returns the key of the row of a runner key's announcement.
pub fn hello_key(install: &InstallId, runner: &KeyId) -> Key {
    Key { pk: install_pk(install), sk: format!("hello#{runner}") }
}

/// Returns the beginning of the sort keys of an install's uses of an artifact.
pub fn uses_prefix(install: &InstallId) -> String {
    format!("use#{install}#")
}

/// Returns the key of the row of an attempt that deployed an artifact.
fn use_key(artifact: &Digest, install: &InstallId, component: &ComponentName, (job, fence): (&JobId, Fence)) -> Key {
    let Fence { dispatch, receive } = fence;
    Key { pk: artifact_pk(artifact), sk: format!("{}{component}#{job}#{dispatch}.{receive}", uses_prefix(install)) }
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
        let ProofRecord { install, job, fence, .. } = &self.proof;
        use_key(&self.artifact, install, &self.component, (job, *fence))
    }
}

/// Stores the order of `work`, and in the same commit the record of the part that the order may make.
///
/// # Errors
/// The store's errors; Transient when another delivery stored the order, or when the part got another record meanwhile.
pub async fn keep_order(
    store: &dyn Store,
    (job, dispatch, at): (&Job, u32, Timestamp),
    envelope: &Envelope,
    work: &Work,
    part: Option<Write>,
) -> Result<(), AppError> {
    let order = order_row(store, (&job.id, dispatch, at), envelope, work).await?;
    let writes = [put_until(&order, Expect::Absent, job.kept_until)?].into_iter().chain(part).collect();
    match store.commit(writes).await? {
        Committed::Done => Ok(()),
        Committed::Conflict(key) if key != order.key() => Err(contended("the component or sandbox of job", &job.id)),
        Committed::Conflict(_) => {
            let message = format!("order {dispatch} of job `{}` was stored by another delivery; try again", job.id);
            Err(AppError::new(Kind::Transient, message))
        }
    }
}

/// Stores an order that was never sent with another signature. `rev` is the revision of its row.
///
/// # Errors
/// The store's errors; Transient when another delivery stored the order meanwhile.
pub async fn keep_signed_anew(
    store: &dyn Store,
    (job, dispatch, at): (&Job, u32, Timestamp),
    envelope: &Envelope,
    work: &Work,
    rev: u64,
) -> Result<(), AppError> {
    let order = order_row(store, (&job.id, dispatch, at), envelope, work).await?;
    match store.commit(vec![put_until(&order, Expect::Rev(rev), job.kept_until)?]).await? {
        Committed::Done => Ok(()),
        Committed::Conflict(_) => {
            let message = format!("order {dispatch} of job `{}` was signed by another delivery; try again", job.id);
            Err(AppError::new(Kind::Transient, message))
        }
    }
}

/// Returns the row of an order. Its common texts are stored before it, so that a stored order never lacks them.
async fn order_row(
    store: &dyn Store,
    (job, dispatch, at): (&JobId, u32, Timestamp),
    envelope: &Envelope,
    work: &Work,
) -> Result<Evidence, AppError> {
    let mut signed = Signed::of(envelope)?;
    let (cut, texts) = signed.cut(work)?;
    for text in &texts {
        text.keep(store).await?;
    }
    Ok(Evidence::Order { job: job.clone(), dispatch, at, signed, cut })
}

/// Returns the proof that `job` deployed or ran an artifact; `None` if it did neither.
///
/// # Errors
/// The store's errors.
pub async fn use_by(store: &dyn Store, job: &Job) -> Result<Option<UsedBy>, AppError> {
    let JobState::Succeeded { fence, .. } = &job.state else { return Ok(None) };
    let Some(Stored { value: workflow, .. }) = find_workflow(store, &job.workflow).await? else { return Ok(None) };
    let node = workflow.nodes.iter().find(|node| node.name == job.node);
    // All uses of one job have the same proof.
    let uses = node.map(|node| node.target.uses()).unwrap_or_default();
    let Some((part, Use { artifact, .. })) = uses.first() else { return Ok(None) };
    let found: Option<Stored<UsedBy>> = load(store, &use_key(artifact, &job.install, part, (&job.id, *fence))).await?;
    Ok(found.map(|stored| stored.value))
}

/// Stores `evidence` unless its row exists already.
///
/// # Errors
/// The store's errors.
pub async fn keep_first(store: &dyn Store, evidence: &Evidence) -> Result<(), AppError> {
    let _ = store.commit(vec![put(evidence, Expect::Absent)?]).await?;
    Ok(())
}

/// Returns the evidence at `key` with all its texts; `None` if the evidence was not stored or one of its texts is
/// missing.
///
/// # Errors
/// The store's errors.
pub async fn kept(store: &dyn Store, key: &Key) -> Result<Option<Evidence>, AppError> {
    Ok(kept_row(store, key).await?.map(|row| row.value))
}

/// Does the same as [`kept`], and returns the revision of the row too.
///
/// # Errors
/// The store's errors.
pub async fn kept_row(store: &dyn Store, key: &Key) -> Result<Option<Stored<Evidence>>, AppError> {
    let Some(mut row) = load::<Evidence>(store, key).await? else { return Ok(None) };
    if let Evidence::Order { signed, cut, .. } = &mut row.value
        && !signed.restore(store, std::mem::take(cut)).await?
    {
        return Ok(None);
    }
    Ok(Some(row))
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
            send_until: None,
            uses: Default::default(),
        };
        let cert = Envelope::seal(&delegate, &[&root]).unwrap();
        let travelled = Envelope::seal_delegated(&delegate, &key, &cert).unwrap();

        let kept = serde_json::to_string(&Signed::of(&travelled).unwrap()).unwrap();
        let back = serde_json::from_str::<Signed>(&kept).unwrap().envelope();

        assert_eq!(back.to_json().unwrap(), travelled.to_json().unwrap());
    }
}
