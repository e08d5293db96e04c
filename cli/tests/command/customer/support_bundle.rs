//! `freehold support`, against a stand-in of AWS whose answers contain secrets in ten spellings.

use std::collections::{BTreeMap, HashSet};
use std::fmt::Write as _;
use std::io::Read as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Output};

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use flate2::read::GzDecoder;
use freehold_protocol::audit::AuditEvent;
use freehold_protocol::report::{AttemptEvent, Block, Outcome};
use freehold_protocol::{Digest, JobId};
use serde_json::Value;

use super::bucket::{Bucket, Story, command};
use super::live::{BUCKET, CALLER, page};
use crate::support::loopback::listen;

const TEMPLATE: &str = include_str!("../../../../crates/app/golden/install.yaml");
const WRITE: [&str; 6] = ["support", "bundle", "globex", "--tenant", "acme", "--json"];
/// The secrets of each source; each tenth of them has another spelling.
const CANARIES: usize = 1_000;
/// A run of this many characters of a printed secret is a leak.
const LEAK: usize = 16;
const PARTS: [&str; 9] = [
    "audit/chain.json",
    "audit/records.jsonl",
    "audit/reports.jsonl",
    "bundle.json",
    "stack/contract.json",
    "stack/events.jsonl",
    "stack/machines.json",
    "stack/settings.json",
    "stack/windows.json",
];

/// Printed secrets of one source.
struct Canaries(Vec<String>);

impl Canaries {
    /// Draws secrets like those of AWS; `source` is the seed.
    fn draw(source: u64) -> Self {
        let mut state = source.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let mut character = || {
            const BASE64: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            char::from(BASE64[usize::try_from(state >> 58).unwrap()])
        };
        Self((0..CANARIES).map(|at| spelled(at % 10, &(0..40).map(|_| character()).collect::<String>())).collect())
    }

    /// Returns the texts in `count` equal parts.
    fn texts(&self, count: usize) -> Vec<String> {
        self.0.chunks(self.0.len() / count).map(|some| format!("failed with {}", some.join(" and "))).collect()
    }

    /// Returns the printed secrets of which a run is among `runs`.
    fn leaks(&self, runs: &HashSet<&[u8]>) -> Vec<&str> {
        let leaks = |printed: &&str| {
            let mut ends = (LEAK..=printed.len()).step_by(LEAK / 2);
            ends.any(|end| runs.contains(&printed.as_bytes()[end - LEAK..end]))
        };
        self.0.iter().map(String::as_str).filter(leaks).collect()
    }
}

fn spelled(spelling: usize, secret: &str) -> String {
    let each = |print: fn(&mut String, char)| {
        let mut text = String::new();
        secret.chars().for_each(|character| print(&mut text, character));
        text
    };
    let hex: Vec<String> = secret.bytes().map(|byte| format!("{byte:02x}")).collect();
    match spelling {
        0 => secret.to_owned(),
        1 => STANDARD.encode(format!("K={secret}")),
        2 => URL_SAFE_NO_PAD.encode(format!("KEY={secret}")),
        3 => hex.concat(),
        4 => hex.join(":"),
        5 => each(|text, character| write!(text, "%{:02X}", u32::from(character)).unwrap()),
        6 => each(|text, character| write!(text, "\\u{:04x}", u32::from(character)).unwrap()),
        7 => each(|text, character| write!(text, "\\{character}").unwrap()),
        8 => each(|text, character| write!(text, "&#{};", u32::from(character)).unwrap()),
        _ => secret.chars().rev().collect(),
    }
}

/// The customer's account, as its services answer.
struct Account {
    bucket: Bucket,
    canaries: Vec<Canaries>,
    /// The calls that are denied; `S3` is every call about the bucket.
    denied: &'static [&'static str],
}

impl Account {
    fn with(denied: &'static [&'static str]) -> Self {
        let canaries: Vec<Canaries> = (1..7).map(Canaries::draw).collect();
        let mut bucket = Bucket::telling(&Story::default());
        let job: JobId = "job_0000000000000000000a".parse().unwrap();
        for why in canaries[0].texts(100) {
            let message = Digest::of(why.as_bytes());
            let cancelled = AuditEvent::Cancelled {
                job: job.clone(),
                dispatch: 1,
                receive: None,
                asked_by: None,
                asked_why: Some(why),
                message,
            };
            bucket.record(cancelled);
        }
        for (seq, reason) in (100..).zip(canaries[1].texts(50)) {
            let outcome = Outcome::Blocked { block: Block::ModeDisabled, reason };
            bucket.report(&job, seq, AttemptEvent::finished(outcome, ""));
        }
        Self { bucket, canaries, denied }
    }

    /// Starts the account; returns its address. `log` is the text of the job's log.
    fn serve(self, log: Option<&str>) -> String {
        let logs = self.bucket.path("logs");
        let job = std::fs::read_dir(&logs).unwrap().next().unwrap().unwrap().path();
        match log {
            Some(text) => std::fs::write(job.join("1.1.log"), text).unwrap(),
            None => std::fs::remove_file(job.join("1.1.log")).unwrap(),
        }
        listen(move |_, path, body| {
            let action = body.split('&').next().unwrap_or_default().strip_prefix("Action=").unwrap_or("S3");
            if self.denied.contains(&action) {
                return (403, denied(action));
            }
            match action {
                "GetCallerIdentity" => (200, CALLER.to_owned()),
                "S3" => self.object(path),
                other => (200, answer(other, &self.result(other))),
            }
        })
    }

    fn object(&self, path: &str) -> (u16, String) {
        let (name, query) = path.split_once('?').unwrap_or((path, ""));
        if query.contains("list-type=2") {
            return (200, page(&self.bucket, query));
        }
        let object = std::fs::read_to_string(self.bucket.path(name.strip_prefix(BUCKET).unwrap()));
        object.map_or_else(|_| (404, "<Error><Code>NoSuchKey</Code></Error>".to_owned()), |text| (200, text))
    }

    /// Returns the result of a call of CloudFormation or of Auto Scaling.
    fn result(&self, action: &str) -> String {
        match action {
            "DescribeStacks" => {
                let notes = self.canaries[2].texts(50).into_iter().enumerate();
                let parameters = [("EnableRunner", "true"), ("ChangeWindows", "UTC: Mon-Fri 22:00-23:00")]
                    .map(|(name, value)| (name.to_owned(), value.to_owned()))
                    .into_iter()
                    .chain([("LicenceKey".to_owned(), "correct-horse".to_owned())])
                    .chain(notes.map(|(at, text)| (format!("Note{at}"), text)))
                    .map(|(name, value)| pair("ParameterKey", &name, "ParameterValue", &value));
                let (name, id) = ("freehold-acme--globex", "arn:aws:cloudformation:eu-west-1:222222222222:stack/x");
                format!(
                    "<Stacks><member><StackName>{name}</StackName><StackId>{id}</StackId>\
                     <StackStatus>UPDATE_COMPLETE</StackStatus><CreationTime>2026-01-01T00:00:00Z</CreationTime>\
                     <Parameters>{}</Parameters></member></Stacks>",
                    parameters.collect::<String>()
                )
            }
            "GetTemplateSummary" => {
                format!("<Parameters>{}</Parameters>", pair("ParameterKey", "LicenceKey", "NoEcho", "true"))
            }
            "DescribeStackEvents" => {
                let events = self.canaries[3].texts(100).into_iter();
                let events = events.map(|text| pair("LogicalResourceId", "Queue", "ResourceStatusReason", &text));
                format!("<StackEvents>{}</StackEvents>", events.collect::<String>())
            }
            "GetTemplate" => format!("<TemplateBody>{}</TemplateBody>", escaped(TEMPLATE)),
            "DescribeAutoScalingGroups" => {
                "<AutoScalingGroups><member><DesiredCapacity>1</DesiredCapacity></member></AutoScalingGroups>"
                    .to_owned()
            }
            "DescribeScalingActivities" => {
                let activities = self.canaries[4].texts(20).into_iter();
                let activities = activities.map(|text| pair("Description", "Launching", "Cause", &text));
                format!("<Activities>{}</Activities>", activities.collect::<String>())
            }
            other => panic!("nobody expects {other}"),
        }
    }
}

fn answer(action: &str, result: &str) -> String {
    format!("<{action}Response><{action}Result>{result}</{action}Result></{action}Response>")
}

fn pair(first: &str, one: &str, second: &str, other: &str) -> String {
    format!("<member><{first}>{}</{first}><{second}>{}</{second}></member>", escaped(one), escaped(other))
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

fn denied(action: &str) -> String {
    let error = "<Error><Code>AccessDenied</Code><Message>you may not do this</Message></Error>";
    if action == "S3" { error.to_owned() } else { format!("<ErrorResponse>{error}</ErrorResponse>") }
}

/// Returns the command with the credentials of the account at `address`.
fn with_account(mut command: Command, address: &str) -> Command {
    command.envs([
        ("AWS_ENDPOINT_URL", address),
        ("AWS_REGION", "eu-west-1"),
        ("AWS_ACCESS_KEY_ID", "222222222222"),
        ("AWS_SECRET_ACCESS_KEY", "local"),
    ]);
    command
}

fn run(place: &Path, address: &str, more: &[&str]) -> Output {
    let output = with_account(command(place, &[&WRITE, more].concat()), address).output().unwrap();
    // For the message of a test that fails.
    println!("{}", String::from_utf8_lossy(&output.stderr));
    output
}

/// Runs a command about files alone; returns the exit code and what it prints.
fn on_files(place: &Path, words: &[&str]) -> (i32, String) {
    let done = command(place, words).output().unwrap();
    let output = [done.stdout, done.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
    (done.status.code().unwrap(), output)
}

/// Returns the files of a bundle.
fn unpacked(path: &Path) -> BTreeMap<String, String> {
    let mut archive = tar::Archive::new(GzDecoder::new(std::fs::File::open(path).unwrap()));
    let entries = archive.entries().unwrap().map(|entry| {
        let mut entry = entry.unwrap();
        let (name, mut text) = (entry.path().unwrap().display().to_string(), String::new());
        entry.read_to_string(&mut text).unwrap();
        (name, text)
    });
    entries.collect()
}

/// Returns all texts of a file of a bundle, as they were before they were written as JSON.
fn texts(name: &str, text: &str) -> String {
    fn walk(value: &Value, texts: &mut String) {
        match value {
            Value::String(text) => texts.push_str(&format!("{text}\n")),
            Value::Array(all) => all.iter().for_each(|one| walk(one, texts)),
            Value::Object(fields) => fields.iter().for_each(|(key, value)| {
                texts.push_str(&format!("{key}\n"));
                walk(value, texts);
            }),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
    let mut texts = String::new();
    if name.ends_with(".json") {
        walk(&serde_json::from_str(text).unwrap(), &mut texts);
    } else if name.ends_with(".jsonl") {
        text.lines().for_each(|line| walk(&serde_json::from_str(line).unwrap(), &mut texts));
    } else {
        texts.push_str(text);
    }
    texts
}

fn names(place: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(place).unwrap().map(|entry| entry.unwrap().file_name());
    let mut names: Vec<String> = entries.map(|name| name.to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

#[test]
fn a_bundle_has_every_part_and_none_of_a_thousand_secrets_of_each_source() {
    let place = tempfile::tempdir().unwrap();
    let account = Account::with(&[]);
    let all: Vec<Canaries> = (1..8).map(Canaries::draw).collect();
    std::fs::write(place.path().join("doctor.txt"), all[5].texts(CANARIES).join("\n")).unwrap();
    let address = account.serve(Some(&all[6].texts(CANARIES).join("\n")));

    let done = run(place.path(), &address, &["--out", "b.tar.gz", "--doctor", "doctor.txt", "--yes"]);

    assert_eq!(done.status.code(), Some(0));
    let shown: Value = serde_json::from_slice(&done.stdout).unwrap();
    assert_eq!((&shown["missing"], &shown["file"]), (&serde_json::json!([]), &serde_json::json!("b.tar.gz")));
    let file = place.path().join("b.tar.gz");
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let files = unpacked(&file);
    let missing: Vec<&&str> = PARTS.iter().filter(|part| !files.contains_key(**part)).collect();
    assert!(missing.is_empty(), "{missing:?} of {:?}", files.keys());
    assert!(files.keys().any(|name| name.starts_with("logs/job_")) && files.contains_key("doctor.txt"));
    let texts: String = files.iter().map(|(name, text)| texts(name, text)).collect();
    let runs: HashSet<&[u8]> = texts.as_bytes().windows(LEAK).collect();
    for (source, canaries) in all.iter().enumerate() {
        assert_eq!(canaries.leaks(&runs), [""; 0], "of source {source}");
    }
    assert!(!texts.contains("correct-horse") && texts.contains("[hidden]"), "a hidden parameter");
    for kept in ["UTC: Mon-Fri 22:00-23:00", "UPDATE_COMPLETE", "failed with [redacted]", "EnableProvision"] {
        assert!(texts.contains(kept), "{kept}");
    }
    for part in ["audit/records.jsonl", "audit/reports.jsonl", "stack/events.jsonl", "doctor.txt"] {
        assert!(files[part].matches("[redacted]").count() >= CANARIES / 2, "{part}: {}", files[part]);
    }
}

#[test]
fn the_canaries_are_found_where_nothing_redacts_them() {
    let canaries = Canaries::draw(1);
    let text = canaries.texts(10).join("\n");

    let runs: HashSet<&[u8]> = text.as_bytes().windows(LEAK).collect();

    assert_eq!(canaries.leaks(&runs).len(), CANARIES);
}

#[test]
fn what_cannot_be_read_is_listed_with_the_reason_and_everything_else_is_written() {
    let place = tempfile::tempdir().unwrap();
    let address =
        Account::with(&["DescribeStackEvents", "GetTemplateSummary", "DescribeAutoScalingGroups"]).serve(None);

    let done = run(place.path(), &address, &["--out", "b.tar.gz", "--yes"]);

    assert_eq!(done.status.code(), Some(0));
    let files = unpacked(&place.path().join("b.tar.gz"));
    let list: Value = serde_json::from_str(&files["bundle.json"]).unwrap();
    let missing = list["missing"].as_array().unwrap();
    let what: Vec<&str> = missing.iter().map(|one| one["what"].as_str().unwrap()).collect();
    assert_eq!(what[..3], ["stack/settings.json", "stack/events.jsonl", "stack/machines.json"], "{missing:?}");
    assert!(what.len() == 4 && what[3].starts_with("logs/job_"), "{missing:?}");
    assert!(missing[1]["reason"].as_str().unwrap().contains("you may not do this"), "{missing:?}");
    assert!(!files.contains_key("stack/settings.json") && files.contains_key("audit/chain.json"));
}

#[test]
fn without_any_part_of_the_install_the_first_reason_is_the_error() {
    let place = tempfile::tempdir().unwrap();
    let address = Account::with(&["DescribeStacks", "S3"]).serve(None);

    let done = run(place.path(), &address, &["--yes"]);

    assert_eq!(done.status.code(), Some(6));
    assert!(String::from_utf8_lossy(&done.stderr).contains("you may not do this"));
    assert_eq!(names(place.path()), [""; 0]);
}

#[test]
fn nothing_is_written_for_a_list_without_consent_or_over_another_file() {
    let place = tempfile::tempdir().unwrap();
    let address = Account::with(&[]).serve(Some("copied\n"));

    let listed = run(place.path(), &address, &["--list"]);
    let without_consent = run(place.path(), &address, &[]);

    assert_eq!((listed.status.code(), without_consent.status.code()), (Some(0), Some(2)));
    let list: Value = serde_json::from_slice(&listed.stdout).unwrap();
    let entry = &list["entries"][0];
    assert_eq!(entry["name"], "stack/settings.json");
    assert!(entry["bytes"].as_u64() > Some(0) && entry["sha256"].is_string() && entry["about"].is_string(), "{entry}");
    assert!(String::from_utf8_lossy(&without_consent.stderr).contains("pass `--yes`"));
    assert_eq!(names(place.path()), [""; 0]);

    std::fs::write(place.path().join("b.tar.gz"), "mine").unwrap();
    let other = run(place.path(), &address, &["--out", "b.tar.gz", "--yes"]);
    assert_eq!(other.status.code(), Some(4));
    assert_eq!(std::fs::read_to_string(place.path().join("b.tar.gz")).unwrap(), "mine");
}

#[test]
fn a_full_disk_leaves_no_half_file() {
    let place = tempfile::tempdir().unwrap();
    let address = Account::with(&[]).serve(Some("copied\n"));
    // No file may grow, and the signal about it is ignored, so that the write fails as on a full disk.
    let script = "trap '' XFSZ; ulimit -f 0; exec \"$0\" \"$@\"";
    let mut shell = Command::new("sh");
    shell.args(["-c", script, env!("CARGO_BIN_EXE_freehold")]).args(WRITE).args(["--out", "b.tar.gz", "--yes"]);
    shell.current_dir(place.path()).env_clear().env("AWS_EC2_METADATA_DISABLED", "true");

    let done = with_account(shell, &address).output().unwrap();

    let error = String::from_utf8_lossy(&done.stderr);
    assert_eq!(done.status.code(), Some(2), "{error}");
    assert!(error.contains("cannot write `b.tar.gz`"), "{error}");
    assert_eq!(names(place.path()), [""; 0], "a part of the file is left");
}

#[test]
fn a_sealed_bundle_opens_with_its_key_alone_and_only_as_it_was_sealed() {
    let place = tempfile::tempdir().unwrap();
    let address = Account::with(&[]).serve(Some("copied\n"));
    let (code, _) = on_files(place.path(), &["support", "key", "create", "support.key"]);
    let (_, key) = on_files(place.path(), &["support", "key", "show", "support.key"]);
    on_files(place.path(), &["support", "key", "create", "other.key"]);
    assert_eq!(code, 0);

    let done = run(place.path(), &address, &["--out", "b.tar.gz.sealed", "--to", key.trim(), "--yes"]);

    assert_eq!(done.status.code(), Some(0));
    let sealed = std::fs::read(place.path().join("b.tar.gz.sealed")).unwrap();
    std::fs::write(
        place.path().join("changed.sealed"),
        [&sealed[..sealed.len() - 1], &[sealed.last().unwrap() ^ 1]].concat(),
    )
    .unwrap();
    let open = |file: &str, key: &str| on_files(place.path(), &["support", "open", file, "--key", key]);
    let (other_key, message) = open("b.tar.gz.sealed", "other.key");
    assert!(other_key == 2 && message.contains(&format!("it is sealed to the key {}", key.trim())), "{message}");
    let (changed, message) = open("changed.sealed", "support.key");
    assert!(changed == 1 && message.contains("it was changed after it was sealed"), "{message}");
    let before = ["b.tar.gz.sealed", "changed.sealed", "other.key", "support.key"];
    assert_eq!(names(place.path()), before, "nothing is written of what is refused");

    let (opened, message) = open("b.tar.gz.sealed", "support.key");
    assert!(opened == 0 && message.contains("stack/settings.json"), "{message}");
    let file = place.path().join("b.tar.gz");
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    assert!(PARTS.iter().all(|part| unpacked(&file).contains_key(*part)));
    assert_eq!(open("b.tar.gz.sealed", "support.key").0, 4, "the file exists");
}
