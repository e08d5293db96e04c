//! A cluster in a customer's account, as the other scenarios use it.

use freehold_tests::harness::{Capability, Needs, World};

const NEEDS: Needs = Needs { cloud: &[Capability::Clusters, Capability::AnyAccount], programs: &[] };

#[tokio::test(flavor = "multi_thread")]
async fn a_customers_cluster_admits_a_role_and_runs_pods_without_nodes() -> anyhow::Result<()> {
    let Some(world) = World::without_tenant("cloud_cluster", NEEDS).await? else { return Ok(()) };
    let customer = world.new_customer()?;

    let cluster = world.cluster(&customer, "main").await?;
    world.admit(&cluster, "cluster", "AmazonEKSClusterAdminPolicy").await?;

    cluster.kubectl(&["run", "one", "--image=none"]).await?.ended_with(0)?;
    cluster.kubectl(&["wait", "--for=condition=Ready", "pod/one", "--timeout=60s"]).await?.ended_with(0)?;
    assert!(cluster.kubectl(&["get", "nodes"]).await?.ended_with(0)?.contains("No resources found"));
    Ok(())
}
