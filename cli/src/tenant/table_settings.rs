//! Sets the expiry and the point-in-time recovery of the table, in case CloudFormation did not set them.

use aws_config::SdkConfig;
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::types::{
    PointInTimeRecoverySpecification, PointInTimeRecoveryStatus, TimeToLiveSpecification, TimeToLiveStatus,
};

use crate::error::{Error, Result, ResultExt};

/// The attribute with the time at which an item expires, in seconds since the epoch.
const TTL_ATTRIBUTE: &str = "ttl";

/// Sets each of the two settings that is not set. Returns whether it changed the table.
pub(super) async fn mend(config: &SdkConfig, table: &str) -> Result<bool> {
    let client = Client::new(config);
    let expiry = mend_expiry(&client, table).await?;
    let recovery = mend_recovery(&client, table).await?;
    Ok(expiry || recovery)
}

async fn mend_expiry(client: &Client, table: &str) -> Result<bool> {
    let now = client.describe_time_to_live().table_name(table).send().await;
    let now = now.doing(format!("read the time to live of table `{table}`"))?;
    let status = now.time_to_live_description().and_then(|d| d.time_to_live_status());
    if matches!(status, Some(TimeToLiveStatus::Enabled | TimeToLiveStatus::Enabling)) {
        return Ok(false);
    }
    let wanted = TimeToLiveSpecification::builder().enabled(true).attribute_name(TTL_ATTRIBUTE).build();
    let wanted = wanted.map_err(|e| Error::internal(format!("a request to DynamoDB could not be made: {e}")))?;
    let update = client.update_time_to_live().table_name(table).time_to_live_specification(wanted);
    update.send().await.doing(format!("set the time to live of table `{table}`"))?;
    Ok(true)
}

async fn mend_recovery(client: &Client, table: &str) -> Result<bool> {
    let now = client.describe_continuous_backups().table_name(table).send().await;
    let now = now.doing(format!("read the point-in-time recovery of table `{table}`"))?;
    let status = now
        .continuous_backups_description()
        .and_then(|d| d.point_in_time_recovery_description())
        .and_then(|d| d.point_in_time_recovery_status());
    if matches!(status, Some(PointInTimeRecoveryStatus::Enabled)) {
        return Ok(false);
    }
    let wanted = PointInTimeRecoverySpecification::builder().point_in_time_recovery_enabled(true).build();
    let wanted = wanted.map_err(|e| Error::internal(format!("a request to DynamoDB could not be made: {e}")))?;
    let update = client.update_continuous_backups().table_name(table).point_in_time_recovery_specification(wanted);
    update.send().await.doing(format!("set the point-in-time recovery of table `{table}`"))?;
    Ok(true)
}
