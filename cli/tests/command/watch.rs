//! `freehold` while it waits for a runner, when a workflow fails, and when a name has a typo: against an API with prepared
//! answers.

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Command, Stdio};
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use crate::support::tenant_api;

const DIGEST: &str = "sha256:05b3abf2579a5eb66403cd78be557fd860633a1fe2103c7642030defe32c657f";
const WORKFLOW: &str = "wf_00000000000000000001";
const JOB: &str = "job_00000000000000000001";

fn now() -> u64 {
    u64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis()).unwrap()
}

fn runner(last_contact: u64) -> Value {
    json!({
        "key": "7300c0ae1429cd153252736a781b78f4", "version": "0.1.0", "slots": 4, "host": "i-1", "since": 1000,
        "last_contact": last_contact,
    })
}

fn install(name: &str, runner: &Value) -> Value {
    json!({
        "install": name, "account": "222222222222", "region": "eu-west-1", "state": "ready", "runner": runner,
    })
}

fn workflow(state: &str, nodes: &Value, reason: &str) -> Value {
    json!({
        "workflow": WORKFLOW, "install": "globex", "kind": "deploy-components", "state": state, "reason": reason,
        "created_at": now() - 60_000, "ended_at": if state == "running" { Value::Null } else { json!(now()) }, "nodes": nodes,
    })
}

/// Answers as a tenant in which no runner takes the order of `install` until the workflow was asked for three times.
fn nobody_takes_the_order(install_name: &'static str, runner: Value) -> String {
    tenant_api::serve(move |path, before| {
        let node = |state: &str| json!([{ "name": "web", "state": state, "job": JOB }]);
        let of = |mut view: Value| {
            view["install"] = json!(install_name);
            view
        };
        match path {
            "/v1/tenant" => Some(json!({
                "tenant": "acme", "account": "111111111111", "region": "eu-west-1", "reports_queue_url": "",
                "tenant_key": "11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=",
            })),
            "/v1/workflows/wf_00000000000000000001" if before < 2 => Some(of(workflow("running", &node("active"), ""))),
            "/v1/workflows/wf_00000000000000000001" => Some(of(workflow("succeeded", &node("succeeded"), ""))),
            "/v1/jobs/job_00000000000000000001" => Some(json!({
                "job": JOB, "install": install_name, "workflow": WORKFLOW, "node": "web", "mode": "provision",
                "state": "queued", "created_at": now() - 40_000,
            })),
            "/v1/apps/web/builds" if before == 0 => {
                Some(json!({ "version": DIGEST, "workflow": WORKFLOW, "builds": [] }))
            }
            "/v1/apps/web/builds" => Some(json!({ "items": [] })),
            path if path == format!("/v1/installs/{install_name}") => Some(install(install_name, &runner)),
            _ => None,
        }
    })
}

fn run(api: &str, args: &[&str]) -> (Option<i32>, String, String) {
    let place = tempfile::tempdir().unwrap();
    let done = tenant_api::freehold(api, place.path(), args).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (done.status.code(), text(&done.stdout), text(&done.stderr))
}

#[test]
fn a_build_says_that_it_waits_for_the_build_runner_and_which_role_that_needs() {
    let api = nobody_takes_the_order("build", runner(now() - 185_000));

    let (code, out, stderr) = run(&api, &["build", "web"]);

    assert_eq!(code, Some(0), "{out}{stderr}");
    assert!(stderr.contains("waiting for the build runner for "), "{stderr}");
    assert!(stderr.contains(" s (its last report came 3 min "), "{stderr}");
    assert!(stderr.contains("; it must run as arn:aws:iam::111111111111:role/fh-acme--build-runner"), "{stderr}");
}

#[test]
fn a_watched_workflow_says_that_it_waits_for_the_installs_runner() {
    let api = nobody_takes_the_order("globex", Value::Null);

    let (code, out, stderr) = run(&api, &["workflow", "watch", WORKFLOW]);

    assert_eq!(code, Some(0), "{out}{stderr}");
    assert!(stderr.contains(" s (it has not announced itself yet); "), "{stderr}");
    assert!(stderr.contains("it must run as arn:aws:iam::222222222222:role/fh-acme--globex--runner"), "{stderr}");
    assert_eq!(stderr.matches("waiting for the runner of `globex` for ").count(), 1, "{stderr}");
}

#[test]
fn a_workflow_that_is_shown_says_for_which_runner_it_waits_and_in_json_too() {
    let show = |more: &[&str]| {
        let api = nobody_takes_the_order("globex", Value::Null);
        run(&api, &[&["workflow", "show", WORKFLOW], more].concat())
    };

    let (code, text, _) = show(&[]);
    let (_, json, _) = show(&["--json"]);

    assert_eq!(code, Some(0));
    insta::assert_snapshot!(without_numbers(&text), @"
    wf_N  deploy-components  running  of `globex`
    started N-N-N N:N:NZ

    NODE  STATE   JOB                       AFTER  REASON
    web   active  job_N

    waiting for the runner of `globex` for N s (it has not announced itself yet); it must run as arn:aws:iam::N:role/fh-acme--globex--runner
    ");
    let view: Value = serde_json::from_str(&json).unwrap();
    let (waiting, workflow) = (view["waiting"].as_str().unwrap(), view["workflow"].as_str());
    assert!(waiting.starts_with("waiting for the runner of `globex` for "), "{json}");
    assert_eq!((workflow, text.contains(waiting.split_once(" (").unwrap().1)), (Some(WORKFLOW), true), "{json}");
}

#[test]
fn a_workflow_that_ended_waits_for_nobody() {
    let ended = workflow("failed", &json!([{ "name": "web", "state": "failed", "job": JOB }]), "it failed");
    let api = tenant_api::of_answers(vec![("/v1/workflows/wf_00000000000000000001", ended)]);

    let (_, json, _) = run(&api, &["workflow", "show", WORKFLOW, "--json"]);

    assert!(!json.contains("waiting"), "{json}");
}

#[test]
fn a_workflow_waits_for_nobody_while_any_of_its_jobs_runs() {
    let jobs: Vec<String> = (1..=6).map(|number| format!("job_{number:020}")).collect();
    let nodes: Vec<Value> = jobs.iter().map(|job| json!({ "name": job, "state": "active", "job": job })).collect();
    let of_last = |state: &'static str| {
        let (jobs, nodes) = (jobs.clone(), json!(nodes));
        tenant_api::serve(move |path, _| match path {
            "/v1/workflows/wf_00000000000000000001" => Some(workflow("running", &nodes, "")),
            "/v1/tenant" => Some(json!({
                "tenant": "acme", "account": "111111111111", "region": "eu-west-1", "reports_queue_url": "",
                "tenant_key": "11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=",
            })),
            path => path.strip_prefix("/v1/jobs/").map(|job| {
                let state = if jobs.last().is_some_and(|last| last == job) { state } else { "queued" };
                json!({
                    "job": job, "install": "globex", "workflow": WORKFLOW, "node": job, "mode": "provision",
                    "state": state, "created_at": now() - 40_000,
                })
            }),
        })
    };

    let (_, with_one_that_runs, _) = run(&of_last("running"), &["workflow", "show", WORKFLOW, "--json"]);
    let (_, with_none, _) = run(&of_last("queued"), &["workflow", "show", WORKFLOW, "--json"]);

    assert!(!with_one_that_runs.contains("waiting for"), "{with_one_that_runs}");
    assert!(with_none.contains("waiting for"), "{with_none}");
}

#[test]
fn a_deploy_ends_with_its_verdict_when_the_inputs_cannot_be_read() {
    let deploy = |state: &'static str| {
        let inputs = json!({ "install": "globex", "app": "my-app", "version": DIGEST, "inputs": [] });
        let api = tenant_api::serve(move |path, before| match path {
            // The inputs can be read before the deploy, and not after it.
            "/v1/installs/globex/inputs" => (before == 0).then(|| inputs.clone()),
            "/v1/installs/globex/deploys" => Some(json!({ "workflow": WORKFLOW })),
            "/v1/workflows/wf_00000000000000000001" => Some(workflow(state, &json!([]), "it broke")),
            _ => None,
        });
        run(&api, &["deploy", "globex", "--input", "days=3"])
    };

    let (failed, _, why) = deploy("failed");
    let (succeeded, _, also) = deploy("succeeded");

    assert_eq!(failed, Some(1), "{why}");
    assert!(why.contains("it broke") && !why.contains("no answer for"), "{why}");
    assert_eq!(succeeded, Some(0), "{also}");
}

#[test]
fn a_teardown_ends_with_its_verdict_and_the_list_of_what_is_left_if_it_can_be_read() {
    let teardown = |state: &'static str, leftovers: Option<Value>| {
        let api = tenant_api::serve(move |path, _| match path {
            "/v1/installs/globex" => leftovers.clone(),
            "/v1/installs/globex/teardown" => Some(json!({ "workflow": WORKFLOW })),
            "/v1/workflows/wf_00000000000000000001" => Some(workflow(state, &json!([]), "it broke")),
            _ => None,
        });
        run(&api, &["teardown", "globex", "--confirm", "globex"])
    };
    let left = json!({
        "install": "globex", "account": "222222222222", "region": "eu-west-1", "app": "my-app", "state": "idle",
        "components": [], "problems": [],
        "leftovers": { "at": 0, "job": JOB, "found": { "resources": ["arn:aws:ec2:eu-west-1:222222222222:volume/vol-1"] } },
    });

    let (failed, _, why) = teardown("failed", None);
    let (unread, _, note) = teardown("succeeded", None);
    let (succeeded, stdout, also) = teardown("succeeded", Some(left));

    assert_eq!(failed, Some(1), "{why}");
    assert!(!why.contains("what is left"), "{why}");
    assert_eq!(unread, Some(0), "{note}");
    assert!(
        note.contains("cannot read what is left") && note.contains("`freehold install show globex` lists it"),
        "{note}"
    );
    assert_eq!(succeeded, Some(0), "{also}");
    assert!(stdout.contains("\n  ec2 volume vol-1\n") && !also.contains("what is left"), "{stdout}{also}");
}

/// Returns `text` with `N` for every number.
fn without_numbers(text: &str) -> String {
    let mut last = ' ';
    let mut all = String::new();
    for c in text.chars().map(|c| if c.is_ascii_digit() { 'N' } else { c }) {
        if c != 'N' || last != 'N' {
            all.push(c);
        }
        last = c;
    }
    all
}

#[test]
fn the_page_about_messages_shows_the_sentence_of_a_command_that_waits() {
    let api = nobody_takes_the_order("build", runner(now() - 185_000));
    let page = include_str!("../../../docs/errors.md");

    let (_, _, stderr) = run(&api, &["build", "web"]);

    let documented = page.lines().find(|line| line.starts_with("waiting for the build runner")).unwrap();
    let sentence = stderr.lines().find(|line| line.starts_with("waiting for the build runner")).unwrap();
    assert_eq!(without_numbers(sentence), without_numbers(documented));
}

#[test]
fn ctrl_c_ends_the_watching_with_130_and_says_how_to_resume_or_cancel() {
    let api = tenant_api::of_answers(vec![(
        "/v1/workflows/wf_00000000000000000001",
        workflow("running", &json!([{ "name": "web", "state": "active", "job": JOB }]), ""),
    )]);
    let place = tempfile::tempdir().unwrap();
    let mut command = tenant_api::freehold(&api, place.path(), &["workflow", "watch", WORKFLOW]);
    let mut watching = command.stderr(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut stderr = BufReader::new(watching.stderr.take().unwrap());
    let mut first = String::new();
    // The command listens for ctrl-c since before its first request.
    stderr.read_line(&mut first).unwrap();

    let sent = Command::new("sh").args(["-c", &format!("kill -INT {}", watching.id())]).status().unwrap();
    let mut rest = String::new();
    stderr.read_to_string(&mut rest).unwrap();
    let ended = watching.wait().unwrap();

    assert!(sent.success());
    assert_eq!((first.as_str(), ended.code()), ("deploy-components wf_00000000000000000001: running\n", Some(130)));
    assert_eq!(
        rest.lines().last().unwrap_or_default(),
        format!(
            "error: stopped watching; `{WORKFLOW}` continues: watch it with `freehold workflow watch {WORKFLOW}`, or stop it \
             with `freehold workflow cancel {WORKFLOW}`"
        )
    );
}

#[test]
fn progress_is_silent_with_json() {
    let api = nobody_takes_the_order("globex", Value::Null);

    let (code, out, stderr) = run(&api, &["workflow", "watch", WORKFLOW, "--json"]);

    assert_eq!((code, stderr.as_str()), (Some(0), ""));
    assert_eq!(serde_json::from_str::<Value>(&out).unwrap()["state"], "succeeded");
}

#[test]
fn the_reason_of_a_failure_is_said_once_and_fits() {
    let problem = "`permissions`: role `fh-acme--globex--provision` may not do what jobs need: `sqs:CreateQueue` on `globex-topic`";
    let reason =
        format!("3 of 20 checks fail; {problem}; {problem}; fix: allow it in the app's policy{}", "; more".repeat(200));
    let of_all = format!("`preflight:install` failed: {reason}");
    let nodes = json!([
        { "name": "preflight:install", "state": "failed", "job": JOB, "reason": reason },
        { "name": "web", "state": "skipped", "reason": "a node before it failed" },
    ]);
    let api = tenant_api::serve(move |path, _| match path {
        "/v1/workflows/wf_00000000000000000001" => Some(workflow("failed", &nodes, &of_all)),
        "/v1/installs/globex/workflows" => Some(json!({ "items": [workflow("failed", &json!([]), &of_all)] })),
        _ => None,
    });

    let (watched, _, stderr) = run(&api, &["workflow", "watch", WORKFLOW]);
    let (_, details, _) = run(&api, &["workflow", "show", WORKFLOW]);
    let (_, list, _) = run(&api, &["workflow", "list", "globex"]);

    assert_eq!(watched, Some(1));
    insta::assert_snapshot!(stderr, @r"
    deploy-components wf_00000000000000000001: failed
    preflight:install  failed
    web                skipped  a node before it failed
    error: workflow failed (wf_00000000000000000001): `preflight:install` failed: 3 of 20 checks fail; `permissions`: role `fh-acme--globex--provision` may not do what jobs need: `sqs:CreateQueue` on `globex-topic`; `permissions`: role `fh-acme--globex--provision` may not do what jobs need: `sqs:CreateQueue` on `globex-topic`; fix: allow it in the app's policy; more; more; more; more; more; more; more; more; more; more; more; more; more; more; more; more; more; more; more; more; more; more; more; more; more; more; more; more; more; more; more; more; more; more; more; more ...; see `freehold job logs job_00000000000000000001`
    ");
    for text in [&stderr, &details, &list] {
        assert_eq!(text.matches("3 of 20 checks fail").count(), 1, "{text}");
    }
    assert!(details.ends_with(&format!("the whole reason: freehold job show {JOB}\n")), "{details}");
    assert!(list.lines().all(|line| line.chars().count() < 200), "{list}");
}

#[test]
fn a_typo_in_the_name_of_an_install_names_the_nearest() {
    let api = tenant_api::of_answers(vec![(
        "/v1/installs",
        json!({ "items": [install("initech", &Value::Null), install("globex", &Value::Null)] }),
    )]);

    let (code, _, stderr) = run(&api, &["install", "show", "globx"]);
    let (posted, _, also) = run(&api, &["deploy", "globx"]);
    let (_, _, far) = run(&api, &["install", "show", "umbrella"]);

    assert_eq!((code, posted), (Some(3), Some(3)), "{stderr}{also}");
    assert_eq!(stderr, also);
    insta::assert_snapshot!(stderr + &far, @r"
    error: install `globx` does not exist; did you mean `globex`? `freehold install list` shows all names
    error: install `umbrella` does not exist; `freehold install list` shows all installs
    ");
}

#[test]
fn a_followed_log_has_the_parts_that_came_late() {
    let part =
        |seq: u64| json!({ "fence": { "dispatch": 1, "receive": 1 }, "seq": seq, "text": format!("part {seq}\n") });
    let api = tenant_api::serve(move |path, before| {
        let query = path.strip_prefix("/v1/jobs/job_00000000000000000001/logs")?;
        let after = query.strip_prefix("?after=").unwrap_or_default();
        // Part 1 arrives after part 2 was read.
        let (parts, ended) = match (after, before) {
            ("", 0) => (vec![part(2)], false),
            ("", _) => (vec![part(1), part(2), part(3)], true),
            ("2", _) => (vec![part(3)], true),
            (_, _) => (Vec::new(), true),
        };
        let cursor = parts.last().map_or(json!(after), |last| json!(last["seq"].to_string()));
        Some(json!({ "chunks": parts, "cursor": cursor, "ended": ended }))
    });
    let place = tempfile::tempdir().unwrap();

    let done = tenant_api::freehold(&api, place.path(), &["job", "logs", JOB, "-f"]).output().unwrap();

    let (log, note) = (String::from_utf8(done.stdout).unwrap(), String::from_utf8(done.stderr).unwrap());
    assert_eq!(log, "part 2\npart 3\npart 1\n");
    assert!(note.contains("earlier parts, which the tenant received later"), "{note}");
}
