//! Data in a cluster that the removal of a chart or of a manifest would destroy.

use freehold_protocol::order::{RemovePart, Work};
use freehold_runner::kinds::execute;
use freehold_skips::have;
use serde_json::{Value, json};

use crate::cluster::{self, Cluster, DEPLOYER};
use crate::fixture::{outputs, reason};
use crate::{helm_chart, kubernetes_manifest};

const CLAIM: &str = "\
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: more}
spec:
  accessModes: [ReadWriteOnce]
  resources: {requests: {storage: 1Gi}}
";

#[tokio::test]
async fn the_claims_of_a_chart_and_of_a_manifest_are_deleted_only_when_the_order_permits_it() {
    let test = "cluster::removal::the_claims_of_a_chart_and_of_a_manifest_are_deleted_only_when_the_order_permits_it";
    if !have(&["bwrap"]) {
        return;
    }
    let Some(cloud) = cluster::with_clusters(test).await else { return };
    let cluster = Cluster::make(&cloud).await;
    let chart = helm_chart::chart(&cloud).await;
    let manifest = kubernetes_manifest::manifest(&cloud, CLAIM).await;
    let of_chart = helm_chart::work(&chart, json!({ "claim": true }));

    for (artifact, work, name) in
        [(&chart, of_chart, "data"), (&manifest, kubernetes_manifest::work(&manifest), "more")]
    {
        let claim = || cluster.object("persistentvolumeclaim", "globex-prod", name);
        let removal = |destroy_data| {
            Work::Remove(RemovePart { what: Box::new(work.clone()), destroy_data, removes_policies: false })
        };
        let mut bench = Cluster::bench(&cloud, DEPLOYER, work.clone(), artifact).await;
        outputs(execute(&bench.job).await);

        bench.next_attempt();
        bench.change_order(|order| order.work = removal(false));
        let (why, partial) = reason(execute(&bench.job).await);
        let kept = claim();
        bench.next_attempt();
        bench.change_order(|order| order.work = removal(true));
        outputs(execute(&bench.job).await);

        assert_eq!(
            why,
            format!(
                "component `network`: the removal would destroy data, in `PersistentVolumeClaim globex-prod/{name}`; \
                 keep a copy of what is needed, and allow the removal with `freehold teardown ... --destroy-data`"
            )
        );
        assert!(!partial && kept.is_object(), "{kept}");
        assert_eq!(kept["metadata"]["deletionTimestamp"], Value::Null);
        assert_eq!(claim(), Value::Null);
    }
}
