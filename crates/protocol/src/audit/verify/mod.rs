//! Verifies a copy of an install's audit records: names, signatures, numbers, and the digest of the record before each;
//! then that the chain has the records which reports and the control plane's receipts name.

mod evidence;
#[cfg(test)]
mod newer_tests;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::Serialize;
use serde_json::Value;

use crate::audit::{AuditEvent, AuditRecord, ChainHead, ORDERS, RECEIPTS, REPORTS, record_name, record_number};
use crate::envelope::PublicKey;
use crate::order::AskedBy;
use crate::succession::Roots;
use crate::{Digest, Envelope, InstallId, JobId, KeyId, TenantName, Timestamp};

/// The number of hex digits of a record's digest in a [`Position`].
const SHORT: usize = 12;

/// A copy of what is below `audit/` in the customer's bucket.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RecordsCopy {
    /// The text of each file `KEY.pub`, by the id of the key.
    pub keys: BTreeMap<String, String>,
    /// The bytes of each file whose name ends with `.json`, by its name.
    pub records: BTreeMap<String, Vec<u8>>,
    /// The bytes of each file in the folder [`ORDERS`], by its name. The verification reads the receipts in them.
    pub orders: BTreeMap<String, Vec<u8>>,
    /// The bytes of each file in the folder [`RECEIPTS`], by its name.
    pub receipts: BTreeMap<String, Vec<u8>>,
    /// The bytes of each file in the folder [`REPORTS`], by its name.
    pub reports: BTreeMap<String, Vec<u8>>,
}

impl RecordsCopy {
    /// Returns whether an object with this name below `audit/` belongs to a part of the copy.
    pub fn takes(name: &str) -> bool {
        let inside = |folder: &&str| name.strip_prefix(*folder).and_then(|rest| rest.strip_prefix('/'));
        let file = [ORDERS, RECEIPTS, REPORTS].iter().find_map(inside).unwrap_or(name);
        name.ends_with(".pub") || (file.ends_with(".json") && !file.contains('/'))
    }

    /// Adds the object with this name below `audit/`. Returns false for a name that belongs to no part of the copy.
    pub fn add(&mut self, name: &str, bytes: Vec<u8>) -> bool {
        if !Self::takes(name) {
            return false;
        }
        let folder = |folder| name.strip_prefix(folder).and_then(|rest| rest.strip_prefix('/'));
        if let Some(key) = name.strip_suffix(".pub") {
            // Bytes that are not UTF-8 are not a valid key. They are reported with the records that the key should
            // verify.
            self.keys.insert(key.to_owned(), String::from_utf8_lossy(&bytes).trim().to_owned());
            return true;
        }
        let (map, name) = match (folder(ORDERS), folder(RECEIPTS), folder(REPORTS)) {
            (Some(name), _, _) => (&mut self.orders, name),
            (_, Some(name), _) => (&mut self.receipts, name),
            (_, _, Some(name)) => (&mut self.reports, name),
            (None, None, None) => (&mut self.records, name),
        };
        map.insert(name.to_owned(), bytes);
        true
    }
}

/// The facts about the install that the caller knows without the copy.
#[derive(Debug, Clone, Copy, Default)]
pub struct Known<'a> {
    /// The ids of the keys whose records are accepted; if empty, every key whose public key is in the copy is accepted.
    pub runners: &'a [String],
    /// Records of earlier copies, which the chain must still have.
    pub seen: &'a [Position],
    /// The tenant's root keys. Without root keys, receipts are only compared with the chain, and their signatures are
    /// not checked.
    pub roots: Option<&'a Roots>,
}

/// The result of a verification.
#[derive(Debug, Serialize)]
pub struct Verified {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tenant: Option<TenantName>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub install: Option<InstallId>,
    pub records: usize,
    /// The time of the first record, by its runner's clock.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<Timestamp>,
    /// The last record. A later copy of the records must still have it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last: Option<Position>,
    /// The keys that signed records, in the order of their first records.
    pub runners: Vec<Writer>,
    /// Who asked for the jobs that started, in the order of their first starts.
    pub askers: Vec<Asker>,
    /// The number of receipts of the control plane that the chain agrees with.
    pub receipts: u64,
    /// The number of the last record that a receipt of the control plane confirms.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confirmed: Option<u64>,
    /// Jobs that started and have no record of their end: they run, or the records after their start are missing.
    pub without_end: BTreeSet<JobId>,
    /// The numbers of the records whose events only a newer version can read, by the kind of the event. They are
    /// verified as links of the chain, and the other parts of this result lack what they state.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub newer_events: BTreeMap<String, Vec<u64>>,
    pub problems: Vec<Problem>,
}

/// A runner key that signed records of the chain.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct Writer {
    pub key: KeyId,
    /// The machine, as the runner named it in its first record.
    pub host: String,
    /// The number of its first record.
    pub from: u64,
    /// The number of its last record.
    pub to: u64,
    pub records: u64,
}

/// Who asked for jobs of the install, as the control plane stated in its signed orders.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct Asker {
    /// The person or program; absent for jobs whose records do not name one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub asked_by: Option<AskedBy>,
    /// The number of starts. A job that is started again counts again.
    pub starts: u64,
    /// The time of the first start, by the clock of its runner.
    pub from: Timestamp,
    /// The time of the last start.
    pub to: Timestamp,
}

/// A mistake in a copy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// The number of the record that is wrong, or the first of those that are missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub record: Option<u64>,
    /// For a named record that the chain lacks, or in whose place it has another one: the last record before it up to
    /// which the chain is complete and confirmed. The chain was cut right after this record, or forked somewhere after
    /// it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<u64>,
    pub text: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// A record of a chain by its number and its digest. As text: the number and the first hex digits of the digest, such as
/// `000000000044-4b5e57f6eb2f`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Position {
    pub seq: u64,
    short: String,
}

impl Position {
    /// Returns the position of the record with this number and these bytes.
    pub fn of(seq: u64, bytes: &[u8]) -> Self {
        Self { seq, short: Digest::of(bytes).hex().get(..SHORT).unwrap_or_default().to_owned() }
    }
}

impl From<&ChainHead> for Position {
    fn from(head: &ChainHead) -> Self {
        Self { seq: head.seq, short: head.digest.hex().get(..SHORT).unwrap_or_default().to_owned() }
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:012}-{}", self.seq, self.short)
    }
}

impl Serialize for Position {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// A text is not a [`Position`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a record; expected its number and 12 hex digits, such as `000000000044-4b5e57f6eb2f`")]
pub struct PositionError(String);

impl std::str::FromStr for Position {
    type Err = PositionError;

    fn from_str(text: &str) -> Result<Self, PositionError> {
        let refused = || PositionError(text.chars().take(80).collect());
        let (seq, short) = text.split_once('-').ok_or_else(refused)?;
        let seq: u64 = seq.parse().map_err(|_| refused())?;
        let is_hex = short.len() == SHORT && short.chars().all(|c| matches!(c, '0'..='9' | 'a'..='f'));
        if is_hex { Ok(Self { seq, short: short.to_owned() }) } else { Err(refused()) }
    }
}

/// Verifies a copy against what the caller knows.
pub fn verify(copy: &RecordsCopy, known: Known<'_>) -> Verified {
    let Known { runners, seen, roots } = known;
    let mut chain = Chain {
        keys: copy.keys.iter().map(|(id, text)| (id.as_str(), public_key(id, text))).collect(),
        accepted: runners,
        verified: Verified {
            tenant: None,
            install: None,
            records: copy.records.len(),
            from: None,
            to: None,
            last: None,
            runners: Vec::new(),
            askers: Vec::new(),
            receipts: 0,
            confirmed: None,
            without_end: BTreeSet::new(),
            newer_events: BTreeMap::new(),
            problems: Vec::new(),
        },
        confirmed: BTreeSet::new(),
        contradictions: Vec::new(),
    };
    let mut records = BTreeMap::new();
    for (name, bytes) in &copy.records {
        match record_number(name) {
            Some(seq) => drop(records.insert(seq, bytes.as_slice())),
            None => chain.note(None, format!("`{name}` is not the name of a record")),
        }
    }
    chain.walk(&records);
    for seen in seen {
        chain.find(seen, records.get(&seen.seq).copied());
    }
    chain.compare_receipts(copy, &records, roots);
    chain.compare_orders(copy, &records, roots);
    chain.compare_reports(copy, &records);
    chain.note_contradictions(&records);
    for runner in runners {
        if !chain.verified.runners.iter().any(|writer| writer.key.as_str() == runner) {
            chain.note(None, format!("there are no records of runner key {runner}"));
        }
    }
    chain.verified
}

/// The chain up to the record that was verified last.
struct Chain<'a> {
    keys: BTreeMap<&'a str, Result<PublicKey, String>>,
    accepted: &'a [String],
    verified: Verified,
    /// The numbers of records that a message or an earlier copy names, and that the chain has with the same digest.
    confirmed: BTreeSet<u64>,
    /// The problem of each record that a message or an earlier copy names, and that the chain lacks or has otherwise.
    contradictions: Vec<(u64, String)>,
}

impl Chain<'_> {
    fn note(&mut self, record: Option<u64>, text: String) {
        self.verified.problems.push(Problem { record, after: None, text });
    }

    fn walk(&mut self, records: &BTreeMap<u64, &[u8]>) {
        let (mut last, mut head) = (0, Digest::of(b""));
        for (&seq, &bytes) in records {
            self.note_gap(last, seq);
            match self.open(seq, bytes) {
                Ok(record) => {
                    // After a gap, the record before is unknown.
                    if Some(seq) == last.checked_add(1) && record.previous != head {
                        let text = format!(
                            "record {seq} does not follow record {last}: it names another record as its predecessor"
                        );
                        self.note(Some(seq), text);
                    }
                    self.take(&record);
                }
                Err(problem) => self.note(Some(seq), problem),
            }
            (last, head) = (seq, Digest::of(bytes));
            self.verified.last = Some(Position::of(seq, bytes));
        }
    }

    /// Adds a problem for the records that are missing between two numbers.
    fn note_gap(&mut self, last: u64, next: u64) {
        let first = last.saturating_add(1);
        match next.saturating_sub(last) {
            // Records are numbered from 1.
            0 => self.note(Some(next), format!("record {next} has an invalid number: records are numbered from 1")),
            1 => {}
            2 => self.note(Some(first), format!("record {first} is missing")),
            _ => self.note(Some(first), format!("records {first} to {} are missing", next - 1)),
        }
    }

    /// Returns the record of an object, when its signature and its number are right.
    fn open(&self, seq: u64, bytes: &[u8]) -> Result<AuditRecord, String> {
        let unread = |error| format!("record {seq} cannot be read: {error}");
        let envelope = Envelope::parse(bytes).map_err(unread)?;
        let claimed = envelope.peek::<AuditRecord>().map_err(unread)?;
        let runner = claimed.runner.as_str();
        if !self.accepted.is_empty() && !self.accepted.iter().any(|accepted| accepted == runner) {
            return Err(format!(
                "record {seq} belongs to runner key {runner}, which is not a key that `--runner` names"
            ));
        }
        let key = match self.keys.get(runner) {
            Some(Ok(key)) => key,
            Some(Err(problem)) => return Err(format!("record {seq} cannot be verified: {problem}")),
            None => {
                return Err(format!(
                    "record {seq} cannot be verified: the public key `{runner}.pub` is missing; copy everything below \
                     `audit/`"
                ));
            }
        };
        let record: AuditRecord =
            envelope.open(key).map_err(|error| format!("record {seq} is not as its runner wrote it: {error}"))?;
        // No signature covers the rest of the envelope, and no record follows the last one.
        let is_plain = envelope.attached.is_empty()
            && matches!(envelope.signatures.as_slice(), [signature] if signature.cert.is_none())
            && envelope.to_json().is_ok_and(|text| text.as_bytes() == bytes);
        if !is_plain {
            return Err(format!("record {seq} is not as its runner wrote it: something was added to its envelope"));
        }
        if record.seq != seq {
            return Err(format!(
                "`{}` is not record {seq}: its runner wrote it as record {}",
                record_name(seq),
                record.seq
            ));
        }
        Ok(record)
    }

    /// Adds the contents of a record whose signature is valid.
    fn take(&mut self, record: &AuditRecord) {
        let seq = record.seq;
        let tenant = self.verified.tenant.get_or_insert_with(|| record.tenant.clone()).clone();
        let install = self.verified.install.get_or_insert_with(|| record.install.clone()).clone();
        if (&tenant, &install) != (&record.tenant, &record.install) {
            let text = format!(
                "record {seq} belongs to install `{}` of tenant `{}`, and the records before it belong to install \
                 `{install}` of tenant `{tenant}`",
                record.install, record.tenant
            );
            self.note(Some(seq), text);
        }
        self.verified.from.get_or_insert(record.at);
        self.verified.to = Some(record.at);
        match self.verified.runners.iter_mut().find(|writer| writer.key == record.runner) {
            Some(writer) => {
                writer.to = seq;
                writer.records += 1;
            }
            None => self.begin(record),
        }
        match &record.event {
            AuditEvent::Started { job, asked_by, .. } => {
                self.verified.without_end.insert(job.clone());
                self.count_start(asked_by.as_ref(), record.at);
            }
            AuditEvent::Ended { job, .. } => drop(self.verified.without_end.remove(job)),
            AuditEvent::Joined { .. }
            | AuditEvent::PoliciesAsked { .. }
            | AuditEvent::Approval { .. }
            | AuditEvent::Strangers { .. }
            | AuditEvent::Refused { .. }
            | AuditEvent::ConnectionRefused { .. }
            | AuditEvent::Sent { .. }
            | AuditEvent::Cancelled { .. }
            | AuditEvent::KeyReplaced { .. }
            | AuditEvent::IamChange { .. }
            | AuditEvent::IamUsed { .. } => {}
            AuditEvent::Newer(event) => self.verified.newer_events.entry(event.kind()).or_default().push(seq),
        }
    }

    /// Counts the start of a job for the person or program that asked for it.
    fn count_start(&mut self, asked_by: Option<&AskedBy>, at: Timestamp) {
        match self.verified.askers.iter_mut().find(|asker| asker.asked_by.as_ref() == asked_by) {
            Some(asker) => {
                asker.starts += 1;
                asker.to = at;
            }
            None => {
                let asked_by = asked_by.cloned();
                self.verified.askers.push(Asker { asked_by, starts: 1, from: at, to: at });
            }
        }
    }

    /// Adds the first record of a key.
    fn begin(&mut self, record: &AuditRecord) {
        let (key, seq) = (record.runner.clone(), record.seq);
        let host = joined_host(&record.event).unwrap_or_else(|| {
            let text = format!(
                "record {seq} is the first record of runner key {key} but does not announce that this key joins the chain"
            );
            self.note(Some(seq), text);
            String::new()
        });
        self.verified.runners.push(Writer { key, host, from: seq, to: seq, records: 1 });
    }

    /// Checks that the chain still has a record that an earlier copy had.
    fn find(&mut self, seen: &Position, bytes: Option<&[u8]>) {
        let seq = seen.seq;
        match bytes.map(|bytes| Position::of(seq, bytes)) {
            Some(position) if position == *seen => drop(self.confirmed.insert(seq)),
            Some(position) => {
                let text =
                    format!("record {seq} is `{position}`, and an earlier copy had `{seen}`: the chain was forked");
                self.contradictions.push((seq, text));
            }
            None => {
                let text = format!("record {seq}, which an earlier copy had as `{seen}`, is missing");
                self.contradictions.push((seq, text));
            }
        }
    }

    /// Adds a problem for each contradiction, the earliest first, with the last record before it that is beyond doubt.
    fn note_contradictions(&mut self, records: &BTreeMap<u64, &[u8]>) {
        let mut contradictions = std::mem::take(&mut self.contradictions);
        contradictions.sort_by_key(|(seq, _)| *seq);
        for (seq, text) in contradictions {
            let before = records.range(..seq).next_back().map(|(seq, _)| *seq);
            // A confirmed record proves all records before it, because each record has the digest of the one before.
            let confirmed = self.confirmed.range(..seq).next_back().copied();
            let (after, place) = match (records.contains_key(&seq), before, confirmed) {
                (false, Some(before), _) => (Some(before), format!("the last record before it is {before}")),
                (true, _, Some(confirmed)) => (Some(confirmed), format!("the records up to {confirmed} are confirmed")),
                (false, None, _) | (true, _, None) => (None, "no record before it is confirmed".to_owned()),
            };
            self.verified.problems.push(Problem { record: Some(seq), after, text: format!("{text}; {place}") });
        }
    }
}

/// Returns the machine whose key joins the chain by this event; `None` for any other event.
fn joined_host(event: &AuditEvent) -> Option<String> {
    if let AuditEvent::Joined { host, .. } = event {
        return Some(host.clone());
    }
    // A runner of a newer version may announce itself in another form.
    let AuditEvent::Newer(newer) = event else { return None };
    let host = newer.fields.get("host").and_then(Value::as_str).unwrap_or_default();
    (newer.event == "joined").then(|| host.to_owned())
}

/// Returns the public key with the id `runner`.
fn public_key(runner: &str, text: &str) -> Result<PublicKey, String> {
    let key: PublicKey = text.trim().parse().map_err(|error| format!("`{runner}.pub` is not a public key: {error}"))?;
    if key.key_id().as_str() == runner {
        return Ok(key);
    }
    Err(format!("`{runner}.pub` is another key: its id is {}", key.key_id()))
}
