//! Tampers with whole copies of audit records, by seed and number. The verification has to find each tampering and name
//! its link.

use std::ops::RangeInclusive;

use ed25519_dalek::SigningKey;
use fastrand::Rng;
use freehold_protocol::audit::verify::{Known, Position, RecordsCopy, Verified, verify};
use freehold_protocol::audit::{AuditEvent, AuditRecord, ChainHead, Receipt, record_name};
use freehold_protocol::envelope::{Delegate, PublicKey};
use freehold_protocol::succession::Roots;
use freehold_protocol::{Digest, Envelope, EnvelopeError, KeyId, KeyUse};

use super::machines::Chain;

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
}

const ALL: [Tampering; 8] = [
    Tampering::Edit,
    Tampering::Gap,
    Tampering::Reorder,
    Tampering::Cut,
    Tampering::Fork,
    Tampering::ForeignLink,
    Tampering::Replay,
    Tampering::ReplayedReceipt,
];

/// A copy that was tampered with, and what its customer knows.
struct Case {
    copy: RecordsCopy,
    /// The ids of the install's runner keys.
    runners: Vec<String>,
    /// The last record of an earlier copy.
    seen: Vec<Position>,
    /// The numbers of which the first problem must name one.
    expected: RangeInclusive<u64>,
}

/// Tampers with a chain in the way that `rng` draws, and verifies it. Returns the kind, and the reason why the
/// verification is wrong.
///
/// # Errors
/// When a record cannot be read or signed.
pub fn tampered(chain: &Chain, other: &Chain, rng: &mut Rng) -> Result<(Tampering, Result<(), String>), EnvelopeError> {
    let kind = ALL[rng.usize(0..ALL.len())];
    let case = Case::draw(kind, chain, other, rng)?;
    let root = roots(chain)?;
    let known = Known { runners: &case.runners, seen: &case.seen, roots: Some(&root) };
    let problems = verify(&case.copy, known).problems;
    let verdict = match problems.first() {
        None => Err(format!("was not found; records {:?}", case.expected)),
        Some(first) if first.record.is_some_and(|record| case.expected.contains(&record)) => Ok(()),
        Some(first) => Err(format!("was found as `{first}`, and it is at {:?}", case.expected)),
    };
    Ok((kind, verdict))
}

/// Verifies a copy that nobody tampered with: what a customer has at any time, with what they know. Returns the problems.
///
/// # Errors
/// When a record cannot be read, or a receipt not be signed.
pub fn whole(chain: &Chain, rng: &mut Rng) -> Result<Verified, EnvelopeError> {
    let mut copy = beginning(&chain.copy, rng.u64(1..=length(&chain.copy)));
    for _ in 0..rng.u8(0..4) {
        let seq = rng.u64(1..=length(&copy));
        let receipt = receipt(&copy, seq, ROOT)?;
        copy.receipts.insert(record_name(seq), receipt);
    }
    let seen = rng.u64(1..=length(&copy));
    let pinned = if rng.bool() { runners(&verify(&copy, Known::default())) } else { Vec::new() };
    let root = roots(chain)?;
    Ok(verify(&copy, Known { runners: &pinned, seen: &[position(&copy, seen)], roots: Some(&root) }))
}

/// Returns the root key of the chain's tenant.
fn roots(chain: &Chain) -> Result<Roots, EnvelopeError> {
    let record = chain.copy.records.values().next().map(|bytes| Envelope::parse(bytes)?.peek::<AuditRecord>());
    let tenant = record.transpose()?.map(|record| record.tenant);
    let tenant = tenant.ok_or_else(|| EnvelopeError::Malformed("the chain has no record".to_owned()))?;
    Ok(Roots::given(tenant, vendor(ROOT).verifying_key().into(), None))
}

impl Case {
    fn draw(kind: Tampering, chain: &Chain, other: &Chain, rng: &mut Rng) -> Result<Self, EnvelopeError> {
        let whole = &chain.copy;
        let last = length(whole);
        let mut case = Self {
            copy: whole.clone(),
            runners: runners(&verify(whole, Known::default())),
            seen: vec![position(whole, last)],
            expected: 0..=0,
        };
        let at = rng.u64(2..=last);
        match kind {
            Tampering::Edit => case.edit(rng.u64(1..=last), rng)?,
            Tampering::Gap => case.remove(rng.u64(1..last), last, rng),
            Tampering::Reorder => {
                let first = rng.u64(1..at);
                let (one, two) = (bytes(whole, first).to_vec(), bytes(whole, at).to_vec());
                case.put(first, two);
                case.put(at, one);
                case.expected = first..=first;
            }
            Tampering::Cut => {
                case.know(at, last, rng)?;
                for seq in at..=last {
                    case.copy.records.remove(&record_name(seq));
                }
                case.expected = at..=last;
            }
            Tampering::Fork => {
                case.know(at, last, rng)?;
                case.fork(at, last, chain)?;
            }
            Tampering::ReplayedReceipt => {
                let receipt = match rng.u8(0..3) {
                    0 => receipt(whole, rng.u64(1..at), ROOT)?,
                    1 => receipt(&other.copy, at.min(length(&other.copy)), ROOT)?,
                    _ => receipt(whole, at, STRANGER)?,
                };
                case.copy.receipts.insert(record_name(at), receipt);
                case.expected = at..=at;
            }
            Tampering::ForeignLink => case.foreign(at, last, other, rng)?,
            Tampering::Replay => {
                let place = at + u64::from(rng.bool() && at == last);
                case.put(place, bytes(whole, rng.u64(1..at)).to_vec());
                case.expected = place..=place;
            }
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
                // A stranger can sign only with another key.
                let forged = Envelope::seal(&record, &[&stranger()])?;
                text = Envelope { payload: forged.payload, ..envelope }.to_json()?.into_bytes();
            }
        }
        self.put(at, text);
        self.expected = at..=at;
        Ok(())
    }

    /// Removes some records before the last one.
    fn remove(&mut self, first: u64, last: u64, rng: &mut Rng) {
        let end = rng.u64(first..last).min(first + 5);
        for seq in first..=end {
            self.copy.records.remove(&record_name(seq));
        }
        self.expected = first..=end;
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
        self.expected = at..=last;
        Ok(())
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
        self.expected = place..=place;
        Ok(())
    }
}

/// The seeds of the vendor's root key, of its delegate key, and of a key that is not the vendor's.
const ROOT: u8 = 0xA0;
const DELEGATE: u8 = 0xA1;
const STRANGER: u8 = 0xA2;

fn vendor(seed: u8) -> SigningKey {
    SigningKey::from_bytes(&[seed; 32])
}

/// Returns a receipt for a record of a copy, certified by the key `root`.
fn receipt(copy: &RecordsCopy, seq: u64, root: u8) -> Result<Vec<u8>, EnvelopeError> {
    let record: AuditRecord = Envelope::parse(bytes(copy, seq))?.peek()?;
    let delegate = Delegate {
        send_until: None,
        tenant: record.tenant.clone(),
        public_key: vendor(DELEGATE).verifying_key().into(),
        not_before: record.at,
        not_after: record.at.plus_secs(3600),
        uses: [KeyUse::Receipts].into(),
    };
    let certificate = Envelope::seal(&delegate, &[&vendor(root)])?;
    let receipt = Receipt {
        tenant: record.tenant,
        install: record.install,
        head: ChainHead { seq, digest: Digest::of(bytes(copy, seq)) },
        runner: record.runner,
        received_at: record.at,
        issued_at: record.at,
    };
    Ok(Envelope::seal_delegated(&receipt, &vendor(DELEGATE), &certificate)?.to_json()?.into_bytes())
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

/// Returns the copy that a customer had when the chain had `count` records.
fn beginning(copy: &RecordsCopy, count: u64) -> RecordsCopy {
    let records = (1..=count).map(|seq| (record_name(seq), bytes(copy, seq).to_vec()));
    RecordsCopy { keys: copy.keys.clone(), records: records.collect(), ..RecordsCopy::default() }
}

fn runners(verified: &Verified) -> Vec<String> {
    verified.runners.iter().map(|writer| writer.key.to_string()).collect()
}
