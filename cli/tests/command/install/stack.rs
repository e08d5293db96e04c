//! `freehold install stack` as a vendor runs it, against an API and a bucket with prepared answers.

use std::process::Command;

use freehold_protocol::Digest;
use serde_json::json;

use crate::support::loopback;

/// The stdout and the stderr of `freehold install stack globex` with `more` arguments, when the stack has this template.
fn stack(template: &'static str, more: &[&str]) -> (String, String) {
    let digest = Digest::of(template.as_bytes());
    let cloud =
        loopback::listen(move |method, path, _| {
            match path {
            "/v1/tenant" => (200, json!({
                "tenant": "acme", "account": "111111111111", "region": "eu-west-1", "reports_queue_url": "",
                "tenant_key": "11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=",
            }).to_string()),
            "/v1/installs/globex" => (200, json!({
                "install": "globex", "account": "222222222222", "region": "eu-central-1", "state": "ready",
            }).to_string()),
            "/v1/installs/globex/stack" => (200, json!({
                "install": "globex", "version": digest, "stack_name": "freehold-acme--globex", "template": template,
                "digest": digest, "title": "shop-globex", "description": "The shop\u{1b}[2J",
            }).to_string()),
            // The bucket holds the template: its size is that of the answer.
            _ if method == "HEAD" => (200, template.to_owned()),
            _ => (404, String::new()),
        }
        });
    let done = Command::new(env!("CARGO_BIN_EXE_freehold"))
        .args(["install", "stack", "globex"])
        .args(more)
        .env_clear()
        .envs([("FREEHOLD_API", cloud.as_str()), ("AWS_ENDPOINT_URL", &cloud), ("AWS_REGION", "eu-west-1")])
        .envs([("AWS_ACCESS_KEY_ID", "AKID"), ("AWS_SECRET_ACCESS_KEY", "local")])
        .stdin(std::process::Stdio::null())
        .output()
        .unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (text(done.stdout), text(done.stderr))
}

const WITH_RUNNER: &str = "Parameters:\n  RunnerSha256: {Default: \"00\"}\nResources: {}\n";

#[test]
fn with_link_stdout_has_the_link_and_nothing_else() {
    let (stdout, stderr) = stack(WITH_RUNNER, &["--link"]);

    assert_eq!(stdout.lines().count(), 1, "{stdout}{stderr}");
    let console =
        "https://eu-central-1.console.aws.amazon.com/cloudformation/home?region=eu-central-1#/stacks/quickcreate?";
    assert!(stdout.starts_with(console), "{stdout}{stderr}");
    assert!(stdout.trim_end().ends_with("&stackName=freehold-acme--globex"), "{stdout}");
    assert!(stderr.contains("It is valid for 12 hours, or until your AWS credentials expire."), "{stderr}");
}

#[test]
fn without_options_stdout_has_the_template_and_stderr_its_sha_256() {
    let (stdout, stderr) = stack(WITH_RUNNER, &[]);

    assert_eq!(stdout, WITH_RUNNER);
    assert_eq!(stderr.lines().next().unwrap(), format!("SHA-256: {}", Digest::of(WITH_RUNNER.as_bytes()).hex()));
}

#[test]
fn the_texts_of_the_app_about_its_stack_are_on_stderr_without_control_characters() {
    let (_, stderr) = stack(WITH_RUNNER, &[]);

    let texts: Vec<&str> = stderr.lines().skip(1).collect();
    assert_eq!(texts[0], "name for people: shop-globex");
    assert!(texts[1].starts_with("description: The shop") && !texts[1].contains('\u{1b}'), "{texts:?}");
    assert_eq!(texts.len(), 2);
}

#[test]
fn a_template_whose_machine_has_no_runner_comes_with_a_warning_and_the_way_out() {
    let (stdout, stderr) = stack("Resources: {}\n", &[]);

    assert_eq!(stdout, "Resources: {}\n");
    let warning = stderr.lines().skip(3).collect::<Vec<_>>().join("\n");
    insta::assert_snapshot!(warning, @"warning: the tenant names no runner for customers' machines, so a customer cannot launch a stack with a machine of its own; build the runner for arm64, put it where customers can download it, and run `freehold tenant deploy` with `--runner-url` and `--runner-sha256`. A customer who runs the runner elsewhere sets `RunnerPrincipal`.");
}
