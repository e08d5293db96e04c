//! Forged messages, as an attacker with access to the tenant's queues or even its signing key sends them.

use anyhow::Context as _;
use aws_sdk_kms::primitives::Blob;
use aws_sdk_kms::types::{MessageType, SigningAlgorithmSpec};
use ed25519_dalek::SigningKey;
use freehold_protocol::envelope::{Delegate, PublicKey, signed_bytes};
use freehold_protocol::order::{ActionStep, Mode, Order, Redelivery, RunAction, Work};
use freehold_protocol::succession::Succession;
use freehold_protocol::{Envelope, JobId, KeyUse, KeyUses, Payload, Timestamp, WorkflowId};

use super::world::World;

/// A key certified by the tenant's root key, like the keys of the control plane's functions.
#[derive(Debug)]
pub struct Forger {
    key: SigningKey,
    certificate: Envelope,
}

/// Returns the time now.
///
/// # Errors
/// When the clock is before 1970.
pub fn now() -> anyhow::Result<Timestamp> {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH)?;
    Ok(Timestamp::from_millis(since.as_millis().try_into()?))
}

impl Forger {
    /// Has a key certified by the tenant's KMS key, for orders.
    ///
    /// # Errors
    /// When KMS refuses.
    pub async fn certified(world: &World) -> anyhow::Result<Self> {
        Self::certified_for(world, [KeyUse::Orders].into()).await
    }

    /// Has a key certified by the tenant's KMS key, for `uses`.
    ///
    /// # Errors
    /// When KMS refuses.
    pub async fn certified_for(world: &World, uses: KeyUses) -> anyhow::Result<Self> {
        let key = SigningKey::from_bytes(&[7; 32]);
        let certificate = signed_by_root(world, &delegate(world, &key, uses)?).await?.0;
        Ok(Self { key, certificate })
    }

    /// Lets a root of its own follow the tenant's first one, which signs that too, and has a key certified by it.
    ///
    /// # Errors
    /// When KMS refuses.
    pub async fn usurper(world: &World) -> anyhow::Result<Self> {
        let (key, own) = (SigningKey::from_bytes(&[12; 32]), SigningKey::from_bytes(&[13; 32]));
        let statement = |from| -> anyhow::Result<Succession> {
            Ok(Succession {
                tenant: world.tenant().parse()?,
                from,
                to: own.verifying_key().into(),
                until: now()?.plus_secs(3600),
                second: None,
            })
        };
        let (_, root) = signed_by_root(world, &delegate(world, &key, KeyUses::default())?).await?;
        let statement = statement(root)?;
        let (mut signed, _) = signed_by_root(world, &statement).await?;
        signed.signatures.extend(Envelope::seal(&statement, &[&own])?.signatures);
        let mut certificate = Envelope::seal(&delegate(world, &key, [KeyUse::Orders].into())?, &[&own])?;
        certificate.attached.push(signed.to_json()?);
        Ok(Self { key, certificate })
    }

    /// Certifies a key with another key than the tenant's.
    ///
    /// # Errors
    /// When the tenant's name is not valid.
    pub fn stranger(world: &World) -> anyhow::Result<Self> {
        let key = SigningKey::from_bytes(&[8; 32]);
        let certificate =
            Envelope::seal(&delegate(world, &key, [KeyUse::Orders].into())?, &[&SigningKey::from_bytes(&[9; 32])])?;
        Ok(Self { key, certificate })
    }

    /// Returns `order` signed.
    ///
    /// # Errors
    /// None for an order.
    pub fn sign(&self, order: &Order) -> anyhow::Result<Envelope> {
        Ok(Envelope::seal_delegated(order, &self.key, &self.certificate)?)
    }
}

/// Returns a statement that the tenant's first root key signed, and that key.
async fn signed_by_root<P: Payload>(world: &World, statement: &P) -> anyhow::Result<(Envelope, PublicKey)> {
    let kms = aws_sdk_kms::Client::new(&world.administrator(world.tenant_account())?);
    let root = format!("alias/fh-{}--orders", world.tenant());
    let public = kms.get_public_key().key_id(&root).send().await?;
    let public = PublicKey::from_spki_der(public.public_key().context("no public key")?.as_ref())?;
    let sign = kms.sign().key_id(&root).message(Blob::new(signed_bytes(statement)?));
    let sign = sign.message_type(MessageType::Raw).signing_algorithm(SigningAlgorithmSpec::Ed25519Sha512);
    let signed = sign.send().await?;
    let signature = signed.signature().context("no signature")?;
    Ok((Envelope::with_signature(statement, &public, signature.as_ref())?, public))
}

fn delegate(world: &World, key: &SigningKey, uses: KeyUses) -> anyhow::Result<Delegate> {
    let now = now()?;
    Ok(Delegate {
        tenant: world.tenant().parse()?,
        public_key: key.verifying_key().into(),
        not_before: Timestamp::from_millis(now.as_millis() - 60_000),
        not_after: now.plus_secs(3600),
        send_until: None,
        uses,
    })
}

/// Returns an order of the action `say` that a runner of `install` would do: newer than any before, with an hour left.
///
/// # Errors
/// When `install` is not the name of an install.
pub fn order(world: &World, install: &str, cause: &str) -> anyhow::Result<Order> {
    let workflow = WorkflowId::derive(install, cause);
    let step = ActionStep {
        name: "say".to_owned(),
        command: "echo forged".to_owned(),
        inline_contents: String::new(),
        env_vars: Default::default(),
    };
    Ok(Order {
        tenant: world.tenant().parse()?,
        install: install.parse()?,
        job: JobId::derive(&workflow, "action:say"),
        workflow,
        dispatch: 1,
        group: "action:say".parse()?,
        serial: 1_000_000,
        issued_at: now()?,
        start_by: None,
        not_after: now()?.plus_secs(3600),
        timeout_secs: 60,
        mode: Mode::Maintenance,
        role: None,
        asked_by: None,
        asker: None,
        asked_why: None,
        now: false,
        runner: None,
        redelivery: Redelivery::Resume,
        work: Work::Action(RunAction {
            action: "say".parse()?,
            steps: vec![step],
            directories: Vec::new(),
            env_vars: Default::default(),
            idempotent: true,
            cluster: None,
            image: String::new(),
        }),
        context: serde_json::json!({}),
        skip_noops: false,
        sensitive_inputs: Vec::new(),
        sealed_inputs: std::collections::BTreeMap::new(),
        secrets: Vec::new(),
        kept_outputs: Vec::new(),
        tool_image: None,
        terms: None,
        receipt: None,
        policies: Vec::new(),
        approval: None,
        approved: None,
        must_understand: Default::default(),
    })
}
