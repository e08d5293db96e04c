//! `freehold tenant rotate-root`: lets another KMS key follow the tenant's root key, and announces which key may follow
//! it.

use std::collections::BTreeMap;

use aws_sdk_kms::Client;
use aws_sdk_kms::primitives::Blob;
use aws_sdk_kms::types::{MessageType, SigningAlgorithmSpec};
use clap::Args;
use freehold_protocol::envelope::{PublicKey, signed_bytes};
use freehold_protocol::succession::{Roots, Succession};
use freehold_protocol::{Envelope, TenantName, Timestamp};
use serde::Serialize;
use serde_json::{Value, json};

use crate::api::tenant_stack;
use crate::clock;
use crate::cloudformation::{Change, Stack, Stacks, Template};
use crate::context::Context;
use crate::error::{Error, Kind, Result, ResultExt};
use crate::inputs::number;
use crate::output::time;
use crate::progress::Progress;

/// The maximum length of the text of all successions, in characters. A stack parameter can hold 4,096 bytes (AWS
/// CloudFormation quotas, "Parameter values"). The environment of a function has the same limit, and contains other
/// variables too.
const MOST_TEXT: usize = 3000;
/// The id of the policy statement that lets the command sign with the old key.
const SID: &str = "FreeholdRotateRoot";
/// How often the command tries to use a new key policy, and the pause between two tries.
const TRIES: u32 = 12;
const PAUSE: std::time::Duration = std::time::Duration::from_secs(5);

/// Replace the tenant's root key; installs continue without a new launch.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  aws kms create-key --key-spec ECC_NIST_EDWARDS25519 --key-usage SIGN_VERIFY
  freehold tenant rotate-root --announce --second arn:aws:kms:eu-west-1:111111111111:key/KEY
  freehold tenant rotate-root --to arn:aws:kms:eu-west-1:111111111111:key/KEY
  freehold tenant rotate-root --to arn:aws:kms:eu-west-1:111111111111:key/KEY --lost

Each install stack that is launched or updated afterwards contains the announced key. Then only this key can replace the root key, and
the old key need not sign. So give nobody access to both keys. Installs without the announced key also require the old key's
signature.")]
pub(crate) struct RotateRoot {
    /// Name of the tenant; the same as `--tenant`.
    #[arg(long)]
    name: Option<TenantName>,
    /// ARN of the new root key, a key in KMS. If a second root key was announced, only that key is accepted.
    #[arg(long, value_name = "ARN", conflicts_with = "announce")]
    to: Option<String>,
    /// ARN of the only key that may follow the key of `--to`. With `--announce`: the only key that may follow the
    /// present root key.
    #[arg(long, value_name = "ARN")]
    second: Option<String>,
    /// Only announce `--second`; the root key stays.
    #[arg(long, requires = "second")]
    announce: bool,
    /// The old key is lost or stolen: only the new key signs the change, and installs refuse messages under the old key that
    /// are sent from now on.
    #[arg(long, conflicts_with = "announce")]
    lost: bool,
    /// Minutes during which messages under the old root key may still be sent; 60 by default.
    #[arg(long, value_name = "MINUTES", value_parser = number::<0, 1440>, conflicts_with = "lost")]
    overlap_minutes: Option<u32>,
}

/// A key in KMS.
struct Key {
    arn: String,
    public: PublicKey,
}

#[derive(Debug, Serialize)]
struct Done {
    tenant: TenantName,
    root_key: PublicKey,
    #[serde(skip_serializing_if = "Option::is_none")]
    former: Option<PublicKey>,
    /// The time until which messages under the former key may be sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    until: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    second: Option<PublicKey>,
    changed: bool,
}

impl RotateRoot {
    pub(super) async fn run(&self, context: &Context) -> Result<()> {
        let tenant = context.tenant(self.name.as_ref())?;
        let config = context.config().await?;
        let stack = tenant_stack(&config, &tenant).await?;
        let keys = Keys { client: Client::new(&config), caller: crate::aws::caller(&config).await?.arn };
        let second = match &self.second {
            Some(arn) => Some(keys.key(arn).await?),
            None => None,
        };
        let current = keys.key(stack.output("SigningKeyId")?).await?;
        let progress = Progress::start();
        let (done, parameters, next) = if self.announce {
            announced(&tenant, &current, second)?
        } else {
            self.sign_statement(&tenant, &stack, &keys, current, second, &progress).await?
        };
        let (stack_name, tags) = (stack.name.clone(), BTreeMap::new());
        let change = Change { stack: stack_name, template: Template::Launched, parameters, tags };
        Stacks::new(&config).apply(&change, &progress).await?;
        if let Some((from, to)) = next {
            progress.now("permitting only the functions to sign with the new root key");
            keys.copy_policy(&from, &to).await?;
        }
        drop(progress);
        context.out.show(&done, text)
    }

    /// Signs the statement; returns the parameters of the stack, and the keys whose policies have to be equal.
    async fn sign_statement(
        &self,
        tenant: &TenantName,
        stack: &Stack,
        keys: &Keys,
        from: Key,
        second: Option<Key>,
        progress: &Progress,
    ) -> Result<Next> {
        let given = |name: &str| stack.parameters.get(name).map(String::as_str).filter(|text| !text.is_empty());
        let arn = self.to.as_deref().ok_or_else(|| {
            Error::invalid("no new root key is given").or("pass `--to ARN` with a KMS key of ECC_NIST_EDWARDS25519")
        })?;
        let to = keys.key(arn).await?;
        if to.arn == from.arn {
            return Err(Error::invalid(format!("`{arn}` is the root key of tenant `{tenant}` already"))
                .or("pass the ARN of another key as `--to`"));
        }
        let until =
            clock::now()?.plus_secs(if self.lost { 0 } else { u64::from(self.overlap_minutes.unwrap_or(60)) * 60 });
        let statement = Succession {
            tenant: tenant.clone(),
            from: from.public.clone(),
            to: to.public.clone(),
            until,
            second: second.as_ref().map(|key| key.public.clone()),
        };
        let message = signed_bytes(&statement).map_err(|error| Error::failed(error.to_string()))?;
        progress.now("signing the succession with the new root key");
        let signature = keys.sign(&to, &message).await.doing(format!("sign with `{}`", to.arn))?;
        let mut envelope = sealed(&statement, &to, &signature)?;
        if !self.lost {
            progress.now("signing the succession with the old root key");
            let signature = keys.sign_as_owner(&from, &message).await?;
            envelope.signatures.extend(sealed(&statement, &from, &signature)?.signatures);
        }
        let known = given("SecondRootKey").map(str::parse).transpose();
        let known = known.map_err(|error| Error::failed(format!("parameter `SecondRootKey`: {error}")))?;
        let before = given("RootSuccession").map_or(Ok(Vec::new()), serde_json::from_str::<Vec<Envelope>>);
        let before = before.map_err(|error| Error::failed(format!("parameter `RootSuccession`: {error}")))?;
        let chain = followed(tenant, &from.public, known, before, envelope, self.lost)?;
        let second_key = second.as_ref().map(|key| key.public.to_string()).unwrap_or_default();
        let parameters = [("RootKeyArn", to.arn.clone()), ("RootSuccession", chain), ("SecondRootKey", second_key)];
        let done = Done {
            tenant: tenant.clone(),
            root_key: to.public,
            former: Some(from.public),
            until: Some(until),
            second: second.map(|key| key.public),
            changed: true,
        };
        let parameters = parameters.map(|(name, text)| (name.to_owned(), text)).into();
        Ok((done, parameters, Some((from.arn, to.arn))))
    }
}

/// The output of the command, the parameters of the stack to change, and the two keys whose policies have to be equal.
type Next = (Done, BTreeMap<String, String>, Option<(String, String)>);

fn announced(tenant: &TenantName, current: &Key, second: Option<Key>) -> Result<Next> {
    let second = second.ok_or_else(|| Error::invalid("no key is named").or("pass `--second ARN`"))?;
    if second.arn == current.arn {
        return Err(Error::invalid(format!("`{}` is the root key already", second.arn)).or("announce another key"));
    }
    let parameters = [("SecondRootKey", second.public.to_string())];
    let (tenant, root_key) = (tenant.clone(), current.public.clone());
    let done = Done { tenant, root_key, former: None, until: None, second: Some(second.public), changed: true };
    Ok((done, parameters.map(|(name, text)| (name.to_owned(), text)).into(), None))
}

/// Returns the text of the chain with the new statement, after checking that installs will follow it.
fn followed(
    tenant: &TenantName,
    from: &PublicKey,
    second: Option<PublicKey>,
    before: Vec<Envelope>,
    statement: Envelope,
    lost: bool,
) -> Result<String> {
    let refused = |error| Error::failed(format!("no install would follow this succession: {error}"));
    if lost && second.is_none() {
        return Err(Error::invalid("no install knows which key may follow a lost root key: none was announced")
            .or("launch each install stack again with the template of a new tenant key, or leave `--lost` out"));
    }
    let mut roots = Roots::given(tenant.clone(), from.clone(), second);
    roots.follow(std::slice::from_ref(&statement)).map_err(refused)?;
    let chain = [before, vec![statement]].concat();
    let text = serde_json::to_string(&chain).map_err(|error| Error::failed(error.to_string()))?;
    if text.len() > MOST_TEXT {
        return Err(Error::failed(format!(
            "{} successions do not fit into the tenant's stack: {} characters, {MOST_TEXT} at most",
            chain.len(),
            text.len()
        ))
        .or("launch the installs' newest templates, then clear the stack parameter `RootSuccession`"));
    }
    Ok(text)
}

fn sealed(statement: &Succession, key: &Key, signature: &[u8]) -> Result<Envelope> {
    let envelope = Envelope::with_signature(statement, &key.public, signature);
    let envelope = envelope.map_err(|error| Error::failed(error.to_string()))?;
    let checked = envelope.open::<Succession>(&key.public);
    checked.map_err(|error| Error::failed(format!("KMS key `{}`: {error}", key.arn)))?;
    Ok(envelope)
}

struct Keys {
    client: Client,
    caller: String,
}

impl Keys {
    async fn key(&self, arn: &str) -> Result<Key> {
        let found = self.client.get_public_key().key_id(arn).send().await.doing(format!("read KMS key `{arn}`"))?;
        let public = found.public_key().map(|der| PublicKey::from_spki_der(der.as_ref()));
        let public = public.and_then(std::result::Result::ok).ok_or_else(|| {
            Error::invalid(format!("KMS key `{arn}` is not an Ed25519 key"))
                .or("make one with `--key-spec ECC_NIST_EDWARDS25519 --key-usage SIGN_VERIFY`")
        })?;
        // Somebody could point an alias to another key.
        let arn = found.key_id().filter(|id| id.contains(":key/")).unwrap_or(arn).to_owned();
        Ok(Key { arn, public })
    }

    async fn sign(&self, key: &Key, message: &[u8]) -> std::result::Result<Vec<u8>, SignError> {
        let call = self.client.sign().key_id(&key.arn).signing_algorithm(SigningAlgorithmSpec::Ed25519Sha512);
        let answer = call.message_type(MessageType::Raw).message(Blob::new(message)).send().await?;
        Ok(answer.signature.map(Blob::into_inner).unwrap_or_default())
    }

    /// Signs with a key. If the key's policy does not permit the caller to sign, adds this permission, and removes it
    /// afterwards, even after a failure. For this, the caller has to be an administrator of the key.
    async fn sign_as_owner(&self, key: &Key, message: &[u8]) -> Result<Vec<u8>> {
        if let Ok(signature) = self.sign(key, message).await {
            return Ok(signature);
        }
        let policy = self.policy(&key.arn).await?;
        self.put_policy(&key.arn, &with_signer(&key.arn, &policy, &self.caller)?).await?;
        let mut signed = self.sign(key, message).await;
        for _ in 0..TRIES {
            if signed.is_ok() {
                break;
            }
            tokio::time::sleep(PAUSE).await;
            signed = self.sign(key, message).await;
        }
        self.put_policy(&key.arn, &policy).await?;
        signed.doing(format!("sign with the old root key `{}`", key.arn))
    }

    async fn policy(&self, arn: &str) -> Result<String> {
        let found = self.client.get_key_policy().key_id(arn).policy_name("default").send().await;
        let found = found.doing(format!("read the policy of KMS key `{arn}`"))?;
        found.policy.ok_or_else(|| {
            Error::failed(format!("KMS key `{arn}` has no policy"))
                .or("ask the administrator of the key for its policy")
        })
    }

    async fn put_policy(&self, arn: &str, policy: &str) -> Result<()> {
        let put = self.client.put_key_policy().key_id(arn).policy_name("default").policy(policy).send().await;
        put.map(drop).doing(format!("set the policy of KMS key `{arn}`"))
    }

    async fn copy_policy(&self, from: &str, to: &str) -> Result<()> {
        self.put_policy(to, &self.policy(from).await?).await
    }
}

type SignError = aws_sdk_kms::error::SdkError<aws_sdk_kms::operation::sign::SignError>;

/// Returns a key policy that also lets `caller` sign.
fn with_signer(arn: &str, policy: &str, caller: &str) -> Result<String> {
    let unreadable = || Error::quoting(Kind::Failed, format!("the policy of KMS key `{arn}` cannot be read: {policy}"));
    let mut policy: Value = serde_json::from_str(policy).map_err(|_| unreadable())?;
    let statements = policy.get_mut("Statement").and_then(Value::as_array_mut).ok_or_else(unreadable)?;
    statements.push(json!({
        "Sid": SID, "Effect": "Allow", "Principal": { "AWS": caller }, "Action": "kms:Sign", "Resource": "*",
    }));
    Ok(policy.to_string())
}

fn text(done: &Done) -> String {
    let second = match &done.second {
        Some(second) => format!(
            "\nonly {second} may follow the root key; install stacks name this second key from \
                                 their next launch on"
        ),
        None => "\nno second root key is announced".to_owned(),
    };
    match (&done.former, done.until) {
        (Some(former), Some(until)) => format!(
            "the root key of tenant `{}` is {}\nmessages under {former} are accepted if they are sent until {}{second}",
            done.tenant,
            done.root_key,
            time(until)
        ),
        _ => format!("the root key of tenant `{}` stays {}{second}", done.tenant, done.root_key),
    }
}

#[cfg(test)]
mod tests {
    use ed25519_dalek::SigningKey;

    use super::*;

    fn key(seed: u8) -> SigningKey {
        SigningKey::from_bytes(&[seed; 32])
    }

    fn public(seed: u8) -> PublicKey {
        key(seed).verifying_key().into()
    }

    fn statement(from: u8, to: u8, signers: &[u8]) -> Envelope {
        let statement = Succession {
            tenant: "acme".parse().unwrap(),
            from: public(from),
            to: public(to),
            until: Timestamp::from_millis(1),
            second: None,
        };
        let keys: Vec<SigningKey> = signers.iter().copied().map(key).collect();
        Envelope::seal(&statement, &keys.iter().collect::<Vec<_>>()).unwrap()
    }

    fn chain(second: Option<u8>, before: Vec<Envelope>, statement: Envelope, lost: bool) -> Result<String> {
        followed(&"acme".parse().unwrap(), &public(1), second.map(public), before, statement, lost)
    }

    #[test]
    fn a_lost_root_is_followed_by_the_announced_key_alone() {
        assert!(chain(Some(2), Vec::new(), statement(1, 2, &[2]), true).is_ok());
        let unannounced = chain(None, Vec::new(), statement(1, 2, &[2]), true).unwrap_err().to_string();
        let other = chain(Some(3), Vec::new(), statement(1, 2, &[1, 2]), false).unwrap_err().to_string();

        assert!(unannounced.contains("none was announced"), "{unannounced}");
        assert!(other.contains("announced as the second root"), "{other}");
    }

    #[test]
    fn a_chain_that_does_not_fit_into_the_stack_is_refused_before_anything_changes() {
        let before = vec![statement(8, 9, &[8, 9]); 5];

        let error = chain(None, before, statement(1, 2, &[1, 2]), false).unwrap_err().to_string();

        assert!(error.contains("6 successions do not fit"), "{error}");
    }

    #[test]
    fn the_caller_is_let_in_beside_the_functions() {
        let policy = with_signer("key", r#"{"Statement":[{"Sid":"a"}]}"#, "arn:aws:iam::1:role/x").unwrap();

        let policy: Value = serde_json::from_str(&policy).unwrap();
        assert_eq!(policy["Statement"][0]["Sid"], "a");
        assert_eq!(policy["Statement"][1]["Principal"]["AWS"], "arn:aws:iam::1:role/x");
        assert_eq!(policy["Statement"][1]["Action"], "kms:Sign");
        assert!(with_signer("key", "{}", "x").is_err());
    }
}
