//! KMS: the root key certifies delegate keys.

use aws_sdk_kms::types::{KeySpec, KeyUsageType};
use freehold_app::ports::{Clock as _, RootKey as _, Signer as _};
use freehold_aws::config::SystemClock;
use freehold_aws::signer::KmsSigner;
use freehold_protocol::envelope::Delegate;
use freehold_protocol::limits::DELEGATE_SEND_SECS;
use freehold_protocol::{KeyUse, KeyUses};
use freehold_tests::harness::{Capability, Needs, World};

const NEEDS: Needs = Needs { cloud: &[Capability::EmptyAccounts, Capability::Ed25519], programs: &[] };

#[tokio::test(flavor = "multi_thread")]
async fn the_root_key_certifies_one_delegate_key_until_a_later_one_is_asked_for() -> anyhow::Result<()> {
    let Some(world) = World::without_tenant("cloud_adapters.keys", NEEDS).await? else { return Ok(()) };
    let config = world.administrator(world.tenant_account())?;
    let kms = aws_sdk_kms::Client::new(&config);
    let made =
        kms.create_key().key_spec(KeySpec::EccNistEdwards25519).key_usage(KeyUsageType::SignVerify).send().await?;
    let id = made.key_metadata().map(|key| key.key_id().to_owned()).unwrap_or_default();
    let signer = KmsSigner::new(&config, &id, "acme".parse()?, [KeyUse::Grants].into());
    let reader = KmsSigner::new(&config, id, "acme".parse()?, KeyUses::default());
    let now = SystemClock.now();

    let first = signer.delegate(now).await?;
    let same = signer.delegate(now.plus_secs(3600)).await?;

    let root = signer.public_key().await?;
    let certified = first.certificate.open::<Delegate>(&root)?;
    assert_eq!(certified.public_key, first.key.verifying_key().into());
    assert_eq!(certified.uses, [KeyUse::Grants].into());
    let sends_for = certified.send_until.map(|until| until.since(now) / 1000);
    assert!(
        sends_for.is_some_and(|secs| (DELEGATE_SEND_SECS..DELEGATE_SEND_SECS + 60).contains(&secs)),
        "{sends_for:?}"
    );
    assert!(reader.delegate(now).await.is_err(), "a signer without uses certifies a key");
    assert_eq!(first.key.verifying_key(), same.key.verifying_key());
    Ok(())
}
