//! Verifies the chain of one runner key: signatures, numbers, and the digest of the record before each record.

use std::collections::{BTreeMap, BTreeSet};

use freehold_protocol::audit::{AuditEvent, AuditRecord};
use freehold_protocol::envelope::PublicKey;
use freehold_protocol::{Digest, Envelope, InstallId, JobId, TenantName, Timestamp};
use serde::Serialize;

use super::folder::Files;

/// The number of hex digits of a record's digest in the name of its file.
const IN_A_NAME: usize = 12;

/// The verified records of one runner key.
#[derive(Debug, Serialize)]
pub(super) struct Chain {
    /// The id of the key.
    pub(super) runner: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) tenant: Option<TenantName>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) install: Option<InstallId>,
    pub(super) records: usize,
    /// The time of the first record, by the runner's clock.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) from: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) to: Option<Timestamp>,
    /// The name of the last record.
    pub(super) last: String,
    /// The runner's former key and the last record under that key; the first record under this key follows it. Absent
    /// for the runner's first key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) continues: Option<Former>,
    /// Jobs that started and have no record of their end: they run, or the records after their start are missing.
    pub(super) without_end: BTreeSet<JobId>,
    pub(super) problems: Vec<String>,
}

/// The former key of a runner that made a new key.
#[derive(Debug, Serialize)]
pub(super) struct Former {
    pub(super) runner: String,
    pub(super) record: String,
}

/// The position in a chain after the records that were verified.
struct Head {
    seq: u64,
    digest: Digest,
}

impl Chain {
    /// Verifies the files of the runner key with the id `runner`. `all` has the files of each key.
    pub(super) fn verify(runner: &str, files: &Files, all: &BTreeMap<String, Files>) -> Self {
        let mut chain = Self {
            runner: runner.to_owned(),
            tenant: None,
            install: None,
            records: files.records.len(),
            from: None,
            to: None,
            last: files.records.keys().next_back().cloned().unwrap_or_default(),
            continues: None,
            without_end: BTreeSet::new(),
            problems: Vec::new(),
        };
        match public_key(runner, files.key.as_deref()) {
            Ok(key) => chain.walk(&key, &files.records, all),
            Err(problem) => chain.problems.push(problem),
        }
        chain
    }

    /// Follows the records in the order of their numbers.
    fn walk(&mut self, key: &PublicKey, records: &BTreeMap<String, Vec<u8>>, all: &BTreeMap<String, Files>) {
        let mut head = self.beginning(records, all);
        for (name, bytes) in records {
            let digest = Digest::of(bytes);
            let found = open(name, bytes, &digest, key);
            let seq =
                number_of(name).or(found.as_ref().ok().map(|record| record.seq)).unwrap_or(head.seq.saturating_add(1));
            self.note_gap(head.seq, seq);
            match found {
                Ok(record) => {
                    if Some(seq) == head.seq.checked_add(1) && record.previous != head.digest {
                        self.problems.push(format!("record `{name}` does not follow the record before it"));
                    }
                    self.take(&record);
                }
                Err(problem) => self.problems.push(problem),
            }
            head = Head { seq, digest };
        }
    }

    /// Returns the position before the first record: the beginning of a chain, or the last record of another key that
    /// the first record follows, because the runner made a new key.
    fn beginning(&mut self, records: &BTreeMap<String, Vec<u8>>, all: &BTreeMap<String, Files>) -> Head {
        let start = Head { seq: 0, digest: Digest::of(b"") };
        let Some((name, bytes)) = records.iter().next() else { return start };
        let Ok(record) = Envelope::parse(bytes).and_then(|envelope| envelope.peek::<AuditRecord>()) else {
            return start;
        };
        let before = record.seq.saturating_sub(1);
        let wanted = name_of(before, &record.previous);
        let follows =
            |files: &&Files| files.records.get(&wanted).is_some_and(|bytes| Digest::of(bytes) == record.previous);
        let Some((runner, files)) = all.iter().find(|(runner, files)| **runner != self.runner && follows(files)) else {
            return start;
        };
        if let Some(after) = files.records.keys().find(|other| number_of(other).is_some_and(|number| number > before)) {
            self.problems.push(format!(
                "record `{name}` and record `{after}` of key {runner} both follow record `{wanted}` of that key"
            ));
        }
        self.continues = Some(Former { runner: runner.clone(), record: wanted });
        Head { seq: before, digest: record.previous }
    }

    /// Adds a problem for the missing records between two numbers, or for two records with the same number.
    fn note_gap(&mut self, last: u64, next: u64) {
        match next.saturating_sub(last) {
            0 => self.problems.push(format!("there are two records with the number {next}")),
            1 => {}
            2 => self.problems.push(format!("record {} is missing", last + 1)),
            _ => self.problems.push(format!("records {} to {} are missing", last + 1, next - 1)),
        }
    }

    /// Adds the contents of a record whose signature is valid.
    fn take(&mut self, record: &AuditRecord) {
        let (tenant, install) = (self.tenant.get_or_insert(record.tenant.clone()), &record.install);
        let expected = self.install.get_or_insert(install.clone());
        if (&*tenant, &*expected) != (&record.tenant, install) {
            self.problems.push(format!(
                "record {} is of install `{install}` of tenant `{}`, and the records before it are of install `{expected}` of \
                 tenant `{tenant}`",
                record.seq, record.tenant
            ));
        }
        self.from.get_or_insert(record.at);
        self.to = Some(record.at);
        match &record.event {
            AuditEvent::Started { job, .. } => drop(self.without_end.insert(job.clone())),
            AuditEvent::Ended { job, .. } => drop(self.without_end.remove(job)),
            AuditEvent::Strangers { .. }
            | AuditEvent::Refused { .. }
            | AuditEvent::ConnectionRefused { .. }
            | AuditEvent::Cancelled { .. }
            | AuditEvent::KeyReplaced { .. }
            | AuditEvent::IamChange { .. }
            | AuditEvent::IamUsed { .. } => {}
        }
    }
}

/// Returns the public key with the id `runner`.
fn public_key(runner: &str, text: Option<&str>) -> Result<PublicKey, String> {
    let text = text.ok_or_else(|| format!("the public key `{runner}.pub` is missing; copy all below `audit/`"))?;
    let key: PublicKey = text.parse().map_err(|error| format!("`{runner}.pub` is not a public key: {error}"))?;
    if key.key_id().as_str() == runner {
        return Ok(key);
    }
    Err(format!("`{runner}.pub` is another key: its id is {}", key.key_id()))
}

/// Returns the record of a file, when its name, its signature and its number are right.
fn open(name: &str, bytes: &[u8], digest: &Digest, key: &PublicKey) -> Result<AuditRecord, String> {
    let envelope = Envelope::parse(bytes).map_err(|error| format!("record `{name}` cannot be read: {error}"))?;
    let record: AuditRecord =
        envelope.open(key).map_err(|error| format!("record `{name}` is not as its runner wrote it: {error}"))?;
    if record.runner != key.key_id() {
        return Err(format!("record `{name}` names runner key {}, but key {} signed it", record.runner, key.key_id()));
    }
    if name == name_of(record.seq, digest) {
        return Ok(record);
    }
    Err(format!("record `{name}` has another name than its runner gave it: `{}`", name_of(record.seq, digest)))
}

/// Returns the name that the runner gives to the file of a record, without `.json`.
pub(super) fn name_of(seq: u64, digest: &Digest) -> String {
    format!("{seq:012}-{}", digest.hex().get(..IN_A_NAME).unwrap_or_default())
}

fn number_of(name: &str) -> Option<u64> {
    name.split('-').next()?.parse().ok()
}
