//! Labels of installs: what `freehold install create` gives, and what `install list` and `install show` print.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::support::{loopback, tenant_api, text};

/// Returns an install with these labels.
fn install(name: &str, own: &Value, all: &Value) -> Value {
    json!({
        "install": name, "app": "shop", "account": "222222222222", "region": "eu-west-1", "state": "ready",
        "version": format!("sha256:{}", "0".repeat(64)), "own_labels": own, "labels": all,
    })
}

/// Runs `freehold install`; returns its exit code, what it printed, and what it complained of on one line.
fn run(api: &str, args: &[&str]) -> (Option<i32>, String, String) {
    let place = tempfile::tempdir().unwrap();
    let done = tenant_api::freehold(api, place.path(), &[&["install"], args].concat()).output().unwrap();
    let error = text(&done.stderr).split_whitespace().collect::<Vec<_>>().join(" ");
    (done.status.code(), text(&done.stdout), error)
}

#[test]
fn installs_are_chosen_by_all_the_labels_that_are_asked_for_and_shown_with_theirs() {
    let globex = install("globex", &json!({ "env": "production" }), &json!({ "env": "production", "team": "shop" }));
    let initech = install("initech", &json!({}), &json!({ "team": "shop" }));
    let list = json!({ "items": [globex, initech] });
    let api = tenant_api::of_answers(vec![("/v1/installs", list), ("/v1/installs/globex", globex)]);
    let printed = |args: &[&str]| {
        let (code, out, error) = run(&api, args);
        assert_eq!(code, Some(0), "{error}");
        out
    };

    let all = printed(&["list", "--label", "team"]);
    let one = printed(&["list", "--label", "env=production", "--label", "team=shop"]);
    let none = printed(&["list", "--label", "env=test"]);
    let json: Value = serde_json::from_str(&printed(&["list", "--label", "env=test", "--json"])).unwrap();

    assert!(all.starts_with("INSTALL  APP ") && all.contains("  LABELS\n"), "{all}");
    assert!(all.contains("  env=production, team=shop\n") && all.contains("initech"), "{all}");
    assert!(one.contains("globex") && !one.contains("initech"), "{one}");
    assert_eq!(none.trim_end(), "no install has these labels; `freehold install list` shows the labels of all");
    assert_eq!(json, json!([]));
    assert!(printed(&["show", "globex"]).contains("env=production, team=shop\n"));
}

#[test]
fn a_created_install_gets_its_labels_and_one_that_exists_gets_them_too() {
    let bodies: Arc<Mutex<Vec<Value>>> = Arc::default();
    let seen = Arc::clone(&bodies);
    let labels = json!({ "env": "production", "note": "" });
    let answer = json!({ "install": install("globex", &labels, &labels), "workflow": "wf_00000000000000000001" });
    let api = loopback::listen(move |_, _, body| {
        seen.lock().unwrap().push(serde_json::from_str(body).unwrap());
        (200, answer.to_string())
    });
    let create = ["create", "globex", "--app", "shop", "--account", "222222222222", "--region", "eu-west-1"];
    let with = |more: &[&str]| run(&api, &[&create[..], more].concat());

    let (code, out, error) = with(&["--label", "env=production", "--label", "note="]);
    let (_, unlabelled, _) = with(&[]);
    let (twice, _, given_twice) = with(&["--label", "env=a", "--label", "env=b"]);
    let (keyless, _, without_value) = with(&["--label", "env"]);

    assert_eq!(code, Some(0), "{error}");
    let sent: Vec<Value> = bodies.lock().unwrap().iter().map(|body| body["labels"].clone()).collect();
    assert_eq!(sent, [labels, Value::Null]);
    let exists = "exists already (ready); its labels are env=production, note=, and nothing else was changed\n";
    assert!(out.starts_with(&format!("install `globex` {exists}")), "{out}");
    assert!(unlabelled.contains("exists already (ready); nothing was changed"), "{unlabelled}");
    assert!(twice == Some(2) && given_twice.contains("label `env` is given twice; give it once"), "{given_twice}");
    assert!(keyless == Some(2) && without_value.contains("`env` is not a label with a value"), "{without_value}");
}
