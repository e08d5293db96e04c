//! Copies of secrets, with a real API server.

use freehold_protocol::order::{ClusterOf, CopySecrets, Mode, SecretCopy, Work};
use freehold_runner::kinds::execute;
use serde_json::{Value, json};

use crate::cloud::Cloud;
use crate::cluster::barrier::{Aim, Barrier};
use crate::cluster::killed_runner::kill_at;
use crate::cluster::{self, Cluster, DEPLOYER};
use crate::fixture::{Bench, outputs, reason};

fn work() -> Work {
    let copy = |secret: &str, name: &str| SecretCopy {
        secret: secret.into(),
        namespace: "{{ .nuon.install.id }}-web".into(),
        name: name.into(),
    };
    let copies = vec![copy("password", "web-password"), copy("file", "web-file"), copy("empty", "web-empty")];
    Work::CopySecrets(CopySecrets { cluster: ClusterOf::Sandbox, copies, keeps_others: false })
}

/// Gives the job these values of its secrets.
fn keep(bench: &mut Bench, values: Value) {
    bench.change_order(|order| {
        order.secrets = serde_json::from_value(json!([
            { "name": "password", "required": true }, { "name": "file", "format": "base64" }, { "name": "empty" },
        ]))
        .unwrap();
        order.context["nuon"]["secrets"] = values;
    });
}

#[tokio::test]
async fn a_cluster_gets_copies_and_a_second_time_changes_nothing() {
    let test = "copy_secrets::a_cluster_gets_copies_and_a_second_time_changes_nothing";
    let Some(cloud) = cluster::with_clusters(test).await else { return };
    let cluster = Cluster::make(&cloud).await;
    let mut bench = Bench::new(work());
    Cluster::enter(&cloud, DEPLOYER, &mut bench).await;
    keep(&mut bench, json!({ "password": "correct horse", "file": "AAEC" }));

    let first = outputs(execute(&bench.job).await);
    let first_log = bench.log();
    bench.next_attempt();
    outputs(execute(&bench.job).await);
    let again_log = bench.log();
    bench.next_attempt();
    keep(&mut bench, json!({ "password": "battery staple", "file": "AAEC" }));
    outputs(execute(&bench.job).await);
    let changed_log = bench.log();
    bench.next_attempt();
    keep(&mut bench, json!({ "password": "battery staple", "file": "not base64!" }));
    let (wrong, partial) = reason(execute(&bench.job).await);

    let copy = |name: &str| cluster.object("secret", "globex-prod-web", name);
    assert_eq!(first["copies"], json!(["Secret globex-prod-web/web-password", "Secret globex-prod-web/web-file"]));
    assert!(
        first_log.contains("secret `empty` was left empty in the install stack: the cluster gets no copy"),
        "{first_log}"
    );
    assert!(first_log.contains("2 to create") && again_log.contains("2 unchanged"), "{first_log}\n{again_log}");
    assert!(changed_log.contains("1 to update, 0 to delete, 1 unchanged"), "{changed_log}");
    assert_eq!(copy("web-password")["data"], json!({ "value": "YmF0dGVyeSBzdGFwbGU=" }));
    assert_eq!(copy("web-file")["data"], json!({ "value": "AAEC" }));
    assert_eq!((copy("web-empty"), copy("web-file")["type"].clone()), (Value::Null, json!("Opaque")));
    assert!(!partial);
    assert_eq!(
        wrong,
        "secret `file` has `format = \"base64\"`, and its value is not base64; enter it again as parameter \
         `AppSecretFile` of the install stack"
    );
}

fn copies_of(names: &[String]) -> Work {
    let copy = |name: &String| SecretCopy { secret: "password".into(), namespace: "web".into(), name: name.clone() };
    let copies = names.iter().map(copy).collect();
    Work::CopySecrets(CopySecrets { cluster: ClusterOf::Sandbox, copies, keeps_others: false })
}

fn named(names: &[&str]) -> Work {
    copies_of(&names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>())
}

/// Returns the objects of the inventory of copies, by name.
async fn inventory(cloud: &Cloud) -> Vec<String> {
    let bytes = cloud.object("kubernetes/secrets/copies.inventory.json").await.unwrap();
    let found: Value = serde_json::from_slice(&bytes).unwrap();
    found["objects"].as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn a_copy_that_is_not_wanted_any_more_goes_and_one_that_another_manager_took_over_stays() {
    let test = "copy_secrets::a_copy_that_is_not_wanted_any_more_goes_and_one_that_another_manager_took_over_stays";
    let Some(cloud) = cluster::with_clusters(test).await else { return };
    let cluster = Cluster::make(&cloud).await;
    let mut bench = Bench::new(named(&["one", "two", "three"]));
    Cluster::enter(&cloud, DEPLOYER, &mut bench).await;
    keep(&mut bench, json!({ "password": "correct horse" }));
    outputs(execute(&bench.job).await);
    let taken = r#"--patch={"data":{"value":"bWluZQ=="}}"#;
    cluster.kubectl(&["patch", "secret", "two", "--namespace=web", "--field-manager=theirs", taken]).unwrap();
    cluster.kubectl(&["create", "secret", "generic", "other", "--namespace=web"]).unwrap();

    bench.next_attempt();
    bench.change_order(|order| order.work = named(&["three"]));
    let kept = outputs(execute(&bench.job).await);
    let kept_log = bench.log();
    let recorded = inventory(&cloud).await;
    bench.next_attempt();
    bench.change_order(|order| {
        order.work = named(&[]);
        order.mode = Mode::Deprovision;
    });
    outputs(execute(&bench.job).await);

    let there = |name: &str| !cluster.object("secret", "web", name).is_null();
    assert_eq!((kept["copies"].clone(), recorded), (json!(["Secret web/three"]), vec!["three".to_owned()]));
    assert!(kept_log.contains("1 to delete, 2 unchanged"), "{kept_log}");
    assert!(
        kept_log.contains("did not remove Secret web/two: it does not exist any more, or it belongs to somebody else")
    );
    assert_eq!(["one", "two", "three", "other"].map(there), [false, true, false, true]);
    assert!(inventory(&cloud).await.is_empty());
}

#[tokio::test]
async fn copies_that_an_order_keeps_stay_until_an_order_that_does_not_keep_them() {
    let test = "copy_secrets::copies_that_an_order_keeps_stay_until_an_order_that_does_not_keep_them";
    let Some(cloud) = cluster::with_clusters(test).await else { return };
    let cluster = Cluster::make(&cloud).await;
    let mut bench = Bench::new(named(&["one", "two"]));
    Cluster::enter(&cloud, DEPLOYER, &mut bench).await;
    keep(&mut bench, json!({ "password": "correct horse" }));
    outputs(execute(&bench.job).await);
    let there = |name: &str| !cluster.object("secret", "web", name).is_null();

    bench.next_attempt();
    bench.change_order(|order| {
        let Work::CopySecrets(mut work) = named(&["two", "three"]) else { panic!("copies") };
        work.keeps_others = true;
        order.work = Work::CopySecrets(work);
    });
    let kept = outputs(execute(&bench.job).await);
    let (kept_there, recorded) = (["one", "two", "three"].map(there), inventory(&cloud).await);
    bench.next_attempt();
    bench.change_order(|order| order.work = named(&["two", "three"]));
    outputs(execute(&bench.job).await);

    assert_eq!(kept["copies"], json!(["Secret web/two", "Secret web/three"]));
    assert_eq!((kept_there, recorded), ([true; 3], ["one", "two", "three"].map(str::to_owned).to_vec()));
    assert_eq!(["one", "two", "three"].map(there), [false, true, true]);
}

#[tokio::test]
async fn a_teardown_continues_without_the_cluster_and_a_deploy_of_copies_does_not() {
    let mut bench = Bench::new(named(&[]));
    bench.change_order(|order| order.mode = Mode::Deprovision);

    outputs(execute(&bench.job).await);
    let log = bench.log();
    bench.next_attempt();
    bench.change_order(|order| order.work = named(&["one"]));
    keep(&mut bench, json!({ "password": "correct horse" }));
    let (why, _) = reason(execute(&bench.job).await);

    assert!(log.contains("copies of secrets were not removed: the outputs of"), "{log}");
    assert!(why.contains("name no cluster"), "{why}");
}

/// The number of copies of a point.
const COPIES: usize = 10;

/// Returns the names of the copies of a point. Those of the point before have other names, and are removed.
fn wanted(point: usize) -> Vec<String> {
    (0..COPIES).map(|number| format!("c{}-{number}", point % 2)).collect()
}

/// The first point is in the plan. The others are from before the first change to before the last one.
#[tokio::test]
async fn copying_is_taken_up_wherever_it_was_killed_and_no_copy_is_left_unlisted() {
    let test = "copy_secrets::copying_is_taken_up_wherever_it_was_killed_and_no_copy_is_left_unlisted";
    let Some(cloud) = cluster::with_clusters(test).await else { return };
    let cluster = Cluster::make(&cloud).await;
    let mut bench = Bench::new(copies_of(&wanted(1)));
    Cluster::enter(&cloud, DEPLOYER, &mut bench).await;
    keep(&mut bench, json!({ "password": "correct horse" }));
    outputs(execute(&bench.job).await);
    let barrier = Barrier::before(&cluster).await;

    let aims = [0, 5, 9, 10, 11, 15, 19].map(|changes| (Aim::After(changes), changes));
    for (point, (aim, changes)) in [(Aim::First("dry run of "), 0)].into_iter().chain(aims).enumerate() {
        bench.change_order(|order| order.work = copies_of(&wanted(point)));
        kill_at(&barrier, aim, &mut bench, || true).await;
        let (recorded, left) = (inventory(&cloud).await, copies(&cluster));

        bench.next_attempt();
        outputs(execute(&bench.job).await);

        // Copies are made first, and then those of the point before are removed.
        let mut expected = wanted(point + 1).split_off(changes.saturating_sub(COPIES));
        expected.extend(wanted(point).into_iter().take(changes));
        expected.sort();
        assert_eq!(left, expected, "point {point}");
        assert!(left.iter().all(|name| recorded.contains(name)), "point {point}: {left:?} and {recorded:?}");
        assert_eq!(copies(&cluster), wanted(point), "point {point}");
    }
}

/// Returns the names of the copies in the cluster.
fn copies(cluster: &Cluster) -> Vec<String> {
    let path = "--output=jsonpath={.items[*].metadata.name}";
    let found = cluster.kubectl(&["get", "secret", "--namespace=web", path]).unwrap();
    let mut names: Vec<String> = found.split(' ').filter(|name| name.starts_with('c')).map(str::to_owned).collect();
    names.sort();
    names
}
