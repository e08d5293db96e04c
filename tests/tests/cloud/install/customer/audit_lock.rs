//! Records that the customer locked, and a bucket that takes no record twice.

use anyhow::Context as _;
use aws_sdk_s3::error::ProvideErrorMetadata as _;
use aws_sdk_s3::primitives::ByteStream;
use aws_sdk_s3::types::ObjectLockRetentionMode;
use freehold_tests::harness::wait::{SOON, until};
use freehold_tests::harness::{World, app};

use super::NEEDS;

const EVERYTHING: &str = r#"{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"*","Resource":"*"}]}"#;
const RECORD: &str = "audit/000000000001.json";
const DAY_SECS: i64 = 24 * 60 * 60;

/// Returns S3 for somebody of the customer's account who may do everything.
async fn powerful(world: &World, account: &str) -> anyhow::Result<aws_sdk_s3::Client> {
    let trust = format!(
        r#"{{"Version":"2012-10-17","Statement":[{{"Effect":"Allow","Principal":{{"AWS":"{account}"}},"Action":"sts:AssumeRole"}}]}}"#
    );
    let iam = aws_sdk_iam::Client::new(&world.administrator(account)?);
    iam.create_role().role_name("powerful").assume_role_policy_document(trust).send().await?;
    iam.put_role_policy().role_name("powerful").policy_name("all").policy_document(EVERYTHING).send().await?;
    Ok(aws_sdk_s3::Client::new(&world.acting_as(world.role(account, "powerful").await?)?))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_locked_record_outlives_whoever_may_delete_everything() -> anyhow::Result<()> {
    let Some(world) = World::start("cloud_customer.audit_lock", NEEDS).await? else { return Ok(()) };
    world.ship(&app::small(world.directory())?).await?;
    let install = world.install("globex", "small").await?;
    world.change_stack(&install, &["AuditLock=COMPLIANCE", "AuditLockDays=30"]).await?;
    let mut runner = world.runner_of_stack(&install).await?;
    world.provisioned(&install).await?;
    let s3 = powerful(&world, &install.account).await?;
    let bucket = format!("fh-{}--globex--{}", world.tenant(), install.account);
    let record = until("the first record is there", SOON, || async {
        Ok(s3.head_object().bucket(&bucket).key(RECORD).send().await.ok())
    })
    .await?;
    let version = record.version_id().context("the bucket has no versions")?;

    let locked = s3.get_object_retention().bucket(&bucket).key(RECORD).send().await?;
    let locked = locked.retention().context("the record is not locked")?;
    let deleted = s3.delete_object().bucket(&bucket).key(RECORD).version_id(version).send().await.unwrap_err();
    let body = || ByteStream::from_static(b"forged");
    let again = s3.put_object().bucket(&bucket).key(RECORD).body(body()).send().await.unwrap_err();
    let beside = s3.put_object().bucket(&bucket).key(RECORD).if_none_match("*").body(body()).send().await.unwrap_err();

    assert_eq!(locked.mode(), Some(&ObjectLockRetentionMode::Compliance));
    let secs = locked.retain_until_date().context("the lock has no end")?.secs();
    let written = record.last_modified().context("the record has no time")?.secs();
    assert!((30 * DAY_SECS - (secs - written)).abs() < 3600, "locked from {written} to {secs}");
    assert_eq!(deleted.code(), Some("AccessDenied"), "{deleted:?}");
    assert_eq!(again.code(), Some("AccessDenied"), "the bucket's policy does not hold: {again:?}");
    assert_eq!(beside.code(), Some("PreconditionFailed"), "{beside:?}");
    runner.kill().await?;
    Ok(())
}
