//! Commands that wait for a runner that does not come, until the user stops them with ctrl-c.

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::json;

use super::remote_answers::tenant;
use super::{Cloud, HEADER, Mistake, command, place, row, sentence};

const fn wait(what: &'static str, args: &'static [&'static str]) -> Mistake {
    Mistake { what, environment: &[], args, code: 130, cloud: Cloud::Tenant(without_runners) }
}

const WAITS: [Mistake; 2] = [
    wait("build while no build runner runs", &["build", "web"]),
    wait("deploy while the customer's runner does not run", &["deploy", "globex"]),
];

/// Stops every command with ctrl-c when it has told what it waits for; returns the rows of the page's table.
pub(super) fn rows() -> String {
    let mut table = HEADER.to_owned();
    for one in &WAITS {
        let (waiting, error, code) = stopped(one);
        assert_eq!(code, Some(one.code), "{:?}: {error}", one.args);
        let message = format!("{}; after ctrl-c: {}", of_forty_seconds(&waiting), sentence(&error));
        table.push_str(&row(one, &message, &one.code.to_string()));
    }
    table
}

/// Runs a command until it has told what it waits for, and stops it. Returns that line, the error, and the exit code.
fn stopped(mistake: &Mistake) -> (String, String, Option<i32>) {
    let place = place();
    let (mut command, _) = command(place.path(), mistake);
    let mut running = command.stderr(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    let mut lines = BufReader::new(running.stderr.take().unwrap()).lines().map(Result::unwrap);
    // The lines end when the command does, so this does not wait for ever.
    let waiting = lines.find(|line| line.starts_with("waiting for ")).unwrap();
    let sent = Command::new("sh").args(["-c", &format!("kill -INT {}", running.id())]).status().unwrap();
    assert!(sent.success());
    let error = lines.find(|line| line.starts_with("error: ")).unwrap();
    (waiting, error, running.wait().unwrap().code())
}

/// Returns `line` with 40 seconds in the place of the time that has gone by, which differs from run to run.
fn of_forty_seconds(line: &str) -> String {
    let (head, rest) = line.rsplit_once(" for ").unwrap();
    let (_, after) = rest.split_once(" s (").unwrap();
    format!("{head} for 40 s ({after}")
}

/// Answers as a tenant whose build runner sent its last report three hours ago, and whose install has never had a runner.
fn without_runners(method: &str, path: &str, body: &str) -> (u16, String) {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis();
    let now = u64::try_from(now).unwrap();
    let digest = format!("sha256:{}", "0".repeat(64));
    let install = |name: &str, account: &str| json!({ "install": name, "account": account, "region": "eu-west-1", "state": "ready", "app": "web" });
    let workflow = |id: &str, install: &str, kind: &str, node: &str| {
        json!({
            "workflow": id, "install": install, "kind": kind, "state": "running", "created_at": now - 60_000,
            "nodes": [{ "name": node, "state": "active", "job": format!("job_{}", id.trim_start_matches("wf_")) }],
        })
    };
    let job = |job: &str, install: &str| {
        json!({
            "job": job, "install": install, "workflow": job.replace("job_", "wf_"), "node": "site", "mode": "provision",
            "state": "queued", "created_at": now - 40_000,
        })
    };
    let found = match (method, path) {
        ("POST", "/v1/apps/web/builds") => {
            json!({ "version": digest, "workflow": "wf_00000000000000000003", "builds": [] })
        }
        ("POST", "/v1/installs/globex/deploys") => json!({ "workflow": "wf_00000000000000000004" }),
        (_, "/v1/workflows/wf_00000000000000000003") => {
            workflow("wf_00000000000000000003", "build", "build-components", "site")
        }
        (_, "/v1/workflows/wf_00000000000000000004") => {
            workflow("wf_00000000000000000004", "globex", "deploy-components", "site")
        }
        (_, "/v1/jobs/job_00000000000000000003") => job("job_00000000000000000003", "build"),
        (_, "/v1/jobs/job_00000000000000000004") => job("job_00000000000000000004", "globex"),
        (_, "/v1/installs/build") => {
            let mut build = install("build", "111111111111");
            build["runner"] = json!({
                "key": "7300c0ae1429cd153252736a781b78f4", "version": "0.1.0", "slots": 4, "host": "i-1", "since": 1000,
                "last_contact": now - (3 * 60 + 10) * 60_000 - 30_000,
            });
            build
        }
        (_, "/v1/installs/globex") => install("globex", "222222222222"),
        _ => return tenant(method, path, body),
    };
    (200, found.to_string())
}
