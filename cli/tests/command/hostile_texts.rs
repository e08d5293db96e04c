//! What a runner says never controls the terminal of the person who reads it: against an API with prepared answers.

use serde_json::{Value, json};

use crate::support::tenant_api;

const JOB: &str = "job_00000000000000000001";
/// Clears the screen, sets the title and the clipboard, hides letters, turns text around, and overwrites the line.
const HOSTILE: &str =
    "a\u{1b}[2J\u{1b}]0;owned\u{7}\u{1b}]52;c;Y3VybA==\u{7}\u{1b}[8m\u{9b}2J\u{202e}txt\u{8}\rsucceeded";

/// An API that knows the job and its install.
fn api() -> String {
    let job = json!({
        "job": JOB, "install": "globex", "workflow": "wf_00000000000000000001", "node": "web", "mode": "provision",
        "state": "failed", "reason": HOSTILE, "outputs": { HOSTILE: HOSTILE }, "created_at": 1000,
    });
    let runner = json!({
        "key": "7300c0ae1429cd153252736a781b78f4", "version": HOSTILE, "slots": 4, "host": HOSTILE, "since": 1000,
        "last_contact": 1000,
    });
    let install = json!({
        "install": "globex", "account": "222222222222", "region": "eu-west-1", "state": "ready", "runner": runner,
    });
    tenant_api::of_answers(vec![("/v1/jobs/job_00000000000000000001", job), ("/v1/installs/globex", install)])
}

/// An API that knows the job's log, which has one part.
fn api_of_log() -> String {
    let part = json!({ "fence": { "dispatch": 1, "receive": 1 }, "seq": 1, "text": HOSTILE });
    tenant_api::serve(move |path, before| {
        let parts = if before == 0 && !path.ends_with("after=1") { vec![&part] } else { Vec::new() };
        path.starts_with("/v1/jobs/job_00000000000000000001/logs")
            .then(|| json!({ "chunks": parts, "cursor": "1", "ended": true }))
    })
}

fn printed(args: &[&str]) -> String {
    let api = if args.contains(&"logs") { api_of_log() } else { api() };
    let place = tempfile::tempdir().unwrap();
    let done = tenant_api::freehold(&api, place.path(), args).output().unwrap();
    let text = String::from_utf8(done.stdout).unwrap() + &String::from_utf8(done.stderr).unwrap();
    assert!(done.status.success(), "{args:?}: {text:?}");
    text
}

fn controls(text: &str) -> Option<char> {
    text.chars().find(|c| (c.is_control() && *c != '\n') || *c == '\u{202e}')
}

#[test]
fn reasons_outputs_logs_and_hosts_do_not_control_the_terminal() {
    for args in [&["job", "show", JOB][..], &["job", "logs", JOB], &["install", "show", "globex"]] {
        let text = printed(args);

        assert_eq!(controls(&text), None, "{args:?}: {text:?}");
        assert!(text.contains("?]0;owned?"), "{args:?} shows what was there: {text:?}");
    }
}

#[test]
fn json_has_the_same_texts_in_escapes() {
    for args in [&["job", "show", JOB, "--json"][..], &["job", "logs", JOB, "--json"]] {
        let text = printed(args);

        assert_eq!(controls(&text), None, "{args:?}: {text:?}");
        let value: Value = serde_json::from_str(&text).unwrap();
        let field = value.get("reason").or_else(|| value.get("text")).and_then(Value::as_str);
        assert_eq!(field, Some(HOSTILE), "{args:?}");
    }
}
