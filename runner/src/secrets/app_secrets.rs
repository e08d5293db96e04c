//! The secrets of the app. They are read from Secrets Manager in the customer's account into the values of one job, and
//! redacted from its log and its outcome. The vendor gets only keyed digests of them (decision 0047).

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use freehold_protocol::app_version::{Secret, SecretFormat};
use freehold_protocol::order::Order;
use freehold_protocol::{Digest, InstallId, TenantName, names};
use serde_json::{Value, json};
use tokio::sync::OnceCell;
use zeroize::Zeroizing;

use crate::record::log::JobLog;
use crate::secrets::keyed_digest::keyed_digest;
use crate::secrets::stored_secret::StoredSecret;
use crate::secrets::tree::child;

/// Reads the app's secrets with the runner's own role.
#[derive(Clone)]
pub struct AppSecrets {
    client: aws_sdk_secretsmanager::Client,
    tenant: TenantName,
    install: InstallId,
    /// The key of the digests, read at most once because it never changes.
    key: OnceCell<Zeroizing<String>>,
}

impl std::fmt::Debug for AppSecrets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The output omits the key.
        f.debug_struct("AppSecrets")
            .field("tenant", &self.tenant)
            .field("install", &self.install)
            .finish_non_exhaustive()
    }
}

/// The reason why a secret has no value.
#[derive(Debug, thiserror::Error)]
pub enum AppSecretError {
    #[error(
        "secret `{secret}` has no value in this account; launch the current template of the install stack{}",
        .parameter.as_ref().map(|id| format!(" with parameter `{id}`")).unwrap_or_default()
    )]
    Missing { secret: String, parameter: Option<String> },
    #[error(
        "cannot read secret `{name}` of the app: {reason}; when the install stack is older than the app's version, launch its \
         current template"
    )]
    Unreadable { name: String, reason: String },
    #[error("cannot hide the app's secrets in the job's log; start the deploy or the action again")]
    Unprepared,
    #[error("secret `{0}` cannot be read: its name may only have ASCII letters, digits, `-` and `_`")]
    Name(String),
}

impl AppSecrets {
    /// Returns the reader of the secrets of `install`, which uses the credentials of `sdk`.
    pub fn new(sdk: &aws_config::SdkConfig, tenant: TenantName, install: InstallId) -> Self {
        Self { client: aws_sdk_secretsmanager::Client::new(sdk), tenant, install, key: OnceCell::new() }
    }

    /// Returns `order` with the values and ARNs of its secrets added to its context. `log` redacts every value.
    ///
    /// # Errors
    /// An [`AppSecretError`], which contains no value.
    pub async fn add_to(&self, mut order: Order, log: &JobLog) -> Result<Order, AppSecretError> {
        let mut hidden = Vec::new();
        for secret in &order.secrets {
            // The name comes from the order, so this check makes sure that it selects only a secret of the app.
            if !secret.has_usable_name() {
                return Err(AppSecretError::Name(secret.name.clone()));
            }
            match self.read(&names::app_secret(&self.tenant, &self.install, &secret.name)).await? {
                Some(kept) => {
                    hidden.extend(texts(secret, &kept.text));
                    put(&mut order.context, secret, &kept);
                }
                None if secret.required || secret.auto_generate => {
                    let parameter = (!secret.auto_generate).then(|| secret.parameter());
                    return Err(AppSecretError::Missing { secret: secret.name.clone(), parameter });
                }
                // The secret is optional. A template that reads the secret fails, and the message names the secret.
                None => {}
            }
        }
        // Preparing the search for thousands of forms takes seconds. The async loop must renew leases meanwhile.
        let log = log.clone();
        let prepared = tokio::task::spawn_blocking(move || {
            log.add_secrets(&hidden.iter().map(|text| text.as_str()).collect::<Vec<_>>());
        });
        prepared.await.map_err(|_| AppSecretError::Unprepared)?;
        Ok(order)
    }

    /// Returns the keyed digests of those secrets in `all` that have a value, by secret name.
    ///
    /// # Errors
    /// An [`AppSecretError`].
    pub async fn digests(&self, all: &[String]) -> Result<BTreeMap<String, Digest>, AppSecretError> {
        let mut digests = BTreeMap::new();
        for name in all {
            if let Some(kept) = self.read(&names::app_secret(&self.tenant, &self.install, name)).await? {
                digests.insert(name.clone(), keyed_digest(self.key().await?, name, &kept.text));
            }
        }
        Ok(digests)
    }

    async fn key(&self) -> Result<&str, AppSecretError> {
        let name = names::secrets_key(&self.tenant, &self.install);
        let read = self.key.get_or_try_init(|| async {
            let kept = self.read(&name).await?;
            let missing = || AppSecretError::Unreadable { name: name.clone(), reason: "it does not exist".to_owned() };
            kept.map(|kept| kept.text).ok_or_else(missing)
        });
        Ok(read.await?)
    }

    /// Returns the secret called `name`, or `None` when it does not exist.
    async fn read(&self, name: &str) -> Result<Option<StoredSecret>, AppSecretError> {
        let read = StoredSecret::read(&self.client, name).await;
        read.map_err(|reason| AppSecretError::Unreadable { name: name.to_owned(), reason })
    }
}

/// Puts a secret's value and its ARN at the places where templates look them up.
fn put(context: &mut Value, secret: &Secret, kept: &StoredSecret) {
    let nuon = child(context, "nuon");
    *child(child(nuon, "secrets"), &secret.name) = Value::from(kept.text.as_str());
    *child(child(child(nuon, "install_stack"), "outputs"), &secret.arn_output()) = json!(kept.arn);
}

/// Returns the texts to redact: the value as stored and, for a base64 secret, the decoded text that its copy in a
/// cluster has.
fn texts(secret: &Secret, value: &Zeroizing<String>) -> Vec<Zeroizing<String>> {
    let mut all = vec![value.clone()];
    if secret.format == SecretFormat::Base64
        && let Ok(bytes) = STANDARD.decode(value.trim())
        && let Ok(text) = String::from_utf8(bytes)
    {
        all.push(Zeroizing::new(text));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{order, secrets_manager};

    const PASSWORD: (&str, &str) = ("fh-acme--globex--secret/password", "correct horse");
    const FILE: (&str, &str) = ("fh-acme--globex--secret/file", "YmF0dGVyeSBzdGFwbGU=");
    const KEY: (&str, &str) = ("fh-acme--globex/secrets-key", "key of this account");

    async fn of(kept: &'static [(&'static str, &'static str)]) -> AppSecrets {
        AppSecrets::new(&secrets_manager(kept).await, "acme".parse().unwrap(), "globex".parse().unwrap())
    }

    fn asking(secrets: Value) -> Order {
        let context = json!({ "nuon": { "install_stack": { "outputs": { "region": "eu-west-1" } } } });
        Order { context, secrets: serde_json::from_value(secrets).unwrap(), ..order(1, 7) }
    }

    #[tokio::test]
    async fn values_and_arns_are_where_templates_look_and_in_no_log() {
        let secrets = of(&[PASSWORD, FILE]).await;
        let log = JobLog::default();
        let asked = asking(json!([
            { "name": "password", "required": true },
            { "name": "file", "format": "base64" },
            { "name": "empty" },
        ]));

        let order = secrets.add_to(asked, &log).await.unwrap();

        log.line("correct horse, battery staple, YmF0dGVyeSBzdGFwbGU=, correct%20horse");
        let tree = &order.context["nuon"];
        assert_eq!(tree["secrets"], json!({ "password": "correct horse", "file": "YmF0dGVyeSBzdGFwbGU=" }));
        assert_eq!(
            tree["install_stack"]["outputs"]["password_arn"],
            "arn:aws:secretsmanager:eu-west-1:222222222222:secret:fh-acme--globex--secret/password-AbCdEf"
        );
        assert_eq!(tree["install_stack"]["outputs"]["region"], "eu-west-1");
        assert_eq!(log.take_chunk(), "[redacted], [redacted], [redacted], [redacted]\n");
    }

    #[tokio::test]
    async fn a_missing_secret_is_named_with_its_parameter() {
        let secrets = of(&[]).await;
        let refused = async |secret| secrets.add_to(asking(secret), &JobLog::default()).await.unwrap_err().to_string();

        assert_eq!(
            refused(json!([{ "name": "api_key", "required": true }])).await,
            "secret `api_key` has no value in this account; launch the current template of the install stack with \
             parameter `AppSecretApiKey`"
        );
        assert_eq!(
            refused(json!([{ "name": "api_key", "auto_generate": true }])).await,
            "secret `api_key` has no value in this account; launch the current template of the install stack"
        );
    }

    #[tokio::test]
    async fn an_order_cannot_ask_for_another_secret() {
        let secrets = of(&[KEY]).await;

        let error =
            secrets.add_to(asking(json!([{ "name": "../secrets-key" }])), &JobLog::default()).await.unwrap_err();

        assert!(matches!(error, AppSecretError::Name(_)), "{error}");
    }

    #[tokio::test]
    async fn secrets_with_a_value_have_a_digest_by_the_key_of_the_account() {
        let all = ["password".to_owned(), "file".to_owned(), "empty".to_owned()];

        let digests = of(&[PASSWORD, FILE, KEY]).await.digests(&all).await.unwrap();

        assert_eq!(digests.keys().collect::<Vec<_>>(), ["file", "password"]);
        let (key, value) = (KEY.1, PASSWORD.1);
        assert_eq!(digests["password"], keyed_digest(key, "password", value));
        assert_ne!(digests["password"], digests["file"]);
    }

    #[tokio::test]
    async fn without_the_key_there_is_no_digest() {
        let error = of(&[PASSWORD]).await.digests(&["password".to_owned()]).await.unwrap_err().to_string();

        assert!(
            error.starts_with("cannot read secret `fh-acme--globex/secrets-key` of the app: it does not exist"),
            "{error}"
        );
    }
}
