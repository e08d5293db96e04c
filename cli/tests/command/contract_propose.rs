//! `freehold contract propose` with the real binary: a contract and audit records in files, and nothing else.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Output;

use ed25519_dalek::SigningKey;
use freehold_protocol::audit::{AuditEvent, AuditRecord};
use freehold_protocol::contract::SignedContract;
use freehold_protocol::order::Mode;
use freehold_protocol::report::Fence;
use freehold_protocol::{Digest, Envelope, JobId, Payload};
use serde_json::{Value, json};

use crate::support::{freehold, text};

const FENCE: Fence = Fence { dispatch: 1, receive: 1 };

fn seal<P: Payload>(payload: &P) -> String {
    Envelope::seal(payload, &[&SigningKey::from_bytes(&[3; 32])]).unwrap().to_json().unwrap()
}

fn contract() -> String {
    let document = json!({ "Version": "2012-10-17", "Statement": [
        { "Effect": "Allow", "Action": ["iam:*Role", "s3:*"], "Resource": "*" },
        { "Effect": "Allow", "Action": "iam:*User", "Resource": "*" },
    ]});
    let inline = |name: &str| json!({ "inline": { "name": name, "document": document.to_string() } });
    let contract: SignedContract = serde_json::from_value(json!({
        "tenant": "acme",
        "signed_at": 1_700_000_000_000_u64,
        "contract": {
            "format": 1,
            "app": "shop",
            "version": Digest::of(b"version"),
            "artifacts": {},
            "terms": {
                "format": 1,
                "app": "shop",
                "roles": [
                    { "role": "provision", "on": true, "policies": [inline("build"), { "managed": "ReadOnlyAccess" }] },
                    { "role": "maintenance", "on": true, "policies": [inline("repair")] },
                ],
                "hosts": [],
                "actions": [],
            },
        },
    }))
    .unwrap();
    seal(&contract)
}

fn record(seq: u64, event: AuditEvent) -> String {
    let key = SigningKey::from_bytes(&[3; 32]).verifying_key();
    seal(&AuditRecord {
        tenant: "acme".parse().unwrap(),
        install: "globex".parse().unwrap(),
        runner: freehold_protocol::envelope::PublicKey::from(key).key_id(),
        seq,
        previous: Digest::of(b""),
        at: serde_json::from_value(json!(1_700_000_000_000_u64 + seq)).unwrap(),
        event,
    })
}

fn job(letter: char) -> JobId {
    serde_json::from_value(json!(format!("job_{}", letter.to_string().repeat(20)))).unwrap()
}

fn started(job: JobId, group: &str) -> AuditEvent {
    AuditEvent::Started {
        workflow: serde_json::from_value(json!("wf_00000000000000000001")).unwrap(),
        job,
        fence: FENCE,
        work: "terraform_module".to_owned(),
        mode: Mode::Provision,
        group: Some(group.parse().unwrap()),
        serial: None,
        role: None,
        asked_by: None,
        order: Digest::of(b"order"),
        sent_at: None,
    }
}

fn used(job: JobId, answered: &[&str], refused: &[&str]) -> AuditEvent {
    let count = |actions: &[&str]| actions.iter().map(|action| ((*action).to_owned(), 1)).collect::<BTreeMap<_, _>>();
    AuditEvent::IamUsed { job, fence: FENCE, answered: count(answered), refused: count(refused) }
}

/// A directory as `aws s3 sync` makes it, with a file for each record.
fn audit(place: &Path) {
    let folder = place.join("audit/a-runner");
    std::fs::create_dir_all(&folder).unwrap();
    let events = [
        started(job('a'), "network"),
        used(job('a'), &["CreateRole", "GetRole"], &[]),
        started(job('b'), "storage"),
        used(job('b'), &["GetRole"], &["TagRole"]),
    ];
    for (seq, event) in (1..).zip(events) {
        std::fs::write(folder.join(format!("{seq:012}-x.json")), record(seq, event)).unwrap();
    }
}

fn propose(place: &Path, more: &[&str]) -> Output {
    std::fs::write(place.join("shop.contract.json"), contract()).unwrap();
    let propose = ["contract", "propose", "shop.contract.json", "--audit", "audit"];
    freehold(place, &propose).args(more).output().unwrap()
}

#[test]
fn actions_that_no_job_used_are_left_out_and_the_smaller_policies_written() {
    let place = tempfile::tempdir().unwrap();
    audit(place.path());

    let done = propose(place.path(), &["-o", "smaller"]);
    let json: Value = serde_json::from_slice(&propose(place.path(), &["--json"]).stdout).unwrap();

    assert_eq!(done.status.code(), Some(0), "{}", text(&done.stderr));
    let stdout = text(&done.stdout);
    for line in [
        "app shop: 4 audit records of globex, ",
        "role provision: 2 jobs",
        "build   iam:*Role  iam:CreateRole, iam:GetRole, iam:TagRole",
        "build   iam:*User  not used; the new policy does not allow it",
        "ReadOnlyAccess stays: AWS manages it",
        "role maintenance: 0 jobs",
        "repair stays: no job ran under this role",
        "Only `iam:` actions are compared",
    ] {
        assert!(stdout.contains(line), "{line}\n{stdout}");
    }
    let written = std::fs::read_to_string(place.path().join("smaller/provision.build.json")).unwrap();
    let action = json!(["iam:CreateRole", "iam:GetRole", "iam:TagRole", "s3:*"]);
    let statement = json!([{ "Effect": "Allow", "Action": action, "Resource": "*" }]);
    assert_eq!(serde_json::from_str::<Value>(&written).unwrap()["Statement"], statement);
    assert_eq!(std::fs::read_dir(place.path().join("smaller")).unwrap().count(), 1);
    assert_eq!(json["roles"][0]["used"]["GetRole"], json!(["network", "storage"]));
}

#[test]
fn records_with_an_event_of_a_newer_version_are_counted() {
    let place = tempfile::tempdir().unwrap();
    audit(place.path());
    let newer = serde_json::from_value(json!({ "event": "resumed", "job": job('a') })).unwrap();
    std::fs::write(place.path().join("audit/a-runner/000000000005-x.json"), record(5, newer)).unwrap();

    let done = propose(place.path(), &[]);

    let stdout = text(&done.stdout).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(stdout.contains("app shop: 5 audit records of globex, "), "{stdout}");
    assert!(stdout.contains("1 record with an event of a newer version: this version"), "{stdout}");
}

#[test]
fn a_file_that_is_there_stays_unless_it_may_be_replaced() {
    let place = tempfile::tempdir().unwrap();
    audit(place.path());
    std::fs::create_dir(place.path().join("smaller")).unwrap();
    std::fs::write(place.path().join("smaller/provision.build.json"), "mine").unwrap();

    let done = propose(place.path(), &["-o", "smaller"]);
    let kept = std::fs::read_to_string(place.path().join("smaller/provision.build.json")).unwrap();
    let forced = propose(place.path(), &["-o", "smaller", "--force"]);

    assert_eq!((done.status.code(), kept.as_str()), (Some(4), "mine"), "{}", text(&done.stderr));
    assert!(text(&done.stderr).contains("pass `--force` to replace it"), "{}", text(&done.stderr));
    assert_eq!(forced.status.code(), Some(0), "{}", text(&forced.stderr));
    let replaced = std::fs::read_to_string(place.path().join("smaller/provision.build.json")).unwrap();
    assert!(replaced.contains("iam:TagRole"), "{replaced}");
}

#[test]
fn what_is_not_an_audit_trail_is_named_with_its_line() {
    let place = tempfile::tempdir().unwrap();
    let missing = propose(place.path(), &[]);
    std::fs::create_dir(place.path().join("audit")).unwrap();
    let empty = propose(place.path(), &[]);
    let lines = format!("{}\nnonsense\n", record(1, started(job('a'), "network")));
    std::fs::write(place.path().join("audit/audit.jsonl"), lines).unwrap();
    let damaged = propose(place.path(), &[]);

    assert!(text(&missing.stderr).contains("`audit`"), "{}", text(&missing.stderr));
    assert_eq!(empty.status.code(), Some(2));
    assert!(text(&empty.stderr).contains("aws s3 sync"), "{}", text(&empty.stderr));
    assert_eq!(damaged.status.code(), Some(2));
    assert!(text(&damaged.stderr).contains("`audit/audit.jsonl`, line 2,"), "{}", text(&damaged.stderr));
}
