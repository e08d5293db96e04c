//! Lineage: the stored evidence proves every build and every deploy, in any order of deliveries.

use freehold_app::Kind;
use freehold_app::ports::{Expect, Key, Store as _, Write};
use freehold_app::read::{self, List};
use freehold_app::table::evidence::{self, UsedBy};
use freehold_app::table::put;
use freehold_protocol::lineage::{Lineage, LinkName, Used};
use freehold_protocol::report::Outcome;
use freehold_protocol::{Digest, EnvelopeError};

use crate::support::doubles::queue_url;
use crate::support::runner::{Behaviour, Runner};
use crate::support::walk::Rng;
use crate::support::{World, app, globex, member, with_input};

/// Returns the digest that `globex` has of a component.
async fn digest_of(world: &World, component: &str) -> Digest {
    let install = read::show_install(&world.versions(), &globex(), world.now()).await.unwrap();
    install.components.into_iter().find(|one| one.component.as_str() == component).unwrap().artifact
}

async fn lineage_of(world: &World, component: &str) -> Lineage {
    let page = world.show_lineage().show(&digest_of(world, component).await, None, None).await.unwrap();
    assert_eq!(page.next, None);
    page.lineage
}

fn broken(world: &World, lineage: &Lineage) -> Vec<String> {
    let links = lineage.verify(&world.keys.public());
    assert!(links.len() > 6, "{links:?}");
    let broken = links.into_iter().filter_map(|link| Some(format!("{}: {}", link.name.as_str(), link.finding.err()?)));
    broken.collect()
}

#[tokio::test]
async fn every_deployed_component_is_proven_from_its_source_to_its_runner() {
    let world = World::with_install().await;

    for component in ["info", "settings", "storage"] {
        let lineage = lineage_of(&world, component).await;

        assert_eq!(broken(&world, &lineage), [""; 0], "{component}");
        assert_eq!((lineage.builds.len(), lineage.uses.len()), (1, 1));
        assert_eq!(lineage.uses[0].account.as_str(), "222222222222");
    }
}

#[tokio::test]
async fn each_deploy_of_the_same_artifact_is_a_use_of_its_own() {
    let mut world = World::with_install().await;
    world.deploy(&with_input("days", 8), "deploy-1").await.unwrap();
    world.settle().await;

    let lineage = lineage_of(&world, "storage").await;

    assert_eq!(lineage.uses.len(), 2);
    assert_eq!(broken(&world, &lineage), [""; 0]);
}

#[tokio::test]
async fn uses_are_in_the_order_of_time() {
    let mut world = World::with_install().await;
    for days in 8..13 {
        world.memory.advance_secs(60);
        world.deploy(&with_input("days", days), &format!("deploy-{days}")).await.unwrap();
        world.settle().await;
    }

    let times: Vec<_> = lineage_of(&world, "storage").await.uses.into_iter().map(|used| used.proof.at).collect();

    assert_eq!(times.len(), 6);
    assert!(times.is_sorted(), "{times:?}");
}

#[tokio::test]
async fn a_failed_job_does_not_count_as_a_use() {
    let mut world = World::with_install().await;
    let outcome = Outcome::Failed { reason: "no".into(), partial: true };
    world.runner("globex").behaviours.insert("storage".into(), Behaviour::Ends(outcome));
    world.deploy(&with_input("days", 8), "deploy-1").await.unwrap();
    world.settle().await;

    assert_eq!(lineage_of(&world, "storage").await.uses.len(), 1);
}

#[tokio::test]
async fn what_happened_under_a_runner_that_was_replaced_stays_proven() {
    let mut world = World::with_install().await;
    let mut next = Runner::new(&world.tenant, "globex", world.runners["globex"].queue.clone(), 21);
    next.seen = world.runners["globex"].seen;
    world.runners.insert("globex".into(), next);
    world.hello("globex");
    world.settle().await;
    world.deploy(&with_input("days", 8), "deploy-1").await.unwrap();
    world.settle().await;

    let lineage = lineage_of(&world, "storage").await;

    let runners: std::collections::BTreeSet<_> = lineage.uses.iter().map(|used| used.proof.runner.clone()).collect();
    assert_eq!((lineage.uses.len(), runners.len()), (2, 2));
    assert_eq!(broken(&world, &lineage), [""; 0]);
}

#[tokio::test]
async fn any_order_of_deliveries_leaves_the_same_proof() {
    for seed in 0..8 {
        let mut world = World::with_app().await;
        world.chaos = Some(Rng::new(seed));
        world.create().await;
        world.run().await;
        world.hello("globex");
        world.settle().await;

        for component in ["info", "settings", "storage"] {
            assert_eq!(broken(&world, &lineage_of(&world, component).await), [""; 0], "{seed} {component}");
        }
    }
}

#[tokio::test]
async fn an_order_that_is_sent_again_is_the_one_that_was_kept() {
    let mut world = World::with_install().await;
    world.runner("globex").behaviours.insert("storage".into(), Behaviour::Ignores);
    world.deploy(&with_input("days", 8), "deploy-1").await.unwrap();
    world.run().await;
    let sent = |world: &World| world.memory.orders.lock().unwrap().last().unwrap().3.clone();
    let first = sent(&world);
    let order: freehold_protocol::order::Order =
        freehold_protocol::Envelope::parse(first.as_bytes()).unwrap().peek().unwrap();
    world.forget_orders();
    world.memory.advance_secs(100);

    let message = freehold_app::messages::DispatchMessage::Order { job: order.job.clone(), dispatch: 1 };
    // Another function, with another certificate.
    let world = world.copy();
    world.dispatch_job().perform(&message).await.unwrap();

    assert_eq!(sent(&world), first);
}

#[tokio::test]
async fn evidence_that_is_gone_is_a_gap_that_is_named() {
    let world = World::with_install().await;
    let whole = lineage_of(&world, "storage").await;
    let Used { proof, .. } = &whole.uses[0];
    let keys = [
        (evidence::order_key(&proof.job, 1), LinkName::Order),
        (evidence::hello_key(&globex(), &proof.runner), LinkName::RunnerKey),
    ];

    for (key, name) in keys {
        let world = world.copy();
        let _ = world.memory.commit(vec![Write::Delete { key }]).await.unwrap();

        let found = broken(&world, &lineage_of(&world, "storage").await);

        assert!(found[0].starts_with(name.as_str()) && found[0].ends_with("missing"), "{found:?}");
    }
}

/// Returns the digests of the texts that orders share.
fn shared_texts(world: &World) -> Vec<String> {
    let texts = world.memory.rows().into_iter().filter(|row| row.key.pk.starts_with("text#"));
    texts.map(|row| row.key.pk).collect()
}

#[tokio::test]
async fn orders_share_their_work_and_certificate_and_are_proven_whole() {
    let mut world = World::with_install().await;
    let texts = shared_texts(&world);
    world.deploy(&with_input("days", 8), "deploy-1").await.unwrap();
    world.settle().await;

    let lineage = lineage_of(&world, "storage").await;

    assert_eq!(shared_texts(&world), texts, "another order of the same work stores no text");
    assert_eq!(broken(&world, &lineage), [""; 0]);
    for used in &lineage.uses {
        let row = world.memory.get(&evidence::order_key(&used.proof.job, 1)).await.unwrap().unwrap();
        assert!(!row.body.contains("provenance") && !row.body.contains("cert\""), "{}", row.body);
        assert!(used.proof.order.as_ref().unwrap().to_json().unwrap().contains("cert\""));
    }
}

#[tokio::test]
async fn an_order_whose_shared_text_is_gone_is_a_gap_that_is_named() {
    let world = World::with_install().await;
    for text in shared_texts(&world) {
        let key = Key { pk: text, sk: "state".into() };
        let _ = world.memory.commit(vec![Write::Delete { key }]).await.unwrap();
    }

    let found = broken(&world, &lineage_of(&world, "storage").await);

    assert!(
        found.iter().any(|link| link.starts_with(LinkName::Order.as_str()) && link.ends_with("missing")),
        "{found:?}"
    );
}

#[tokio::test]
async fn the_last_log_of_a_deploy_is_read_from_its_proof() {
    let world = World::with_install().await;
    let used = lineage_of(&world, "storage").await.uses.remove(0);
    let job = used.proof.job;
    let rows = world.memory.query(&format!("job#{job}"), "log#", None, 9).await.unwrap();

    let first = read::list_logs(&*world.memory, &job, None).await.unwrap();
    let more = read::list_logs(&*world.memory, &job, Some(&first.cursor)).await.unwrap();

    assert_eq!(first.chunks.len(), rows.len() + 1);
    assert_eq!((more.chunks.len(), &more.cursor, more.ended), (0, &first.cursor, true));
}

#[tokio::test]
async fn an_attempt_whose_report_was_not_accepted_does_not_count_as_a_use() {
    let world = World::with_install().await;
    let lineage = lineage_of(&world, "storage").await;
    let artifact = evidence::artifact_pk(&lineage.artifact);
    let row = world.memory.query(&artifact, "use#", None, 1).await.unwrap().remove(0);
    let mut stale: UsedBy = serde_json::from_str(&row.body).unwrap();
    stale.proof.fence.receive += 1;

    let _ = world.memory.commit(vec![put(&stale, Expect::Any).unwrap()]).await.unwrap();

    assert_eq!(world.memory.query(&artifact, "use#", None, 9).await.unwrap().len(), 2);
    assert_eq!(lineage_of(&world, "storage").await.uses, lineage.uses);
}

#[tokio::test]
async fn another_tenants_key_proves_nothing() {
    let world = World::with_install().await;
    let lineage = lineage_of(&world, "storage").await;
    let other = World::with_app().await.runners["build"].key.verifying_key().into();

    let links = lineage.verify(&other);

    let first = links.iter().find(|link| link.finding.is_err()).unwrap();
    assert_eq!(first.name, LinkName::RootKey);
    let statement = links.iter().find(|link| link.name == LinkName::Statement).unwrap();
    assert!(
        statement
            .finding
            .as_ref()
            .unwrap_err()
            .to_string()
            .contains(&EnvelopeError::Unsigned(freehold_protocol::envelope::PublicKey::key_id(&other)).to_string())
    );
}

#[tokio::test]
async fn many_uses_come_in_pages() {
    let mut world = World::with_install().await;
    for round in 0..60 {
        world.deploy(&with_input("days", round + 10), &format!("deploy-{round}")).await.unwrap();
        world.settle().await;
    }
    let digest = digest_of(&world, "storage").await;

    let first = world.show_lineage().show(&digest, None, None).await.unwrap();
    let next = List::Uses.place(first.next.as_deref()).unwrap();
    let second = world.show_lineage().show(&digest, None, next).await.unwrap();

    assert_eq!((first.lineage.uses.len(), second.lineage.uses.len(), second.next), (50, 11, None));
    let mut all = first.lineage;
    all.uses.extend(second.lineage.uses);
    assert_eq!(broken(&world, &all), [""; 0]);
}

/// Adds the install `initech` in another account, with the same components.
async fn with_initech(world: &mut World) {
    let request = freehold_protocol::api::CreateInstallRequest {
        account: "333333333333".parse().unwrap(),
        ..world.creation("initech")
    };
    world.create_install().create(&request, member()).await.unwrap();
    let runner = Runner::new(&world.tenant, "initech", queue_url("initech"), 30);
    let role = runner.role.clone();
    world.runners.insert("initech".into(), runner.with_role("333333333333", &role));
    world.run().await;
    world.hello("initech");
    world.settle().await;
}

/// Returns the whole text of a lineage: also the texts inside the signed messages.
fn whole_text(lineage: &Lineage) -> String {
    let mut text = serde_json::to_string(lineage).unwrap();
    let proofs = lineage.builds.iter().map(|made| &made.proof).chain(lineage.uses.iter().map(|used| &used.proof));
    for message in proofs.flat_map(|proof| [&proof.order, &proof.report, &proof.hello]).flatten() {
        let payload = freehold_protocol::envelope::decode_base64(&message.payload).unwrap();
        text.push_str(&String::from_utf8(payload).unwrap());
    }
    text
}

#[tokio::test]
async fn the_lineage_of_one_install_is_whole_and_says_nothing_about_another() {
    let mut world = World::with_install().await;
    with_initech(&mut world).await;
    let digest = digest_of(&world, "storage").await;
    let show = world.show_lineage();

    let all = show.show(&digest, None, None).await.unwrap().lineage;
    let own = show.show(&digest, Some(&globex()), None).await.unwrap();

    let installs =
        |lineage: &Lineage| -> Vec<String> { lineage.uses.iter().map(|used| used.proof.install.to_string()).collect() };
    assert_eq!((installs(&all).len(), installs(&own.lineage), own.next), (2, vec!["globex".to_owned()], None));
    assert_eq!(broken(&world, &own.lineage), [""; 0]);
    assert!(whole_text(&all).contains("initech") && whole_text(&all).contains("333333333333"));
    let text = whole_text(&own.lineage);
    assert!(!text.contains("initech") && !text.contains("333333333333"), "{text}");
    // A page of the other install does not follow one of this install.
    let place = format!("use#initech#storage#{}#1.1", all.uses[0].proof.job);
    let misplaced = show.show(&digest, Some(&globex()), Some(&place)).await.unwrap_err();
    let stranger = show.show(&digest, Some(&"hooli".parse().unwrap()), None).await.unwrap_err();
    assert_eq!((misplaced.kind, stranger.kind), (Kind::Invalid, Kind::NotFound));
}

#[tokio::test]
async fn an_artifact_that_nobody_made_is_not_found() {
    let world = World::with_app().await;

    let error = world.show_lineage().show(&Digest::of(b"nothing"), None, None).await.unwrap_err();

    assert_eq!(error.kind, Kind::NotFound);
    // One that was built and went nowhere has a lineage all the same.
    let digest = world.build("build-2").await.builds[0].artifact.clone().unwrap();
    let lineage = world.show_lineage().show(&digest, None, None).await.unwrap().lineage;
    assert_eq!((lineage.uses.len(), broken(&world, &lineage)), (0, Vec::new()));
    assert_eq!(lineage.builds[0].source, app::document().components[0].source);
}
