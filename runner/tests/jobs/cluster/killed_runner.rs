//! An attempt at a job in a runner of its own, which a test kills when the cluster has come to a chosen state.

use freehold_protocol::order::Order;
use freehold_protocol::report::Fence;
use freehold_runner::kinds::execute;
use rustix::process::{Pid, Signal, kill_process};
use tokio::process::{Child, Command};

use super::barrier::{Aim, Barrier};
use super::{Cluster, DEPLOYER};
use crate::cloud::Cloud;
use crate::fixture::{Bench, descendants, eventually, processes};

/// Does nothing unless its variable is set: it is the runner that other tests kill.
#[tokio::test]
async fn a_runner_in_a_cluster() {
    let Ok(attempt) = std::env::var("FREEHOLD_TEST_ATTEMPT_IN_A_CLUSTER") else { return };
    let (order, fence): (Order, Fence) = serde_json::from_str(&attempt).unwrap();
    let cloud = Cloud::joined().await;
    let mut bench = Bench::new(order.work.clone());
    bench.change_order(|own| *own = order);
    bench.job.fence = fence;
    Cluster::enter(&cloud, DEPLOYER, &mut bench).await;
    // Seen only when the runner is not killed, which a test that waits for something else wants to know.
    println!("{:?}\n{}", execute(&bench.job).await, bench.log());
}

/// Starts a runner with the next attempt of a bench.
pub(crate) fn start(bench: &mut Bench) -> Child {
    bench.next_attempt();
    let attempt = serde_json::to_string(&(&*bench.job.order, bench.job.fence)).unwrap();
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "cluster::killed_runner::a_runner_in_a_cluster", "--nocapture"])
        .env("FREEHOLD_TEST_ATTEMPT_IN_A_CLUSTER", attempt)
        .kill_on_drop(true)
        .spawn()
        .unwrap()
}

/// Kills a runner, and waits until its programs are gone.
pub(crate) async fn kill(mut runner: Child) {
    // Tests that run at the same time have programs of Helm too.
    let own = descendants(runner.id().expect("the runner has not ended"));
    runner.kill().await.unwrap();
    eventually("the runner's programs are gone", || {
        let left = processes("");
        !own.iter().any(|id| left.contains(id))
    })
    .await;
}

/// Starts the next attempt of a bench in a runner, and kills the runner when the barrier has closed and `holds` holds.
/// The change at which the barrier closed is not made.
pub(crate) async fn kill_at(barrier: &Barrier, aim: Aim, bench: &mut Bench, mut holds: impl FnMut() -> bool) {
    barrier.close_at(aim);
    let runner = start(bench);
    eventually(&format!("the runner comes to {aim:?}"), || barrier.is_closed() && holds()).await;
    kill(runner).await;
    barrier.open();
}

/// Stops a runner where it is: nothing but its end can follow.
pub(crate) async fn freeze(runner: &Child) {
    let id = runner.id().expect("the runner has not ended");
    kill_process(Pid::from_raw(i32::try_from(id).unwrap()).unwrap(), Signal::STOP).unwrap();
    eventually("the runner stands still", || threads(id).iter().all(|state| state.starts_with('T'))).await;
}

/// Returns the state of each thread of a process, such as `T` of one that is stopped.
fn threads(id: u32) -> Vec<String> {
    let all = std::fs::read_dir(format!("/proc/{id}/task")).unwrap();
    let state = |stat: String| Some(stat.rsplit_once(") ")?.1.to_owned());
    all.filter_map(|thread| state(std::fs::read_to_string(thread.ok()?.path().join("stat")).ok()?)).collect()
}
