//! The entries from the install's bucket: the audit chain, its newest records, the newest reports and the logs of jobs.

use std::collections::BTreeMap;

use aws_sdk_s3::Client;
use aws_sdk_s3::error::ProvideErrorMetadata as _;
use freehold_protocol::audit::verify::RecordsCopy;
use freehold_protocol::audit::{AuditEvent, AuditRecord};
use freehold_protocol::report::{Fence, Report};
use freehold_protocol::{Envelope, JobId};
use serde::Serialize;
use serde_json::{Value, json};

use super::entry::{Entry, MAX_ENTRY_BYTES, Parts};
use crate::customer::{Evidence, OwnInstall, records};
use crate::error::{Error, Result, ResultExt as _};

/// The maximum number of records, of reports and of logs.
const RECORDS: usize = 200;
const REPORTS: usize = 100;
const LOGS: usize = 20;

/// Adds the entries from the bucket of an install.
pub(super) async fn add(own: &OwnInstall, parts: &mut Parts) {
    let evidence = match Evidence::of_install(own).await {
        Ok(evidence) => evidence,
        Err(error) => return parts.lack("audit/", error),
    };
    let records = records(&evidence.copy);
    parts.add("audit/chain.json", chain(&evidence, &records));
    parts.add("audit/records.jsonl", newest("audit/records.jsonl", "newest audit records", &records, RECORDS));
    parts.add("audit/reports.jsonl", reports(&evidence.copy));
    add_logs(own, &records, parts).await;
}

/// Returns the result of the verification of the chain, and the versions of the runners.
fn chain(evidence: &Evidence, records: &[AuditRecord]) -> Result<Entry> {
    let chain = serde_json::to_value(&evidence.chain).map_err(|error| unwritable(&error))?;
    let joined: BTreeMap<u64, Value> = records
        .iter()
        .filter_map(|record| match &record.event {
            AuditEvent::Joined { host, version } => {
                let runner = json!({ "runner": record.runner, "host": host, "version": version, "at": record.at });
                Some((record.seq, runner))
            }
            _ => None,
        })
        .collect();
    let chain = json!({ "chain": chain, "root_key_compared": evidence.knows_root(), "joined": joined });
    Entry::document("audit/chain.json", "verification of the audit chain, versions of the runners", chain)
}

/// Returns the newest reports, which have left the account already. The proof of a runner's role is left out, because it is
/// a signed request.
fn reports(copy: &RecordsCopy) -> Result<Entry> {
    let readable = copy.reports.values().filter_map(|bytes| Envelope::parse(bytes).ok()?.peek::<Report>().ok());
    let mut reports: Vec<Report> = readable.collect();
    reports.sort_by_key(|report| report.at);
    let values: Result<Vec<Value>, serde_json::Error> = reports.iter().map(serde_json::to_value).collect();
    let mut values = values.map_err(|error| unwritable(&error))?;
    for value in &mut values {
        if let Some(body) = value.get_mut("body").and_then(Value::as_object_mut) {
            body.remove("proof");
        }
    }
    newest("audit/reports.jsonl", "newest reports to the vendor, with health and drift", &values, REPORTS)
}

/// Returns an entry with the last `most` of `items`.
fn newest<T: Serialize>(name: &str, about: &'static str, items: &[T], most: usize) -> Result<Entry> {
    let from = items.len().saturating_sub(most);
    let values: Result<Vec<Value>, serde_json::Error> = items.iter().skip(from).map(serde_json::to_value).collect();
    Entry::lines(name, about, values.map_err(|error| unwritable(&error))?, from > 0)
}

/// Adds the logs of the last jobs. The names of their entries consist of ids, whatever else is in the bucket.
async fn add_logs(own: &OwnInstall, records: &[AuditRecord], parts: &mut Parts) {
    let ended = records.iter().rev().filter_map(|record| match &record.event {
        AuditEvent::Ended { job, fence, log: Some(_), .. } => Some((job, *fence)),
        _ => None,
    });
    let (client, bucket) = (own.s3(), own.bucket());
    for (job, fence) in ended.take(LOGS) {
        let what = format!("logs/{job}-{fence}.log");
        let entry = log(&client, &bucket, (job, fence)).await.map(|bytes| {
            let is_cut = bytes.len() >= MAX_ENTRY_BYTES;
            let text = String::from_utf8_lossy(&bytes);
            Entry::text(what.clone(), "log of a job, redacted by the runner before", &text, is_cut)
        });
        parts.add(&what, entry);
    }
}

/// Returns the end of the log of an attempt.
async fn log(client: &Client, bucket: &str, (job, fence): (&JobId, Fence)) -> Result<Vec<u8>> {
    let key = format!("logs/{job}/{fence}.log");
    let read = client.get_object().bucket(bucket).key(&key).range(format!("bytes=-{MAX_ENTRY_BYTES}")).send().await;
    // S3 finds no such range in an object without bytes.
    if read.as_ref().is_err_and(|error| error.code() == Some("InvalidRange")) {
        return Ok(Vec::new());
    }
    let mut body = read.doing(format!("read `{key}` of bucket `{bucket}`"))?.body;
    let mut end = Vec::new();
    loop {
        let chunk = body.try_next().await;
        let chunk = chunk.map_err(|error| Error::transient(format!("cannot read `{key}`: {error}; try again")))?;
        let Some(chunk) = chunk else { return Ok(end) };
        end.extend_from_slice(&chunk);
        // A server that ignores the range sends the whole log.
        let more = end.len().saturating_sub(MAX_ENTRY_BYTES);
        end.drain(..more);
    }
}

fn unwritable(error: &serde_json::Error) -> Error {
    Error::internal(format!("cannot write JSON: {error}"))
}
