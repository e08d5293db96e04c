//! KMS: the public half of the root key, and delegate keys that the root key certifies. A delegate key exists only in
//! memory.

use std::sync::Arc;

use async_trait::async_trait;
use aws_config::SdkConfig;
use aws_sdk_kms::Client;
use aws_sdk_kms::primitives::Blob;
use aws_sdk_kms::types::{MessageType, SigningAlgorithmSpec};
use ed25519_dalek::SigningKey;
use freehold_app::ports::{Clock, DelegateKey, PortError, RootKey, Signer};
use freehold_protocol::envelope::{Delegate, Envelope, Payload, PublicKey, signed_bytes};
use freehold_protocol::limits::DELEGATE_SEND_SECS;
use freehold_protocol::provenance::Statement;
use freehold_protocol::succession::{Roots, Succession};
use freehold_protocol::{KeyUses, TenantName, Timestamp};
use tokio::sync::Mutex;

use crate::config::SystemClock;
use crate::error::port_error;

/// How long a certificate is valid, in seconds: the time of the longest job, the time that its order may wait, and one
/// hour.
const CERTIFICATE_SECS: u64 = 13 * 3600;
/// The longest message, in bytes, that KMS signs without hashing it first (AWS KMS API reference, `Sign`).
const MOST_SIGNED: usize = 4096;
/// How far a runner's clock may be behind the clock of the control plane, in seconds.
const SKEW_SECS: u64 = 300;

/// Certifies one delegate key per cold start. Certifies a new key when messages of the current key may soon not be sent
/// any more, or when a message would be valid for longer than the certificate.
#[derive(Debug)]
pub struct KmsSigner {
    client: Client,
    key_id: String,
    tenant: TenantName,
    uses: KeyUses,
    succession: Vec<Envelope>,
    second: Option<PublicKey>,
    root: Mutex<Option<PublicKey>>,
    delegate: Mutex<Option<Arc<DelegateKey>>>,
}

impl KmsSigner {
    /// Returns the signer of `tenant` whose root key is `key_id` (an ARN). Its delegate keys are certified for `uses`.
    pub fn new(config: &SdkConfig, key_id: impl Into<String>, tenant: TenantName, uses: KeyUses) -> Self {
        let (client, key_id) = (Client::new(config), key_id.into());
        let (root, delegate) = (Mutex::new(None), Mutex::new(None));
        Self { client, key_id, tenant, uses, succession: Vec::new(), second: None, root, delegate }
    }

    /// Returns the signer with the successions that lead to its root key, oldest first, and the only key that may
    /// follow it. Each certificate contains the successions, so that a reader who knows an older root key trusts the
    /// certificate.
    #[must_use]
    pub fn following(self, succession: Vec<Envelope>, second: Option<PublicKey>) -> Self {
        Self { succession, second, ..self }
    }

    /// Returns the texts that each certificate contains. First checks that they lead to the root key: otherwise no
    /// runner would trust this signer.
    async fn succession_texts(&self) -> Result<Vec<String>, PortError> {
        let Some(first) = self.succession.first() else { return Ok(Vec::new()) };
        let unbelieved = |error: String| failed(format!("the successions of root keys are not valid: {error}"));
        let Succession { from, to, .. } = first.peek().map_err(|e| unbelieved(e.to_string()))?;
        // Whether a reader knew the second root does not matter here.
        let mut roots = Roots::given(self.tenant.clone(), from, Some(to));
        roots.follow(&self.succession).map_err(|e| unbelieved(e.to_string()))?;
        let root = self.public_key().await?;
        if *roots.current() != root {
            let (end, own) = (roots.current().key_id(), root.key_id());
            return Err(unbelieved(format!(
                "the last root key that they name is `{end}`, but this tenant signs with `{own}`"
            )));
        }
        self.succession.iter().map(|one| one.to_json().map_err(|e| failed(e.to_string()))).collect()
    }

    async fn certify(&self) -> Result<DelegateKey, PortError> {
        if self.uses.are_none() {
            return Err(failed("no use of a delegate key is configured for this function".into()));
        }
        let mut seed = [0u8; 32];
        getrandom::fill(&mut seed).map_err(|e| failed(e.to_string()))?;
        let key = SigningKey::from_bytes(&seed);
        let now = SystemClock.now();
        let not_before = Timestamp::from_millis(now.as_millis().saturating_sub(SKEW_SECS * 1000));
        let (send_until, not_after) = (now.plus_secs(DELEGATE_SEND_SECS), now.plus_secs(CERTIFICATE_SECS));
        let public_key = key.verifying_key().into();
        let uses = self.uses.clone();
        let tenant = self.tenant.clone();
        let delegate = Delegate { tenant, public_key, not_before, not_after, send_until: Some(send_until), uses };
        let mut certificate = self.seal(&delegate).await?;
        certificate.attached = self.succession_texts().await?;
        Ok(DelegateKey { key, certificate, not_after, send_until })
    }

    /// Returns `payload` in an envelope that the root key signed.
    async fn seal<P: Payload>(&self, payload: &P) -> Result<Envelope, PortError> {
        let message = signed_bytes(payload).map_err(|e| failed(e.to_string()))?;
        if message.len() > MOST_SIGNED {
            let message = format!("{} bytes are more than the {MOST_SIGNED} that KMS signs", message.len());
            return Err(failed(message));
        }
        let signed = self
            .client
            .sign()
            .key_id(&self.key_id)
            .signing_algorithm(SigningAlgorithmSpec::Ed25519Sha512)
            .message_type(MessageType::Raw)
            .message(Blob::new(message))
            .send()
            .await
            .map_err(|e| port_error("signing key", e))?;
        let signature = signed.signature.ok_or_else(|| failed("the response has no signature".into()))?;
        let root = self.public_key().await?;
        let envelope =
            Envelope::with_signature(payload, &root, signature.as_ref()).map_err(|e| failed(e.to_string()))?;
        // The signature is checked here because every runner would refuse one that was made with a wrongly configured
        // key.
        envelope.open::<P>(&root).map_err(|e| failed(e.to_string()))?;
        Ok(envelope)
    }
}

#[async_trait]
impl Signer for KmsSigner {
    async fn delegate(&self, until: Timestamp) -> Result<Arc<DelegateKey>, PortError> {
        let mut held = self.delegate.lock().await;
        let now = SystemClock.now();
        if let Some(delegate) = held.as_ref().filter(|delegate| delegate.lasts(now, until)) {
            return Ok(Arc::clone(delegate));
        }
        let fresh = Arc::new(self.certify().await?);
        *held = Some(Arc::clone(&fresh));
        Ok(fresh)
    }

    async fn attest(&self, statement: &Statement) -> Result<Envelope, PortError> {
        self.seal(statement).await
    }
}

#[async_trait]
impl RootKey for KmsSigner {
    async fn public_key(&self) -> Result<PublicKey, PortError> {
        let mut held = self.root.lock().await;
        if let Some(key) = held.as_ref() {
            return Ok(key.clone());
        }
        let answer =
            self.client.get_public_key().key_id(&self.key_id).send().await.map_err(|e| port_error("signing key", e))?;
        let der = answer.public_key.ok_or_else(|| failed("KMS returned no public key".into()))?;
        let key = PublicKey::from_spki_der(der.as_ref()).map_err(|e| failed(e.to_string()))?;
        *held = Some(key.clone());
        Ok(key)
    }

    fn succession(&self) -> Vec<Envelope> {
        self.succession.clone()
    }

    fn second(&self) -> Option<PublicKey> {
        self.second.clone()
    }
}

fn failed(reason: String) -> PortError {
    PortError::Failed { what: "signing key".into(), reason }
}
