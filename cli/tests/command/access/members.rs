//! `freehold member` and `freehold whoami`.

use std::io::Write as _;
use std::process::Stdio;

use serde_json::{Value, json};

use super::{api, run};
use crate::support::tenant_api;

const CODE: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

fn ana() -> Value {
    json!({
        "member": "ana@example.com", "who": "person:1234", "groups": ["auditor", "developer"], "apps": ["shop"],
        "installs": ["globex"], "invited_at": 0, "invited_by": { "by": "sweep" }, "accepted_at": 1000,
    })
}

fn ben() -> Value {
    json!({
        "member": "ben@example.com", "groups": ["owner"], "apps": [], "installs": [], "invited_at": 0,
        "invited_by": { "by": "sweep" }, "expires_at": 1000,
    })
}

fn caller() -> Value {
    json!({
        "who": "person:1234", "name": "ana@example.com", "groups": ["developer"], "apps": [], "installs": ["globex"],
        "is_member": true, "permissions": ["list_apps", "list_installs"],
    })
}

/// Answers a list of both members, and each change with `changed`.
fn answers(changed: Value) -> impl Fn(&str, &str) -> (u16, Value) + Send + 'static {
    move |method, _| match method {
        "GET" => (200, json!({ "items": [ana(), ben()] })),
        _ => (200, changed.clone()),
    }
}

#[test]
fn list_shows_members_and_invitations_with_their_groups() {
    let (address, _) = api(answers(Value::Null));
    let place = tempfile::tempdir().unwrap();

    let (_, out, _) = run(&address, place.path(), &["member", "list"]);
    let (_, json, _) = run(&address, place.path(), &["member", "list", "--json"]);
    let (none, _) = api(|_, _| (200, json!({ "items": [] })));
    let (_, empty, _) = run(&none, place.path(), &["member", "list"]);

    assert!(out.starts_with("MEMBER "), "{out}");
    assert!(out.contains("auditor, developer") && out.contains("member since 1970-01-01 00:00:01Z"), "{out}");
    assert!(out.contains("invitation expired at 1970-01-01 00:00:01Z"), "{out}");
    assert_eq!(serde_json::from_str::<Value>(&json).unwrap()[0]["who"], "person:1234");
    assert!(empty.starts_with("there are no members; `freehold member invite` invites one"), "{empty}");
}

#[test]
fn invite_sends_the_groups_and_prints_the_code_and_what_to_do_with_it() {
    let (address, sent) = api(answers(json!({ "member": ben(), "code": CODE })));
    let place = tempfile::tempdir().unwrap();
    let words =
        ["member", "invite", "ben@example.com", "--group", "owner", "--group", "auditor", "--install", "globex"];

    let (code, out, error) = run(&address, place.path(), &words);

    assert_eq!(code, 0, "{error}");
    assert!(out.contains(&format!("freehold member accept {CODE}")), "{out}");
    let request = json!({ "member": "ben@example.com", "groups": ["auditor", "owner"], "installs": ["globex"] });
    assert_eq!(*sent.lock().unwrap(), [("/v1/members".to_owned(), request)]);
}

#[test]
fn an_iam_principal_is_a_member_at_once_and_gets_no_code() {
    let (address, sent) = api(answers(json!({ "member": ana() })));
    let place = tempfile::tempdir().unwrap();
    let arn = "arn:aws:iam::111111111111:role/ci";

    let (_, out, _) = run(&address, place.path(), &["member", "invite", "ci", "--group", "developer", "--iam", arn]);

    assert!(out.starts_with("member `ana@example.com`") && !out.contains("code"), "{out}");
    assert_eq!(sent.lock().unwrap()[0].1["iam"], arn);
}

#[test]
fn set_replaces_what_is_named_and_keeps_the_rest() {
    let place = tempfile::tempdir().unwrap();
    for (words, groups, apps, installs) in [
        (&["--group", "operator"][..], json!(["operator"]), json!(["shop"]), json!(["globex"])),
        (&["--no-apps", "--install", "initech"], json!(["auditor", "developer"]), Value::Null, json!(["initech"])),
        (&["--no-installs"], json!(["auditor", "developer"]), json!(["shop"]), Value::Null),
    ] {
        let (address, sent) = api(answers(ana()));

        let (code, out, error) =
            run(&address, place.path(), &[&["member", "set", "ana@example.com"][..], words].concat());

        assert_eq!(code, 0, "{error}");
        assert!(out.starts_with("member `ana@example.com`; groups: auditor, developer; apps: shop"), "{out}");
        let (path, body) = &sent.lock().unwrap()[0];
        assert_eq!(path, "/v1/members/ana@example.com");
        assert_eq!((&body["groups"], &body["apps"], &body["installs"]), (&groups, &apps, &installs), "{words:?}");
    }
    let (address, sent) = api(answers(ana()));
    let (nothing, _, _) = run(&address, place.path(), &["member", "set", "ana@example.com"]);
    let (absent, _, error) = run(&address, place.path(), &["member", "set", "eve", "--group", "owner"]);
    assert_eq!((nothing, absent), (2, 3));
    assert!(error.contains("member `eve` does not exist; `freehold member list` shows all members"), "{error}");
    assert!(sent.lock().unwrap().is_empty());
}

#[test]
fn remove_asks_for_the_name_and_says_what_it_does() {
    let (address, sent) = api(answers(json!({ "member": "ana@example.com" })));
    let place = tempfile::tempdir().unwrap();
    let remove = |words: &[&str]| run(&address, place.path(), &[&["member", "remove"], words].concat());

    let (unasked, _, asks) = remove(&["ana@example.com"]);
    let (other, _, differs) = remove(&["ana@example.com", "--confirm", "ben@example.com"]);
    assert!(sent.lock().unwrap().is_empty());
    let (code, out, error) = remove(&["ana@example.com", "--confirm", "ana@example.com"]);

    assert_eq!((unasked, other, code), (2, 2, 0), "{error}");
    assert!(asks.contains("pass `--confirm ana@example.com`"), "{asks}");
    assert!(differs.contains("`ben@example.com` is not the member's name"), "{differs}");
    assert!(out.starts_with("member `ana@example.com` is removed, and may do nothing"), "{out}");
    assert_eq!(sent.lock().unwrap()[0].0, "/v1/members/ana@example.com/remove");
}

#[test]
fn accept_sends_the_code_and_does_not_print_what_is_not_a_code() {
    let (address, sent) = api(|_, _| (200, caller()));
    let place = tempfile::tempdir().unwrap();

    let (code, out, error) = run(&address, place.path(), &["member", "accept", &CODE.to_uppercase()]);
    let (wrong, _, why) = run(&address, place.path(), &["member", "accept", "another-secret"]);

    assert_eq!((code, wrong), (0, 2), "{error}");
    assert!(out.starts_with("you are a member now\n\nana@example.com, a member of the tenant"), "{out}");
    assert!(why.contains("not the code of an invitation") && !why.contains("another-secret"), "{why}");
    assert_eq!(*sent.lock().unwrap(), [("/v1/invitations/accept".to_owned(), json!({ "code": CODE }))]);
}

#[test]
fn accept_reads_a_code_that_is_not_an_argument_from_stdin() {
    let (address, sent) = api(|_, _| (200, caller()));
    let place = tempfile::tempdir().unwrap();
    let accept = |line: &str| {
        let mut command = tenant_api::freehold(&address, place.path(), &["member", "accept"]);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(line.as_bytes()).unwrap();
        child.wait().unwrap().code()
    };

    let (wrong, right) = (accept("\n"), accept(&format!(" {CODE}\n")));

    assert_eq!((wrong, right), (Some(2), Some(0)));
    assert_eq!(*sent.lock().unwrap(), [("/v1/invitations/accept".to_owned(), json!({ "code": CODE }))]);
}

#[test]
fn whoami_names_the_principal_the_groups_and_what_the_caller_may_do() {
    let (address, _) = api(|_, path| (if path == "/v1/caller" { 200 } else { 404 }, caller()));
    let place = tempfile::tempdir().unwrap();

    let (_, out, _) = run(&address, place.path(), &["whoami"]);
    let (_, json, _) = run(&address, place.path(), &["whoami", "--json"]);

    assert_eq!(
        out,
        "ana@example.com, a member of the tenant\nauthenticated as: person:1234\ngroups: developer\n\
         installs: globex\nmay: list_apps, list_installs\n"
    );
    assert_eq!(serde_json::from_str::<Value>(&json).unwrap(), caller());
}

#[test]
fn a_denied_request_ends_with_the_message_of_the_api_and_its_exit_code() {
    let message = "`ana@example.com` may not list members: this needs the permission `list_members`, which the group \
                   owner has; ask somebody who may change members: ben@example.com";
    let (address, _) = api(move |_, _| (403, json!({ "error": { "kind": "forbidden", "message": message } })));
    let place = tempfile::tempdir().unwrap();

    let (code, _, error) = run(&address, place.path(), &["member", "list"]);
    let (_, _, json) = run(&address, place.path(), &["member", "list", "--json"]);

    assert_eq!(code, 6);
    assert_eq!(error, format!("error: {message}\n"));
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["error"]["code"], "denied");
    assert_eq!(json["error"]["way_out"], "ask somebody who may change members: ben@example.com");
}
