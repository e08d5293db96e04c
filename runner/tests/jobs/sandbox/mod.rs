//! What a job can see and do, and that it ends when it must.

mod groups;
mod image_walls;
mod killed_runner;

use std::collections::BTreeMap;
use std::path::Path;

use freehold_protocol::order::{RunAction, Work};
use freehold_runner::job::StopReason;
use freehold_runner::sandbox::{self, Ended, JobUser, Program};
use freehold_skips::have;

use crate::fixture::{Bench, eventually, processes};

pub(crate) fn bench() -> Bench {
    let (action, steps) = ("check".parse().unwrap(), Vec::new());
    Bench::new(Work::Action(RunAction {
        action,
        steps,
        directories: Vec::new(),
        env_vars: BTreeMap::new(),
        idempotent: false,
        cluster: None,
        image: String::new(),
    }))
}

pub(crate) fn shell<'a>(bench: &Bench, script: &str) -> Program<'a> {
    let mut environment = sandbox::base_environment(&bench.job);
    environment.insert("GIVEN".into(), "yes".into());
    Program::new(Path::new("/bin/sh"), vec!["-c".into(), script.into()], environment)
}

pub(crate) async fn run(bench: &Bench, script: &str) -> Ended {
    sandbox::run(&bench.job, shell(bench, script)).await.unwrap()
}

pub(crate) fn code(ended: Ended) -> i32 {
    match ended {
        Ended::Code { code, .. } => code,
        Ended::Stopped(reason) => panic!("{reason:?}"),
    }
}

#[tokio::test]
async fn a_job_sees_its_workspace_and_not_the_runner() {
    if !have(&["bwrap"]) {
        return;
    }
    let bench = bench();
    let secret = bench.directory.path().join("secret");
    std::fs::write(&secret, "x").unwrap();

    let script = format!(
        "pwd; echo kept > file; ls {0} {1} 2>&1; touch /usr/x /etc/x /x 2>/dev/null && echo wrote; \
         touch /tmp/x && echo tmp; ls -d /root /home 2>/dev/null; echo $GIVEN $USER; ls /proc | grep -c '^[0-9]'; exit 7",
        secret.display(),
        bench.directory.path().display(),
    );
    let ended = run(&bench, &script).await;

    let log = bench.log();
    assert_eq!(code(ended), 7, "{log}");
    assert!(log.starts_with("/workspace\n"), "{log}");
    assert!(log.contains("yes\n") && log.contains("tmp\n"), "{log}");
    assert!(!log.contains("wrote") && !log.contains("/root") && !log.contains("/home"), "{log}");
    assert_eq!(log.matches("No such file").count(), 2, "{log}");
    let own_processes: u32 = log.lines().last().unwrap().parse().unwrap();
    assert!(own_processes <= 5, "{log}");
    assert_eq!(std::fs::read_to_string(bench.job.workspace.join("file")).unwrap(), "kept\n");
}

#[tokio::test]
async fn a_host_with_a_port_has_an_address_in_the_box() {
    if !have(&["bwrap", "bash"]) {
        return;
    }
    let bench = bench();
    let script = "for at in db.example/5432 mail.example/25; do (exec 3<>/dev/tcp/$at) && echo $at; done; echo done";
    let mut program = shell(&bench, script);
    program.executable = Path::new("/bin/bash");
    program.hosts = vec!["db.example:5432".into(), "mail.example:25".into()];

    let ended = sandbox::run(&bench.job, program).await.unwrap();

    let log = bench.log();
    assert_eq!(code(ended), 0, "{log}");
    assert!(log.contains("db.example/5432\n") && log.contains("done\n"), "{log}");
    // Ports below 1024 need a capability, which the first process has where it may change to another user.
    let can_have_low_ports = JobUser::find() != JobUser::Same;
    assert_eq!(log.contains("mail.example/25\n"), can_have_low_ports, "{log}");
    assert_eq!(log.contains("programs reach mail.example:25 only through the proxy"), !can_have_low_ports, "{log}");
}

#[tokio::test]
async fn a_stop_asks_first() {
    for bench in [bench(), bench().plain()] {
        if !have(&["bwrap"]) {
            return;
        }
        let stop = bench.stop.clone();
        let started = bench.job.workspace.join("started");
        let script = "trap 'echo asked; exit 0' TERM; touch started; while :; do read x < /dev/zero & wait; done";

        let (ended, ()) = tokio::join!(run(&bench, script), async {
            eventually("the program starts", || started.exists()).await;
            stop.send(Some(StopReason::Cancelled)).unwrap();
        });

        assert_eq!(ended, Ended::Stopped(StopReason::Cancelled));
        assert!(bench.log().contains("asked"), "{:?}", bench.job.config.sandbox);
    }
}

#[tokio::test]
async fn a_program_that_does_not_listen_is_killed_with_all_it_started() {
    for (bench, mark) in [(bench(), "31536001"), (bench().plain(), "31536002")] {
        if !have(&["bwrap"]) {
            return;
        }
        let stop = bench.stop.clone();
        let script = format!("trap '' TERM; sleep {mark} & sleep {mark}");

        let (ended, ()) = tokio::join!(run(&bench, &script), async {
            eventually("both programs start", || processes(&format!("sleep\0{mark}")).len() == 2).await;
            stop.send(Some(StopReason::LeaseLost)).unwrap();
        });

        assert_eq!(ended, Ended::Stopped(StopReason::LeaseLost));
        eventually("all are gone", || processes(&format!("sleep\0{mark}")).is_empty()).await;
    }
}

#[tokio::test]
async fn what_a_program_leaves_behind_ends_with_it() {
    for (bench, mark) in [(bench(), "31536003"), (bench().plain(), "31536004")] {
        if !have(&["bwrap"]) {
            return;
        }

        let ended = run(&bench, &format!("sleep {mark} & echo done")).await;

        assert_eq!(code(ended), 0);
        assert!(bench.log().contains("done"));
        eventually("it is gone", || processes(&format!("sleep\0{mark}")).is_empty()).await;
    }
}

#[tokio::test]
async fn the_environment_of_a_job_is_in_no_command_line() {
    if !have(&["bwrap"]) {
        return;
    }
    let bench = bench();
    let stop = bench.stop.clone();
    let mut program = shell(&bench, "sleep 31536005");
    program.environment.insert("TOKEN".into(), "staple-of-the-sandbox".into());

    let (_, seen) = tokio::join!(sandbox::run(&bench.job, program), async {
        eventually("it starts", || processes("sleep\u{0}31536005").len() == 1).await;
        let seen = processes("staple-of-the-sandbox");
        stop.send(Some(StopReason::Cancelled)).unwrap();
        seen
    });

    assert!(seen.is_empty());
}

/// Does nothing unless its variables are set: it is the runner that the next test kills.
#[tokio::test]
async fn a_runner_with_a_long_job() {
    if std::env::var_os("FREEHOLD_TEST_LONG_JOB").is_some() {
        run(&bench(), "sleep 31536006").await;
    }
}

#[tokio::test]
async fn a_job_dies_with_a_runner_that_is_killed() {
    if !have(&["bwrap"]) {
        return;
    }
    let mut runner = tokio::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "sandbox::a_runner_with_a_long_job"])
        .env("FREEHOLD_TEST_LONG_JOB", "1")
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    eventually("the job starts", || processes("sleep\u{0}31536006").len() == 1).await;

    runner.kill().await.unwrap();

    eventually("the job is gone", || processes("31536006").is_empty()).await;
}
