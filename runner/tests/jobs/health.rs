//! The health of components, with a real API server, the real Helm, the local cloud and a server that answers probes.

use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};

use freehold_protocol::order::health::{Asks, CheckHealth, Probe, ProbeKind};
use freehold_protocol::order::{ClusterOf, Work};
use freehold_protocol::report::{Block, Outcome};
use freehold_runner::kinds::execute;
use freehold_skips::have;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpSocket, TcpStream};

use crate::cloud::Cloud;
use crate::cluster::{self, Cluster, DEPLOYER};
use crate::fixture::{Bench, eventually, outputs, processes, reason};
use crate::{helm_chart, kubernetes_manifest};

fn look(asks: Asks, probes: Vec<Probe>) -> CheckHealth {
    CheckHealth { component: "network".parse().unwrap(), asks, probes, hold_secs: 0, limit_secs: 0, gate: false }
}

/// Looks once and returns the health.
async fn found(bench: &mut Bench, work: CheckHealth) -> Value {
    bench.next_attempt();
    bench.change_order(|order| order.work = Work::Health(work));
    let found = outputs(execute(&bench.job).await)["health"].clone();
    println!("{}", bench.log());
    found
}

const DEPLOYMENT: &str = "\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 1
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web, fake-kubelet: run}}
    spec:
      containers: [{name: web, image: \"example.invalid/web:1\"}]
";

#[tokio::test]
async fn a_manifest_is_as_healthy_as_its_objects() {
    let test = "health::a_manifest_is_as_healthy_as_its_objects";
    if !have(&["bwrap"]) {
        return;
    }
    let Some(cloud) = cluster::with_clusters(test).await else { return };
    let cluster = Cluster::make(&cloud).await;
    let artifact = kubernetes_manifest::manifest(&cloud, DEPLOYMENT).await;
    let work = kubernetes_manifest::work(&artifact);
    let mut bench = Cluster::bench(&cloud, DEPLOYER, work, &artifact).await;
    let asks = || look(Asks::Objects { cluster: ClusterOf::Sandbox }, Vec::new());
    let never = found(&mut bench, asks()).await;
    bench.next_attempt();
    bench.change_order(|order| order.work = kubernetes_manifest::work(&artifact));
    outputs(execute(&bench.job).await);

    let well = found(&mut bench, asks()).await;
    cluster.kubectl(&["delete", "deployment", "web", "--namespace=globex-prod"]).unwrap();
    let gone = found(&mut bench, asks()).await;

    assert_eq!(never, json!({ "state": "unhealthy", "reason": "no object of the component is in the cluster" }));
    assert_eq!(well, json!({ "state": "healthy" }));
    assert_eq!(gone, json!({ "state": "unhealthy", "reason": "Deployment globex-prod/web is gone" }));
}

#[tokio::test]
async fn a_chart_is_as_healthy_as_the_objects_of_its_release() {
    let test = "health::a_chart_is_as_healthy_as_the_objects_of_its_release";
    if !have(&["bwrap"]) {
        return;
    }
    let Some(cloud) = cluster::with_clusters(test).await else { return };
    let cluster = Cluster::make(&cloud).await;
    let artifact = helm_chart::chart(&cloud).await;
    let work = helm_chart::work(&artifact, json!({}));
    let mut bench = Cluster::bench(&cloud, DEPLOYER, work, &artifact).await;
    outputs(execute(&bench.job).await);
    let asks = |release: &str| {
        let (cluster, namespace) = (ClusterOf::Sandbox, "{{ .nuon.install.id }}".to_owned());
        let storage_driver = "configmap".to_owned();
        look(Asks::Release { cluster, release: release.to_owned(), namespace, storage_driver }, Vec::new())
    };

    let well = found(&mut bench, asks("web")).await;
    cluster.kubectl(&["delete", "configmap", "settings", "--namespace=globex-prod"]).unwrap();
    let changed = found(&mut bench, asks("web")).await;
    let absent = found(&mut bench, asks("other")).await;

    assert_eq!(well, json!({ "state": "healthy" }));
    assert_eq!(changed, json!({ "state": "unhealthy", "reason": "ConfigMap globex-prod/settings is gone" }));
    assert_eq!(absent["reason"], "there is no release `other` in namespace `globex-prod`");
}

#[tokio::test]
async fn a_stack_is_healthy_while_its_last_change_succeeded() {
    let Some(cloud) = Cloud::here("health::a_stack_is_healthy_while_its_last_change_succeeded").await else { return };
    let mut bench = Bench::new(Work::Leftovers(Default::default()));
    let name = "acme--globex-prod--queue";
    let asks = || look(Asks::Stack { stack_name: name.to_owned() }, Vec::new());
    let absent = found(&mut bench, asks()).await;
    let client = aws_sdk_cloudformation::Client::new(&cloud.customer);
    let template = "Resources:\n  Queue: {Type: 'AWS::SQS::Queue'}\n";
    client.create_stack().stack_name(name).template_body(template).send().await.unwrap();

    // The look waits until the stack is made.
    let well = found(&mut bench, CheckHealth { limit_secs: 30, ..asks() }).await;
    let stranger = found(&mut bench, look(Asks::Stack { stack_name: "of-others".to_owned() }, Vec::new())).await;

    assert_eq!(absent["reason"], format!("stack `{name}` does not exist"));
    assert_eq!(well, json!({ "state": "healthy" }));
    assert_eq!(stranger["state"], "unknown", "{stranger}");
}

/// A server that answers each request with the status that it is told.
async fn server() -> (String, Arc<AtomicU16>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (at, status) = (listener.local_addr().unwrap(), Arc::new(AtomicU16::new(200)));
    let says = Arc::clone(&status);
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let says = Arc::clone(&says);
            tokio::spawn(async move {
                let mut head = [0; 4096];
                if stream.read(&mut head).await.is_ok_and(|read| read > 0) {
                    let answer = format!("HTTP/1.1 {} X\r\ncontent-length: 0\r\n\r\n", says.load(Ordering::Relaxed));
                    let _ = stream.write_all(answer.as_bytes()).await;
                }
            });
        }
    });
    (at.to_string(), status)
}

fn probe(kind: ProbeKind) -> Probe {
    Probe { name: "up".to_owned(), kind }
}

#[tokio::test]
async fn probes_ask_an_address_and_open_a_connection() {
    let Some(_cloud) = Cloud::here("health::probes_ask_an_address_and_open_a_connection").await else { return };
    let (at, status) = server().await;
    let mut bench = Bench::new(Work::Leftovers(Default::default()));
    let http = || look(Asks::Nothing, vec![probe(ProbeKind::Http { url: format!("http://{at}/up") })]);
    let tcp = |at: &str| look(Asks::Nothing, vec![probe(ProbeKind::Tcp { url: at.to_owned() })]);

    let good = found(&mut bench, http()).await;
    status.store(503, Ordering::Relaxed);
    let bad = found(&mut bench, http()).await;
    let open = found(&mut bench, tcp(&at)).await;
    let closed = found(&mut bench, tcp("127.0.0.1:1")).await;
    let nothing = found(&mut bench, look(Asks::Nothing, Vec::new())).await;

    assert_eq!(
        (&good["state"], &open["state"], &nothing["state"]),
        (&json!("healthy"), &json!("healthy"), &json!("unknown"))
    );
    assert_eq!(bad["reason"], "probe `up`: the answer is 503 Service Unavailable");
    assert_eq!(closed["state"], "unhealthy", "{closed}");
}

#[tokio::test]
async fn a_probe_reaches_no_host_that_the_contract_does_not_name() {
    let Some(_cloud) = Cloud::here("health::a_probe_reaches_no_host_that_the_contract_does_not_name").await else {
        return;
    };
    let mut bench = Bench::new(Work::Leftovers(Default::default()));
    let http = |url: &str| ProbeKind::Http { url: url.to_owned() };
    let tcp = |url: &str| ProbeKind::Tcp { url: url.to_owned() };
    // Names and addresses, so that the rules decide and not what a name resolves to.
    let probes = [
        http("http://exfiltrate.example/?data=1"),
        tcp("exfiltrate.example:443"),
        http("http://10.0.0.5:8080/"),
        tcp("10.0.0.5:22"),
        tcp("198.51.100.7:443"),
        tcp("iam.amazonaws.com:443"),
    ];

    for kind in probes {
        let what = format!("{kind:?}");
        let found = found(&mut bench, look(Asks::Nothing, vec![probe(kind)])).await;

        let reason = found["reason"].as_str().unwrap_or_default();
        assert!(reason.starts_with("probe `up`: the connection was refused: "), "{what}: {found}");
        assert!(reason.contains("is not among the hosts of the accepted contract"), "{what}: {found}");
    }
}

#[tokio::test]
async fn a_reason_has_no_part_of_a_secret_and_no_more_of_a_name_than_fits() {
    let secret = "0f3a9c5b7d1e8a264b6c";
    let mut bench = Bench::new(Work::Leftovers(Default::default()));
    bench.job.log.add_secret(secret);
    let kind = ProbeKind::Tcp { url: format!("{secret}.example:1") };
    let probes = vec![Probe { name: format!("a\n{}", "n".repeat(500)), kind }];
    bench.change_order(|order| order.work = Work::Health(look(Asks::Nothing, probes)));

    let found = outputs(execute(&bench.job).await)["health"].clone();

    let reason = found["reason"].as_str().unwrap();
    assert_eq!(found["state"], "unhealthy", "{found}");
    assert!(reason.starts_with(&format!("probe `a {}`: the connection was refused: ", "n".repeat(62))), "{reason}");
    assert!(!reason.contains(&secret[..4]), "{reason}");
}

#[tokio::test]
async fn a_port_that_answers_nothing_is_not_healthy() {
    let Some(_cloud) = Cloud::here("health::a_port_that_answers_nothing_is_not_healthy").await else { return };
    // A full queue of connections drops further ones, as a firewall does.
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let listener = socket.listen(0).unwrap();
    let at = listener.local_addr().unwrap();
    let mut waiting = Vec::new();
    while let Ok(stream) = tokio::time::timeout(std::time::Duration::from_millis(300), TcpStream::connect(at)).await {
        waiting.push(stream.unwrap());
    }
    let mut bench = Bench::new(Work::Leftovers(Default::default()));

    let found = found(&mut bench, look(Asks::Nothing, vec![probe(ProbeKind::Tcp { url: at.to_string() })])).await;

    assert_eq!(found, json!({ "state": "unhealthy", "reason": "probe `up`: no answer within 5 s" }));
}

/// A secret of the jobs that run a command.
const SECRET: &str = "0f3a9c5b7d1e8a264b6c";

fn exec(command: &[&str]) -> Probe {
    probe(ProbeKind::Exec { command: command.iter().map(|word| (*word).to_owned()).collect() })
}

/// Looks once by a script, and returns the health and the log.
async fn asked(bench: &mut Bench, script: &str) -> (Value, String) {
    bench.next_attempt();
    bench.job.log.add_secret(SECRET);
    let work = look(Asks::Nothing, vec![exec(&["sh", "-c", script])]);
    bench.change_order(|order| order.work = Work::Health(work));
    let health = outputs(execute(&bench.job).await)["health"].clone();
    (health, bench.log())
}

#[tokio::test]
async fn the_exit_code_of_a_command_is_the_answer_and_its_output_is_in_the_log_alone() {
    if !have(&["bwrap"]) {
        return;
    }
    let mut bench = Bench::new(Work::Leftovers(Default::default()));

    let (well, at) = asked(&mut bench, "test -n \"$AWS_REGION\" && echo at {{ .nuon.install.id }}").await;
    let (sick, words) = asked(&mut bench, "echo bad words >&2; exit 3").await;
    let (silent, secret) = asked(&mut bench, &format!("echo it is {SECRET}; exit 4")).await;

    assert_eq!(well, json!({ "state": "healthy" }));
    assert!(at.contains("probe `up` | at globex-prod\n"), "{at}");
    assert_eq!(sick, json!({ "state": "unhealthy", "reason": "probe `up`: the command ended with exit code 3" }));
    assert!(words.contains("probe `up` | bad words\n"), "{words}");
    assert_eq!(silent["reason"], "probe `up`: the command ended with exit code 4");
    assert!(secret.contains("probe `up` | it is ") && !secret.contains(SECRET), "{secret}");
}

#[tokio::test]
async fn a_command_that_does_not_end_is_ended_with_all_that_it_started() {
    if !have(&["bwrap"]) {
        return;
    }
    let mut bench = Bench::new(Work::Leftovers(Default::default()));

    let (found, log) = asked(&mut bench, "sleep 61234 & echo begins; sleep 61234").await;

    let reason = "probe `up`: the command did not end within 10 s";
    assert_eq!(found, json!({ "state": "unhealthy", "reason": reason }));
    assert!(log.contains("probe `up` | begins\n"), "{log}");
    eventually("the processes of the probe end", || processes("sleep\u{0}61234").is_empty()).await;
}

#[tokio::test]
async fn commands_run_one_after_another() {
    if !have(&["bwrap"]) {
        return;
    }
    let mut bench = Bench::new(Work::Leftovers(Default::default()));
    let script = "mkdir turn || exit 9; sleep 0.3; rmdir turn";
    let probes = vec![exec(&["sh", "-c", script]), exec(&["sh", "-c", script]), exec(&["sh", "-c", script])];

    assert_eq!(found(&mut bench, look(Asks::Nothing, probes)).await, json!({ "state": "healthy" }));
}

#[tokio::test]
async fn a_runner_without_boxes_runs_no_command() {
    let mut bench = Bench::new(Work::Leftovers(Default::default())).plain();
    let mark = bench.job.workspace.join("mark");
    let probes = vec![exec(&["touch", &mark.display().to_string()])];
    bench.change_order(|order| order.work = Work::Health(look(Asks::Nothing, probes)));

    let (why, partial) = reason(execute(&bench.job).await);

    assert!(why.contains("without a box its command could do more than read; set `sandbox = \"bubblewrap\"`"), "{why}");
    assert!(!partial && !mark.exists());
}

#[tokio::test]
async fn a_command_whose_program_does_not_exist_fails_the_job_at_once() {
    let mut bench = Bench::new(Work::Leftovers(Default::default()));
    let work = CheckHealth { limit_secs: 600, ..look(Asks::Nothing, vec![exec(&["freehold-none", "-x"])]) };
    bench.change_order(|order| order.work = Work::Health(work));

    let (why, partial) = reason(execute(&bench.job).await);

    assert!(why.starts_with("probe `up`: there is no program `freehold-none` on this runner's `PATH`"), "{why}");
    assert!(!partial);
}

#[tokio::test]
async fn a_gate_waits_until_the_component_has_stayed_healthy_and_closes_when_its_time_is_over() {
    let test = "health::a_gate_waits_until_the_component_has_stayed_healthy_and_closes_when_its_time_is_over";
    let Some(_cloud) = Cloud::here(test).await else { return };
    let (at, status) = server().await;
    let mut bench = Bench::new(Work::Leftovers(Default::default()));
    let probes = vec![probe(ProbeKind::Http { url: format!("http://{at}/up") })];
    let gate = CheckHealth { hold_secs: 1, limit_secs: 30, gate: true, ..look(Asks::Nothing, probes) };

    let began = std::time::Instant::now();
    let well = found(&mut bench, gate.clone()).await;
    let took = began.elapsed();
    status.store(500, Ordering::Relaxed);
    bench.next_attempt();
    bench.change_order(|order| order.work = Work::Health(CheckHealth { limit_secs: 2, ..gate }));
    let closed = execute(&bench.job).await;

    assert_eq!(well, json!({ "state": "healthy" }));
    assert!(took >= std::time::Duration::from_secs(1), "{took:?}");
    let Outcome::Blocked { block: Block::Unhealthy, reason } = closed else { panic!("{closed:?}") };
    assert_eq!(
        reason,
        "component `network` is not healthy after 2 s: probe `up`: the answer is 500 Internal Server Error"
    );
}
