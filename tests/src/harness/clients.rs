//! SDK clients that call the cloud directly, with any credentials.

use std::collections::HashMap;

use anyhow::Context as _;
use aws_credential_types::Credentials;
use aws_credential_types::provider::SharedCredentialsProvider;
use aws_sdk_dynamodb::types::AttributeValue;
use aws_smithy_http_client::tls::{self, rustls_provider::CryptoMode};
use aws_types::SdkConfig;
use aws_types::region::Region;
use freehold_aws::store::unpacked;
use serde_json::Value;

/// The region of everything in these tests.
pub const REGION: &str = "eu-west-1";

/// Returns the settings of SDK clients for `endpoint`, or for AWS itself.
///
/// # Errors
/// None so far; whoever calls it can fail anyway.
pub fn config(endpoint: Option<&str>, credentials: Credentials) -> anyhow::Result<SdkConfig> {
    let builder = aws_smithy_http_client::Builder::new();
    let http = match endpoint {
        Some(_) => builder.build_http(),
        None => builder.tls_provider(tls::Provider::Rustls(CryptoMode::Ring)).build_https(),
    };
    let mut config = SdkConfig::builder()
        .behavior_version(aws_config::BehaviorVersion::latest())
        .region(Region::new(REGION))
        .credentials_provider(SharedCredentialsProvider::new(credentials))
        .http_client(http);
    config.set_endpoint_url(endpoint.map(str::to_owned));
    Ok(config.build())
}

/// Returns the credentials of `role`, assumed with the credentials of `as_whom`.
///
/// # Errors
/// When the role may not be assumed.
pub async fn assume(as_whom: &SdkConfig, role: &str) -> anyhow::Result<Credentials> {
    assume_as(as_whom, role, "test").await
}

/// Returns credentials of a role for a session with this name.
///
/// # Errors
/// When the role cannot be taken.
pub async fn assume_as(as_whom: &SdkConfig, role: &str, session: &str) -> anyhow::Result<Credentials> {
    let sts = aws_sdk_sts::Client::new(as_whom);
    let session = sts.assume_role().role_arn(role).role_session_name(session).send().await;
    let session = session.with_context(|| format!("taking the role {role}"))?;
    let keys = session.credentials().context("a session without credentials")?;
    let token = Some(keys.session_token().to_owned());
    Ok(Credentials::new(keys.access_key_id(), keys.secret_access_key(), token, None, "role"))
}

/// Runs the function `name` of a tenant once.
///
/// # Errors
/// When Lambda refuses, or the function fails.
pub async fn invoke(config: &SdkConfig, tenant: &str, name: &str) -> anyhow::Result<()> {
    let lambda = aws_sdk_lambda::Client::new(config);
    let invoked = lambda.invoke().function_name(format!("fh-{tenant}--{name}")).send().await?;
    anyhow::ensure!(invoked.function_error().is_none(), "`{name}` failed: {invoked:?}");
    Ok(())
}

/// Returns the rows of one partition of a tenant's table whose sort key begins with `prefix`: sort key and body.
///
/// # Errors
/// When the table cannot be read.
pub async fn rows(
    config: &SdkConfig,
    tenant: &str,
    partition: &str,
    prefix: &str,
) -> anyhow::Result<Vec<(String, Value)>> {
    let found = aws_sdk_dynamodb::Client::new(config)
        .query()
        .table_name(format!("fh-{tenant}"))
        .key_condition_expression("pk = :pk AND begins_with(sk, :sk)")
        .expression_attribute_values(":pk", AttributeValue::S(partition.to_owned()))
        .expression_attribute_values(":sk", AttributeValue::S(prefix.to_owned()))
        .consistent_read(true)
        .send()
        .await?;
    let text = |row: &HashMap<String, AttributeValue>, name: &str| row.get(name).and_then(unpacked).unwrap_or_default();
    let rows = found.items().iter();
    rows.map(|row| Ok((text(row, "sk"), serde_json::from_str(&text(row, "body"))?))).collect()
}
