//! The customer's sensitive inputs. They are read from Secrets Manager in the customer's account into the values of one
//! job, and redacted from its log and its outcome.

use aws_sdk_secretsmanager::error::ProvideErrorMetadata;
use freehold_protocol::app_version::{Input, InputError};
use freehold_protocol::order::Order;
use freehold_protocol::{InstallId, TenantName, names};
use serde_json::Value;
use zeroize::Zeroizing;

use crate::aws;
use crate::identity::tree::child;
use crate::record::log::JobLog;

/// Reads sensitive inputs with the runner's own role. The roles of modes have no permission to read them.
#[derive(Debug, Clone)]
pub struct SensitiveInputs {
    client: aws_sdk_secretsmanager::Client,
    tenant: TenantName,
    install: InstallId,
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
    #[error("input `{0}` cannot have a secret: its name may only have ASCII letters, digits, `-` and `_`")]
    Name(String),
}

impl SensitiveInputs {
    /// Returns the reader of the sensitive inputs of `install`, which uses the credentials of `sdk`.
    pub fn new(sdk: &aws_config::SdkConfig, tenant: TenantName, install: InstallId) -> Self {
        Self { client: aws_sdk_secretsmanager::Client::new(sdk), tenant, install }
    }

    /// Returns `order` with the values of the customer's sensitive inputs. `log` redacts every sensitive value,
    /// including those that the vendor set.
    ///
    /// # Errors
    /// A [`SensitiveInputError`], which contains no value.
    pub async fn added(&self, order: &Order, log: &JobLog) -> Result<Order, SensitiveInputError> {
        let mut order = order.clone();
        for input in std::mem::take(&mut order.sensitive_inputs) {
            if input.customer {
                let value = self.value(&input).await?;
                put(&mut order, &input.name, value);
            }
            if let Some(value) = order.context.pointer(&format!("/nuon/inputs/inputs/{}", pointed(&input.name))) {
                hide(value, log);
            }
        }
        Ok(order)
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
        match self.client.get_secret_value().secret_id(&secret).send().await {
            Ok(answer) => Ok(answer.secret_string.map(Zeroizing::new)),
            Err(error) if error.code() == Some("ResourceNotFoundException") => Ok(None),
            Err(error) => {
                Err(SensitiveInputError::Unreadable { input: name.to_owned(), secret, reason: aws::explain(&error) })
            }
        }
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

/// Makes `log` redact every text and number in `value`.
fn hide(value: &Value, log: &JobLog) {
    match value {
        Value::Null | Value::Bool(_) => {}
        Value::Number(number) => log.add_secret(&number.to_string()),
        Value::String(text) => log.add_secret(text),
        Value::Array(items) => items.iter().for_each(|item| hide(item, log)),
        Value::Object(map) => map.values().for_each(|item| hide(item, log)),
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
        SensitiveInputs::new(&secrets_manager(kept).await, "acme".parse().unwrap(), "globex".parse().unwrap())
    }

    #[tokio::test]
    async fn a_sensitive_answer_is_where_templates_look_and_in_no_log() {
        let log = JobLog::default();

        let order = answers("hunter22").await.added(&asking(token("string", true)), &log).await.unwrap();

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

        let open = answers.added(&asking(input.clone()), &JobLog::default()).await.unwrap();
        input["required"] = json!(true);
        let missing = answers.added(&asking(input), &JobLog::default()).await.unwrap_err().to_string();

        assert_eq!(open.context["nuon"]["inputs"]["inputs"]["other"], "");
        assert_eq!(
            missing,
            "input `other` is required and has no value in this account; launch the current template of the install \
             stack with parameter `InputOther`"
        );
    }

    #[tokio::test]
    async fn an_answer_of_another_type_is_refused_without_its_value() {
        let error = answers("hunter22").await.added(&asking(token("number", true)), &JobLog::default()).await;

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

        let error = answers("x").await.added(&asking(input), &JobLog::default()).await.unwrap_err();

        assert!(matches!(error, SensitiveInputError::Name(_)), "{error}");
    }
}
