//! `freehold subscription`: what it asks the tenant for, and what it prints.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::support::{loopback, tenant_api};

/// Returns what `freehold subscription` prints with these words, and the requests that it sent, as path and body.
fn subscription(args: &[&str], answer: Value) -> (String, String, Vec<(String, String)>) {
    let sent: Arc<Mutex<Vec<(String, String)>>> = Arc::default();
    let seen = Arc::clone(&sent);
    let api = loopback::listen(move |_, path, body| {
        seen.lock().unwrap().push((path.to_owned(), body.to_owned()));
        (200, answer.to_string())
    });
    let place = tempfile::tempdir().unwrap();
    let done = tenant_api::freehold(&api, place.path(), &[&["subscription"], args].concat()).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    let sent = sent.lock().unwrap().clone();
    (text(done.stdout), text(done.stderr), sent)
}

fn view(endpoint: &str, pending: bool, filter: Value) -> Value {
    json!({ "endpoint": endpoint, "protocol": "email", "pending": pending, "filter": filter })
}

#[test]
fn add_sends_the_choice_and_says_that_the_owner_has_to_confirm() {
    let answer = view("ops@example.com", true, Value::Null);
    let words = ["add", "ops@example.com", "--install", "globex", "--only", "workflow-failed,approval-asked"];

    let (out, _, sent) = subscription(&words, answer);

    assert!(out.starts_with("the owner of ops@example.com has to confirm it"), "{out}");
    let [(path, body)] = &sent[..] else { panic!("{sent:?}") };
    assert_eq!(path, "/v1/subscriptions");
    assert_eq!(
        serde_json::from_str::<Value>(body).unwrap(),
        json!({ "endpoint": "ops@example.com", "install": "globex", "only": ["approval-asked", "workflow-failed"] })
    );
}

#[test]
fn list_shows_who_gets_what_and_who_has_not_confirmed() {
    let chosen = json!({ "app": "shop", "only": ["runner-away"] });
    let all = json!({ "subscriptions": [
        view("a@example.com", false, json!({})), view("b@example.com", false, chosen), view("c@example.com", true, Value::Null),
    ] });

    let api = tenant_api::of_answers(vec![("/v1/subscriptions", all)]);
    let place = tempfile::tempdir().unwrap();
    let list = |words: &[&str]| {
        let done =
            tenant_api::freehold(&api, place.path(), &[&["subscription", "list"], words].concat()).output().unwrap();
        String::from_utf8(done.stdout).unwrap()
    };

    let (out, json) = (list(&[]), list(&["--json"]));
    let (none, _, _) = subscription(&["list"], json!({ "subscriptions": [] }));

    let rows: Vec<Vec<&str>> =
        out.lines().map(|line| line.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).collect()).collect();
    assert_eq!(rows[1], ["a@example.com", "confirmed", "all kinds"]);
    assert_eq!(rows[2], ["b@example.com", "confirmed", "runner-away about app shop"]);
    assert_eq!(rows[3], ["c@example.com", "to be confirmed"]);
    assert_eq!(serde_json::from_str::<Value>(&json).unwrap().as_array().unwrap().len(), 3);
    assert!(none.starts_with("there are no subscriptions; `freehold subscription add ENDPOINT`"), "{none}");
}

#[test]
fn remove_and_test_name_what_they_did() {
    let subscribed = view("a@example.com", false, json!({}));
    let (removed, _, _) = subscription(&["remove", "a@example.com"], json!({ "subscriptions": [subscribed] }));
    let (_, unknown, sent_none) = subscription(&["remove", "b@example.com"], json!({ "subscriptions": [] }));
    let id = "ntf_00000000000000000001";
    let (tested, _, sent) = subscription(&["test", "--install", "globex"], json!({ "id": id }));

    assert!(removed.starts_with("a@example.com gets no more notifications"), "{removed}");
    assert!(
        unknown.contains("`b@example.com` is not subscribed; `freehold subscription list` shows the subscribers"),
        "{unknown}"
    );
    assert!(sent_none.iter().all(|(path, _)| path != "/v1/subscriptions/remove"), "{sent_none:?}");
    assert_eq!(tested.trim(), format!("test {id} was sent to the subscribers that chose such notifications"));
    assert_eq!(sent, [("/v1/subscriptions/test".to_owned(), r#"{"install":"globex"}"#.to_owned())]);
}

#[test]
fn what_is_no_endpoint_or_no_kind_is_refused_before_anything_is_sent() {
    for (words, says) in [
        (&["add", "http://example.com"][..], "is not a place for notifications"),
        (&["add", "ops@example.com", "--only", "everything"], "`everything` is not a kind of notification"),
    ] {
        let (_, error, sent) = subscription(words, Value::Null);

        assert!(error.contains(says), "{error}");
        assert_eq!(sent, []);
    }
}
