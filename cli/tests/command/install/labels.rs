//! Labels of installs: what `freehold install create` and `install labels` send, and what tables of installs contain.

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

/// Starts a tenant API that answers every request with `answer`; returns its address and the bodies of all posts.
fn api(answer: Value) -> (String, Arc<Mutex<Vec<Value>>>) {
    let bodies: Arc<Mutex<Vec<Value>>> = Arc::default();
    let seen = Arc::clone(&bodies);
    let address = loopback::listen(move |method, _, body| {
        if method == "POST" {
            seen.lock().unwrap().push(serde_json::from_str(body).unwrap());
        }
        (200, answer.to_string())
    });
    (address, bodies)
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
fn a_created_install_gets_its_labels() {
    let labels = json!({ "env": "production", "note": "" });
    let created = json!({ "install": install("globex", &labels, &labels), "workflow": "wf_00000000000000000001" });
    let (api, bodies) = api(created);
    let create = ["create", "globex", "--app", "shop", "--account", "222222222222", "--region", "eu-west-1"];
    let with = |more: &[&str]| run(&api, &[&create[..], more].concat());

    let (code, out, error) = with(&["--label", "env=production", "--label", "note="]);
    let (unlabelled, _, _) = with(&[]);
    let (ignored, _, ignores) = with(&["--label", "env=test"]);
    let (twice, _, given_twice) = with(&["--label", "env=a", "--label", "env=b"]);
    let (keyless, _, without_value) = with(&["--label", "env"]);

    assert_eq!((code, unlabelled), (Some(0), Some(0)), "{error}");
    let sent: Vec<Value> = bodies.lock().unwrap().iter().map(|body| body["labels"].clone()).collect();
    assert_eq!(sent, [labels, Value::Null, json!({ "env": "test" })]);
    assert!(out.starts_with("install `globex` exists already (ready); nothing was changed\n"), "{out}");
    let expected = "the tenant is of an earlier release: it created install `globex` without its labels; update";
    assert!(ignored == Some(1) && ignores.contains(expected), "{ignores}");
    assert!(twice == Some(2) && given_twice.contains("label `env` is given twice; give it once"), "{given_twice}");
    assert!(keyless == Some(2) && without_value.contains("`env` is not a label with a value"), "{without_value}");
}

#[test]
fn labels_of_an_install_are_shown_set_and_removed() {
    let globex = install("globex", &json!({ "env": "test" }), &json!({ "env": "test", "team": "shop" }));
    let (api, bodies) = api(globex);

    let (_, unchanged, _) = run(&api, &["labels", "globex"]);
    let (code, out, error) = run(&api, &["labels", "globex", "--label", "env=test", "--remove", "team"]);
    let (twice, _, given_twice) = run(&api, &["labels", "globex", "--label", "env=test", "--remove", "env"]);

    assert_eq!(code, Some(0), "{error}");
    let rows: Vec<Vec<&str>> = out.lines().map(|line| line.splitn(3, "  ").map(str::trim).collect()).collect();
    assert_eq!(rows[0], ["KEY", "VALUE", "FROM"], "{out}");
    assert_eq!(rows[1..], [["env", "test", "install"], ["team", "shop", "default of the app"]], "{out}");
    assert_eq!(unchanged, out);
    assert_eq!(*bodies.lock().unwrap(), [json!({ "labels": { "env": "test", "team": null } })]);
    assert!(twice == Some(2) && given_twice.contains("label `env` is given twice; give it once"), "{given_twice}");
}

#[test]
fn an_install_without_labels_has_a_sentence_instead_of_a_table() {
    let (api, _) = api(install("globex", &json!({}), &json!({})));

    let (_, out, _) = run(&api, &["labels", "globex"]);

    assert_eq!(out.trim_end(), "install `globex` has no labels; `--label KEY=VALUE` gives it one");
}
