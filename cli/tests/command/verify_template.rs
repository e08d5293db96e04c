//! `freehold customer verify-template` as a customer runs it: the real binary, a file, and nothing else.

use std::path::Path;
use std::process::Output;

use ed25519_dalek::pkcs8::EncodePublicKey as _;
use ed25519_dalek::pkcs8::spki::der::pem::LineEnding;
use ed25519_dalek::{Signer as _, SigningKey};
use serde_json::Value;

use crate::support::{freehold, text};

const RENDERED: &str = include_str!("../../../crates/app/golden/install-with-inputs.yaml");

fn verify(template: &[u8], more: &[&str]) -> Output {
    let place = tempfile::tempdir().unwrap();
    std::fs::write(place.path().join("stack.yaml"), template).unwrap();
    run(place.path(), more)
}

fn run(place: &Path, more: &[&str]) -> Output {
    freehold(place, &["customer", "verify-template", "stack.yaml"]).args(more).output().unwrap()
}

#[test]
fn a_stack_that_keeps_every_rule_is_reported_with_its_hash() {
    let done = verify(RENDERED.as_bytes(), &[]);
    let hash = text(&done.stdout).lines().last().unwrap().replace("SHA-256: ", "");

    let known = verify(RENDERED.as_bytes(), &["--sha256", &hash.to_uppercase()]);
    let other = verify(format!("{RENDERED}\n").as_bytes(), &["--sha256", &hash]);

    assert_eq!(done.status.code(), Some(0), "{}", text(&done.stderr));
    assert!(
        text(&done.stdout).starts_with("stack.yaml follows all 10 rules:\n- as-rendered: each resource, parameter,"),
        "{}",
        text(&done.stdout)
    );
    assert_eq!(known.status.code(), Some(0), "{}", text(&known.stderr));
    assert_eq!(other.status.code(), Some(1));
    assert!(text(&other.stderr).contains("it is not the template that was published"), "{}", text(&other.stderr));
}

#[test]
fn the_first_digits_of_a_sha_256_are_not_one() {
    let short = verify(RENDERED.as_bytes(), &["--sha256", "4b5e57f6eb2f..."]);

    assert_eq!(short.status.code(), Some(2));
    let expected = "`4b5e57f6eb2f...` is not a SHA-256, which has 64 hexadecimal digits; pass the whole value that the vendor \
                    published\n";
    assert!(text(&short.stderr).contains(expected), "{}", text(&short.stderr));
}

#[test]
fn findings_have_lines_and_end_with_1() {
    let worse = RENDERED.replace("BlockPublicPolicy: true", "BlockPublicPolicy: false");
    let line = worse.lines().position(|line| line.contains("BlockPublicPolicy")).unwrap() + 1;

    let answer = verify(worse.as_bytes(), &[]);
    let json = verify(worse.as_bytes(), &["--json"]);

    assert_eq!((answer.status.code(), json.status.code()), (Some(1), Some(1)));
    assert!(text(&answer.stdout).contains("no-public-access"), "{}", text(&answer.stdout));
    let begins = format!("error: stack.yaml:{line}: no-public-access: ");
    assert!(text(&answer.stderr).starts_with(&begins), "{}", text(&answer.stderr));
    assert!(!text(&answer.stderr).contains("more)"), "{}", text(&answer.stderr));
    let json: Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(json["findings"][0]["line"], line);
    assert_eq!(json["findings"][0]["of"], "Bucket");
}

#[test]
fn the_answer_says_whom_and_what_the_template_names() {
    let done = verify(RENDERED.as_bytes(), &[]);
    let json = verify(RENDERED.as_bytes(), &["--json"]);

    let stdout = text(&done.stdout);
    for line in [
        "- vendor: acme, account 111111111111, public key iojj3XQJ8ZX9UtstPLpdcspnCb8dlBIb83SIAbQPb1w=\n",
        "- install: globex in account 222222222222, eu-west-1\n",
        "- queues: https://sqs.eu-west-1.amazonaws.com/111111111111/fh-acme--globex.fifo and https://sqs.",
    ] {
        assert!(stdout.contains(line), "{stdout}");
    }
    let json: Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(json["names"]["tenant_account"], "111111111111");
    assert_eq!((&json["findings"], &json["added"]), (&Value::Array(Vec::new()), &Value::Array(Vec::new())));
}

#[test]
fn a_resource_that_freehold_does_not_render_is_found_unless_the_customer_says_that_it_is_theirs() {
    let more = RENDERED
        .replace("\nOutputs:\n", "\n  Alarm: {Type: AWS::SNS::Topic, Properties: {KmsMasterKeyId: x}}\n\nOutputs:\n");

    let found = verify(more.as_bytes(), &[]);
    let allowed = verify(more.as_bytes(), &["--allow", "Alarm=AWS::SNS::Topic"]);
    let wrong = verify(more.as_bytes(), &["--allow", "Alarm"]);

    assert_eq!([found.status.code(), allowed.status.code(), wrong.status.code()], [Some(1), Some(0), Some(2)]);
    assert!(
        text(&found.stderr).contains("has no resource `Alarm` of type `AWS::SNS::Topic`"),
        "{}",
        text(&found.stderr)
    );
    let stdout = text(&allowed.stdout);
    assert!(stdout.contains("Added by you and not checked:\n- line "), "{stdout}");
    assert!(stdout.contains(": Alarm, AWS::SNS::Topic\n"), "{stdout}");
    assert!(text(&wrong.stderr).contains("write its logical id and its type"), "{}", text(&wrong.stderr));
}

#[test]
fn an_output_of_the_customers_own_is_named_by_an_option() {
    let more = RENDERED.replace("\nOutputs:\n", "\nOutputs:\n  AlarmTopic: {Value: mine}\n");

    let found = verify(more.as_bytes(), &[]);
    let allowed = verify(more.as_bytes(), &["--allow-output", "AlarmTopic"]);
    let wrong = verify(more.as_bytes(), &["--allow-output", "Alarm-Topic"]);

    assert_eq!([found.status.code(), allowed.status.code(), wrong.status.code()], [Some(1), Some(0), Some(2)]);
    assert!(text(&found.stderr).contains("pass `--allow-output AlarmTopic`"), "{}", text(&found.stderr));
    assert!(text(&allowed.stdout).contains(": AlarmTopic, output\n"), "{}", text(&allowed.stdout));
    assert!(text(&wrong.stderr).contains("`Alarm-Topic` is not an output"), "{}", text(&wrong.stderr));
}

#[test]
fn findings_beyond_the_hundredth_are_counted_and_not_shown() {
    let outputs: String = (0..103).map(|at| format!("  X{at}: {{Value: mine}}\n")).collect();
    let more = RENDERED.replace("\nOutputs:\n", &format!("\nOutputs:\n{outputs}"));

    let done = verify(more.as_bytes(), &[]);

    assert_eq!(done.status.code(), Some(1));
    let stdout = text(&done.stdout);
    assert!(stdout.contains("\n\n3 findings more not shown\n"), "{stdout}");
    assert_eq!(stdout.matches("this install's stack has no output").count(), 100, "{stdout}");
}

#[test]
fn a_template_of_another_stack_is_refused_with_one_sentence() {
    let other = "Resources:\n  Topic: {Type: AWS::SNS::Topic}\n  Queue: {Type: AWS::SQS::Queue}\n";
    let stripped = RENDERED.replace("  Freehold: {Tenant", "  Other: {Tenant");

    let (done, json) = (verify(other.as_bytes(), &[]), verify(other.as_bytes(), &["--json"]));
    let without_name = verify(stripped.as_bytes(), &[]);

    assert_eq!([&done, &json, &without_name].map(|done| done.status.code()), [Some(1); 3]);
    let sentence = "error: `stack.yaml` is not the template of an install stack: it has no `Metadata.Freehold`, which \
                    each such template has; pass the template that the vendor sent";
    assert!(text(&done.stderr).starts_with(sentence), "{}", text(&done.stderr));
    assert!(text(&without_name.stderr).starts_with(sentence), "{}", text(&without_name.stderr));
    assert!(!text(&done.stdout).contains("as-rendered"), "{}", text(&done.stdout));
    let json: Value = serde_json::from_slice(&json.stdout).unwrap();
    assert!(!json["findings"].as_array().unwrap().is_empty(), "{json}");
    assert_eq!(json["is_install_stack"], false);
}

#[test]
fn an_invalid_template_is_invalid_input() {
    let empty = verify(b"", &[]);
    let binary = verify(&[0xff, 0xfe], &[]);
    let absent = run(tempfile::tempdir().unwrap().path(), &[]);

    assert_eq!([empty.status.code(), binary.status.code()], [Some(2); 2]);
    assert_eq!(
        text(&empty.stderr),
        "error: `stack.yaml` is not a template: line 1: the template is empty; pass the template that the vendor sent, which \
         `freehold install stack INSTALL -o FILE` wrote\n"
    );
    assert!(text(&binary.stderr).contains("is not text"), "{}", text(&binary.stderr));
    assert!(text(&absent.stderr).contains("`stack.yaml`"), "{}", text(&absent.stderr));
}

#[test]
fn a_queue_on_this_machine_is_a_finding_unless_the_install_is_a_trial() {
    let local = RENDERED.replace("https://sqs.eu-west-1.amazonaws.com/", "http://127.0.0.1:4566/");
    let line = local.lines().position(|line| line.contains("http://127.0.0.1:4566/")).unwrap() + 1;

    let real = verify(local.as_bytes(), &[]);
    let trial = verify(local.as_bytes(), &["--local"]);
    let json = verify(local.as_bytes(), &["--json"]);

    assert_eq!([&real, &trial, &json].map(|done| done.status.code()), [Some(1), Some(0), Some(1)]);
    let stderr = text(&real.stderr);
    assert!(
        stderr.starts_with(&format!("error: stack.yaml:{line}: as-rendered: queue `http://127.0.0.1:")),
        "{stderr}"
    );
    assert!(stderr.contains("pass `--local` if the install is a trial in a local cloud"), "{stderr}");
    let stdout = text(&trial.stdout);
    assert!(
        stdout.starts_with("stack.yaml follows all 10 rules:") && stdout.contains("\nWarning: queue `"),
        "{stdout}"
    );
    let json: Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!((json["findings"].as_array().unwrap().len(), &json["findings"][0]["line"]), (1, &Value::from(line)));
}

#[test]
fn a_runner_is_found_in_the_signed_checksums_of_its_release_or_refused() {
    let (runner, other) = ("a".repeat(64), "b".repeat(64));
    let (url, sha256) =
        ("reach no object of the vendor's.\n    Default: \"", "starts no other program.\n    Default: \"");
    let template = RENDERED.replacen(url, &format!("{url}https://downloads.acme.example/freehold-runner"), 1).replacen(
        sha256,
        &format!("{sha256}{runner}"),
        1,
    );
    let key = SigningKey::from_bytes(&[7; 32]);
    let release = |sums: &str, signer: &SigningKey| {
        let place = tempfile::tempdir().unwrap();
        let write = |name: &str, bytes: &[u8]| std::fs::write(place.path().join(name), bytes).unwrap();
        write("stack.yaml", template.as_bytes());
        write("SHA256SUMS", sums.as_bytes());
        write("SHA256SUMS.sig", &signer.sign(sums.as_bytes()).to_bytes());
        write("release-key.pub", key.verifying_key().to_public_key_pem(LineEnding::LF).unwrap().as_bytes());
        run(place.path(), &["--release", "SHA256SUMS", "--release-key", "release-key.pub"])
    };
    let sums = |digest: &str| format!("{other}  arm64/freehold\n{digest}  arm64/freehold-runner\n");

    let known = release(&sums(&runner), &key);
    let unknown = release(&sums(&other), &key);
    let as_another_program = release(&format!("{runner}  arm64/freehold\n"), &key);
    let of_another = release(&sums(&runner), &SigningKey::from_bytes(&[8; 32]));
    let place = tempfile::tempdir().unwrap();
    std::fs::write(place.path().join("stack.yaml"), &template).unwrap();
    std::fs::write(place.path().join("SHA256SUMS"), "").unwrap();
    std::fs::write(place.path().join("SHA256SUMS.sig"), "").unwrap();
    let pem = "-----BEGIN PRIVATE KEY-----\nMC4CAQ==\n-----END PRIVATE KEY-----\n";
    std::fs::write(place.path().join("release-key.pem"), pem).unwrap();
    let private = run(place.path(), &["--release", "SHA256SUMS", "--release-key", "release-key.pem"]);

    assert_eq!(known.status.code(), Some(0), "{}", text(&known.stderr));
    assert!(
        text(&known.stdout).contains("The runner is `arm64/freehold-runner` of the release."),
        "{}",
        text(&known.stdout)
    );
    for wrong in [unknown, as_another_program] {
        assert_eq!(wrong.status.code(), Some(1));
        assert!(
            text(&wrong.stderr).contains("the runner is not the program of this release"),
            "{}",
            text(&wrong.stderr)
        );
    }
    assert_eq!(private.status.code(), Some(2));
    assert!(text(&private.stderr).contains("`release-key.pem` is a private key"), "{}", text(&private.stderr));
    assert!(text(&private.stderr).contains("-pubout -out release-key.pub"), "{}", text(&private.stderr));
    assert_eq!(of_another.status.code(), Some(1));
    assert!(text(&of_another.stderr).contains("is not the signature of `SHA256SUMS`"), "{}", text(&of_another.stderr));
}
