//! Access to a cluster: the kubeconfig of an action, tokens, and who is refused.

use std::collections::BTreeMap;

use freehold_protocol::order::{ActionStep, ClusterOf, RunAction, Work};
use freehold_runner::kinds::execute;
use freehold_skips::have;
use serde_json::json;

use crate::cloud::Cloud;
use crate::cluster::{self, Cluster, DEPLOYER, READER, STRANGER};
use crate::fixture::{Bench, outputs, reason};
use crate::helm_chart;
use crate::processes::Processes;

fn action(commands: &[&str]) -> Work {
    let step = |command: &&str| ActionStep {
        name: "look".into(),
        command: (*command).to_owned(),
        inline_contents: String::new(),
        env_vars: BTreeMap::new(),
    };
    Work::Action(RunAction {
        action: "look".parse().unwrap(),
        steps: commands.iter().map(step).collect(),
        directories: Vec::new(),
        env_vars: BTreeMap::new(),
        idempotent: true,
        cluster: Some(ClusterOf::Sandbox),
        image: String::new(),
    })
}

#[tokio::test]
async fn who_has_an_access_entry_gets_in_and_no_token_is_seen() {
    let test = "cluster::access::who_has_an_access_entry_gets_in_and_no_token_is_seen";
    if !have(&["bwrap"]) {
        return;
    }
    let Some(cloud) = cluster::with_clusters(test).await else { return };
    Cluster::make(&cloud).await;
    let kubectl = cluster::kubectl_path();
    let look =
        format!("cat $KUBECONFIG $(dirname $KUBECONFIG)/token; echo; {kubectl} get namespace default --output=name");
    let make = format!("{kubectl} create namespace made");
    let under = async |role: &str, work: Work| {
        // Outside of a box, since a box shows no program of the test; charts are installed from within one.
        let mut bench = Bench::new(work).plain();
        Cluster::enter(&cloud, role, &mut bench).await;
        let outcome = execute(&bench.job).await;
        let kube = bench.job.workspace.with_extension("kube");
        assert!(!kube.exists(), "the kubeconfig is gone with the job");
        (outcome, bench.log())
    };

    let (done, log) = under(DEPLOYER, action(&[&look, &make])).await;
    let (_, read) = under(READER, action(&[&make])).await;
    let (_, strange) = under(STRANGER, action(&[&look])).await;

    outputs(done);
    assert!(log.contains("namespace/default\n") && log.contains("namespace/made created"), "{log}");
    assert!(log.contains("\"tokenFile\"") && log.contains("[redacted]") && !log.contains("k8s-aws-v1."), "{log}");
    assert!(read.contains("Forbidden") || read.contains("forbidden"), "{read}");
    assert!(strange.contains("Unauthorized") || strange.contains("must be logged in"), "{strange}");
}

/// Every user of the machine can read the arguments of the programs, and a program passes its environment on.
#[tokio::test]
async fn no_token_is_in_an_argument_or_an_environment_while_helm_and_kubectl_run() {
    let test = "cluster::access::no_token_is_in_an_argument_or_an_environment_while_helm_and_kubectl_run";
    if !have(&["bwrap"]) {
        return;
    }
    let Some(cloud) = cluster::with_clusters(test).await else { return };
    Cluster::make(&cloud).await;
    let artifact = helm_chart::chart(&cloud).await;
    let chart = Cluster::bench(&cloud, DEPLOYER, helm_chart::work(&artifact, json!({})), &artifact).await;
    let kubectl = cluster::kubectl_path();
    let look = format!("{kubectl} get namespace globex-prod --output=name");
    // Outside of a box, since a box shows no program of the test.
    let mut look = Bench::new(action(&[&look])).plain();
    Cluster::enter(&cloud, DEPLOYER, &mut look).await;

    let processes = Processes::watch(&["environ"]);
    outputs(execute(&chart.job).await);
    outputs(execute(&look.job).await);
    let seen = processes.end("helm\0upgrade\0");

    assert!(look.log().contains("namespace/globex-prod\n"));
    for read in [format!("{kubectl}\0get\0").as_str(), "HELM_DRIVER=configmap", "KUBECONFIG="] {
        assert!(seen.contains(read), "the watch saw no `{read}`");
    }
    // The prefix of every token, and the beginning of the encoded address of STS.
    for part in ["k8s-aws-v1.", "aHR0cHM6Ly9zdHMu"] {
        assert!(!seen.contains(part), "a token is in an argument or in an environment");
    }
}

#[tokio::test]
async fn a_cluster_that_is_not_named_or_not_there_is_said() {
    let test = "cluster::access::a_cluster_that_is_not_named_or_not_there_is_said";
    if !have(&["bwrap"]) {
        return;
    }
    let Some(cloud) = Cloud::here(test).await else { return };
    let unnamed = Bench::new(action(&["true"]));
    let mut absent = Bench::new(action(&["true"]));
    absent.change_order(|order| {
        order.context["nuon"]["sandbox"] = json!({ "outputs": { "cluster_name": "nowhere" } });
    });
    absent.job.credentials = cloud.customer.credentials_provider().unwrap();

    let (unnamed, _) = reason(execute(&unnamed.job).await);
    let (absent, partial) = reason(execute(&absent.job).await);

    assert!(unnamed.starts_with("action `look`: the outputs of the sandbox name no cluster: "), "{unnamed}");
    assert_eq!(
        absent,
        "action `look`: there is no EKS cluster `nowhere` in region `eu-west-1` of this account; deploy the component \
         that makes it first"
    );
    assert!(!partial);
}
