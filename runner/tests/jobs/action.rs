//! Actions: steps, outputs, failures, credentials.

use std::collections::BTreeMap;
use std::sync::Arc;

use freehold_protocol::order::{
    ActionStep, Artifact, Package, RunAction, STEP_ARTIFACT, STEP_LAYER, StepDirectory, Work,
};
use freehold_protocol::report::Outcome;
use freehold_runner::job::StopReason;
use freehold_runner::kinds::execute;
use freehold_skips::have;
use serde_json::json;

use crate::artifacts::of_layer;
use crate::cloud::Cloud;
use crate::fixture::{ACCOUNT, Bench, IamRecords, NoGrants, eventually, outputs, reason};

fn command(name: &str, command: &str) -> ActionStep {
    ActionStep { name: name.into(), command: command.into(), inline_contents: String::new(), env_vars: BTreeMap::new() }
}

fn script(name: &str, contents: &str) -> ActionStep {
    ActionStep {
        name: name.into(),
        command: String::new(),
        inline_contents: contents.into(),
        env_vars: BTreeMap::new(),
    }
}

fn bench(steps: Vec<ActionStep>) -> Bench {
    let env_vars = BTreeMap::from([("INSTALL".to_owned(), "{{ .nuon.install.id }}".to_owned())]);
    Bench::new(Work::Action(RunAction {
        action: "check".parse().unwrap(),
        steps,
        directories: Vec::new(),
        env_vars,
        idempotent: false,
        cluster: None,
        image: String::new(),
    }))
}

#[tokio::test]
async fn steps_run_in_order_and_their_outputs_are_merged() {
    if !have(&["bwrap"]) {
        return;
    }
    let bench = bench(vec![
        command("first", "echo \"at $INSTALL\"; echo '{\"a\": 1, \"b\": 1}' > $FREEHOLD_OUTPUTS"),
        script("second", "#!/bin/sh\necho '{\"b\": {\"c\": [2]}}' > $NUON_ACTIONS_OUTPUT_FILEPATH\n"),
        script("third", "echo '{{ .nuon.install.id }}' > note\n"),
        command("fourth", "cat note"),
    ]);

    let outcome = execute(&bench.job).await;

    let log = bench.log();
    assert_eq!(outputs(outcome), json!({ "a": 1, "b": { "c": [2] } }), "{log}");
    assert!(log.contains("first | at globex-prod\n") && log.contains("fourth | globex-prod\n"), "{log}");
}

#[tokio::test]
async fn a_script_for_sh_is_run_by_bash_where_there_is_one() {
    if !have(&["bwrap", "bash"]) {
        return;
    }
    let lines = "set -o pipefail\necho \"${BASH_VERSION:+bash} $-\"\n";
    let bench = bench(vec![
        script("env", &format!("#!/usr/bin/env sh\n{lines}")),
        script("path", &format!("#!/bin/sh -e\n{lines}")),
    ]);

    let outcome = execute(&bench.job).await;

    let log = bench.log();
    assert_eq!(outputs(outcome), json!({}), "{log}");
    assert!(log.contains("env | bash ") && log.contains("path | bash e"), "{log}");
}

#[tokio::test]
async fn a_failing_step_ends_the_action_with_its_name_and_code() {
    if !have(&["bwrap"]) {
        return;
    }
    let bench = bench(vec![command("check", "echo bad >&2; exit 3"), command("never", "echo never")]);

    let outcome = execute(&bench.job).await;

    let (reason, partial) = reason(outcome);
    assert_eq!(reason, "step `check` ended with exit code 3");
    assert!(partial);
    assert!(!bench.log().contains("never"));
}

#[tokio::test]
async fn outputs_may_be_lines_of_keys_and_texts() {
    if !have(&["bwrap"]) {
        return;
    }
    let steps = vec![command("s", "printf 'status=up\\n\\nurl=http://x/?a=b\\nstatus=down\\n' >> $FREEHOLD_OUTPUTS")];

    let outcome = execute(&bench(steps).job).await;

    assert_eq!(outputs(outcome), json!({ "status": "down", "url": "http://x/?a=b" }));
}

#[tokio::test]
async fn outputs_that_are_not_an_object_are_refused() {
    if !have(&["bwrap"]) {
        return;
    }
    for (step, word) in [
        (command("s", "echo '[1]' > $FREEHOLD_OUTPUTS"), "not a JSON object"),
        (command("s", "printf 'a=1\\nno pair\\n' > $FREEHOLD_OUTPUTS"), "not lines of the form KEY=TEXT"),
        (command("s", "rm $FREEHOLD_OUTPUTS; ln -s /etc/passwd $FREEHOLD_OUTPUTS"), "not in a regular file"),
        (command("s", "rm $FREEHOLD_OUTPUTS; mkfifo $FREEHOLD_OUTPUTS"), "not in a regular file"),
        (command("s", "rm $FREEHOLD_OUTPUTS; ln -s /dev/zero $FREEHOLD_OUTPUTS"), "not in a regular file"),
        (command("s", "ln $FREEHOLD_OUTPUTS other"), "not in a regular file"),
        (command("s", "head -c 70000 /dev/zero > $FREEHOLD_OUTPUTS"), "at most"),
    ] {
        let outcome = execute(&bench(vec![step]).job).await;

        assert!(reason(outcome).0.contains(word));
    }
}

#[tokio::test]
async fn what_a_step_leaves_under_the_names_of_later_files_leads_the_runner_nowhere() {
    if !have(&["bwrap", "mkfifo"]) {
        return;
    }
    let mut bench = bench(Vec::new());
    let key = bench.directory.path().join("runner.key");
    std::fs::write(&key, "key").unwrap();
    let links: Vec<String> = ["step-1", "outputs-1.json", "step-3"]
        .iter()
        .map(|name| format!("ln -sf {} /workspace/{name}", key.display()))
        .collect();
    bench.change_order(|order| {
        let Work::Action(action) = &mut order.work else { panic!("an action") };
        action.steps = vec![
            command("first", &links.join(" && ")),
            script("second", "echo '{\"a\": 1}' > $FREEHOLD_OUTPUTS; mkfifo step-2 outputs-2.json step-4\n"),
            script("third", "rm step-4; ln step-2 step-4; ln -s /dev/zero outputs-3.json; echo third\n"),
            script("fourth", "echo fourth\n"),
            script("fifth", "echo fifth\n"),
        ];
    });

    let outcome = execute(&bench.job).await;

    let log = bench.log();
    assert_eq!(outputs(outcome), json!({ "a": 1 }), "{log}");
    assert!(log.contains("third | third\n") && log.contains("fifth | fifth\n"), "{log}");
    assert_eq!(std::fs::read_to_string(&key).unwrap(), "key");
}

#[tokio::test]
async fn a_template_that_names_nothing_fails_before_anything_runs() {
    let bench = bench(vec![command("s", "echo {{ .nuon.install.nope }}")]);

    let (reason, partial) = reason(execute(&bench.job).await);

    assert!(reason.contains("step `s`, command") && reason.contains("nope"), "{reason}");
    assert!(!partial);
}

#[tokio::test]
async fn a_step_gets_the_modes_credentials_from_the_endpoint_and_its_log_shows_none_of_them() {
    if !have(&["bwrap", "curl"]) {
        return;
    }
    let fetch = "env; curl -s --noproxy '*' -H \"Authorization: $AWS_CONTAINER_AUTHORIZATION_TOKEN\" \
                 $AWS_CONTAINER_CREDENTIALS_FULL_URI | tee $FREEHOLD_OUTPUTS";
    let bench = bench(vec![command("who", fetch)]);

    let outcome = execute(&bench.job).await;

    let log = bench.log();
    assert_eq!(outputs(outcome), json!({ "AccessKeyId": "222222222222", "SecretAccessKey": "secret" }));
    assert!(log.contains("who | AWS_CONTAINER_AUTHORIZATION_TOKEN=[redacted]\n"), "{log}");
    assert!(log.contains(r#"{"AccessKeyId":"[redacted]","SecretAccessKey":"[redacted]"}"#), "{log}");
}

#[tokio::test]
async fn a_cancelled_action_ends_as_cancelled() {
    if !have(&["bwrap"]) {
        return;
    }
    let bench = bench(vec![command("long", "touch started; sleep 31536010")]);
    let (stop, started) = (bench.stop.clone(), bench.job.workspace.join("started"));

    let (outcome, ()) = tokio::join!(execute(&bench.job), async {
        eventually("the step starts", || started.exists()).await;
        stop.send(Some(StopReason::Cancelled)).unwrap();
    });

    assert_eq!(outcome, Outcome::Cancelled);
}

#[tokio::test]
async fn iam_is_answered_by_the_runner_and_what_is_used_is_recorded() {
    if !have(&["bwrap", "bash"]) {
        return;
    }
    let form = "Action=CreateUser&Version=2010-05-08&UserName=robot";
    let call = format!(
        "at=${{AWS_ENDPOINT_URL_IAM#http://}}; exec 3<>/dev/tcp/${{at%:*}}/${{at#*:}}; \
         printf 'POST / HTTP/1.1\\r\\nhost: iam\\r\\ncontent-length: {}\\r\\n\\r\\n%s' '{form}' >&3; cat <&3",
        form.len()
    );
    let mut bench = bench(vec![command("first", &call), command("second", &call)]);
    let role = format!("arn:aws:iam::{ACCOUNT}:role/fh-acme--globex-prod--custom-ops");
    bench.change_config(|config| config.roles = BTreeMap::from([("custom-ops".parse().unwrap(), role)]));
    let records = Arc::new(IamRecords::default());
    bench.job.iam = records.clone();

    let outcome = execute(&bench.job).await;

    let log = bench.log();
    assert!(matches!(outcome, Outcome::Succeeded { .. }), "{outcome:?} {log}");
    assert_eq!(log.matches("<Code>AccessDenied</Code>").count(), 2, "{log}");
    assert_eq!(records.all(), ["CreateUser robot", "CreateUser robot", "used CreateUser"]);
}

/// Returns a step's directory of these files, of which those that end in `.sh` may be executed.
async fn directory(cloud: &Cloud, files: &[(&str, &str)]) -> Artifact {
    let mut tar = tar::Builder::new(flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast()));
    for (name, text) in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(text.len() as u64);
        header.set_mode(if name.ends_with(".sh") { 0o755 } else { 0o644 });
        tar.append_data(&mut header, name, text.as_bytes()).unwrap();
    }
    let layer = tar.into_inner().unwrap().finish().unwrap();
    of_layer(cloud, Package::StepDirectory, layer, (STEP_LAYER, STEP_ARTIFACT)).await
}

/// Returns a job whose steps with these indexes run in `artifact`.
fn in_directory(cloud: &Cloud, artifact: &Artifact, steps: Vec<ActionStep>, indexes: &[u32]) -> Bench {
    let mut bench = bench(steps);
    bench.job.grants = cloud.grants(artifact, 0, "");
    bench.change_order(|order| {
        let Work::Action(action) = &mut order.work else { panic!("an action") };
        let component = "network".parse().unwrap();
        action.directories = vec![StepDirectory { steps: indexes.to_vec(), component, artifact: artifact.clone() }];
    });
    bench
}

const SCRIPT: &str = "#!/bin/sh\necho \"$1 in $PWD: $(cat lib/text)\"\necho '{\"a\": 1}' > $FREEHOLD_OUTPUTS\n";

#[tokio::test]
async fn a_step_runs_a_script_in_its_own_copy_of_a_directory() {
    if !have(&["bwrap"]) {
        return;
    }
    let test = "action::a_step_runs_a_script_in_its_own_copy_of_a_directory";
    let Some(cloud) = Cloud::here(test).await else { return };
    let artifact = directory(&cloud, &[("check.sh", SCRIPT), ("lib/text", "hello")]).await;
    let steps = || {
        vec![
            command("first", "./check.sh {{ .nuon.install.id }}; echo changed > lib/text; echo own > own"),
            command("plain", "pwd; ls"),
            command("third", "./check.sh again; ls"),
        ]
    };
    let mut bench = in_directory(&cloud, &artifact, steps(), &[0, 2]);
    let without_box = in_directory(&cloud, &artifact, steps(), &[0, 2]).plain();

    let first = execute(&bench.job).await;
    let log = bench.log();
    bench.job.grants = Arc::new(NoGrants);
    bench.next_attempt();
    let second = execute(&bench.job).await;
    let plain = execute(&without_box.job).await;

    assert_eq!(
        (outputs(first), outputs(second), outputs(plain)),
        (json!({ "a": 1 }), json!({ "a": 1 }), json!({ "a": 1 }))
    );
    assert!(log.contains("first | globex-prod in /workspace/steps/1: hello\n"), "{log}");
    assert!(log.contains("third | again in /workspace/steps/3: hello\n") && !log.contains("third | own"), "{log}");
    assert!(log.contains("plain | /workspace\n") && without_box.log().contains("/steps/3: hello\n"), "{log}");
}

#[tokio::test]
async fn a_directory_that_is_tampered_with_or_not_attested_is_refused_before_a_step_runs() {
    if !have(&["bwrap"]) {
        return;
    }
    let test = "action::a_directory_that_is_tampered_with_or_not_attested_is_refused_before_a_step_runs";
    let Some(cloud) = Cloud::here(test).await else { return };
    let artifact = directory(&cloud, &[("check.sh", SCRIPT), ("lib/text", "hello")]).await;
    let other = directory(&cloud, &[("check.sh", "#!/bin/sh\necho other\n")]).await;
    let unsigned = Artifact { provenance: None, ..artifact.clone() };
    // Another artifact with the statement of this one.
    let exchanged = Artifact { provenance: artifact.provenance.clone(), ..other.clone() };
    // The blobs of the other artifact under the digest of this one.
    let tampered = Artifact { digest: artifact.digest.clone(), provenance: artifact.provenance.clone(), ..other };
    let cases =
        [(unsigned, &[0][..]), (exchanged, &[0]), (tampered, &[0]), (artifact.clone(), &[7]), (artifact, &[0, 0])];

    let mut refused = Vec::new();
    for (artifact, steps) in cases {
        let bench = in_directory(&cloud, &artifact, vec![command("s", "./check.sh")], steps);
        let (reason, partial) = reason(execute(&bench.job).await);
        assert!(!partial && !bench.log().contains("step `s` starts"), "{reason}: {}", bench.log());
        assert!(reason.starts_with("the directory `network` of a step: "), "{reason}");
        refused.push(reason);
    }

    let parts = [
        "no provenance",
        "names another artifact",
        "does not end with the manifest of artifact",
        "has no step 7",
        "step 0 has two directories",
    ];
    for (reason, part) in refused.iter().zip(parts) {
        assert!(reason.contains(part), "{part}: {refused:#?}");
    }
}

#[tokio::test]
async fn copies_of_directories_that_need_more_than_the_limits_of_the_job_are_refused_before_a_step_runs() {
    if !have(&["bwrap"]) {
        return;
    }
    let test = "action::copies_of_directories_that_need_more_than_the_limits_of_the_job_are_refused_before_a_step_runs";
    let Some(cloud) = Cloud::here(test).await else { return };
    let names: Vec<String> = (0..60).map(|at| format!("file-{at}")).collect();
    let files: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "text")).collect();
    let artifact = directory(&cloud, &files).await;
    let steps = || vec![command("first", "ls | wc -l"), command("second", "ls | wc -l")];
    let mut once = in_directory(&cloud, &artifact, steps(), &[0]);
    let mut twice = in_directory(&cloud, &artifact, steps(), &[0, 1]);
    for bench in [&mut once, &mut twice] {
        bench.change_config(|config| config.limits.files = 110);
    }

    let fits = execute(&once.job).await;
    let (reason, partial) = reason(execute(&twice.job).await);

    assert!(matches!(fits, Outcome::Succeeded { .. }), "{fits:?} {}", once.log());
    assert!(!partial && reason.contains("`limits.files` allows 110 files"), "{reason}");
    assert!(!twice.log().contains("step `first` starts"), "{}", twice.log());
}
