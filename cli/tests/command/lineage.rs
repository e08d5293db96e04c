//! `freehold lineage` as a person runs it: the real binary, a bundle without any network, and a tenant API with
//! prepared answers.

use std::path::{Path, PathBuf};
use std::process::Output;

use ed25519_dalek::SigningKey;
use freehold_protocol::Envelope;
use freehold_protocol::envelope::PublicKey;
use freehold_protocol::report::{Hello, Report, ReportBody};
use serde_json::{Value, json};

use crate::support::{self, tenant_api, text};

/// The root key of the golden bundle.
const ROOT_KEY: &str = "iojj3XQJ8ZX9UtstPLpdcspnCb8dlBIb83SIAbQPb1w=";

fn golden() -> Value {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../crates/protocol/golden/lineage.json");
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

fn written(dir: &Path, bundle: &Value) -> PathBuf {
    let path = dir.join("web.lineage.json");
    std::fs::write(&path, bundle.to_string()).unwrap();
    path
}

fn freehold(dir: &Path, args: &[&str]) -> Output {
    // Nothing answers there: whoever asked would fail.
    let nobody = [("AWS_ENDPOINT_URL", "http://127.0.0.1:1"), ("AWS_EC2_METADATA_DISABLED", "true")];
    support::freehold(dir, args).envs(nobody).output().unwrap()
}

fn verify(bundle: &Value, more: &[&str]) -> Output {
    let place = tempfile::tempdir().unwrap();
    let path = written(place.path(), bundle);
    freehold(place.path(), &[&["lineage", "verify", path.to_str().unwrap()], more].concat())
}

#[test]
fn a_whole_bundle_is_verified_link_by_link() {
    let done = verify(&golden(), &["--root-key", ROOT_KEY]);

    assert_eq!(done.status.code(), Some(0), "{}", text(&done.stderr));
    assert!(text(&done.stderr).starts_with("the runner keys are unanchored: the bundle itself names them"));
    insta::assert_snapshot!(text(&done.stdout), @r"
    sha256:05b3abf2579a5eb66403cd78be557fd860633a1fe2103c7642030defe32c657f of tenant acme
    ├─ built as shop/web bld_e2ebd70dcaf832586cef at 2026-11-21 08:33:41Z
    │  ├─ source     registry.example/web:1.2
    │  ├─ resolved   oci://registry.example/web sha256:05b3abf2579a5eb66403cd78be557fd860633a1fe2103c7642030defe32c657f
    │  ├─ statement  signed by key 34750f98bd59fcfc946da45aaabe933b
    │  └─ job        job_797a566d49d90d2939e8 attempt 1.1 by runner 506ef1879d748ce0713b0dd01da32ad2
    └─ deployed to globex (account 222222222222) as web at 2026-11-21 09:33:41Z
       ├─ order      wf_1c7824b12bde3a4546e9 signed by key 6a3803d5f059902a1c6dafbc9ba47292
       ├─ build      bld_e2ebd70dcaf832586cef
       ├─ approval   none required
       └─ job        job_6804c79273041f1b3ac5 attempt 1.1 by runner 7300c0ae1429cd153252736a781b78f4

    INSTALL  ACCOUNT       COMPONENT  DEPLOYED              JOB                       ATTEMPT  RUNNER        APPROVAL
    globex   222222222222  web        2026-11-21 09:33:41Z  job_6804c79273041f1b3ac5  1.1      7300c0ae1429  none required

    LINK              STATE  OF                                                                       SAYS
    root key          ok     sha256:05b3abf2579a5eb66403cd78be557fd860633a1fe2103c7642030defe32c657f  key 34750f98bd59fcfc946da45aaabe933b of tenant acme
    statement         ok     shop/web bld_e2ebd70dcaf832586cef                                        signed by the root key for urn:freehold:tenant:acme:build-runner
    source            ok     shop/web bld_e2ebd70dcaf832586cef                                        oci://registry.example/web sha256:05b3abf2579a5eb66403cd78be557fd860633a1fe2103c7642030defe32c657f
    build order       ok     shop/web bld_e2ebd70dcaf832586cef                                        order 1 of job job_797a566d49d90d2939e8, signed for the tenant
    build runner key  ok     shop/web bld_e2ebd70dcaf832586cef                                        key 506ef1879d748ce0713b0dd01da32ad2 announced from i-1
    build report      ok     shop/web bld_e2ebd70dcaf832586cef                                        attempt 1.1 succeeded, as runner 506ef1879d748ce0713b0dd01da32ad2 reported
    build times       ok     shop/web bld_e2ebd70dcaf832586cef                                        ordered 21000 ms before the report arrived
    order             ok     globex/web job_6804c79273041f1b3ac5                                      order 1 of job job_6804c79273041f1b3ac5, signed for the tenant
    sync              ok     globex/web job_6804c79273041f1b3ac5                                      sha256:05b3abf2579a5eb66403cd78be557fd860633a1fe2103c7642030defe32c657f of build bld_e2ebd70dcaf832586cef
    approval          ok     globex/web job_6804c79273041f1b3ac5                                      none required
    runner key        ok     globex/web job_6804c79273041f1b3ac5                                      key 7300c0ae1429cd153252736a781b78f4 announced from i-1; unanchored
    deploy report     ok     globex/web job_6804c79273041f1b3ac5                                      attempt 1.1 succeeded, as runner 7300c0ae1429cd153252736a781b78f4 reported
    times             ok     globex/web job_6804c79273041f1b3ac5                                      ordered 21000 ms before the report arrived

    13 of 13 links are valid under root key 34750f98bd59fcfc946da45aaabe933b
    ");
}

#[test]
fn a_bundle_without_a_known_key_says_so() {
    let done = verify(&golden(), &["--json"]);

    let report: Value = serde_json::from_slice(&done.stdout).unwrap();
    assert_eq!(done.status.code(), Some(0));
    assert_eq!(
        (&report["checked"]["verified"], &report["checked"]["root_key_compared"]),
        (&json!(true), &json!(false))
    );
    insta::assert_snapshot!(text(&done.stderr), @r#"
    {"note":"nobody checked the root key 34750f98bd59fcfc946da45aaabe933b, which comes from the bundle itself; pass the root key that you know as `--root-key KEY`"}
    {"note":"the runner keys are unanchored: the bundle itself names them, and nobody compared them; a customer passes the keys of their runners to `freehold lineage verify` as `--runner KEY` or `--audit DIR`"}
    "#);
}

#[test]
fn a_bundle_under_another_root_key_does_not_hold() {
    let done = verify(&golden(), &["--root-key", "11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo="]);

    assert_eq!(done.status.code(), Some(1));
    insta::assert_snapshot!(text(&done.stderr), @"error: link `root key` of sha256:05b3abf2579a5eb66403cd78be557fd860633a1fe2103c7642030defe32c657f failed verification: the document's root key is `34750f98bd59fcfc946da45aaabe933b`, expected `21fe31dfa154a261626bf854046fd227` (and 7 more)");
}

/// Returns the golden bundle with a deploy that no runner of the customer reported: announcement and report are of keys that
/// were made for it.
fn forged() -> Value {
    let runner = SigningKey::from_bytes(&[7; 32]);
    let public = PublicKey::from(runner.verifying_key());
    let mut bundle = golden();
    let proof = &mut bundle["uses"][0]["proof"];
    let message = |proof: &Value, key: &str| -> Report {
        serde_json::from_value::<Envelope>(proof[key].clone()).unwrap().peek().unwrap()
    };
    let (hello, report) = (message(proof, "hello"), message(proof, "report"));
    let ReportBody::Hello(body) = hello.body else { panic!("no hello") };
    let hello = Report {
        runner: public.key_id(),
        body: ReportBody::Hello(Hello { public_key: public.clone(), ..body }),
        ..hello
    };
    let report = Report { runner: public.key_id(), ..report };
    proof["hello"] = serde_json::to_value(Envelope::seal(&hello, &[&runner]).unwrap()).unwrap();
    proof["report"] = serde_json::to_value(Envelope::seal(&report, &[&runner]).unwrap()).unwrap();
    proof["runner"] = json!(public.key_id());
    bundle
}

#[test]
fn a_report_of_a_key_that_is_not_the_runners_does_not_hold() {
    let own = ["--root-key", ROOT_KEY, "--runner", "7300c0ae1429cd153252736a781b78f4"];

    let whole = verify(&golden(), &own);
    let swapped = verify(&forged(), &own);
    let not_compared = verify(&forged(), &["--root-key", ROOT_KEY, "--json"]);

    assert_eq!(whole.status.code(), Some(0), "{}", text(&whole.stderr));
    assert_eq!(swapped.status.code(), Some(1));
    let error = text(&swapped.stderr);
    assert!(error.contains("link `runner key` of globex/web job_6804c79273041f1b3ac5 failed verification"), "{error}");
    assert!(error.contains("expected `7300c0ae1429cd153252736a781b78f4`"), "{error}");
    let answer: Value = serde_json::from_slice(&not_compared.stdout).unwrap();
    assert_eq!(
        (&answer["checked"]["verified"], &answer["checked"]["anchored"]),
        (&json!(true), &json!(false)),
        "nobody can tell from the bundle alone"
    );
    let warned = text(&not_compared.stderr);
    assert!(warned.contains("the runner keys are unanchored: the bundle itself names them"), "{warned}");
}

/// The vendor has every message and every row, and makes a runner of its own. The customer's account names another key.
#[test]
fn a_bundle_is_anchored_by_the_keys_beside_the_customers_audit_records() {
    let bundle = golden();
    let hello: Envelope = serde_json::from_value(bundle["uses"][0]["proof"]["hello"].clone()).unwrap();
    let ReportBody::Hello(hello) = hello.peek::<Report>().unwrap().body else { panic!("no hello") };
    let audit = tempfile::tempdir().unwrap();
    let id = hello.public_key.key_id();
    std::fs::create_dir(audit.path().join(id.as_str())).unwrap();
    std::fs::write(audit.path().join(format!("{id}.pub")), format!("{}\n", hello.public_key)).unwrap();
    let own = ["--root-key", ROOT_KEY, "--audit", audit.path().to_str().unwrap()];

    let whole = verify(&bundle, &own);
    let of_the_vendor = verify(&forged(), &own);

    assert_eq!(whole.status.code(), Some(0), "{}", text(&whole.stderr));
    assert!(text(&whole.stdout).contains("announced from i-1; anchored in the customer's account"));
    assert!(!text(&whole.stderr).contains("unanchored"));
    assert_eq!(of_the_vendor.status.code(), Some(1));
    assert!(!text(&of_the_vendor.stdout).contains("; anchored"), "{}", text(&of_the_vendor.stdout));
}

/// Changes one character of a signed message's payload; it stays base64.
fn bend(bundle: &mut Value, pointer: &str) {
    let payload = bundle.pointer_mut(pointer).unwrap();
    let text = payload.as_str().unwrap();
    let at = text.len() / 2;
    let other = if &text[at..=at] == "A" { "B" } else { "A" };
    *payload = json!(format!("{}{other}{}", &text[..at], &text[at + 1..]));
}

#[test]
fn whatever_is_changed_in_a_bundle_is_named() {
    let messages = [
        ("/builds/0/provenance/statement/payload", "statement"),
        ("/builds/0/proof/order/payload", "build order"),
        ("/builds/0/proof/hello/payload", "build runner key"),
        ("/builds/0/proof/report/payload", "build report"),
        ("/uses/0/proof/order/payload", "order"),
        ("/uses/0/proof/hello/payload", "runner key"),
        ("/uses/0/proof/report/payload", "deploy report"),
    ];
    let facts = [
        ("/builds/0/source/reference", json!("registry.example/web:9"), "source"),
        ("/builds/0/build", json!("bld_00000000000000000000"), "statement"),
        ("/builds/0/proof/at", json!(1), "build times"),
        ("/uses/0/account", json!("999999999999"), "order"),
        ("/uses/0/build", json!("bld_00000000000000000000"), "sync"),
        ("/uses/0/proof/at", json!(1), "times"),
        ("/uses/0/proof/report", Value::Null, "deploy report"),
        ("/builds", json!([]), "build"),
    ];
    let mut cases = Vec::new();
    for (pointer, link) in messages {
        let mut bundle = golden();
        bend(&mut bundle, pointer);
        cases.push((pointer, bundle, link));
    }
    for (pointer, value, link) in facts {
        let mut bundle = golden();
        *bundle.pointer_mut(pointer).unwrap() = value;
        cases.push((pointer, bundle, link));
    }

    for (pointer, bundle, link) in cases {
        let done = verify(&bundle, &["--root-key", ROOT_KEY]);

        assert_eq!(done.status.code(), Some(1), "{pointer}: {}", text(&done.stderr));
        let stderr = text(&done.stderr);
        assert!(stderr.starts_with(&format!("error: link `{link}` of ")), "{pointer}: {stderr}");
    }
}

#[test]
fn an_invalid_bundle_is_refused_by_name() {
    let place = tempfile::tempdir().unwrap();
    std::fs::write(place.path().join("x.json"), "{\"format\": 2}").unwrap();

    let wrong = freehold(place.path(), &["lineage", "verify", "x.json"]);
    let missing = freehold(place.path(), &["lineage", "verify", "y.json"]);
    let nothing = freehold(place.path(), &["lineage"]);
    let half = freehold(place.path(), &["lineage", "--component", "web"]);

    assert_eq!((wrong.status.code(), missing.status.code()), (Some(2), Some(2)));
    assert_eq!((nothing.status.code(), half.status.code()), (Some(2), Some(2)));
    insta::assert_snapshot!(text(&wrong.stderr) + &text(&missing.stderr), @r"
    error: `x.json` is not a lineage bundle: missing field `tenant` at line 1 column 13; pass the file that `freehold lineage --bundle FILE` wrote
    error: there is no file `y.json`; pass the file that `freehold lineage --bundle FILE` wrote
    ");
}

/// The request for the first page about `globex`.
const PAGES: &str = concat!(
    "/v1/artifacts/sha256:05b3abf2579a5eb66403cd78be557fd860633a1fe2103c7642030defe32c657f/lineage",
    "?install=globex"
);
const DIGEST: &str = "sha256:05b3abf2579a5eb66403cd78be557fd860633a1fe2103c7642030defe32c657f";

/// Returns what the API says of `globex`, where `job` deployed the component.
fn install(job: &str) -> Value {
    json!({
        "install": "globex", "app": "shop", "account": "222222222222", "region": "eu-west-1", "state": "ready",
        "components": [{
            "component": "web", "artifact": DIGEST, "version": DIGEST, "job": job, "at": 1_795_253_621_000_u64,
        }],
    })
}

fn ask(api: &str, dir: &Path, args: &[&str]) -> Output {
    tenant_api::freehold(api, dir, args).output().unwrap()
}

#[test]
fn a_bundle_of_what_is_deployed_is_all_that_offline_verification_needs() {
    let place = tempfile::tempdir().unwrap();
    let mut other = golden();
    other["uses"][0]["proof"]["install"] = json!("initech");
    other["uses"][0]["proof"]["job"] = json!("job_00000000000000000000");
    let job = golden()["uses"][0]["proof"]["job"].as_str().unwrap().to_owned();
    let api = tenant_api::of_answers(vec![
        ("/v1/installs/globex", install(&job)),
        (PAGES, json!({ "lineage": other, "next": "use#globex" })),
        (
            concat!(
                "/v1/artifacts/sha256:05b3abf2579a5eb66403cd78be557fd860633a1fe2103c7642030defe32c657f/lineage",
                "?install=globex&after=use%23globex"
            ),
            json!({ "lineage": golden() }),
        ),
    ]);
    let args = ["lineage", "--install", "globex", "--component", "web", "--verify", "--bundle", "web.json", "--json"];

    let done = ask(&api, place.path(), &args);
    let offline = freehold(place.path(), &["lineage", "verify", "web.json", "--root-key", ROOT_KEY]);

    assert_eq!(done.status.code(), Some(0), "{}", text(&done.stderr));
    let report: Value = serde_json::from_slice(&done.stdout).unwrap();
    // The other install's use, which a tenant of an earlier version returns too, is not in it.
    assert_eq!(report["lineage"], golden());
    let bundle: Value = serde_json::from_slice(&std::fs::read(place.path().join("web.json")).unwrap()).unwrap();
    assert_eq!(bundle, golden());
    assert_eq!(offline.status.code(), Some(0), "{}", text(&offline.stderr));

    std::fs::write(place.path().join("web.json"), "mine").unwrap();
    let refused = ask(&api, place.path(), &args);
    assert_eq!(refused.status.code(), Some(4), "{}", text(&refused.stderr));
    assert!(text(&refused.stderr).contains("`web.json` exists and was left as it is"), "{}", text(&refused.stderr));
    assert_eq!(std::fs::read_to_string(place.path().join("web.json")).unwrap(), "mine");
}

#[test]
fn a_deploy_without_a_record_is_a_gap() {
    let place = tempfile::tempdir().unwrap();
    let api = tenant_api::of_answers(vec![
        ("/v1/installs/globex", install("job_00000000000000000000")),
        (PAGES, json!({ "lineage": golden() })),
    ]);

    let done = ask(&api, place.path(), &["lineage", "--install", "globex", "--component", "web", "--verify"]);
    let unknown = ask(&api, place.path(), &["lineage", "--install", "globex", "--component", "api"]);

    assert_eq!((done.status.code(), unknown.status.code()), (Some(1), Some(3)));
    insta::assert_snapshot!(text(&done.stderr) + &text(&unknown.stderr), @r"
    nobody checked the root key 34750f98bd59fcfc946da45aaabe933b, which comes from the tenant API; pass the root key that you know as `--root-key KEY`
    error: link `deploy report` of globex job_00000000000000000000 failed verification: the record of the deploy is missing
    error: component `api` is not deployed to install `globex`; `freehold install show globex` lists what is deployed there
    ");
}

#[test]
fn a_bundle_without_a_deploy_does_not_hold_for_a_runner() {
    let mut bundle = golden();
    bundle["uses"] = json!([]);

    let done = verify(&bundle, &["--root-key", ROOT_KEY, "--runner", "7300c0ae1429cd153252736a781b78f4"]);

    assert_eq!(done.status.code(), Some(1));
    assert!(text(&done.stderr).contains("the record of a deploy"), "{}", text(&done.stderr));
}
