//! App versions in the tenant's bucket: the adapter against S3, and a large app from sync to a finished job, with every
//! function under its own role.

#![cfg(test)]

use anyhow::{Context as _, ensure};
use freehold_app::ports::{Objects as _, PortError};
use freehold_aws::objects::S3Objects;
use freehold_protocol::Digest;
use freehold_protocol::limits::{MAX_APP_VERSION_BYTES, MAX_TABLE_VERSION_BYTES};
use freehold_tests::harness::{Capability, Needs, World, app};

const BUCKET: &str = "versions-of-a-test";

#[tokio::test(flavor = "multi_thread")]
async fn a_version_is_put_by_its_digest_and_got_as_it_was() -> anyhow::Result<()> {
    let needs = Needs { cloud: &[Capability::EmptyAccounts], programs: &[] };
    let Some(world) = World::without_tenant("cloud_versions.adapter", needs).await? else { return Ok(()) };
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

#[tokio::test(flavor = "multi_thread")]
async fn a_large_app_is_synced_installed_and_run() -> anyhow::Result<()> {
    let needs = Needs {
        cloud: &[Capability::HttpApi, Capability::IamEnforced, Capability::AnyAccount, Capability::EmptyAccounts],
        programs: &[],
    };
    let Some(world) = World::start("cloud_versions.large", needs).await? else { return Ok(()) };
    let directory = app::small(world.directory())?;
    let script = "echo 'one line of a long script'\n".repeat(20_000);
    let action = format!(
        "name = \"large\"\ntimeout = \"1m\"\n\n[[triggers]]\ntype = \"manual\"\n\n\
         [[steps]]\nname = \"large\"\ninline_contents = '''\n{}'''\n",
        script.replace('\'', "")
    );
    app::write(&directory, "actions/large.toml", &action)?;
    let path = directory.display().to_string();

    let synced = world.vendor(&["app", "sync", &path]).await?;
    let again = world.vendor(&["app", "sync", &path]).await?;
    let shown = world.vendor(&["app", "show", "small"]).await?;
    let listed = world.vendor(&["app", "versions", "small"]).await?;

    assert_eq!((&synced["changed"], &again["changed"]), (&true.into(), &false.into()));
    assert_eq!((&synced["version"], &listed[0]["version"]), (&shown["version"], &shown["version"]));
    let text = shown["document"]["actions"][0]["steps"][0]["inline_contents"].as_str().context("a script")?;
    ensure!(text.len() > MAX_TABLE_VERSION_BYTES, "the script has {} bytes", text.len());
    let install = world.install("globex", "small").await?;
    let _runner = world.runner(&install).await?;
    assert_eq!(world.provisioned(&install).await?["state"], "succeeded");
    let run = world.vendor(&["action", "run", "globex", "say"]).await?;
    assert_eq!(run["state"], "succeeded", "{run}");
    Ok(())
}
