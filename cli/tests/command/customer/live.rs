//! `freehold customer` on a bucket into which a runner writes while the command reads it.

use std::process::Output;

use freehold_protocol::audit::{AuditEvent, MAX_OBJECT_BYTES};
use freehold_protocol::envelope::PublicKey;
use serde_json::{Value, json};

use super::bucket::{Bucket, ROOT, Story, command, key};
use crate::support::loopback::listen;

pub(super) const BUCKET: &str = "/fh-acme--globex--222222222222/";
/// The number of keys on a page of a list.
const PAGE: usize = 3;
pub(super) const CALLER: &str = "<GetCallerIdentityResponse><GetCallerIdentityResult>\
                      <Arn>arn:aws:sts::222222222222:assumed-role/audit/me</Arn><Account>222222222222</Account>\
                      </GetCallerIdentityResult></GetCallerIdentityResponse>";

#[test]
fn a_log_is_whole_although_a_runner_writes_between_the_pages_of_its_list() {
    let mut bucket = Bucket::telling(&Story::default());
    let mut pages = 0;
    let address = listen(move |_, path, body| {
        if body.starts_with("Action=GetCallerIdentity") {
            return (200, CALLER.to_owned());
        }
        let (name, query) = path.split_once('?').unwrap_or((path, ""));
        if !query.contains("list-type=2") {
            return (200, std::fs::read_to_string(bucket.path(name.strip_prefix(BUCKET).unwrap())).unwrap());
        }
        let page = page(&bucket, query);
        pages += 1;
        bucket.record(AuditEvent::Sent { reports: Vec::new() });
        bucket.report_about(&"job_0000000000000000000a".parse().unwrap(), 10 + pages);
        (200, page)
    });

    let (code, answer) = verify(&address);

    assert_eq!((code, &answer["problems"]), (0, &json!([])), "{answer}");
    assert!(answer["records"].as_u64() > Some(4), "the runner has not written between the pages: {answer}");
}

#[test]
fn an_object_that_is_larger_than_every_record_is_named_and_the_customers_own_objects_are_not_read() {
    let large = vec![b'x'; MAX_OBJECT_BYTES + 1];
    let with = |name: &str| {
        let bucket = Bucket::telling(&Story::default());
        bucket.write(name, &large);
        serve(bucket)
    };

    let (code, answer) = verify(&with("audit/export.csv"));
    let foreign = run(&with("audit/000000000009.json"));

    assert_eq!((code, &answer["problems"]), (0, &json!([])), "{answer}");
    let error = String::from_utf8_lossy(&foreign.stderr);
    assert_eq!(foreign.status.code(), Some(1), "{error}");
    let object = "object `audit/000000000009.json` of bucket `fh-acme--globex--222222222222` has more than 2.00 MiB";
    assert!(error.contains(object) && error.contains("move it out of `audit/`"), "{error}");
}

/// Answers as S3 does for a bucket; returns the address.
fn serve(bucket: Bucket) -> String {
    listen(move |_, path, body| {
        if body.starts_with("Action=GetCallerIdentity") {
            return (200, CALLER.to_owned());
        }
        let (name, query) = path.split_once('?').unwrap_or((path, ""));
        let is_list = query.contains("list-type=2");
        let object = || std::fs::read_to_string(bucket.path(name.strip_prefix(BUCKET).unwrap())).unwrap();
        (200, if is_list { page(&bucket, query) } else { object() })
    })
}

/// Returns a page of the list of the bucket, as S3 answers it.
pub(super) fn page(bucket: &Bucket, query: &str) -> String {
    let value = |name: &str| {
        let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
        pairs.find(|(key, _)| *key == name).map(|(_, value)| value.replace("%2F", "/")).unwrap_or_default()
    };
    let (prefix, delimiter, after) = (value("prefix"), value("delimiter"), value("continuation-token"));
    let is_wanted = |key: &String| {
        let rest = key.strip_prefix(prefix.as_str());
        *key > after && rest.is_some_and(|rest| delimiter.is_empty() || !rest.contains(delimiter.as_str()))
    };
    let mut keys = keys(bucket);
    keys.retain(is_wanted);
    let is_truncated = keys.len() > PAGE;
    keys.truncate(PAGE);
    let next = keys.last().filter(|_| is_truncated);
    let next = next.map(|key| format!("<NextContinuationToken>{key}</NextContinuationToken>")).unwrap_or_default();
    let contents: String = keys.iter().map(|key| format!("<Contents><Key>{key}</Key></Contents>")).collect();
    format!("<ListBucketResult><IsTruncated>{is_truncated}</IsTruncated>{next}{contents}</ListBucketResult>")
}

/// Returns the keys of all objects below `audit/`, in order.
fn keys(bucket: &Bucket) -> Vec<String> {
    let mut keys = Vec::new();
    for folder in ["audit", "audit/orders", "audit/receipts", "audit/reports"] {
        for entry in std::fs::read_dir(bucket.path(folder)).unwrap().map(Result::unwrap) {
            if entry.path().is_file() {
                keys.push(format!("{folder}/{}", entry.file_name().to_string_lossy()));
            }
        }
    }
    keys.sort();
    keys
}

/// Verifies the bucket at `address` as its customer; returns the exit code and the answer.
fn verify(address: &str) -> (i32, Value) {
    let done = run(address);
    let answer = serde_json::from_slice(&done.stdout);
    (done.status.code().unwrap(), answer.unwrap_or_else(|error| panic!("{error}: {done:?}")))
}

fn run(address: &str) -> Output {
    let root = PublicKey::from(key(ROOT).verifying_key()).to_string();
    let words = ["customer", "audit", "verify", "globex", "--tenant", "acme", "--root-key", &root, "--json"];
    let place = tempfile::tempdir().unwrap();
    let credentials = [
        ("AWS_ENDPOINT_URL", address),
        ("AWS_REGION", "eu-west-1"),
        ("AWS_ACCESS_KEY_ID", "222222222222"),
        ("AWS_SECRET_ACCESS_KEY", "local"),
    ];
    command(place.path(), &words).envs(credentials).output().unwrap()
}
