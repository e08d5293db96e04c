//! Tampers with whole copies of audit records, by seed and number. The verification has to find each tampering and name
//! its link.

use std::collections::BTreeSet;

use ed25519_dalek::SigningKey;
use fastrand::Rng;
use freehold_protocol::audit::verify::{Known, Position, Problem, RecordsCopy, Verified, verify};
use freehold_protocol::audit::{
    AuditEvent, AuditRecord, ChainHead, NewerEvent, Receipt, message_name, record_name, record_number,
};
use freehold_protocol::envelope::PublicKey;
use freehold_protocol::order::Order;
use freehold_protocol::report::Report;
use freehold_protocol::{Digest, Envelope, EnvelopeError, KeyId};

use super::machines::Chain;
use super::messages::{self, ROOT, Reported, STRANGER};

/// A kind of tampering.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tampering {
    /// Bytes of a record were changed, or added to it.
    Edit,
    /// Records are missing.
    Gap,
    /// Records changed places.
    Reorder,
    /// Records at the end are missing.
    Cut,
    /// From one record on, a runner's key signed another end of the chain.
    Fork,
    /// A record of another install, or of a key that is not a runner's.
    ForeignLink,
    /// A record of the chain stands in the place of a later one, or after the last one.
    Replay,
    /// The receipt of another record, of another install or of another signer stands in the place of a receipt.
    ReplayedReceipt,
    /// The public key of a runner is missing.
    RemovedKey,
    /// From one record on, a runner's key signed another end of the chain, and the receipts and reports that prove it are
    /// missing. The orders that brought the receipts are there.
    RemovedReceipt,
    /// Bytes of a report were changed, or somebody else signed it.
    ChangedReport,
}

const ALL: [Tampering; 11] = [
    Tampering::Edit,
    Tampering::Gap,
    Tampering::Reorder,
    Tampering::Cut,
    Tampering::Fork,
    Tampering::ForeignLink,
    Tampering::Replay,
    Tampering::ReplayedReceipt,
    Tampering::RemovedKey,
    Tampering::RemovedReceipt,
    Tampering::ChangedReport,
];

/// The first problem that the verification has to find.
#[derive(Debug)]
enum Expected {
    /// This record is wrong, or is the first that is missing.
    Record(u64),
    /// This record is the first that a message or an earlier copy names and that the chain does not have so, and the chain
    /// was cut or forked after this other one.
    Between(Option<u64>, u64),
    /// The message with this name is wrong.
    Message(String),
}

impl Expected {
    fn fits(&self, first: &Problem) -> bool {
        match self {
            Self::Record(record) => (first.record, first.after) == (Some(*record), None),
            Self::Between(after, record) => (first.record, first.after) == (Some(*record), *after),
            Self::Message(name) => first.record.is_none() && first.text.contains(name.as_str()),
        }
    }
}

/// A copy that was tampered with, and what its customer knows.
struct Case {
    copy: RecordsCopy,
    /// The ids of the install's runner keys.
    runners: Vec<String>,
    /// The last record of an earlier copy.
    seen: Vec<Position>,
    expected: Expected,
}

/// Tampers with a chain in the way that `rng` draws, and verifies it. Returns the kind, and the reason why the
/// verification is wrong.
///
/// # Errors
/// When a record cannot be read or signed.
pub fn tampered(chain: &Chain, other: &Chain, rng: &mut Rng) -> Result<(Tampering, Result<(), String>), EnvelopeError> {
    let kind = ALL[rng.usize(0..ALL.len())];
    let case = Case::draw(kind, chain, other, rng)?;
    let known = Known { runners: &case.runners, seen: &case.seen, roots: Some(&messages::roots()) };
    let problems = verify(&case.copy, known).problems;
    let verdict = match problems.first() {
        None => Err(format!("was not found: {:?}", case.expected)),
        Some(first) if case.expected.fits(first) => Ok(()),
        Some(first) => Err(format!("was found as `{first}`, and it is {:?}", case.expected)),
    };
    Ok((kind, verdict))
}

/// Verifies a copy that nobody tampered with: what a customer has at any time, with what they know. Returns the result.
///
/// # Errors
/// When a record or a message cannot be read, or a receipt not be signed.
pub fn whole(chain: &Chain, rng: &mut Rng) -> Result<Verified, EnvelopeError> {
    let mut copy = beginning(&chain.copy, rng.u64(1..=length(&chain.copy)))?;
    for _ in 0..rng.u8(0..4) {
        let seq = rng.u64(1..=length(&copy));
        let receipt = receipt(&copy, seq, ROOT)?;
        copy.receipts.insert(record_name(seq), receipt);
    }
    let seen = rng.u64(1..=length(&copy));
    let pinned = if rng.bool() { runners(&verify(&copy, Known::default())) } else { Vec::new() };
    let known = Known { runners: &pinned, seen: &[position(&copy, seen)], roots: Some(&messages::roots()) };
    Ok(verify(&copy, known))
}

impl Case {
    fn draw(kind: Tampering, chain: &Chain, other: &Chain, rng: &mut Rng) -> Result<Self, EnvelopeError> {
        let whole = &chain.copy;
        let last = length(whole);
        let mut case = Self {
            copy: whole.clone(),
            runners: runners(&verify(whole, Known::default())),
            seen: vec![position(whole, last)],
            expected: Expected::Record(0),
        };
        let at = rng.u64(2..=last);
        match kind {
            Tampering::Edit => case.edit(rng.u64(1..=last), rng)?,
            Tampering::Gap => case.remove(rng.u64(1..last), last, rng),
            Tampering::Reorder => case.exchange(rng.u64(1..at), at),
            Tampering::Cut => {
                case.know(at, last, rng)?;
                case.cut(at, last)?;
            }
            Tampering::Fork => {
                case.know(at, last, rng)?;
                case.fork(at, last, chain)?;
            }
            Tampering::ForeignLink => case.foreign(at, last, other, rng)?,
            Tampering::Replay => {
                let place = at + u64::from(rng.bool() && at == last);
                case.put(place, bytes(whole, rng.u64(1..at)).to_vec());
                case.expected = Expected::Record(place);
            }
            Tampering::ReplayedReceipt => {
                let receipt = match rng.u8(0..3) {
                    0 => receipt(whole, rng.u64(1..at), ROOT)?,
                    1 => receipt(&other.copy, at.min(length(&other.copy)), ROOT)?,
                    _ => receipt(whole, at, STRANGER)?,
                };
                case.copy.receipts.insert(record_name(at), receipt);
                case.expected = Expected::Record(at);
            }
            Tampering::RemovedKey => case.remove_key(rng),
            Tampering::RemovedReceipt => {
                case.remove_receipts(rng.u64(at..=last))?;
                case.fork(at, last, chain)?;
            }
            Tampering::ChangedReport => case.change_report(at, chain, rng)?,
        }
        Ok(case)
    }

    /// Lets the customer know a record from `at` on: by an earlier copy, or by a receipt of the control plane.
    fn know(&mut self, at: u64, last: u64, rng: &mut Rng) -> Result<(), EnvelopeError> {
        let seq = rng.u64(at..=last);
        self.seen.clear();
        if rng.bool() {
            self.seen.push(position(&self.copy, seq));
        } else {
            let receipt = receipt(&self.copy, seq, ROOT)?;
            self.copy.receipts.insert(record_name(seq), receipt);
        }
        Ok(())
    }

    fn put(&mut self, seq: u64, bytes: Vec<u8>) {
        self.copy.records.insert(record_name(seq), bytes);
    }

    fn edit(&mut self, at: u64, rng: &mut Rng) -> Result<(), EnvelopeError> {
        let mut text = bytes(&self.copy, at).to_vec();
        match rng.u8(0..4) {
            0 => {
                let place = rng.usize(0..text.len());
                text[place] ^= 1 << rng.u8(0..8);
            }
            1 => text.insert(rng.usize(0..=text.len()), b' '),
            2 => {
                let mut envelope = Envelope::parse(&text)?;
                envelope.attached.push("a text".to_owned());
                text = envelope.to_json()?.into_bytes();
            }
            _ => {
                let envelope = Envelope::parse(&text)?;
                let mut record: AuditRecord = envelope.peek()?;
                record.at = record.at.plus_secs(1 + rng.u64(0..1000));
                if rng.bool() {
                    record.event =
                        AuditEvent::Newer(NewerEvent { event: "hidden".to_owned(), fields: Default::default() });
                }
                // A stranger can sign only with another key.
                let forged = Envelope::seal(&record, &[&stranger()])?;
                text = Envelope { payload: forged.payload, ..envelope }.to_json()?.into_bytes();
            }
        }
        self.put(at, text);
        self.expected = Expected::Record(at);
        Ok(())
    }

    /// Removes some records before the last one.
    fn remove(&mut self, first: u64, last: u64, rng: &mut Rng) {
        let end = rng.u64(first..last).min(first + 5);
        for seq in first..=end {
            self.copy.records.remove(&record_name(seq));
        }
        self.expected = Expected::Record(first);
    }

    fn exchange(&mut self, first: u64, second: u64) {
        let (one, two) = (bytes(&self.copy, first).to_vec(), bytes(&self.copy, second).to_vec());
        self.put(first, two);
        self.put(second, one);
        self.expected = Expected::Record(first);
    }

    /// Removes the records from `at` on, of which a message or an earlier copy names at least one.
    fn cut(&mut self, at: u64, last: u64) -> Result<(), EnvelopeError> {
        for seq in at..=last {
            self.copy.records.remove(&record_name(seq));
        }
        // Orders are copied after the records, so their receipts do not prove a cut.
        self.copy.orders.clear();
        let (_, first) = self.named_around(at)?;
        self.expected = Expected::Between(Some(at - 1), first);
        Ok(())
    }

    /// Signs the records from `at` on again, with other contents, as somebody with the keys of the runners can.
    fn fork(&mut self, at: u64, last: u64, chain: &Chain) -> Result<(), EnvelopeError> {
        for seq in at..=last {
            let mut record: AuditRecord = Envelope::parse(bytes(&self.copy, seq))?.peek()?;
            record.at = record.at.plus_secs(1);
            record.previous = Digest::of(bytes(&self.copy, seq - 1));
            if let Some(key) = chain.keys.get(&record.runner) {
                self.put(seq, Envelope::seal(&record, &[key])?.to_json()?.into_bytes());
            }
        }
        let (confirmed, first) = self.named_around(at)?;
        self.expected = Expected::Between(confirmed, first);
        Ok(())
    }

    /// Removes the public key of a runner: its first record cannot be verified.
    fn remove_key(&mut self, rng: &mut Rng) {
        let writers = verify(&self.copy, Known::default()).runners;
        let writer = &writers[rng.usize(0..writers.len())];
        self.copy.keys.remove(writer.key.as_str());
        self.expected = Expected::Record(writer.from);
    }

    /// Removes everything that names records but the orders, of which one brings the receipt for `seq`.
    fn remove_receipts(&mut self, seq: u64) -> Result<(), EnvelopeError> {
        let reported = reported(&self.copy, seq)?;
        let order = messages::order(&reported.install, messages::receipt(&reported, ROOT)?)?;
        self.copy.orders.insert(message_name(&Digest::of(&order)), order);
        self.copy.receipts.clear();
        self.copy.reports.clear();
        self.seen.clear();
        Ok(())
    }

    /// Changes a report that names the record `seq`, or replaces it by one that a stranger signed.
    fn change_report(&mut self, seq: u64, chain: &Chain, rng: &mut Rng) -> Result<(), EnvelopeError> {
        let Reported { install, head, runner, at } = reported(&self.copy, seq)?;
        let is_changed = rng.bool();
        let key = if is_changed { chain.keys[&runner].clone() } else { stranger() };
        let mut text = messages::report_of(runner, &install, &key, (head, at))?;
        let name = message_name(&Digest::of(&text));
        if is_changed {
            let place = rng.usize(0..text.len());
            text[place] ^= 1 << rng.u8(0..8);
        }
        self.copy.reports.insert(name.clone(), text);
        self.expected = Expected::Message(name);
        Ok(())
    }

    /// Returns the last record before `at` and the first one from `at` on that the customer or a message of the copy names.
    fn named_around(&self, at: u64) -> Result<(Option<u64>, u64), EnvelopeError> {
        let mut named: BTreeSet<u64> = self.seen.iter().map(|seen| seen.seq).collect();
        named.extend(self.copy.receipts.keys().filter_map(|name| record_number(name)));
        for bytes in self.copy.reports.values() {
            named.extend(Envelope::parse(bytes)?.peek::<Report>()?.head.map(|head| head.seq));
        }
        for bytes in self.copy.orders.values() {
            if let Some(receipt) = Envelope::parse(bytes)?.peek::<Order>()?.receipt {
                named.insert(receipt.peek::<Receipt>()?.head.seq);
            }
        }
        let first = named.range(at..).next().copied().unwrap_or_default();
        Ok((named.range(..at).next_back().copied(), first))
    }

    fn foreign(&mut self, at: u64, last: u64, other: &Chain, rng: &mut Rng) -> Result<(), EnvelopeError> {
        let key = stranger();
        let public = PublicKey::from(key.verifying_key());
        let mut record: AuditRecord = Envelope::parse(bytes(&self.copy, at))?.peek()?;
        let mut place = at;
        match rng.u8(0..3) {
            // The other install's own record, with its key.
            0 => {
                place = at.min(length(&other.copy));
                self.copy.keys.extend(other.copy.keys.clone());
                self.put(place, bytes(&other.copy, place).to_vec());
                self.runners.clear();
            }
            // A stranger's key that joins at the end as a runner does: the customer knows the own runners.
            1 => {
                place = last + 1;
                record.seq = place;
                record.previous = Digest::of(bytes(&self.copy, last));
                record.event = AuditEvent::Joined { host: "i-9".to_owned(), version: "1.0.0".to_owned() };
                record.runner = KeyId::of(&key.verifying_key());
                self.put(place, Envelope::seal(&record, &[&key])?.to_json()?.into_bytes());
            }
            // A stranger's key in the place of a record, and no word of joining.
            _ => {
                record.event = AuditEvent::KeyReplaced { replaced_by: record.runner, message: Digest::of(b"") };
                record.runner = KeyId::of(&key.verifying_key());
                self.put(place, Envelope::seal(&record, &[&key])?.to_json()?.into_bytes());
                self.runners.clear();
            }
        }
        self.copy.keys.insert(public.key_id().to_string(), public.to_string());
        self.expected = Expected::Record(place);
        Ok(())
    }
}

/// Returns a receipt for a record of a copy, certified by the key `root`.
fn receipt(copy: &RecordsCopy, seq: u64, root: u8) -> Result<Vec<u8>, EnvelopeError> {
    Ok(messages::receipt(&reported(copy, seq)?, root)?.to_json()?.into_bytes())
}

/// Returns what a report says about a record of a copy.
fn reported(copy: &RecordsCopy, seq: u64) -> Result<Reported, EnvelopeError> {
    let AuditRecord { install, runner, at, .. } = Envelope::parse(bytes(copy, seq))?.peek()?;
    Ok(Reported { install, head: ChainHead { seq, digest: Digest::of(bytes(copy, seq)) }, runner, at })
}

/// Returns a key that belongs to no runner.
fn stranger() -> SigningKey {
    SigningKey::from_bytes(&[0xEE; 32])
}

fn length(copy: &RecordsCopy) -> u64 {
    copy.records.len() as u64
}

fn bytes(copy: &RecordsCopy, seq: u64) -> &[u8] {
    &copy.records[&record_name(seq)]
}

fn position(copy: &RecordsCopy, seq: u64) -> Position {
    Position::of(seq, bytes(copy, seq))
}

/// Returns the copy that a customer made when the chain had `count` records. The orders are copied last, so there may be
/// later ones.
fn beginning(copy: &RecordsCopy, count: u64) -> Result<RecordsCopy, EnvelopeError> {
    let mut beginning = copy.clone();
    beginning.records.retain(|name, _| record_number(name).is_some_and(|seq| seq <= count));
    beginning.receipts.retain(|name, _| record_number(name).is_some_and(|seq| seq <= count));
    for (name, bytes) in &copy.reports {
        if Envelope::parse(bytes)?.peek::<Report>()?.head.is_some_and(|head| head.seq > count) {
            beginning.reports.remove(name);
        }
    }
    Ok(beginning)
}

fn runners(verified: &Verified) -> Vec<String> {
    verified.runners.iter().map(|writer| writer.key.to_string()).collect()
}
