//! The sensitive inputs of one job. The customer's inputs are read from Secrets Manager in the customer's account. The
//! vendor's inputs come sealed and are opened here. All inputs are redacted from the log and the outcome of the job.

use freehold_protocol::app_version::{Input, InputError};
use freehold_protocol::order::Order;
use freehold_protocol::sealing::{SealedValue, SealingKey};
use freehold_protocol::{Digest, InstallId, TenantName, names};
use freehold_sealing::{OpenError, OpeningKey, Place};
use serde_json::Value;
use zeroize::Zeroizing;

use crate::record::log::JobLog;
use crate::secrets::stored_secret::StoredSecret;
use crate::secrets::tree::child;

/// Reads the customer's sensitive inputs with the runner's own role, and opens those of the vendor with the runner's
/// own key. The roles of modes have no permission to read either.
#[derive(Debug, Clone)]
pub struct SensitiveInputs {
    client: aws_sdk_secretsmanager::Client,
    tenant: TenantName,
    install: InstallId,
    opening_key: OpeningKey,
}

/// The reason why a sensitive input has no value.
#[derive(Debug, thiserror::Error)]
pub enum SensitiveInputError {
    #[error(
        "input `{input}` is required and has no value in this account; launch the current template of the install stack \
         with parameter `{parameter}`"
    )]
    Missing { input: String, parameter: String },
    #[error("{error}; change parameter `{parameter}` of the install stack")]
    Wrong { error: InputError, parameter: String },
    #[error(
        "cannot read secret `{secret}` with the value of input `{input}`: {reason}; when the install stack is older than \
         the app's version, launch its current template"
    )]
    Unreadable { input: String, secret: String, reason: String },
    #[error("cannot hide the sensitive inputs in the job's log; start the deploy or the action again")]
    Unprepared,
    #[error("input `{0}` cannot have a secret: its name may only have ASCII letters, digits, `-` and `_`")]
    Name(String),
    #[error(
        "the sealed value of input `{input}` cannot be used: {reason}; give it again with `freehold install inputs {install} \
         --input {input}=@FILE`, and start the deploy or the action again"
    )]
    Sealed { input: String, install: InstallId, reason: String },
}

impl SensitiveInputs {
    /// Returns the reader of the sensitive inputs of `install`, which uses the credentials of `sdk`.
    pub fn new(sdk: &aws_config::SdkConfig, tenant: TenantName, install: InstallId, opening_key: OpeningKey) -> Self {
        Self { client: aws_sdk_secretsmanager::Client::new(sdk), tenant, install, opening_key }
    }

    /// Returns the key to which the vendor's sensitive inputs are sealed.
    pub fn sealing_key(&self) -> SealingKey {
        self.opening_key.sealing_key()
    }

    /// Returns `order` with the values of all sensitive inputs. `attached` are the texts that came with the order.
    /// `log` redacts every sensitive value.
    ///
    /// # Errors
    /// A [`SensitiveInputError`], which contains no value.
    pub async fn add_to(&self, order: &Order, attached: &[String], log: &JobLog) -> Result<Order, SensitiveInputError> {
        let mut order = order.clone();
        let sealed = std::mem::take(&mut order.sealed_inputs);
        let mut hidden = Vec::new();
        for input in std::mem::take(&mut order.sensitive_inputs) {
            if input.customer {
                let value = self.value(&input).await?;
                put(&mut order, &input.name, value);
            } else if let Some(digest) = sealed.get(&input.name) {
                let value = self.opened(&input, digest, attached)?;
                put(&mut order, &input.name, value);
            }
            if let Some(value) = order.context.pointer(&format!("/nuon/inputs/inputs/{}", pointed(&input.name))) {
                hidden.extend(texts(value));
            }
        }
        // Preparing the search for thousands of forms takes seconds. The async loop must renew leases meanwhile.
        let log = log.clone();
        let prepared = tokio::task::spawn_blocking(move || {
            log.add_secrets(&hidden.iter().map(|text| text.as_str()).collect::<Vec<_>>());
        });
        prepared.await.map_err(|_| SensitiveInputError::Unprepared)?;
        Ok(order)
    }

    /// Returns the value of an input that the vendor sealed.
    fn opened(&self, input: &Input, digest: &Digest, attached: &[String]) -> Result<Value, SensitiveInputError> {
        let unusable = |reason: String| SensitiveInputError::Sealed {
            input: input.name.clone(),
            install: self.install.clone(),
            reason,
        };
        let sealed = attached.iter().find(|text| Digest::of(text.as_bytes()) == *digest);
        let sealed = sealed.and_then(|text| SealedValue::try_from(text.clone()).ok());
        let sealed = sealed.ok_or_else(|| unusable("it did not come with the order".to_owned()))?;
        let place = Place { tenant: &self.tenant, install: &self.install, input: &input.name };
        let value = self.opening_key.open(&sealed, place).map_err(|error| {
            unusable(match error {
                OpenError::OtherKey => "it is sealed to the key of another runner".to_owned(),
                OpenError::Refused => error.to_string(),
            })
        })?;
        input.accept(&value).map_err(|error| unusable(error.to_string()))
    }

    async fn value(&self, input: &Input) -> Result<Value, SensitiveInputError> {
        let given = self.read(&input.name).await?;
        if let Some(text) = &given {
            return input.accept(&Value::from(text.as_str())).map_err(|error| refused(input, error));
        }
        match input.usable_default() {
            Some(default) => input.accept(default).map_err(|error| refused(input, error)),
            None if input.required => {
                Err(SensitiveInputError::Missing { input: input.name.clone(), parameter: input.parameter() })
            }
            None => Ok(input.nothing()),
        }
    }

    /// Returns the value of the input `name`, or `None` when the customer did not set it.
    async fn read(&self, name: &str) -> Result<Option<Zeroizing<String>>, SensitiveInputError> {
        // The name comes from the order, so this check makes sure that it cannot select another secret.
        if name.is_empty() || !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte)) {
            return Err(SensitiveInputError::Name(name.to_owned()));
        }
        let secret = format!("{}/input/{name}", names::install(&self.tenant, &self.install));
        let read = StoredSecret::read(&self.client, &secret).await;
        let read = read.map_err(|reason| SensitiveInputError::Unreadable { input: name.to_owned(), secret, reason })?;
        Ok(read.map(|stored| stored.text))
    }
}

fn refused(input: &Input, error: InputError) -> SensitiveInputError {
    let parameter = input.parameter();
    match error {
        InputError::Missing { input } => SensitiveInputError::Missing { input, parameter },
        error @ InputError::Wrong { .. } => SensitiveInputError::Wrong { error, parameter },
    }
}

/// Puts a value at the places where templates look up inputs.
fn put(order: &mut Order, name: &str, value: Value) {
    for path in [["inputs", "inputs"], ["install", "inputs"]] {
        let place = path.into_iter().fold(child(&mut order.context, "nuon"), child);
        *child(place, name) = value.clone();
    }
}

/// Returns `name` escaped for a JSON pointer (RFC 6901 section 3).
fn pointed(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

/// Returns every text and number in `value`.
pub(super) fn texts(value: &Value) -> Vec<Zeroizing<String>> {
    match value {
        Value::Null | Value::Bool(_) => Vec::new(),
        Value::Number(number) => vec![Zeroizing::new(number.to_string())],
        Value::String(text) => vec![Zeroizing::new(text.clone())],
        Value::Array(items) => items.iter().flat_map(texts).collect(),
        Value::Object(map) => map.values().flat_map(texts).collect(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::testing::order;
    use crate::testing::secrets_manager;

    fn asking(input: Value) -> Order {
        let context = json!({ "nuon": { "inputs": { "inputs": { "vendor_key": "of the vendor" } } } });
        let vendors = json!({ "name": "vendor_key", "type": "string", "sensitive": true });
        let sensitive_inputs = serde_json::from_value(json!([vendors, input])).unwrap();
        Order { context, sensitive_inputs, ..order(1, 7) }
    }

    fn token(kind: &str, required: bool) -> Value {
        json!({ "name": "api_token", "type": kind, "required": required, "sensitive": true, "customer": true })
    }

    async fn answers(text: &'static str) -> SensitiveInputs {
        let kept = vec![("fh-acme--globex/input/api_token", text)].leak();
        let (tenant, install) = ("acme".parse().unwrap(), "globex".parse().unwrap());
        SensitiveInputs::new(&secrets_manager(kept).await, tenant, install, key(7))
    }

    fn key(seed: u8) -> OpeningKey {
        OpeningKey::from_bytes(&[seed; 32])
    }

    /// Returns an order with one sensitive input of the vendor, and the value that is attached to it.
    fn sealed(kind: &str, value: &Value, seed: u8, at: (&str, &str)) -> (Order, Vec<String>) {
        let (tenant, install) = ("acme".parse().unwrap(), at.0.parse().unwrap());
        let place = Place { tenant: &tenant, install: &install, input: at.1 };
        let text = String::from(freehold_sealing::seal(value, &key(seed).sealing_key(), place).unwrap());
        let input = json!([{ "name": "vendor_key", "type": kind, "required": true, "sensitive": true }]);
        let order = Order {
            context: json!({ "nuon": { "inputs": { "inputs": {} } } }),
            sensitive_inputs: serde_json::from_value(input).unwrap(),
            sealed_inputs: [("vendor_key".to_owned(), Digest::of(text.as_bytes()))].into(),
            ..order(1, 7)
        };
        (order, vec!["another text".to_owned(), text])
    }

    #[tokio::test]
    async fn a_sensitive_answer_is_where_templates_look_and_in_no_log() {
        let log = JobLog::default();

        let order = answers("hunter22").await.add_to(&asking(token("string", true)), &[], &log).await.unwrap();

        log.line("token hunter22 key of the vendor");
        assert_eq!(order.context["nuon"]["inputs"]["inputs"]["api_token"], "hunter22");
        assert_eq!(order.context["nuon"]["install"]["inputs"]["api_token"], "hunter22");
        assert_eq!(order.context["nuon"]["inputs"]["inputs"]["vendor_key"], "of the vendor");
        assert_eq!(log.take_chunk(), "token [redacted] key [redacted]\n");
    }

    #[tokio::test]
    async fn an_open_answer_is_nothing_unless_it_is_required() {
        let answers = answers("x").await;
        let mut input = token("string", false);
        input["name"] = json!("other");

        let open = answers.add_to(&asking(input.clone()), &[], &JobLog::default()).await.unwrap();
        input["required"] = json!(true);
        let missing = answers.add_to(&asking(input), &[], &JobLog::default()).await.unwrap_err().to_string();

        assert_eq!(open.context["nuon"]["inputs"]["inputs"]["other"], "");
        assert_eq!(
            missing,
            "input `other` is required and has no value in this account; launch the current template of the install \
             stack with parameter `InputOther`"
        );
    }

    #[tokio::test]
    async fn an_answer_of_another_type_is_refused_without_its_value() {
        let error = answers("hunter22").await.add_to(&asking(token("number", true)), &[], &JobLog::default()).await;

        assert_eq!(
            error.unwrap_err().to_string(),
            "input `api_token` must be a number, found a text of 8 characters; change parameter `InputApiToken` of the \
             install stack"
        );
    }

    #[tokio::test]
    async fn an_order_cannot_ask_for_another_secret() {
        let mut input = token("string", true);
        input["name"] = json!("../secrets-key");

        let error = answers("x").await.add_to(&asking(input), &[], &JobLog::default()).await.unwrap_err();

        assert!(matches!(error, SensitiveInputError::Name(_)), "{error}");
    }

    #[tokio::test]
    async fn a_sealed_value_is_where_templates_look_and_in_no_log() {
        let log = JobLog::default();
        let (order, attached) = sealed("list", &json!("hunter22, hunter33"), 7, ("globex", "vendor_key"));

        let order = answers("x").await.add_to(&order, &attached, &log).await.unwrap();

        log.line("keys hunter22 and hunter33");
        assert_eq!(order.context["nuon"]["inputs"]["inputs"]["vendor_key"], json!(["hunter22", "hunter33"]));
        assert_eq!(order.context["nuon"]["install"]["inputs"]["vendor_key"], json!(["hunter22", "hunter33"]));
        assert_eq!(log.take_chunk(), "keys [redacted] and [redacted]\n");
    }

    #[tokio::test]
    async fn a_sealed_value_that_cannot_be_used_is_named_with_the_way_out_and_not_shown() {
        let answers = answers("x").await;
        let here = ("globex", "vendor_key");
        let text = json!("hunter22");
        let reason = async |(order, attached): (Order, Vec<String>)| {
            let error = answers.add_to(&order, &attached, &JobLog::default()).await.unwrap_err().to_string();
            assert!(!error.contains("hunter22") && error.contains("--input vendor_key=@FILE`"), "{error}");
            error
        };
        let (unattached, _) = sealed("string", &text, 7, here);
        let (mut swapped, attached) = sealed("string", &text, 7, here);
        swapped.sealed_inputs.insert("vendor_key".to_owned(), Digest::of(b"another"));

        assert_eq!(
            reason(sealed("string", &text, 8, here)).await,
            "the sealed value of input `vendor_key` cannot be used: it is sealed to the key of another runner; give it again \
             with `freehold install inputs globex --input vendor_key=@FILE`, and start the deploy or the action again"
        );
        for elsewhere in [("initech", "vendor_key"), ("globex", "other")] {
            assert!(
                reason(sealed("string", &text, 7, elsewhere)).await.contains("sealed for another install or input")
            );
        }
        assert!(
            reason(sealed("number", &text, 7, here)).await.contains("must be a number, found a text of 8 characters")
        );
        assert!(reason(sealed("string", &json!(""), 7, here)).await.contains("input `vendor_key` is required"));
        assert!(reason((unattached, Vec::new())).await.contains("it did not come with the order"));
        assert!(reason((swapped, attached)).await.contains("it did not come with the order"));
    }
}
