//! Reads one secret from Secrets Manager in the customer's account.

use aws_sdk_secretsmanager::Client;
use aws_sdk_secretsmanager::error::ProvideErrorMetadata;
use zeroize::Zeroizing;

use crate::aws;

/// The text and the ARN of a secret.
pub(super) struct StoredSecret {
    pub(super) text: Zeroizing<String>,
    pub(super) arn: String,
}

impl StoredSecret {
    /// Returns the secret called `name`; `None` when it does not exist or has no text.
    ///
    /// # Errors
    /// The reason why the secret cannot be read, on one line and without the secret's text.
    pub(super) async fn read(client: &Client, name: &str) -> Result<Option<Self>, String> {
        match client.get_secret_value().secret_id(name).send().await {
            Ok(answer) => {
                let arn = answer.arn.unwrap_or_default();
                Ok(answer.secret_string.map(|text| Self { text: Zeroizing::new(text), arn }))
            }
            Err(error) if error.code() == Some("ResourceNotFoundException") => Ok(None),
            Err(error) => Err(aws::explain(&error)),
        }
    }
}
