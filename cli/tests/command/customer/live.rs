//! `freehold customer` on a bucket into which a runner writes while the command reads it.

use freehold_protocol::audit::AuditEvent;
use freehold_protocol::envelope::PublicKey;
use serde_json::{Value, json};

use super::bucket::{Bucket, ROOT, Story, command, key};
use crate::support::loopback::listen;

const BUCKET: &str = "/fh-acme--globex--222222222222/";
/// The number of keys on a page of a list.
const PAGE: usize = 3;
const CALLER: &str = "<GetCallerIdentityResponse><GetCallerIdentityResult>\
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

/// Returns a page of the list of the bucket, as S3 answers it.
fn page(bucket: &Bucket, query: &str) -> String {
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
    let root = PublicKey::from(key(ROOT).verifying_key()).to_string();
    let words = ["customer", "audit", "verify", "globex", "--tenant", "acme", "--root-key", &root, "--json"];
    let place = tempfile::tempdir().unwrap();
    let credentials = [
        ("AWS_ENDPOINT_URL", address),
        ("AWS_REGION", "eu-west-1"),
        ("AWS_ACCESS_KEY_ID", "222222222222"),
        ("AWS_SECRET_ACCESS_KEY", "local"),
    ];
    let done = command(place.path(), &words).envs(credentials).output().unwrap();
    let answer = serde_json::from_slice(&done.stdout);
    (done.status.code().unwrap(), answer.unwrap_or_else(|error| panic!("{error}: {done:?}")))
}
