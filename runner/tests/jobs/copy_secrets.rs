//! Copies of secrets, with a real API server.

use freehold_protocol::order::{ClusterOf, CopySecrets, SecretCopy, Work};
use freehold_runner::kinds::execute;
use serde_json::{Value, json};

use crate::cluster::{self, Cluster, DEPLOYER};
use crate::fixture::{Bench, outputs, reason};

fn work() -> Work {
    let copy = |secret: &str, name: &str| SecretCopy {
        secret: secret.into(),
        namespace: "{{ .nuon.install.id }}-web".into(),
        name: name.into(),
    };
    let copies = vec![copy("password", "web-password"), copy("file", "web-file"), copy("empty", "web-empty")];
    Work::CopySecrets(CopySecrets { cluster: ClusterOf::Sandbox, copies })
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
