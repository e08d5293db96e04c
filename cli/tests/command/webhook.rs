//! `freehold webhook`: key files, what it asks the tenant for, and how it signs a call.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::support::{loopback, tenant_api};

type Sent = Arc<Mutex<Vec<(String, String)>>>;

/// Starts an API that always answers with this; returns its address, and what it is sent.
fn api(status: u16, answer: Value) -> (String, Sent) {
    let sent: Sent = Arc::default();
    let seen = Arc::clone(&sent);
    let api = loopback::listen(move |_, path, body| {
        seen.lock().unwrap().push((path.to_owned(), body.to_owned()));
        (status, answer.to_string())
    });
    (api, sent)
}

/// Runs `freehold webhook`; returns its exit code, and what it printed and complained of.
fn webhook(api: &str, place: &Path, args: &[&str]) -> (i32, String, String) {
    let done = tenant_api::freehold(api, place, &[&["webhook"], args].concat()).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (done.status.code().unwrap(), text(done.stdout), text(done.stderr))
}

fn view(starts: &Value) -> Value {
    json!({ "webhook": "ci", "key": "A6EHv/POEL4dcN0Y50vAmWfk1jCbpQ1fHdyGZBJVMbg=", "starts": starts, "added_at": 0,
        "added_by": { "by": "schedule" }, "path": "/v1/webhooks/ci/calls" })
}

#[test]
fn add_makes_a_key_that_only_the_user_reads_and_sends_its_public_half() {
    let starts = json!({ "task": "move-channel", "app": "shop", "channel": "stable" });
    let (address, sent) = api(200, view(&starts));
    let place = tempfile::tempdir().unwrap();
    let words = ["add", "ci", "--app", "shop", "--channel", "stable", "--key-file", "ci.pem"];

    let (_, out, error) = webhook(&address, place.path(), &words);
    let file = place.path().join("ci.pem");
    let private = std::fs::read_to_string(&file).unwrap();
    // Running it again sends the same key, and leaves the file as it is.
    let (again, _, _) = webhook(&address, place.path(), &words);

    assert!(private.starts_with("-----BEGIN PRIVATE KEY-----"), "{private}");
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    assert!(
        out.starts_with("webhook `ci` moves channel `stable` of app `shop`\n`ci.pem` has its private key"),
        "{out}"
    );
    let next =
        format!("next: freehold webhook call {address}/v1/webhooks/ci/calls --key-file ci.pem --release RELEASE");
    assert!(out.contains(&next), "{out}{error}");
    assert_eq!(again, 0);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), private);
    let sent: Vec<(String, Value)> =
        sent.lock().unwrap().iter().map(|(path, body)| (path.clone(), serde_json::from_str(body).unwrap())).collect();
    assert_eq!(sent[0], sent[1]);
    assert_eq!(
        (sent[0].0.as_str(), &sent[0].1["webhook"], &sent[0].1["starts"]),
        ("/v1/webhooks", &"ci".into(), &starts)
    );
    assert!(!sent[0].1.to_string().contains("PRIVATE"), "{sent:?}");
}

#[test]
fn add_takes_a_public_key_too_and_refuses_what_is_none() {
    let (address, sent) = api(200, view(&json!({ "task": "deploy-components", "install": "globex" })));
    let place = tempfile::tempdir().unwrap();
    let words = ["add", "ci", "--install", "globex", "--deploy", "--key-file", "ci.pub"];
    let public = "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAA6EHv/POEL4dcN0Y50vAmWfk1jCbpQ1fHdyGZBJVMbg=\n-----END PUBLIC KEY-----\n";
    std::fs::write(place.path().join("ci.pub"), public).unwrap();

    let (code, out, error) = webhook(&address, place.path(), &words);
    std::fs::write(place.path().join("ci.pub"), "a secret and not a key").unwrap();
    let (refused, _, why) = webhook(&address, place.path(), &words);

    assert_eq!(code, 0, "{error}");
    assert!(!out.contains("private key"), "{out}");
    let body: Value = serde_json::from_str(&sent.lock().unwrap()[0].1).unwrap();
    assert_eq!(body["key"], "A6EHv/POEL4dcN0Y50vAmWfk1jCbpQ1fHdyGZBJVMbg=");
    assert_eq!(refused, 2);
    assert!(why.contains("`ci.pub` has no Ed25519 key in PEM form") && !why.contains("a secret"), "{why}");
}

#[test]
fn what_a_webhook_starts_is_one_thing() {
    let (address, sent) = api(200, Value::Null);
    let place = tempfile::tempdir().unwrap();
    for (words, says) in [
        (&["--install", "globex"][..], "a webhook starts one thing"),
        (&["--app", "shop"], "--channel"),
        (&["--deploy"], "--install"),
        (&["--install", "globex", "--action", "a", "--runbook", "b"], "cannot be used with"),
    ] {
        let all = [&["add", "ci", "--key-file", "ci.pem"][..], words].concat();
        let (code, _, error) = webhook(&address, place.path(), &all);

        assert_eq!(code, 2, "{error}");
        assert!(error.contains(says), "{error}");
    }
    assert!(sent.lock().unwrap().is_empty());
    assert!(!place.path().join("ci.pem").exists());
}

#[test]
fn list_and_remove_name_what_a_call_starts() {
    let all = json!({ "webhooks": [view(&json!({ "task": "run-runbook", "install": "globex", "runbook": "fix" }))] });
    let place = tempfile::tempdir().unwrap();
    let address = tenant_api::of_answers(vec![("/v1/webhooks", all)]);
    let (_, stdout, _) = webhook(&address, place.path(), &["list"]);
    let (_, read, _) = webhook(&address, place.path(), &["list", "--json"]);
    let (address, sent) = api(200, json!({ "webhooks": [] }));
    let (_, removed, _) = webhook(&address, place.path(), &["remove", "ci"]);

    assert!(stdout.contains("runs runbook `fix` in install `globex`"), "{stdout}");
    assert_eq!(serde_json::from_str::<Value>(&read).unwrap()[0]["starts"]["task"], "run-runbook");
    assert!(removed.starts_with("webhook `ci` is removed\n\nthere are no webhooks"), "{removed}");
    assert_eq!(sent.lock().unwrap()[0].0, "/v1/webhooks/ci/remove");
}

/// Lets `add` make the private key `ci.pem` in `place`.
fn with_key(place: &Path) {
    let (address, _) = api(200, view(&json!({ "task": "deploy-components", "install": "globex" })));
    let (code, _, error) =
        webhook(&address, place, &["add", "ci", "--install", "globex", "--deploy", "--key-file", "ci.pem"]);
    assert_eq!(code, 0, "{error}");
}

#[test]
fn call_sends_the_body_and_says_what_started() {
    let place = tempfile::tempdir().unwrap();
    with_key(place.path());
    let (address, sent) = api(200, json!({ "started": "run", "run": "run_00000000000000000001" }));
    let url = format!("{address}/v1/webhooks/ci/calls");

    let (code, out, error) =
        webhook(&address, place.path(), &["call", &url, "--key-file", "ci.pem", "--input", "a=b", "--id", "build-7"]);

    assert_eq!((code, out.trim()), (0, "run run_00000000000000000001 started"), "{error}");
    assert_eq!(*sent.lock().unwrap(), [("/v1/webhooks/ci/calls".to_owned(), r#"{"inputs":{"a":"b"}}"#.to_owned())]);
}

#[test]
fn a_refused_call_says_why_and_is_not_repeated() {
    let place = tempfile::tempdir().unwrap();
    with_key(place.path());
    let refused = json!({ "error": { "kind": "unauthorized", "message": "no webhook `ci` has the key; ask" } });
    for (status, answer, code, says) in [
        (401, refused, 6, "no webhook `ci` has the key"),
        (403, json!({ "message": "Forbidden" }), 6, "freehold tenant deploy --webhooks on"),
    ] {
        let (address, sent) = api(status, answer);
        let url = format!("{address}/v1/webhooks/ci/calls");

        let (found, _, error) = webhook(&address, place.path(), &["call", &url, "--key-file", "ci.pem"]);

        assert_eq!(found, code);
        assert!(error.contains(says), "{error}");
        assert_eq!(sent.lock().unwrap().len(), 1);
    }
    let (address, sent) = api(200, Value::Null);
    let url = format!("{address}/v1/webhooks/ci/calls");
    for (words, says) in [
        (&["call", &url, "--key-file", "ci.pem", "--id", "a b"][..], "`a b` is not an id"),
        (&["call", &address, "--key-file", "ci.pem"], "is not the address of a webhook"),
        (&["call", "http://example.com/v1/webhooks/ci/calls", "--key-file", "ci.pem"], "which begins with `https://`"),
        (&["call", &url, "--key-file", "none.pem"], "there is no file `none.pem`"),
    ] {
        let (code, _, error) = webhook(&address, place.path(), words);
        assert_eq!(code, 2);
        assert!(error.contains(says), "{error}");
    }
    assert!(sent.lock().unwrap().is_empty());
}
