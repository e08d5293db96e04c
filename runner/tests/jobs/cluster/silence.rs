//! A cluster whose API server ends before a job or in the middle of it: the failure names the component, the cluster and
//! the way out, and the next attempt finishes.

use std::net::TcpStream;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use freehold_protocol::order::health::{Asks, CheckHealth};
use freehold_protocol::order::{Artifact, ClusterOf, CopySecrets, DetectDrift, SecretCopy, Work};
use freehold_runner::kinds::execute;
use freehold_skips::have;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use super::START;
use crate::cluster::{self, Cluster, DEPLOYER};
use crate::fixture::{eventually, outputs, reason};
use crate::{helm_chart, kubernetes_job, kubernetes_manifest};

/// The message about the silent cluster, with its address and the reason of the system left out.
const SILENT: &str = "cluster `one` does not answer at ENDPOINT (WHY); check that it is up, and that the runner's \
                      subnets and security groups let the runner reach this endpoint; then start the job again";

/// The time without an API server: until this value is dropped, each of its processes is killed. The local cloud starts
/// the next one after a while.
struct Outage {
    is_over: Arc<AtomicBool>,
    killer: Option<JoinHandle<()>>,
}

impl Drop for Outage {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        if let Some(killer) = self.killer.take() {
            let _ = killer.join();
        }
    }
}

impl Cluster {
    /// Ends the API server, and returns when nothing listens at its address any more.
    async fn stop_answering(&self) -> Outage {
        let pid_file = self.kubeconfig.with_file_name("apiserver.pid");
        let is_over = Arc::new(AtomicBool::new(false));
        let ends = Arc::clone(&is_over);
        let killer = std::thread::spawn(move || {
            while !ends.load(Ordering::Relaxed) {
                kill_api_server(&pid_file);
                std::thread::sleep(Duration::from_millis(20));
            }
        });
        let outage = Outage { is_over, killer: Some(killer) };
        let config: Value = serde_json::from_slice(&std::fs::read(&self.kubeconfig).unwrap()).unwrap();
        let address = config["clusters"][0]["cluster"]["server"].as_str().unwrap().trim_start_matches("https://");
        eventually("the API server has ended", || TcpStream::connect(address).is_err()).await;
        outage
    }

    /// Ends the outage, and waits until the API server answers.
    async fn answer_again(&self, outage: Outage) {
        drop(outage);
        let deadline = tokio::time::Instant::now() + START;
        while self.kubectl(&["get", "--raw", "/readyz"]).is_err() {
            assert!(tokio::time::Instant::now() < deadline, "the API server is not there within {START:?}");
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }

    /// Waits until there is the Deployment of the chart, which Helm makes last.
    async fn until_deployment(&self) {
        let deadline = tokio::time::Instant::now() + START;
        while self.object("deployment", "globex-prod", "web").is_null() {
            assert!(tokio::time::Instant::now() < deadline, "there is no Deployment within {START:?}");
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }
}

/// Kills the process that the file names, if it is an API server and still runs.
fn kill_api_server(pid_file: &Path) {
    let id = std::fs::read_to_string(pid_file).ok().and_then(|text| text.trim().parse::<i32>().ok());
    let Some(id) = id else { return };
    let line = std::fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
    if String::from_utf8_lossy(&line).contains("kube-apiserver") {
        let _ = kill_process(Pid::from_raw(id).unwrap(), Signal::KILL);
    }
}

/// Returns the message without the address of the cluster and the reason of the system.
fn masked(message: &str) -> String {
    let (start, rest) = message.split_once("`https://localhost:").unwrap_or_else(|| panic!("{message}"));
    let (why, end) = rest.split_once("); ").unwrap_or_else(|| panic!("{message}"));
    assert!(why.contains("onnection refused"), "{message}");
    format!("{start}ENDPOINT (WHY); {end}")
}

/// A Deployment whose pods the fake kubelet leaves pending (`hold`) or reports as ready (`run`).
fn deployment(kubelet: &str) -> String {
    format!(
        "\
apiVersion: apps/v1
kind: Deployment
metadata: {{name: web}}
spec:
  selector: {{matchLabels: {{app: web}}}}
  template:
    metadata: {{labels: {{app: web, fake-kubelet: {kubelet}}}}}
    spec:
      containers: [{{name: web, image: \"example.invalid/web:1\"}}]
"
    )
}

#[tokio::test]
async fn a_manifest_whose_cluster_does_not_answer_fails_and_the_next_attempt_finishes() {
    let test = "cluster::silence::a_manifest_whose_cluster_does_not_answer_fails_and_the_next_attempt_finishes";
    if !have(&["bwrap"]) {
        return;
    }
    let Some(cloud) = cluster::with_clusters(test).await else { return };
    let cluster = Cluster::make(&cloud).await;
    let held = kubernetes_manifest::manifest(&cloud, &deployment("hold")).await;
    let ready = kubernetes_manifest::manifest(&cloud, &deployment("run")).await;
    let mut bench = Cluster::bench(&cloud, DEPLOYER, kubernetes_manifest::work(&held), &held).await;

    let outage = cluster.stop_answering().await;
    let before = reason(execute(&bench.job).await);
    cluster.answer_again(outage).await;
    bench.next_attempt();
    let (outcome, outage) = tokio::join!(execute(&bench.job), async {
        eventually("the job waits", || bench.job.log.take_chunk().contains("waiting for Deployment")).await;
        cluster.stop_answering().await
    });
    let in_the_middle = reason(outcome);
    cluster.answer_again(outage).await;
    bench.next_attempt();
    bench.job.grants = cloud.grants(&ready, 0, "");
    bench.change_order(|order| order.work = kubernetes_manifest::work(&ready));
    let done = outputs(execute(&bench.job).await);

    println!("{before:?}\n{in_the_middle:?}\n{}", bench.log());
    let expected = format!("component `network`: {SILENT}");
    assert_eq!((masked(&before.0), before.1), (expected.clone(), false));
    assert_eq!((masked(&in_the_middle.0), in_the_middle.1), (expected, true));
    assert_eq!(done["objects"], json!(["Deployment globex-prod/web"]));
}

#[tokio::test]
async fn a_chart_whose_cluster_does_not_answer_fails_and_the_next_attempt_finishes() {
    let test = "cluster::silence::a_chart_whose_cluster_does_not_answer_fails_and_the_next_attempt_finishes";
    if !have(&["bwrap"]) {
        return;
    }
    let Some(cloud) = cluster::with_clusters(test).await else { return };
    let cluster = Cluster::make(&cloud).await;
    let artifact = helm_chart::chart(&cloud).await;
    let held = helm_chart::work(&artifact, json!({ "kubelet": "hold" }));
    let mut bench = Cluster::bench(&cloud, DEPLOYER, held, &artifact).await;
    bench.change_order(|order| order.timeout_secs = 30);

    let outage = cluster.stop_answering().await;
    let before = reason(execute(&bench.job).await);
    cluster.answer_again(outage).await;
    bench.next_attempt();
    let (outcome, outage) = tokio::join!(execute(&bench.job), async {
        cluster.until_deployment().await;
        cluster.stop_answering().await
    });
    let in_the_middle = reason(outcome);
    cluster.answer_again(outage).await;
    bench.next_attempt();
    bench.change_order(|order| {
        order.work = helm_chart::work(&artifact, json!({}));
        // The controllers of the cluster may take a minute to reach the API server again.
        order.timeout_secs = 600;
    });
    let done = outputs(execute(&bench.job).await);

    println!("{before:?}\n{in_the_middle:?}\n{}", bench.log());
    assert_eq!((masked(&before.0), before.1), (format!("component `network`: {SILENT}"), false));
    let (of_helm, of_cluster) = in_the_middle.0.rsplit_once("; and ").expect("two reasons");
    assert!(of_helm.starts_with("component `network`: `helm upgrade` ended with exit code 1: "), "{of_helm}");
    assert_eq!((masked(of_cluster).as_str(), in_the_middle.1), (SILENT, true));
    // Whether Helm could record that the release failed depends on the moment at which the API server ended.
    assert!([1, 2].iter().any(|revision| done["revision"] == *revision), "{done:?}");
}

#[tokio::test]
async fn every_other_kind_of_job_names_the_cluster_that_does_not_answer() {
    let test = "cluster::silence::every_other_kind_of_job_names_the_cluster_that_does_not_answer";
    if !have(&["bwrap"]) {
        return;
    }
    let Some(cloud) = cluster::with_clusters(test).await else { return };
    let cluster = Cluster::make(&cloud).await;
    let manifest = kubernetes_manifest::manifest(&cloud, &deployment("run")).await;
    let (chart, image) = (helm_chart::chart(&cloud).await, kubernetes_job::image(&cloud).await);
    let [of_manifest, of_chart] = [kubernetes_manifest::work(&manifest), helm_chart::work(&chart, json!({}))];
    outputs(execute(&Cluster::bench(&cloud, DEPLOYER, of_manifest.clone(), &manifest).await.job).await);
    let drift = |what| Work::DetectDrift(DetectDrift { what: Box::new(what) });
    let copy = SecretCopy { secret: "password".into(), namespace: "web".into(), name: "password".into() };
    let (asks, component) = (Asks::Objects { cluster: ClusterOf::Sandbox }, "network".parse().unwrap());
    let fails = async |work: Work, artifact: &Artifact| {
        let mut bench = Cluster::bench(&cloud, DEPLOYER, work, artifact).await;
        bench.change_order(|order| {
            order.secrets = serde_json::from_value(json!([{ "name": "password" }])).unwrap();
            order.context["nuon"]["secrets"] = json!({ "password": "correct horse" });
        });
        reason(execute(&bench.job).await)
    };

    let outage = cluster.stop_answering().await;
    let failed = tokio::join!(
        fails(Work::KubernetesJob(kubernetes_job::work(&image, "", "")), &image),
        fails(drift(of_manifest), &manifest),
        fails(drift(of_chart), &chart),
        fails(
            Work::CopySecrets(CopySecrets { cluster: ClusterOf::Sandbox, copies: vec![copy], keeps_others: false }),
            &manifest
        ),
        fails(
            Work::Health(CheckHealth { component, asks, probes: Vec::new(), hold_secs: 0, limit_secs: 0, gate: true }),
            &manifest
        ),
    );
    drop(outage);

    let of_component = "component `network`";
    let of_health = "the health of component `network` is not known after 0 s";
    let owners = [of_component, of_component, of_component, "the copies of secrets", of_health];
    for ((message, partial), owner) in <[_; 5]>::from(failed).into_iter().zip(owners) {
        assert_eq!((masked(&message), partial), (format!("{owner}: {SILENT}"), false));
    }
}
