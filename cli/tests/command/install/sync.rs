//! `freehold install sync`: what it asks the tenant for, so that installs are as their files say.

use std::path::Path;
use std::sync::{Arc, Mutex};

use freehold_app::AppError;
use freehold_domain::absence::Absence;
use freehold_domain::install::InstallError;
use serde_json::{Value, json};

use crate::support::{loopback, tenant_api, text};

/// What the API was asked to change: the paths and bodies of all posts.
type Posts = Arc<Mutex<Vec<(String, Value)>>>;

const WEB: &str = "# image\nname = \"web\"\ntype = \"container_image\"\ntoggleable = true\n[public]\nimage_url = \"x/web\"\ntag = \"1\"\n";
const INPUTS: &str = "\
[[group]]\nname = \"main\"\ndescription = \"d\"\n
[[input]]\nname = \"replicas\"\ndisplay_name = \"N\"\ndescription = \"d\"\ngroup = \"main\"\ntype = \"number\"\n
[[input]]\nname = \"release\"\ndisplay_name = \"N\"\ndescription = \"d\"\ngroup = \"main\"\ntype = \"json\"\n
[[input]]\nname = \"key\"\ndisplay_name = \"N\"\ndescription = \"d\"\ngroup = \"main\"\nsensitive = true\n";
const GLOBEX: &str = "name = \"globex\"\napproval_option = \"prompt\"\n[aws_account]\nregion = \"eu-west-1\"\n[inputs]\nreplicas = \"3\"\nrelease = '\"1.29\"'\nkey = \"hunter22\"\n[component_toggles]\nweb = false\n";
const INITECH: &str = "name = \"initech\"\n[aws_account]\nregion = \"eu-west-1\"\n[inputs]\nreplicas = \"2\"\n";

/// The path of a file and its text.
type File<'a> = (&'a str, &'a str);

/// Writes an app with these files of installs.
fn app(place: &Path, installs: &[File<'_>]) {
    let all = [
        ("metadata.toml", "version = \"v2\"\ndisplay_name = \"Shop\"\ndescription = \"d\"\n"),
        ("inputs.toml", INPUTS),
    ];
    for (path, text) in all.iter().chain(&[("components/web.toml", WEB)]).chain(installs) {
        let file = place.join("shop").join(path);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, text).unwrap();
    }
}

/// Starts a tenant API with the install `globex`, whose replicas, toggle and approval option are these; returns its address.
/// With the option `refused`, it refuses every other one. With the option `unlabelled`, it is of a release without labels.
fn api(replicas: u32, web: bool, option: &'static str) -> (String, Posts) {
    let posts: Posts = Arc::default();
    let seen = Arc::clone(&posts);
    let version = format!("sha256:{}", "0".repeat(64));
    let known = if ["refused", "unlabelled"].contains(&option) { "approve-all" } else { option };
    let globex = json!({ "install": "globex", "app": "shop", "account": "222222222222", "region": "eu-west-1", "state": "ready",
        "approval_option": known, "own_labels": { "team": "shop", "tier": "1" } });
    let inputs = json!({ "install": "globex", "app": "shop", "version": version, "inputs": [
        { "name": "replicas", "type": "number", "required": false, "sensitive": false, "from": "vendor", "value": replicas },
        { "name": "release", "type": "json", "required": false, "sensitive": false, "from": "vendor", "value": "1.29" }] });
    let toggles = json!({ "install": "globex", "app": "shop", "version": version,
        "toggles": [{ "component": "web", "on": web, "from": "vendor", "deployed": true }] });
    let latest = json!({ "app": "shop", "latest": version, "number": 1, "updated_at": 0 });
    let schema = json!({ "app": "shop", "version": version, "schema": { "properties": {} } });
    let address = loopback::listen(move |method, path, body| {
        if method == "POST" {
            seen.lock().unwrap().push((path.to_owned(), serde_json::from_str(body).unwrap()));
        }
        let answer = match (method, path) {
            ("POST", "/v1/installs") if body.contains("umbrella") => {
                return tenant_api::refusal(Absence::App("shop".parse().unwrap()).into());
            }
            ("POST", "/v1/installs") => {
                let mut created: Value = serde_json::from_str(body).unwrap();
                let labels = if option == "unlabelled" { Value::Null } else { created["labels"].take() };
                json!({ "install": { "install": "initech", "app": "shop", "account": "333333333333",
                "region": "eu-west-1", "state": "waiting for runner", "own_labels": labels.as_object().cloned().unwrap_or_default() },
                "workflow": "wf_00000000000000000001" })
            }
            ("POST", "/v1/installs/globex/approvals") if option == "refused" => {
                return tenant_api::refusal(InstallError::Forgetting("globex".parse().unwrap()).into());
            }
            ("POST", "/v1/installs/globex/labels") if option == "unlabelled" => {
                return tenant_api::refusal(AppError::not_found(format!("there is no route `POST {path}`")));
            }
            (_, "/v1/installs/globex" | "/v1/installs/globex/approvals" | "/v1/installs/globex/labels") => {
                globex.clone()
            }
            (_, "/v1/installs/globex/inputs") => inputs.clone(),
            (_, "/v1/installs/globex/toggles") => toggles.clone(),
            (_, "/v1/apps/shop") => latest.clone(),
            (_, path) if path.ends_with("/inputs-schema") => schema.clone(),
            (_, path) => return tenant_api::absent(path),
        };
        (200, answer.to_string())
    });
    (address, posts)
}

/// Runs `freehold install sync shop`; returns its exit code, and what it printed and complained of.
fn sync(api: &str, place: &Path, args: &[&str]) -> (i32, String, String) {
    let done = tenant_api::freehold(api, place, &[&["install", "sync", "shop"], args].concat()).output().unwrap();
    (done.status.code().unwrap(), text(&done.stdout), text(&done.stderr))
}

#[test]
fn what_differs_is_changed_and_what_is_missing_is_created() {
    let place = tempfile::tempdir().unwrap();
    app(place.path(), &[("installs/globex.toml", GLOBEX), ("installs/new/initech.toml", INITECH)]);
    let (address, posts) = api(1, true, "approve-all");
    let account = ["--account", "initech=333333333333"];

    let (planned, would, warned) = sync(&address, place.path(), &[&account[..], &["--dry-run"]].concat());
    let before = posts.lock().unwrap().len();
    let (code, out, _) = sync(&address, place.path(), &account);

    let rows = "\
globex   installs/globex.toml       replicas=3; web off; approvals prompt
initech  installs/new/initech.toml  created in 333333333333, eu-west-1; replicas=2";
    assert_eq!((planned, before), (0, 0), "{would}{warned}");
    assert_eq!(would.trim_end(), format!("INSTALL  FILE                       WOULD CHANGE\n{rows}"));
    assert!(warned.contains("input `key` is sensitive") && !format!("{warned}{would}{out}").contains("hunter22"));
    let next = "next: freehold deploy globex\nnext: freehold install stack initech -o initech.yaml";
    assert_eq!((code, out.trim_end()), (0, &*format!("INSTALL  FILE                       CHANGED\n{rows}\n{next}")));
    let create = json!({ "install": "initech", "app": "shop", "account": "333333333333", "region": "eu-west-1",
        "inputs": { "replicas": "2" } });
    assert_eq!(
        *posts.lock().unwrap(),
        [
            ("/v1/installs/globex/inputs".to_owned(), json!({ "inputs": { "replicas": "3" } })),
            ("/v1/installs/globex/toggles".to_owned(), json!({ "toggles": { "web": false } })),
            ("/v1/installs/globex/approvals".to_owned(), json!({ "approval_option": "prompt" })),
            ("/v1/installs".to_owned(), create),
        ]
    );
}

#[test]
fn labels_become_those_of_the_file_and_need_no_deploy() {
    let place = tempfile::tempdir().unwrap();
    let [globex, initech] = [(GLOBEX, "env = \"production\"\ntier = 1"), (INITECH, "tier = 3")]
        .map(|(file, labels)| format!("{file}[labels]\n{labels}\n"));
    app(place.path(), &[("installs/globex.toml", &globex), ("installs/initech.toml", &initech)]);
    let (address, posts) = api(3, false, "prompt");

    let (code, out, error) = sync(&address, place.path(), &["--account", "initech=333333333333"]);

    assert_eq!(code, 0, "{error}");
    assert!(out.contains("globex   installs/globex.toml   label env=production; label team removed\n"), "{out}");
    assert!(out.contains("created in 333333333333, eu-west-1; replicas=2; label tier=3\n"), "{out}");
    assert!(!out.contains("next: freehold deploy"), "{out}");
    let relabel = json!({ "labels": { "env": "production", "team": null } });
    let create = json!({ "install": "initech", "app": "shop", "account": "333333333333", "region": "eu-west-1",
        "inputs": { "replicas": "2" }, "labels": { "tier": "3" } });
    let expected = [("/v1/installs/globex/labels", relabel), ("/v1/installs", create)];
    assert_eq!(*posts.lock().unwrap(), expected.map(|(path, body)| (path.to_owned(), body)));
}

#[test]
fn a_tenant_of_a_release_without_labels_is_not_taken_for_one_that_has_set_them() {
    let account = ["--account", "initech=333333333333"];
    for (file, text, status, expected) in [
        ("globex.toml", "name = \"globex\"\n", 3, "installs/globex.toml: there is no route"),
        ("initech.toml", INITECH, 1, "it created install `initech` without its labels; update the tenant with"),
    ] {
        let place = tempfile::tempdir().unwrap();
        app(place.path(), &[(&format!("installs/{file}"), &format!("{text}[labels]\ntier = 3\n"))]);
        let (address, _) = api(1, true, "unlabelled");

        let (code, out, error) = sync(&address, place.path(), if file == "initech.toml" { &account[..] } else { &[] });

        assert_eq!((code, out.as_str()), (status, ""), "{error}");
        assert!(error.split_whitespace().collect::<Vec<_>>().join(" ").contains(expected), "{error}");
    }
}

#[test]
fn what_is_as_its_file_says_is_left_alone() {
    let place = tempfile::tempdir().unwrap();
    app(place.path(), &[("installs/globex.toml", GLOBEX), ("installs/initech.toml", INITECH)]);
    let (address, posts) = api(3, false, "prompt");

    let (code, out, error) = sync(&address, place.path(), &["--only", "globex", "--json"]);

    assert_eq!(code, 0, "{error}");
    let answer: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(answer["installs"], json!([{ "install": "globex", "file": "installs/globex.toml", "change": {} }]));
    assert!(posts.lock().unwrap().is_empty());
}

#[test]
fn nothing_is_changed_when_one_of_the_files_cannot_be_synced() {
    let elsewhere = GLOBEX.replace("eu-west-1", "us-east-1");
    let unplaced = "name = \"initech\"\n";
    let twice = ["--account", "globex=333333333333", "--account", "globex=222222222222"];
    let cases: [(&[File<'_>], &[&str], &str); 8] = [
        (
            &[("installs/a.toml", GLOBEX), ("installs/b.toml", INITECH)],
            &[],
            "installs/b.toml: install `initech` does not exist yet; pass the customer's AWS account with `--account initech=ID`",
        ),
        (
            &[("installs/a.toml", &elsewhere)],
            &[],
            "installs/a.toml: install `globex` is in eu-west-1, and its file names us-east-1; an install stays in its region",
        ),
        (
            &[("installs/a.toml", GLOBEX)],
            &["--account", "globex=333333333333"],
            "install `globex` is in account 222222222222, not in 333333333333",
        ),
        (
            &[("installs/a.toml", GLOBEX), ("installs/b.toml", unplaced)],
            &["--account", "initech=333333333333"],
            "its file names no AWS region; add `[aws_account]`",
        ),
        (
            &[("installs/a.toml", GLOBEX)],
            &["--only", "globx"],
            "no file in `installs/` describes install `globx`; files describe `globex`",
        ),
        (&[("installs/a.toml", GLOBEX)], &twice, "`--account` names two accounts of install `globex`; give one"),
        (
            &[("installs/a.toml", GLOBEX), ("installs/b.toml", INITECH)],
            &["--only", "globex", "--account", "initech=333333333333"],
            "`--account` names install `initech`, and `--only` leaves it out",
        ),
        (&[], &[], "`shop` describes no install in `installs/`; write one file for each install"),
    ];
    for (installs, args, expected) in cases {
        let place = tempfile::tempdir().unwrap();
        app(place.path(), installs);
        let (address, posts) = api(1, true, "approve-all");

        let (code, _, error) = sync(&address, place.path(), args);

        let error = error.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(code == 2 && error.contains(expected), "{code} {error}");
        assert!(posts.lock().unwrap().is_empty(), "{expected}");
    }
}

#[test]
fn what_was_done_before_a_failure_is_shown() {
    let place = tempfile::tempdir().unwrap();
    let another = INITECH.replace("initech", "umbrella");
    app(place.path(), &[("installs/globex.toml", GLOBEX), ("installs/umbrella.toml", &another)]);
    let (address, posts) = api(1, false, "prompt");

    let (code, out, error) = sync(&address, place.path(), &["--account", "umbrella=444444444444"]);

    assert_eq!((code, posts.lock().unwrap().len()), (3, 2), "{error}");
    assert!(
        out.starts_with("INSTALL  FILE                  CHANGED\nglobex   installs/globex.toml  replicas=3\n"),
        "{out}"
    );
    assert!(error.contains("installs/umbrella.toml: app `shop` does not exist"), "{error}");
}

#[test]
fn a_failure_names_what_it_left_changed_in_its_install() {
    let place = tempfile::tempdir().unwrap();
    app(place.path(), &[("installs/globex.toml", GLOBEX)]);
    let (address, posts) = api(1, true, "refused");

    let (code, _, error) = sync(&address, place.path(), &[]);

    assert_eq!((code, posts.lock().unwrap().len()), (4, 3), "{error}");
    let expected = "installs/globex.toml: after its inputs and toggles changed: install `globex` is being forgotten";
    assert!(error.split_whitespace().collect::<Vec<_>>().join(" ").contains(expected), "{error}");
}
