//! A runner that is killed while it starts a program as a Kubernetes Job, or waits for its end, in chosen states of the
//! cluster.

use freehold_protocol::order::{RemovePart, Work};
use freehold_runner::kinds::execute;
use serde_json::{Value, json};
use tokio::process::Child;

use super::{NAMESPACE, image, job_id, pods_made, until, work};
use crate::cluster::barrier::{Aim, Barrier};
use crate::cluster::killed_runner::{freeze, kill, start};
use crate::cluster::{self, Cluster, DEPLOYER};
use crate::fixture::{Bench, eventually, outputs, reason};
use crate::killed_runner::bring;

/// The way in which the cluster comes to the state in which the runner is killed.
#[derive(Debug, Clone, Copy)]
enum Way {
    /// The barrier closes at the first change whose name begins so.
    Closed(&'static str),
    /// A finalizer keeps the earlier Kubernetes Job, which the runner deletes.
    Kept,
    /// A finalizer keeps the earlier Kubernetes Job until the runner stands still. Then nothing keeps it.
    Gone,
    /// The fake kubelet holds the pod.
    Held,
    /// The fake kubelet holds the pod until the runner stands still. Then the pod ends as this value of its label says.
    Ended(&'static str),
}

/// The points of the test, each with the state of the cluster: the Kubernetes Job of the deploy before, the one of the
/// attempt, and the number of its pods. The first deploy finds no namespace. The last one is a retry of the deploy
/// before, whose program has failed.
const POINTS: [(Way, &str); 10] = [
    (Way::Closed("CREATE Namespace "), "earlier: absent, own: absent, pods: 0"),
    (Way::Closed("dry run of CREATE Job "), "earlier: ended, own: absent, pods: 0"),
    (Way::Closed("DELETE Job "), "earlier: ended, own: absent, pods: 0"),
    (Way::Kept, "earlier: deleted, own: absent, pods: 0"),
    (Way::Closed("CREATE Job "), "earlier: absent, own: absent, pods: 0"),
    (Way::Closed("CREATE Pod "), "earlier: absent, own: runs, pods: 0"),
    (Way::Held, "earlier: absent, own: runs, pods: 1"),
    (Way::Ended("run"), "earlier: absent, own: ended, pods: 1"),
    (Way::Ended("fail"), "earlier: absent, own: ended, pods: 1"),
    (Way::Held, "earlier: absent, own: runs, pods: 1"),
];

/// A cluster, and the names of two Kubernetes Jobs in it.
struct Place<'a> {
    cluster: &'a Cluster,
    barrier: &'a Barrier,
    earlier: &'a str,
    own: &'a str,
}

impl Place<'_> {
    fn state(&self) -> String {
        let of = |name: &str| {
            let object = self.cluster.object("job", NAMESPACE, name);
            let has = |path: &str| object.pointer(path).is_some();
            match (has("/metadata/deletionTimestamp"), has("/status/conditions"), object.is_null()) {
                (_, _, true) => "absent",
                (true, _, _) => "deleted",
                (_, true, _) => "ended",
                (false, false, false) => "runs",
            }
        };
        let pods = self.cluster.objects("pods", NAMESPACE);
        let pods = pods.iter().filter(|pod| pod["metadata"]["labels"]["job-name"] == *self.own).count();
        format!("earlier: {}, own: {}, pods: {pods}", of(self.earlier), of(self.own))
    }

    /// Lets the cluster keep the earlier Kubernetes Job, or no longer keep it.
    fn set_finalizers(&self, finalizers: &Value) {
        let patch = format!("--patch={}", json!({ "metadata": { "finalizers": finalizers } }));
        self.cluster.kubectl(&["patch", "job", self.earlier, "-n", NAMESPACE, "--type=merge", &patch]).unwrap();
    }

    /// Ends the pods that the fake kubelet holds, as this value of their label says.
    fn end_pods(&self, end: &str) {
        let (pods, label) = (format!("--selector=job-name={}", self.own), format!("fake-kubelet={end}"));
        self.cluster.kubectl(&["label", "pods", "-n", NAMESPACE, &pods, &label]).unwrap();
    }

    /// Starts the next attempt in a runner, and returns the runner when the cluster is in the state `expected`.
    async fn start_until(&self, way: Way, bench: &mut Bench, expected: &str) -> Child {
        match way {
            Way::Closed(change) => self.barrier.close_at(Aim::First(change)),
            Way::Kept | Way::Gone => self.set_finalizers(&json!(["example.org/keep"])),
            Way::Held | Way::Ended(_) => {}
        }
        let runner = start(bench);
        if let Way::Ended(end) = way {
            eventually("the pod is held", || self.state().ends_with("own: runs, pods: 1")).await;
            freeze(&runner).await;
            self.end_pods(end);
        }
        if let Way::Gone = way {
            eventually("the Kubernetes Job is deleted", || self.state().starts_with("earlier: deleted")).await;
            freeze(&runner).await;
            self.set_finalizers(&Value::Null);
        }
        let is_there = || !matches!(way, Way::Closed(_)) || self.barrier.is_closed();
        eventually(&format!("{way:?}, {expected}"), || is_there() && self.state() == expected).await;
        runner
    }

    /// Ends what has kept the cluster in its state.
    fn release(&self, way: Way) {
        match way {
            Way::Closed(_) => self.barrier.open(),
            Way::Kept => self.set_finalizers(&Value::Null),
            Way::Held => self.end_pods("run"),
            Way::Gone | Way::Ended(_) => {}
        }
    }
}

#[tokio::test]
async fn a_program_runs_once_wherever_its_runner_was_killed() {
    let test = "kubernetes_job::ten_kills::a_program_runs_once_wherever_its_runner_was_killed";
    let Some(cloud) = cluster::with_clusters(test).await else { return };
    let cluster = Cluster::make(&cloud).await;
    let barrier = Barrier::before(&cluster).await;
    let artifact = image(&cloud).await;
    bring(&cloud, &artifact).await;
    let first = Work::KubernetesJob(work(&artifact, "", ""));
    let mut bench = Cluster::bench(&cloud, DEPLOYER, first, &artifact).await;
    let mut earlier = "none".to_owned();

    for (point, (way, expected)) in (0..).zip(POINTS) {
        let (number, dispatch) = if point == 9 { (8, 2) } else { (point, 1) };
        let own = format!("network-{number:020x}-{dispatch}");
        let wish = if matches!(way, Way::Held | Way::Ended(_)) { "hold" } else { "" };
        bench.change_order(|order| {
            order.job = job_id(number);
            order.work = Work::KubernetesJob(work(&artifact, wish, ""));
        });
        bench.job.fence.dispatch = dispatch;
        let place = Place { cluster: &cluster, barrier: &barrier, earlier: &earlier, own: &own };
        let runner = place.start_until(way, &mut bench, expected).await;
        kill(runner).await;
        place.release(way);

        bench.next_attempt();
        let ended = execute(&bench.job).await;

        println!("point {point}: {expected}\n{}", bench.log());
        match way {
            Way::Ended("fail") => assert!(reason(ended).0.contains(&format!("{own} has failed: ")), "point {point}"),
            _ => assert_eq!(outputs(ended)["job"], own.as_str(), "point {point}"),
        }
        assert_eq!(pods_made(&cluster, &own).await, 1, "point {point}");
        let all = cluster.kubectl(&["get", "jobs", "-n", NAMESPACE, "-oname"]).unwrap();
        assert_eq!(all, format!("job.batch/{own}"), "point {point}");
        earlier = own;
    }
}

#[tokio::test]
async fn a_removal_of_a_program_is_taken_up_wherever_it_was_killed() {
    let test = "kubernetes_job::ten_kills::a_removal_of_a_program_is_taken_up_wherever_it_was_killed";
    let Some(cloud) = cluster::with_clusters(test).await else { return };
    let cluster = Cluster::make(&cloud).await;
    let barrier = Barrier::before(&cluster).await;
    let artifact = image(&cloud).await;
    let program = Work::KubernetesJob(work(&artifact, "", ""));
    let removal =
        Work::Remove(RemovePart { what: Box::new(program.clone()), destroy_data: false, removes_policies: false });
    let mut bench = Cluster::bench(&cloud, DEPLOYER, program.clone(), &artifact).await;

    for (number, (way, expected)) in (0..).zip([
        (Way::Closed("DELETE Job "), "earlier: ended, own: absent, pods: 0"),
        (Way::Kept, "earlier: deleted, own: absent, pods: 0"),
        (Way::Gone, "earlier: absent, own: absent, pods: 0"),
    ]) {
        bench.next_attempt();
        bench.change_order(|order| {
            order.job = job_id(number);
            order.work = program.clone();
        });
        let made = outputs(execute(&bench.job).await);
        bench.change_order(|order| order.work = removal.clone());
        let earlier = made["job"].as_str().unwrap();
        let place = Place { cluster: &cluster, barrier: &barrier, earlier, own: "none" };
        let runner = place.start_until(way, &mut bench, expected).await;
        kill(runner).await;
        place.release(way);

        bench.next_attempt();
        let outcome = execute(&bench.job).await;

        println!("{way:?}\n{}", bench.log());
        outputs(outcome);
        let left = || cluster.kubectl(&["get", "jobs,pods", "-n", NAMESPACE, "-oname"]).unwrap();
        until("the end of the Kubernetes Job and its pod", || left().is_empty()).await;
        let inventory = cloud.object("kubernetes/network.inventory.json").await.unwrap();
        assert_eq!(serde_json::from_slice::<Value>(&inventory).unwrap()["objects"], json!([]), "{way:?}");
    }
}
