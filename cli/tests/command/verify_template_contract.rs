//! `freehold customer verify-template --contract`: the real binary, a template, a signed contract, and nothing else.

use std::process::Output;

use ed25519_dalek::SigningKey;
use freehold_protocol::contract::SignedContract;
use freehold_protocol::envelope::Delegate;
use freehold_protocol::{Digest, Envelope, KeyUse, Timestamp};
use serde_json::{Value, json};

use crate::support::{freehold, text};

const RENDERED: &str = include_str!("../../../crates/app/golden/install-with-inputs.yaml");
const AT: Timestamp = Timestamp::from_millis(1_700_000_000_000);
/// The key whose public half the golden stack names.
const ROOT: [u8; 32] = [1; 32];

fn contract(tenant: &str) -> SignedContract {
    let inline = |name: &str, document: &Value| json!({ "inline": { "name": name, "document": document.to_string() } });
    let statement = |action: &str, resource: &str| json!({ "Effect": "Allow", "Action": action, "Resource": resource });
    let tables = json!({
        "Version": "2012-10-17",
        "Statement": [statement("dynamodb:*", "arn:aws:dynamodb:*:222222222222:table/{{ .nuon.install.id }}-*")],
    });
    let all = json!({ "Statement": [statement("*", "*")] });
    serde_json::from_value(json!({
        "tenant": tenant,
        "signed_at": AT,
        "contract": {
            "format": 1, "app": "demo", "version": Digest::of(b"version"), "artifacts": {},
            "terms": {
                "format": 1, "app": "demo", "hosts": [], "actions": [],
                "customer_inputs": {
                    "api_token": { "sensitive": true }, "otp_seed": { "sensitive": true }, "colour": {}, "days": {},
                    "debug": {}, "domain-name": {}, "extra": {}, "limit": {}, "modules": {}, "open": {}, "replicas": {},
                    "values": {}, "zones": {},
                },
                "secrets": {
                    "admin_password": {}, "api_key": { "shared": true }, "certificate": {},
                    "session-key": { "generated": true },
                },
                "roles": [
                    { "role": "provision", "on": true,
                      "policies": [{ "managed": "PowerUserAccess" }, inline("tables", &tables)] },
                    { "role": "break-glass", "on": false, "policies": [inline("all", &all)] },
                    { "role": "custom-support", "on": true, "policies": [{ "managed": "ReadOnlyAccess" }] },
                ],
            },
        },
    }))
    .unwrap()
}

fn sealed(signed: &SignedContract, root: [u8; 32]) -> String {
    let worker = SigningKey::from_bytes(&[2; 32]);
    let delegate = Delegate {
        tenant: signed.tenant.clone(),
        public_key: worker.verifying_key().into(),
        not_before: AT,
        not_after: AT.plus_secs(60),
        send_until: None,
        uses: [KeyUse::Contracts].into(),
    };
    let cert = Envelope::seal(&delegate, &[&SigningKey::from_bytes(&root)]).unwrap();
    Envelope::seal_delegated(signed, &worker, &cert).unwrap().to_json().unwrap()
}

/// Returns the golden stack for the terms of a contract.
fn template(signed: &SignedContract) -> String {
    let digest = RENDERED.lines().find_map(|line| line.trim().strip_prefix("Default: sha256:")).unwrap();
    RENDERED.replace(&format!("sha256:{digest}"), signed.contract.terms.digest().unwrap().as_str())
}

fn verify(template: &str, contract: &str, more: &[&str]) -> Output {
    let place = tempfile::tempdir().unwrap();
    std::fs::write(place.path().join("stack.yaml"), template).unwrap();
    std::fs::write(place.path().join("demo.contract.json"), contract).unwrap();
    freehold(place.path(), &["customer", "verify-template", "stack.yaml"]).args(more).output().unwrap()
}

fn with_contract(template: &str, contract: &str) -> Output {
    verify(template, contract, &["--contract", "demo.contract.json"])
}

#[test]
fn the_roles_are_compared_with_the_contract_alone() {
    let signed = contract("acme");
    let stack = template(&signed);

    let without = verify(&stack, "", &[]);
    let with = with_contract(&stack, &sealed(&signed, ROOT));

    assert_eq!([without.status.code(), with.status.code()], [Some(0), Some(0)], "{}", text(&with.stderr));
    assert!(text(&without.stdout).contains("\nNot compared: the permissions of the roles (pass `--contract FILE`)\n"));
    assert!(!text(&with.stdout).contains("Not compared"), "{}", text(&with.stdout));
    let json: Value = serde_json::from_slice(&verify(&stack, "", &["--json"]).stdout).unwrap();
    assert_eq!(json["not_compared"], json!(["the permissions of the roles (pass `--contract FILE`)"]));
}

#[test]
fn the_answer_lists_the_roles_and_the_questions() {
    let stack = template(&contract("acme"));
    let referring = r#"{"Fn::Sub":"arn:aws:dynamodb:*:222222222222:table/${InputColour}-*"}"#;
    let stack = stack.replacen(r#""arn:aws:dynamodb:*:222222222222:table/globex-*""#, referring, 1);
    let local = stack.replace("https://sqs.eu-west-1.amazonaws.com/", "http://127.0.0.1:4566/");

    let plain = verify(&stack, "", &[]);
    let json: Value = serde_json::from_slice(&verify(&local, "", &["--json"]).stdout).unwrap();

    let stdout = text(&plain.stdout);
    for part in [
        "The roles have these permissions:\n- provision: managed policy PowerUserAccess, 1 statement of its own; \
         `EnableProvision` is on\n- maintenance: no permissions of its own; `EnableMaintenance` is on\n",
        "- custom-support: managed policy ReadOnlyAccess; `EnableCustomSupport` is on\n",
        "\n- are part of the policies of roles: InputColour\n",
    ] {
        assert!(stdout.contains(part), "{part}\n{stdout}");
    }
    assert!(!stdout.contains("Warning"), "{stdout}");
    let overview = &json["overview"];
    assert!(overview["sent_inputs"].as_array().unwrap().contains(&json!("InputColour")), "{overview}");
    assert!(overview["secret_inputs"].as_array().unwrap().contains(&json!("InputApiToken")), "{overview}");
    assert!(!overview["sent_inputs"].as_array().unwrap().contains(&json!("InputApiToken")), "{overview}");
    assert!(overview["warnings"][0].as_str().unwrap().contains("is on the machine of the runner"), "{overview}");
}

#[test]
fn a_contract_with_two_roles_of_one_name_is_refused() {
    let mut signed = contract("acme");
    signed.contract.terms.roles.push(signed.contract.terms.roles[0].clone());

    let done = with_contract(&template(&signed), &sealed(&signed, ROOT));

    assert_eq!(done.status.code(), Some(1), "{}", text(&done.stderr));
    assert!(text(&done.stderr).contains("role `provision` is given twice"), "{}", text(&done.stderr));
}

#[test]
fn a_role_that_may_do_more_than_the_contract_says_is_refused_with_line_and_reason() {
    let signed = contract("acme");
    let stack = template(&signed);
    let line = 1 + stack.lines().position(|line| line.contains("\"PolicyName\":\"tables\"")).unwrap();

    let everything = with_contract(&stack.replacen("\"dynamodb:*\"", "\"*\"", 1), &sealed(&signed, ROOT));
    let powerful = stack.replacen("aws:policy/PowerUserAccess", "aws:policy/AdministratorAccess", 1);
    let powerful = with_contract(&powerful, &sealed(&signed, ROOT));

    assert_eq!([everything.status.code(), powerful.status.code()], [Some(1), Some(1)]);
    let place = "Resources.ProvisionRole.Properties";
    let expected = format!(
        "error: stack.yaml:{line}: as-rendered: `{place}.Policies[0].PolicyDocument.Statement[0].Action` is `*`, and Freehold renders \
         `dynamodb:*`; do not launch the template, and ask the vendor for it again\n"
    );
    assert_eq!(text(&everything.stderr), expected);
    let expected = format!(
        "error: stack.yaml:{}: as-rendered: `{place}.ManagedPolicyArns[1]` is `arn:aws:iam::aws:policy/AdministratorAccess`, and Freehold \
         renders `arn:aws:iam::aws:policy/PowerUserAccess`; do not launch the template, and ask the vendor for it \
         again\n",
        line - 1
    );
    assert_eq!(text(&powerful.stderr), expected);
}

#[test]
fn an_input_whose_answer_the_vendor_would_see_against_the_contract_is_refused_with_its_line() {
    let mut signed = contract("acme");
    signed.contract.terms.customer_inputs.get_mut("days").unwrap().sensitive = true;
    let stack = template(&signed);
    let line = 1 + stack.lines().position(|line| line.starts_with("  InputDays: {")).unwrap();

    let done = with_contract(&stack, &sealed(&signed, ROOT));

    assert_eq!(done.status.code(), Some(1), "{}", text(&done.stdout));
    let expected = format!(
        "error: stack.yaml:{line}: as-rendered: `InputDays` is an input whose answer is sent to the vendor, and in the contract `days` is \
         an input whose answer stays in the account as a secret; ask the vendor for the contract of this template\n"
    );
    assert_eq!(text(&done.stderr), expected);
}

#[test]
fn a_contract_that_the_key_of_the_template_did_not_sign_is_refused() {
    let (signed, of_another) = (contract("acme"), contract("initech"));
    let stack = template(&signed);

    let other_key = with_contract(&stack, &sealed(&signed, [9; 32]));
    let other_vendor = with_contract(&stack, &sealed(&of_another, ROOT));
    let no_contract = with_contract(&stack, "{}");

    assert_eq!([&other_key, &other_vendor, &no_contract].map(|done| done.status.code()), [Some(1), Some(1), Some(2)]);
    assert!(
        text(&other_key.stderr).contains("the signature of the contract is not valid"),
        "{}",
        text(&other_key.stderr)
    );
    assert!(text(&other_vendor.stderr).contains("is a contract of vendor `initech`"), "{}", text(&other_vendor.stderr));
    assert!(text(&no_contract.stderr).contains("is not a signed contract"), "{}", text(&no_contract.stderr));
}

#[test]
fn a_contract_of_another_app_is_refused_before_its_roles_are_compared() {
    let signed = contract("acme");
    let stack = template(&signed);
    let mut of_another = signed.clone();
    of_another.contract.terms.app = "shop".parse().unwrap();

    let fits = with_contract(&stack, &sealed(&signed, ROOT));
    let other = with_contract(&stack, &sealed(&of_another, ROOT));

    assert_eq!([&fits, &other].map(|done| done.status.code()), [Some(0), Some(1)], "{}", text(&fits.stderr));
    let compared = "\nCompared: each role has the policies of the contract sha256:";
    assert!(text(&fits.stdout).contains(compared), "{}", text(&fits.stdout));
    let refused = text(&other.stderr);
    assert!(
        refused.contains("is a contract of app `shop`, and the template `stack.yaml` belongs to app `"),
        "{refused}"
    );
}
