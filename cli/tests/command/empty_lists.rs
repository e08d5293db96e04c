//! Lists and logs with nothing in them: the reason, and what to do next. `--json` prints the empty list alone.

use serde_json::json;

use crate::support::tenant_api;

const JOB: &str = "job_00000000000000000001";

fn job(state: &str) -> serde_json::Value {
    json!({
        "job": JOB, "install": "globex", "workflow": "wf_00000000000000000001", "node": "web", "mode": "provision",
        "state": state, "created_at": 1000,
    })
}

/// Returns what `freehold` prints: stdout and stderr.
fn printed(api: &str, args: &[&str]) -> (String, String) {
    let place = tempfile::tempdir().unwrap();
    let done = tenant_api::freehold(api, place.path(), args).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    assert!(done.status.success(), "{args:?}: {done:?}");
    (text(done.stdout), text(done.stderr))
}

#[test]
fn an_empty_list_says_so_and_what_to_do_next() {
    let lists = ["/v1/apps", "/v1/installs", "/v1/installs/globex/workflows", "/v1/apps/web-shop/releases"];
    let api = tenant_api::of_answers(lists.map(|path| (path, json!({ "items": [] }))).to_vec());
    for (args, says) in [
        (&["app", "list"][..], "there is no app yet; `freehold app init DIR` writes an app"),
        (&["install", "list"], "there is no install yet; `freehold install create --help` shows"),
        (&["workflow", "list", "globex"], "install `globex` has no workflow; `freehold deploy globex` starts one"),
        (
            &["release", "list", "web-shop"],
            "app `web-shop` has no release; `freehold release create web-shop --name NAME`",
        ),
    ] {
        let (text, _) = printed(&api, args);
        let (json, notes) = printed(&api, &[args, &["--json"]].concat());

        assert!(text.starts_with(says), "{text}");
        assert_eq!((json.trim(), notes.as_str()), ("[]", ""));
    }
}

#[test]
fn an_app_without_channels_says_how_to_create_one() {
    let api = tenant_api::of_answers(vec![("/v1/apps/web-shop/channels", json!([]))]);

    let (text, _) = printed(&api, &["channel", "list", "web-shop"]);
    let (json, notes) = printed(&api, &["channel", "list", "web-shop", "--json"]);

    let says = "app `web-shop` has no channel; `freehold channel move web-shop CHANNEL RELEASE` creates one";
    assert_eq!((text.trim(), json.trim(), notes.as_str()), (says, "[]", ""));
}

#[test]
fn an_empty_log_says_why_it_is_empty() {
    for (state, says) in [
        ("queued", "no runner has started it; `freehold install show globex` shows when the runner last reported"),
        ("running", "has no log yet; `freehold job logs job_00000000000000000001 -f` waits for it"),
        ("blocked", "(blocked) has no log: it wrote none, or it ended more than 30 days ago; `freehold job show job_"),
    ] {
        let ended = state == "blocked";
        let api = tenant_api::serve(move |path, _| match path.contains("/logs") {
            true => Some(json!({ "chunks": [], "cursor": "", "ended": ended })),
            false => Some(job(state)),
        });

        let (log, note) = printed(&api, &["job", "logs", JOB]);

        assert_eq!(log, "");
        assert!(note.contains(says), "{note}");
    }
}
