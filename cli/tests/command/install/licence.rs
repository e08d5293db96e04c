//! `freehold install set-licence`: what it sends, and what it refuses by itself.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::support::{loopback, tenant_api, text};

/// Runs the command against an API that answers with `licence`; returns its exit code, what it printed, what it
/// complained of on one line, and the body that it sent.
fn run(licence: &Value, args: &[&str]) -> (Option<i32>, String, String, Option<Value>) {
    let sent: Arc<Mutex<Option<Value>>> = Arc::default();
    let seen = Arc::clone(&sent);
    let install = json!({
        "install": "globex", "app": "shop", "account": "222222222222", "region": "eu-west-1", "state": "ready",
        "licence": licence,
    });
    let api = loopback::listen(move |method, path, body| {
        if (method, path) == ("POST", "/v1/installs/globex/licence") {
            *seen.lock().unwrap() = Some(serde_json::from_str(body).unwrap());
        }
        (200, install.to_string())
    });
    let place = tempfile::tempdir().unwrap();
    let all = [&["install", "set-licence", "globex"], args].concat();
    let done = tenant_api::freehold(&api, place.path(), &all).output().unwrap();
    let error = text(&done.stderr).split_whitespace().collect::<Vec<_>>().join(" ");
    let sent = sent.lock().unwrap().take();
    (done.status.code(), text(&done.stdout), error, sent)
}

fn licence() -> Value {
    json!({
        "serial": 2, "facts": { "plan": "team", "seats": 50 }, "not_after": 1_801_439_999_000_u64,
        "issued_at": 1000, "by": { "by": "caller", "arn": "arn:aws:iam::111111111111:user/ada" },
    })
}

#[test]
fn facts_and_the_end_are_sent_and_the_licence_is_shown() {
    let (code, out, error, sent) =
        run(&licence(), &["--fact", "plan=team", "--fact", "seats:=50", "--until", "2027-01-31"]);

    assert_eq!(code, Some(0), "{error}");
    let expected = json!({ "facts": { "plan": "team", "seats": 50 }, "not_after": 1_801_439_999_000_u64 });
    assert_eq!(sent, Some(expected));
    let out = out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(
        out,
        "install `globex` has licence 2: plan=team, seats=50; until 2027-01-31 23:59:59Z; set 1970-01-01 00:00:01Z by \
         arn:aws:iam::111111111111:user/ada; the next order brings it"
    );
}

#[test]
fn a_withdrawal_is_sent_without_facts() {
    let (code, _, error, sent) = run(&licence(), &["--withdraw"]);

    assert_eq!(code, Some(0), "{error}");
    assert_eq!(sent, Some(json!({ "facts": {}, "withdraw": true })));
}

#[test]
fn a_licence_that_cannot_be_meant_is_refused_before_it_is_sent() {
    let cases: [(&[&str], &str); 4] = [
        (&[], "neither a fact nor an end of the licence is given"),
        (&["--fact", "seats=1", "--fact", "seats=2"], "fact `seats` is given twice; give it once"),
        (&["--fact", "seats=1", "--withdraw"], "cannot be used with"),
        (&["--until", "soon"], "is not a date or a time"),
    ];
    for (args, reason) in cases {
        let (code, _, error, sent) = run(&licence(), args);

        assert_eq!((code, sent), (Some(2), None), "{error}");
        assert!(error.contains(reason), "{args:?}: {error}");
    }
}
