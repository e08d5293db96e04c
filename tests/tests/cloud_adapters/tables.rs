//! DynamoDB: commits that look alike, and rows that expire.

use aws_sdk_dynamodb::types::{AttributeDefinition, BillingMode, KeySchemaElement, KeyType, ScalarAttributeType};
use freehold_app::ports::{Committed, Expect, Key, Store as _, Write};
use freehold_aws::store::DynamoStore;
use freehold_protocol::Timestamp;
use freehold_tests::harness::{Capability, Needs, World};

const NEEDS: Needs = Needs { cloud: &[Capability::EmptyAccounts, Capability::Tables], programs: &[] };
const TABLE: &str = "rows";

async fn make_table(client: &aws_sdk_dynamodb::Client) -> anyhow::Result<()> {
    let key = |name, kind| KeySchemaElement::builder().attribute_name(name).key_type(kind).build();
    let text =
        |name| AttributeDefinition::builder().attribute_name(name).attribute_type(ScalarAttributeType::S).build();
    client
        .create_table()
        .table_name(TABLE)
        .billing_mode(BillingMode::PayPerRequest)
        .key_schema(key("pk", KeyType::Hash)?)
        .key_schema(key("sk", KeyType::Range)?)
        .attribute_definitions(text("pk")?)
        .attribute_definitions(text("sk")?)
        .send()
        .await?;
    Ok(())
}

fn put(sk: &str, expect: Expect, expires: Option<Timestamp>) -> Write {
    Write::Put { key: key(sk), body: "{}".into(), expect, expires }
}

fn key(sk: &str) -> Key {
    Key { pk: "install#globex".into(), sk: sk.into() }
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_are_added_again_after_they_were_removed_and_keep_no_expiry_of_before() -> anyhow::Result<()> {
    let Some(world) = World::without_tenant("cloud_adapters.tables", NEEDS).await? else { return Ok(()) };
    let config = world.administrator(world.tenant_account())?;
    let client = aws_sdk_dynamodb::Client::new(&config);
    make_table(&client).await?;
    let store = DynamoStore::new(&config, TABLE);
    let add = vec![put("a", Expect::Absent, None), put("b", Expect::Absent, None)];
    let remove = vec![Write::Delete { key: key("a") }, Write::DeleteAt { key: key("b"), rev: 1 }];

    for round in 0..2 {
        assert_eq!(store.commit(add.clone()).await?, Committed::Done);
        assert!(store.get(&key("a")).await?.is_some(), "nothing was added in round {round}");
        assert_eq!(store.commit(add.clone()).await?, Committed::Done, "a row that is there already is not a conflict");
        assert_eq!(store.commit(remove.clone()).await?, Committed::Done);
        assert!(store.get(&key("a")).await?.is_none(), "nothing was removed in round {round}");
        assert_eq!(store.commit(remove.clone()).await?, Committed::Conflict(key("b")));
    }

    let later = Some(Timestamp::from_millis(4_102_444_800_000));
    assert_eq!(store.commit(vec![put("c", Expect::Absent, later)]).await?, Committed::Done);
    let expiring = raw_item(&client).await?.contains_key("ttl");
    assert_eq!(store.commit(vec![put("c", Expect::Rev(1), None)]).await?, Committed::Done);
    let kept = raw_item(&client).await?;
    assert!(expiring && !kept.contains_key("ttl"), "{kept:?}");
    Ok(())
}

async fn raw_item(
    client: &aws_sdk_dynamodb::Client,
) -> anyhow::Result<std::collections::HashMap<String, aws_sdk_dynamodb::types::AttributeValue>> {
    use aws_sdk_dynamodb::types::AttributeValue::S;

    let key = key("c");
    let found = client.get_item().table_name(TABLE).key("pk", S(key.pk)).key("sk", S(key.sk)).send().await?;
    Ok(found.item.unwrap_or_default())
}
