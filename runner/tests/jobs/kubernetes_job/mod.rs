//! Programs that run to their end as Kubernetes Jobs, with a real API server. A fake kubelet reports the end of their
//! pods, and no pod has a log.

mod ten_kills;

use std::time::{Duration, Instant};

use freehold_protocol::JobId;
use freehold_protocol::order::{
    Artifact, ClusterOf, JobImage, MANIFEST_ARTIFACT, MANIFEST_LAYER, Package, RemovePart, RunKubernetesJob, Work,
};
use freehold_protocol::report::Outcome;
use freehold_runner::job::StopReason;
use freehold_runner::kinds::execute;
use serde_json::{Value, json};

use crate::artifacts::of_layer;
use crate::cloud::Cloud;
use crate::cluster::{self, Cluster, DEPLOYER};
use crate::fixture::{Bench, outputs, reason};

const NAMESPACE: &str = "globex-prod";

pub(crate) async fn image(cloud: &Cloud) -> Artifact {
    let types = ("application/vnd.oci.image.layer.v1.tar", "application/vnd.example.image");
    of_layer(cloud, Package::Image, b"a program".to_vec(), types).await
}

/// A job whose fake kubelet does `wish` and leaves `message`.
pub(crate) fn work(artifact: &Artifact, wish: &str, message: &str) -> RunKubernetesJob {
    let env = [("FAKE_KUBELET", wish), ("FAKE_KUBELET_MESSAGE", message), ("INSTALL", "{{ .nuon.install.id }}")];
    RunKubernetesJob {
        component: "network".parse().unwrap(),
        artifact: artifact.clone(),
        cluster: ClusterOf::Sandbox,
        image: JobImage::Artifact,
        cmd: vec!["migrate".into()],
        args: vec!["--to".into(), "{{ .nuon.install.id }}".into()],
        env_vars: env.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect(),
    }
}

fn change(bench: &mut Bench, work: RunKubernetesJob) {
    bench.next_attempt();
    bench.change_order(|order| order.work = Work::KubernetesJob(work));
}

/// The next attempt is one at another job.
fn job(bench: &mut Bench, number: u32) {
    bench.change_order(|order| order.job = job_id(number));
}

fn job_id(number: u32) -> JobId {
    format!("job_{number:020x}").parse().unwrap()
}

/// Waits until a look into the cluster finds what it looks for. Each look is a program that blocks the test, so there is a
/// while between two of them, in which the job continues.
async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(120);
    while !holds() {
        assert!(Instant::now() < deadline, "{what}: not within 120 s");
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
}

/// Returns how many pods the controller has made for the Kubernetes Job, also those that are gone. Its event may come
/// later than the pod.
async fn pods_made(cluster: &Cluster, name: &str) -> u64 {
    let selector = format!("--field-selector=reason=SuccessfulCreate,involvedObject.name={name}");
    let counted = || {
        let found = cluster.kubectl(&["get", "events", "--namespace", NAMESPACE, &selector, "--output=json"]).unwrap();
        let found: Value = serde_json::from_str(&found).unwrap();
        found["items"].as_array().unwrap().iter().map(|event| event["count"].as_u64().unwrap_or(1)).sum::<u64>()
    };
    until("the event of a pod", || counted() > 0).await;
    counted()
}

#[tokio::test]
async fn a_program_runs_to_its_end_and_the_next_deploy_replaces_it() {
    let test = "kubernetes_job::a_program_runs_to_its_end_and_the_next_deploy_replaces_it";
    let Some(cloud) = cluster::with_clusters(test).await else { return };
    let cluster = Cluster::make(&cloud).await;
    let artifact = image(&cloud).await;
    let first_work = Work::KubernetesJob(work(&artifact, "", r#"{ "rows": 3 }"#));
    let mut bench = Cluster::bench(&cloud, DEPLOYER, first_work, &artifact).await;
    job(&mut bench, 1);

    let first = outputs(execute(&bench.job).await);
    let first_log = bench.log();
    let made = cluster.object("job", NAMESPACE, first["job"].as_str().unwrap());
    bench.next_attempt();
    let again = outputs(execute(&bench.job).await);
    let again_log = bench.log();
    let once = pods_made(&cluster, first["job"].as_str().unwrap()).await;
    // The image of another component, by the outputs that it has.
    let settings =
        of_layer(&cloud, Package::KubernetesManifest, b"{}".to_vec(), (MANIFEST_LAYER, MANIFEST_ARTIFACT)).await;
    let (repository, _) = first["image"].as_str().unwrap().split_once('@').unwrap();
    let of = |image_url: &str| JobImage::Component {
        image_url: image_url.into(),
        tag: format!("sha256-{}", &artifact.digest.hex()[..12]),
    };
    change(&mut bench, RunKubernetesJob { image: of(repository), ..work(&settings, "", "") });
    bench.job.grants = cloud.grants(&settings, 0, "");
    job(&mut bench, 2);
    let second = outputs(execute(&bench.job).await);
    let second_log = bench.log();
    let replaced = cluster.object("job", NAMESPACE, first["job"].as_str().unwrap());
    change(&mut bench, RunKubernetesJob { image: of("docker.io/library/tools"), ..work(&settings, "", "") });
    let foreign = reason(execute(&bench.job).await);
    let what = Box::new(Work::KubernetesJob(work(&settings, "", "")));
    bench.next_attempt();
    bench.change_order(|order| {
        order.work = Work::Remove(RemovePart { what, destroy_data: false, removes_policies: false })
    });
    outputs(execute(&bench.job).await);

    println!("{first_log}\n{again_log}\n{second_log}");
    assert_eq!(first["namespace"], NAMESPACE);
    assert_eq!(first["job"], "network-00000000000000000001-1");
    assert_eq!(first["message"], json!({ "rows": 3 }));
    assert!(first["image"].as_str().unwrap().ends_with(artifact.digest.as_str()), "{first}");
    let container = &made["spec"]["template"]["spec"]["containers"][0];
    assert_eq!((&container["image"], &container["args"]), (&first["image"], &json!(["--to", NAMESPACE])));
    for labelled in [&made, &made["spec"]["template"]] {
        assert_eq!(labelled["metadata"]["labels"]["freehold.dev/component"], "network");
    }
    assert_eq!((&made["spec"]["backoffLimit"], &made["status"]["succeeded"]), (&json!(0), &json!(1)));
    assert!(first_log.contains("1 to create, 0 to update, 0 to delete, 0 unchanged\n  + Job globex-prod/network-"));
    assert_eq!((again, once), (first.clone(), 1), "{again_log}");
    assert!(again_log.contains("was started by an earlier attempt"), "{again_log}");
    assert_eq!((&second["image"], second.get("message")), (&first["image"], None));
    assert!(second_log.contains("1 to create, 0 to update, 1 to delete, 0 unchanged\n"), "{second_log}");
    assert_eq!(replaced, Value::Null);
    assert!(
        foreign.0.starts_with("component `network` runs image `docker.io/library/tools:sha256-")
            && foreign.0.contains("which is not in the install registry; add the image to the app"),
        "{foreign:?}"
    );
    assert!(!foreign.1, "{foreign:?}");
    assert_eq!(cluster.object("job", NAMESPACE, second["job"].as_str().unwrap()), Value::Null);
}

#[tokio::test]
async fn a_failure_names_the_reason_of_the_pod_and_only_a_new_dispatch_runs_again() {
    let test = "kubernetes_job::a_failure_names_the_reason_of_the_pod_and_only_a_new_dispatch_runs_again";
    let Some(cloud) = cluster::with_clusters(test).await else { return };
    let cluster = Cluster::make(&cloud).await;
    let artifact = image(&cloud).await;
    let failing = Work::KubernetesJob(work(&artifact, "fail", "no such table"));
    let mut bench = Cluster::bench(&cloud, DEPLOYER, failing, &artifact).await;
    job(&mut bench, 1);
    let name = "network-00000000000000000001-1";

    let first = reason(execute(&bench.job).await);
    let first_log = bench.log();
    bench.next_attempt();
    let again = reason(execute(&bench.job).await);
    let once = pods_made(&cluster, name).await;
    change(&mut bench, work(&artifact, "", "done"));
    bench.job.fence.dispatch += 1;
    let retried = outputs(execute(&bench.job).await);

    println!("{first_log}");
    assert!(
        first.0.starts_with("component `network`: Job globex-prod/network-00000000000000000001-1 has failed: Job has")
            && first.0.contains("; pod `network-00000000000000000001-1-")
            && first.0.ends_with("`: exit code 1 (Error)"),
        "{first:?}"
    );
    assert!(first.1 && first_log.contains("\nno such table\n"), "{first:?}\n{first_log}");
    assert_eq!((again, once), (first, 1));
    assert_eq!((&retried["job"], &retried["message"]), (&json!("network-00000000000000000001-2"), &json!("done")));
    assert_eq!(cluster.object("job", NAMESPACE, name), Value::Null);
}

#[tokio::test]
async fn a_cancelled_job_leaves_no_program_and_a_runner_that_drains_leaves_it_running() {
    let test = "kubernetes_job::a_cancelled_job_leaves_no_program_and_a_runner_that_drains_leaves_it_running";
    let Some(cloud) = cluster::with_clusters(test).await else { return };
    let cluster = Cluster::make(&cloud).await;
    let artifact = image(&cloud).await;
    let held = Work::KubernetesJob(work(&artifact, "hold", ""));
    let mut bench = Cluster::bench(&cloud, DEPLOYER, held, &artifact).await;
    job(&mut bench, 1);
    let name = "network-00000000000000000001-1";
    let there = || cluster.object("job", NAMESPACE, name) != Value::Null;

    let drained = async {
        until("the Kubernetes Job", there).await;
        bench.stop.send(Some(StopReason::Draining)).unwrap();
    };
    let (outcome, ()) = tokio::join!(execute(&bench.job), drained);
    let after_drain = there();
    bench.next_attempt();
    let cancelled = async {
        until("the pod", || cluster.kubectl(&["get", "pods", "-n", NAMESPACE, "-oname"]).unwrap() != "").await;
        bench.stop.send(Some(StopReason::Cancelled)).unwrap();
    };
    let (ended, ()) = tokio::join!(execute(&bench.job), cancelled);

    assert!(matches!(outcome, Outcome::Failed { .. }), "{outcome:?}");
    assert!(after_drain);
    assert_eq!(ended, Outcome::Cancelled);
    until("the end of the Kubernetes Job and its pod", || {
        !there() && cluster.kubectl(&["get", "pods", "-n", NAMESPACE, "-oname"]).unwrap().is_empty()
    })
    .await;
}
