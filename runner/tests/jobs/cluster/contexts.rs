//! Components that name their cluster (`kubernetes_context`), in an account with two clusters.

use freehold_protocol::order::{ClusterOf, Work};
use freehold_runner::kinds::execute;
use freehold_skips::have;
use serde_json::{Value, json};

use crate::cluster::{self, Cluster, DEPLOYER};
use crate::fixture::{Bench, outputs};
use crate::{helm_chart, kubernetes_manifest};

const NAMESPACE: &str = "globex-prod";
/// The name of the second cluster, as the outputs of component `eks` say it.
const SECOND: &str = "two";

/// Deploys a chart or a manifest into the cluster that `cluster` names.
async fn deploy(bench: &mut Bench, cluster: ClusterOf) {
    bench.next_attempt();
    bench.change_order(|order| {
        order.context["nuon"]["components"] = json!({ "eks": { "outputs": { "cluster_name": SECOND } } });
        match &mut order.work {
            Work::HelmChart(chart) => chart.cluster = cluster,
            Work::KubernetesManifest(manifest) => manifest.cluster = cluster,
            other => panic!("{other:?}"),
        }
    });
    outputs(execute(&bench.job).await);
}

#[tokio::test]
async fn a_component_is_deployed_into_the_cluster_that_it_names_and_the_other_one_stays_empty() {
    let test =
        "cluster::contexts::a_component_is_deployed_into_the_cluster_that_it_names_and_the_other_one_stays_empty";
    if !have(&["bwrap"]) {
        return;
    }
    let Some(cloud) = cluster::with_clusters(test).await else { return };
    let one = Cluster::make(&cloud).await;
    let two = Cluster::make_another(&cloud, SECOND).await;
    let chart = helm_chart::chart(&cloud).await;
    let work = helm_chart::work(&chart, json!({}));
    let mut chart = Cluster::bench(&cloud, DEPLOYER, work, &chart).await;
    let text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: one}\n";
    let manifest = kubernetes_manifest::manifest(&cloud, text).await;
    let work = kubernetes_manifest::work(&manifest);
    let mut manifest = Cluster::bench(&cloud, DEPLOYER, work, &manifest).await;
    let found = |cluster: &Cluster| {
        let object = cluster.object("configmap", NAMESPACE, "one") != Value::Null;
        (cluster.revisions("configmap", NAMESPACE, "web"), object)
    };

    for bench in [&mut chart, &mut manifest] {
        deploy(bench, ClusterOf::Component("eks".parse().unwrap())).await;
    }
    let (in_two, in_one) = (found(&two), one.kubectl(&["get", "namespace", NAMESPACE]));
    for bench in [&mut chart, &mut manifest] {
        deploy(bench, ClusterOf::Sandbox).await;
    }

    let both = (vec!["deployed".to_owned()], true);
    assert_eq!(in_two, both);
    assert!(in_one.as_ref().is_err_and(|why| why.contains("NotFound")), "{in_one:?}");
    assert_eq!((found(&one), found(&two)), (both.clone(), both));
}
