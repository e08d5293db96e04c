//! S3: app versions in the tenant's bucket.

use freehold_app::ports::{Objects as _, PortError};
use freehold_aws::objects::S3Objects;
use freehold_protocol::Digest;
use freehold_protocol::limits::MAX_APP_VERSION_BYTES;
use freehold_tests::harness::World;

const BUCKET: &str = "versions-of-a-test";

#[tokio::test(flavor = "multi_thread")]
async fn a_version_is_put_by_its_digest_and_got_as_it_was() -> anyhow::Result<()> {
    let Some(world) = World::without_tenant("cloud_adapters.objects", super::NEEDS).await? else { return Ok(()) };
    let config = world.administrator(world.tenant_account())?;
    let s3 = aws_sdk_s3::Client::from_conf(aws_sdk_s3::config::Builder::from(&config).force_path_style(true).build());
    let here = aws_sdk_s3::types::BucketLocationConstraint::EuWest1;
    let place = aws_sdk_s3::types::CreateBucketConfiguration::builder().location_constraint(here).build();
    s3.create_bucket().bucket(BUCKET).create_bucket_configuration(place).send().await?;
    let objects = S3Objects::new(&config, BUCKET);
    let bytes = vec![b'x'; MAX_APP_VERSION_BYTES];
    let digest = Digest::of(&bytes);

    let missing = objects.get_version(&digest).await?;
    objects.put_version(&digest, &bytes).await?;
    objects.put_version(&digest, &bytes).await?;
    let found = objects.get_version(&digest).await?;

    assert_eq!((missing, found.as_ref() == Some(&bytes)), (None, true));
    let key = format!("versions/{}.json", digest.hex());
    let head = s3.head_object().bucket(BUCKET).key(&key).send().await?;
    assert_eq!(head.content_type(), Some("application/json"));
    let larger = vec![b'x'; MAX_APP_VERSION_BYTES + 1];
    s3.put_object().bucket(BUCKET).key(&key).body(larger.into()).send().await?;
    let refused = objects.get_version(&digest).await;
    assert!(matches!(refused, Err(PortError::Failed { .. })), "{:?}", refused.map(|found| found.map(|f| f.len())));
    let nowhere = S3Objects::new(&config, "no-such-bucket-of-a-test").put_version(&digest, b"{}").await;
    assert!(matches!(nowhere, Err(PortError::Failed { .. })), "{nowhere:?}");
    Ok(())
}
