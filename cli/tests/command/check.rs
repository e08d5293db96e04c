//! `freehold check report`: what it sends, what it shows, and which words it refuses.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::support::{loopback, tenant_api};

type Sent = Arc<Mutex<Vec<(String, Value)>>>;

const PATH: &str = "/v1/installs/globex/components/web/checks/load-test";

/// Starts an API that always answers with this; returns its address, and what it is sent.
fn api(status: u16, answer: Value) -> (String, Sent) {
    let sent: Sent = Arc::default();
    let seen = Arc::clone(&sent);
    let api = loopback::listen(move |_, path, body| {
        seen.lock().unwrap().push((path.to_owned(), serde_json::from_str(body).unwrap_or_default()));
        (status, answer.to_string())
    });
    (api, sent)
}

/// Runs `freehold check report`; returns its exit code, and what it printed and complained of.
fn report(api: &str, args: &[&str]) -> (i32, String, String) {
    let place = tempfile::tempdir().unwrap();
    let words = [&["check", "report"], args].concat();
    let done = tenant_api::freehold(api, place.path(), &words).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (done.status.code().unwrap(), text(done.stdout), text(done.stderr))
}

fn answer() -> Value {
    json!({
        "check": "load-test", "result": "failed", "reason": "too slow", "url": "https://ci.example.com/7", "at": 1,
        "by": { "by": "schedule" }, "deploy": "job_00000000000000000001",
    })
}

#[test]
fn a_result_is_sent_with_its_reason_its_address_and_the_deploy_and_shown() {
    let (address, sent) = api(200, answer());
    let more = ["--reason", "too slow", "--url", "https://ci.example.com/7", "--deploy", "job_00000000000000000001"];
    let words = [&["globex", "web", "load-test", "failed"][..], &more].concat();

    let (code, out, error) = report(&address, &words);
    let (_, read, _) = report(&address, &[&words[..], &["--json"]].concat());

    assert_eq!(code, 0, "{error}");
    let body = json!({
        "result": "failed", "reason": "too slow", "url": "https://ci.example.com/7", "deploy": "job_00000000000000000001",
    });
    assert_eq!(sent.lock().unwrap()[0], (PATH.to_owned(), body));
    assert_eq!(
        out,
        "reported for `web` in `globex` for the deploy by job_00000000000000000001: load-test failed: too slow \
         (https://ci.example.com/7)\n`freehold install show globex` shows which checks are missing\n"
    );
    assert_eq!(serde_json::from_str::<Value>(&read).unwrap(), answer());
}

#[test]
fn a_result_alone_is_enough() {
    let (address, sent) = api(200, json!({ "check": "load-test", "result": "passed" }));

    let (code, out, error) = report(&address, &["globex", "web", "load-test", "passed"]);

    assert_eq!(code, 0, "{error}");
    assert!(out.starts_with("reported for `web` in `globex`: load-test passed\n"), "{out}");
    assert_eq!(sent.lock().unwrap()[0], (PATH.to_owned(), json!({ "result": "passed" })));
}

#[test]
fn a_word_or_a_name_of_another_form_is_refused_before_anything_is_sent() {
    let (address, sent) = api(200, answer());

    for (words, says) in [
        (["globex", "web", "load-test", "ok"], "passed, failed"),
        (["globex", "web", "load test", "passed"], "`load test` is not a check name; expected 1 to 64"),
    ] {
        let (code, _, error) = report(&address, &words);

        assert_eq!(code, 2, "{error}");
        assert!(error.contains(says), "{error}");
    }
    assert!(sent.lock().unwrap().is_empty());
}

#[test]
fn what_the_tenant_refuses_is_shown_with_its_way_out() {
    let message = "component `web` does not require check `load-test`; it requires check `ci`";
    let (address, _) = api(404, json!({ "error": { "kind": "not_found", "message": message } }));

    let (code, _, error) = report(&address, &["globex", "web", "load-test", "passed"]);

    assert_eq!(code, 3, "{error}");
    assert!(error.contains(message), "{error}");
}

/// Returns what `freehold` prints when the tenant has this at this path.
fn shown(path: &'static str, answer: Value, args: &[&str]) -> String {
    let place = tempfile::tempdir().unwrap();
    let address = tenant_api::of_answers(vec![(path, answer)]);
    let done = tenant_api::freehold(&address, place.path(), args).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    assert!(done.status.success(), "{}", text(done.stderr));
    text(done.stdout)
}

#[test]
fn what_is_missing_is_in_the_install_the_workflow_and_the_job() {
    let digest = format!("sha256:{}", "0".repeat(64));
    let (job, workflow) = ("job_00000000000000000001", "wf_00000000000000000001");
    let reason = "the component is healthy, and waits for check `load-test` to pass until 2026-11-30T06:00:00Z";
    let install = json!({
        "install": "globex", "account": "222222222222", "region": "eu-west-1", "state": "deploying",
        "components": [{
            "component": "web", "artifact": digest, "version": digest, "job": job, "at": 1,
            "checks": [{ "check": "ci", "result": "passed" }, { "check": "load-test" }],
        }],
    });
    let node = json!({
        "name": "health:web", "state": "waiting_for_checks", "job": job, "waits_since": 1, "reason": reason,
    });
    let graph = json!({
        "workflow": workflow, "install": "globex", "kind": "deploy-components", "state": "running", "created_at": 1,
        "nodes": [node],
    });
    let view = json!({
        "job": job, "install": "globex", "workflow": workflow, "node": "health:web", "mode": "maintenance",
        "state": "waiting_for_checks", "created_at": 1, "waits_since": 1, "waits_until": 2, "reason": reason,
    });

    let of_install = shown("/v1/installs/globex", install, &["install", "show", "globex"]);
    let of_workflow = shown("/v1/workflows/wf_00000000000000000001", graph, &["workflow", "show", workflow]);
    let of_job = shown("/v1/jobs/job_00000000000000000001", view, &["job", "show", job]);

    assert!(of_install.contains("checks web") && of_install.contains("ci passed; load-test missing"), "{of_install}");
    assert!(of_workflow.contains("waiting_for_checks"), "{of_workflow}");
    assert!(of_workflow.contains("waits for check `load-test` to pass"), "{of_workflow}");
    assert!(of_job.contains(reason), "{of_job}");
    assert!(of_job.contains("`freehold check report globex COMPONENT NAME passed`"), "{of_job}");
    assert!(!of_job.contains("no runner has taken the job"), "{of_job}");
}
