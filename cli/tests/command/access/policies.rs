//! `freehold access`.

use freehold_protocol::Digest;
use serde_json::{Value, json};

use super::{api, run};

const OLD: &str = "@id(\"everybody-reads\")\npermit (principal, action in Freehold::Action::\"read\", resource);\n";
const NEW: &str = "@id(\"everybody-reads\")\npermit (principal, action in Freehold::Action::\"read\", resource);\n\n\
                   @id(\"owners\")\npermit (principal in Freehold::Group::\"owner\", action, resource);\n";

fn stored() -> Value {
    json!({ "policies": OLD, "digest": Digest::of(OLD.as_bytes()), "number": 0 })
}

fn changed() -> Value {
    json!({
        "policies": NEW, "digest": Digest::of(NEW.as_bytes()), "number": 1, "changed_at": 1000,
        "changed_by": { "by": "sweep" },
    })
}

fn answers(method: &str, _: &str) -> (u16, Value) {
    (200, if method == "GET" { stored() } else { changed() })
}

#[test]
fn the_output_of_show_is_a_file_for_set() {
    let (address, sent) = api(answers);
    let place = tempfile::tempdir().unwrap();

    let (_, out, note) = run(&address, place.path(), &["access", "show"]);
    let (_, json, quiet) = run(&address, place.path(), &["access", "show", "--json"]);
    std::fs::write(place.path().join("policies.cedar"), &out).unwrap();
    let (code, same, error) = run(&address, place.path(), &["access", "set", "policies.cedar"]);

    assert_eq!(out, OLD);
    assert!(note.starts_with("the policies that a new tenant has; digest sha256:"), "{note}");
    assert_eq!((serde_json::from_str::<Value>(&json).unwrap(), quiet.as_str()), (stored(), ""));
    assert_eq!((code, same.trim_end()), (0, "the tenant has these policies already"), "{error}");
    assert!(sent.lock().unwrap().is_empty());
}

#[test]
fn set_shows_what_changes_and_sends_it_with_the_digest_of_what_it_compared() {
    let (address, sent) = api(answers);
    let place = tempfile::tempdir().unwrap();
    std::fs::write(place.path().join("policies.cedar"), NEW).unwrap();

    let (unasked, _, asks) = run(&address, place.path(), &["access", "set", "policies.cedar"]);
    assert!(sent.lock().unwrap().is_empty());
    let (code, out, difference) = run(&address, place.path(), &["access", "set", "policies.cedar", "--yes"]);

    assert_eq!((unasked, code), (2, 0), "{difference}");
    assert!(
        asks.contains("asks before it changes who may do what, but stdin is not a terminal; pass `--yes`"),
        "{asks}"
    );
    assert!(difference.contains("\n+@id(\"owners\")\n") && !difference.contains("\n-"), "{difference}");
    assert!(out.starts_with("change 1 of the policies decides about each request from now on"), "{out}");
    let request = json!({ "policies": NEW, "expected": Digest::of(OLD.as_bytes()) });
    assert_eq!(*sent.lock().unwrap(), [("/v1/access/policies".to_owned(), request)]);
}

#[test]
fn a_mistake_in_the_policies_is_named_with_its_place_before_anything_is_sent() {
    let (address, sent) = api(|_, _| (500, Value::Null));
    let place = tempfile::tempdir().unwrap();
    std::fs::write(place.path().join("policies.cedar"), "@id(\"all\")\npermit (principal, action, resource;\n")
        .unwrap();

    let (code, _, error) = run(&address, place.path(), &["access", "set", "policies.cedar", "--yes"]);
    let (absent, _, why) = run(&address, place.path(), &["access", "set", "none.cedar"]);

    assert_eq!((code, absent), (2, 2), "{error}");
    assert!(error.contains("`policies.cedar`: ") && error.contains("line 2"), "{error}");
    assert!(why.contains("there is no file `none.cedar`; pass a file with all policies"), "{why}");
    assert!(sent.lock().unwrap().is_empty());
}

#[test]
fn policies_that_somebody_else_has_changed_are_not_replaced() {
    let (address, sent) = api(answers);
    let place = tempfile::tempdir().unwrap();
    std::fs::write(place.path().join("policies.cedar"), NEW).unwrap();
    let earlier = Digest::of(b"earlier").to_string();

    let (code, _, error) =
        run(&address, place.path(), &["access", "set", "policies.cedar", "--expected", &earlier, "--yes"]);

    assert_eq!(code, 4);
    assert!(error.contains("somebody has changed them: read them with `freehold access show`"), "{error}");
    assert!(sent.lock().unwrap().is_empty());
}

#[test]
fn test_prints_the_decision_and_ends_with_1_when_it_is_a_denial() {
    let place = tempfile::tempdir().unwrap();
    let words =
        ["access", "test", "--member", "ana@example.com", "--action", "deploy_components", "--install", "globex"];
    let decision = |is_allowed: bool, policies: &[&str]| {
        let view = json!({ "is_allowed": is_allowed, "policies": policies, "groups": ["operator", "owner"] });
        let (address, sent) = api(move |_, _| (200, view.clone()));
        let (code, out, error) = run(&address, place.path(), &words);
        (code, out, error, sent)
    };

    let (allowed, permitted, _, sent) = decision(true, &["operators-operate"]);
    let (denied, out, error, _) = decision(false, &[]);
    let (forbidden, _, by, _) = decision(false, &["no-deploys-in-december"]);

    assert_eq!((allowed, denied, forbidden), (0, 1, 1));
    assert_eq!(
        permitted,
        "allowed: ana@example.com, `deploy_components` in install `globex`\npermitted by `operators-operate`\n\
         groups that may do it: operator, owner\n"
    );
    assert!(out.starts_with("denied: ana@example.com") && out.contains("no policy permits it"), "{out}");
    assert!(error.contains("`freehold member set ana@example.com --group operator`"), "{error}");
    assert!(by.contains("change `no-deploys-in-december` with `freehold access set`"), "{by}");
    let request = json!({ "member": "ana@example.com", "action": "deploy_components", "install": "globex" });
    assert_eq!(*sent.lock().unwrap(), [("/v1/access/test".to_owned(), request)]);
}

#[test]
fn without_a_principal_the_question_is_about_the_caller() {
    let caller = json!({
        "who": "person:1234", "name": "ana@example.com", "groups": [], "apps": [], "installs": [], "is_member": true,
        "permissions": [],
    });
    let decision = json!({ "is_allowed": true, "policies": ["owners-do-everything"], "groups": ["owner"] });
    let (address, sent) =
        api(move |_, path| (200, if path == "/v1/caller" { caller.clone() } else { decision.clone() }));
    let place = tempfile::tempdir().unwrap();

    let (code, out, error) =
        run(&address, place.path(), &["access", "test", "--action", "approve_job", "--install", "globex"]);

    assert_eq!(code, 0, "{error}");
    assert!(out.starts_with("allowed: person:1234, `approve_job` in install `globex`"), "{out}");
    let request = json!({ "who": "person:1234", "action": "approve_job", "install": "globex" });
    assert_eq!(*sent.lock().unwrap(), [("/v1/access/test".to_owned(), request)]);
}

#[test]
fn a_principal_is_named_once_and_an_action_is_about_one_thing() {
    let (address, sent) = api(answers);
    let place = tempfile::tempdir().unwrap();
    for (words, says) in [
        (&["--member", "ana", "--action", "deploy_component"][..], "did you mean `deploy_components`?"),
        (&["--who", "ana", "--action", "show_app"], "`ana` is not a principal; expected `iam:` and an ARN"),
        (&["--who", "person:1", "--member", "ana", "--action", "show_app"], "cannot be used with"),
        (&["--member", "ana", "--action", "show_app", "--app", "shop", "--install", "globex"], "cannot be used with"),
    ] {
        let (code, _, error) = run(&address, place.path(), &[&["access", "test"][..], words].concat());

        assert_eq!(code, 2, "{error}");
        assert!(error.contains(says), "{error}");
    }
    assert!(sent.lock().unwrap().is_empty());
}
