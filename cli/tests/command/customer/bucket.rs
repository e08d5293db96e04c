//! The copy of a bucket of one install, in which one job ran, and what a liar does to it.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use ed25519_dalek::SigningKey;
use freehold_protocol::audit::{AuditEvent, AuditRecord, ChainHead, Receipt, message_name, record_name};
use freehold_protocol::envelope::{Delegate, PublicKey};
use freehold_protocol::licence::Licence;
use freehold_protocol::order::{AskedBy, Order};
use freehold_protocol::provenance::Statement;
use freehold_protocol::report::{AttemptEvent, AttemptReport, Block, Fence, Outcome, Report, ReportBody};
use freehold_protocol::{Digest, Envelope, JobId, KeyId, KeyUse, Timestamp};
use serde_json::{Value, json};

pub(crate) const AT: Timestamp = Timestamp::from_millis(1_795_250_000_000);
pub(crate) const ROOT: u8 = 1;
const DELEGATE: u8 = 2;
pub(crate) const RUNNER: u8 = 3;
const FENCE: Fence = Fence { dispatch: 1, receive: 1 };

pub(crate) fn key(seed: u8) -> SigningKey {
    SigningKey::from_bytes(&[seed; 32])
}

fn text(envelope: &Envelope) -> String {
    envelope.to_json().unwrap()
}

/// What the parties of the install say, so that a test can let one of them lie.
pub(crate) struct Story {
    /// The key at which the signatures of orders and receipts end.
    pub(crate) root: u8,
    /// The key that signed the statement of the build.
    pub(crate) statement_root: u8,
    /// Who asked, as the record says.
    pub(crate) recorded: &'static str,
    /// Who asked, as the order says.
    pub(crate) ordered: &'static str,
    /// The key at which the signature of the licence in the order ends; without it, the order has no licence.
    pub(crate) licence_root: Option<u8>,
}

impl Default for Story {
    fn default() -> Self {
        Self { root: ROOT, statement_root: ROOT, recorded: "ana", ordered: "ana", licence_root: None }
    }
}

/// A copy of the bucket.
pub(crate) struct Bucket {
    place: tempfile::TempDir,
    previous: Digest,
    records: u64,
    pub(crate) order: Digest,
    pub(crate) report: Digest,
    pub(crate) artifact: Digest,
}

impl Bucket {
    /// Writes the bucket of an install whose parties tell `story`.
    pub(crate) fn telling(story: &Story) -> Self {
        let empty = Digest::of(b"");
        let mut bucket = Self {
            place: tempfile::tempdir().unwrap(),
            previous: empty.clone(),
            records: 0,
            order: empty.clone(),
            report: empty.clone(),
            artifact: empty,
        };
        let public = PublicKey::from(key(RUNNER).verifying_key());
        bucket.write(&format!("audit/{}.pub", public.key_id()), format!("{public}\n").as_bytes());
        let order = bucket.order(story);
        let signed = text(&sealed(&order, story.root));
        bucket.order = Digest::of(signed.as_bytes());
        bucket.write(&format!("audit/orders/{}", message_name(&bucket.order)), signed.as_bytes());
        bucket.record(AuditEvent::Joined { host: "i-1".into(), version: "1.0.0".into() });
        bucket.record(AuditEvent::Started {
            workflow: order.workflow.clone(),
            job: order.job.clone(),
            fence: FENCE,
            work: order.work.kind().to_owned(),
            mode: order.mode,
            group: None,
            serial: None,
            role: None,
            asked_by: Some(asker(story.recorded)),
            order: bucket.order.clone(),
            sent_at: None,
        });
        bucket.report = bucket.report_about(&order.job, 1);
        bucket.record(AuditEvent::Sent { reports: vec![bucket.report.clone()] });
        let log = b"copied\n";
        bucket.write(&format!("logs/{}/{FENCE}.log", order.job), log);
        let (job, log) = (order.job, Some(Digest::of(log)));
        bucket.record(AuditEvent::Ended {
            job,
            fence: FENCE,
            result: "succeeded".into(),
            log,
            order: None,
            sent_at: None,
        });
        bucket.confirm(4, story.root);
        bucket
    }

    /// Adds the end of a job that did not start: its role is switched off. Returns the job.
    pub(crate) fn block(&mut self, story: &Story) -> JobId {
        let order = Order { job: "job_000000000000000000b1".parse().unwrap(), ..self.order(story) };
        let signed = text(&sealed(&order, story.root));
        self.order = Digest::of(signed.as_bytes());
        self.write(&self.order_file(), signed.as_bytes());
        let (job, result) = (order.job.clone(), "blocked".to_owned());
        let reason = "mode `maintenance` is switched off".to_owned();
        let outcome = Outcome::Blocked { block: Block::ModeDisabled, reason };
        let report = self.report(&job, 1, AttemptEvent::finished(outcome, ""));
        self.record(AuditEvent::Sent { reports: vec![report] });
        let signed_order = Some(self.order.clone());
        self.record(AuditEvent::Ended { job, fence: FENCE, result, log: None, order: signed_order, sent_at: None });
        order.job
    }

    fn order(&mut self, story: &Story) -> Order {
        let mut order: Order =
            serde_json::from_str(include_str!("../../../../crates/protocol/golden/order-container-image.json"))
                .unwrap();
        order.asked_by = Some(asker(story.ordered));
        let statement: Statement =
            serde_json::from_str(include_str!("../../../../crates/protocol/golden/statement.json")).unwrap();
        let statement = Envelope::seal(&statement, &[&key(story.statement_root)]).unwrap();
        let mut whole = serde_json::to_value(&order).unwrap();
        let artifact = whole.pointer_mut("/work/artifact").unwrap();
        artifact["provenance"] =
            json!({ "statement": statement, "referrer": Digest::of(b"the statement in a registry") });
        if let Some(root) = story.licence_root {
            whole["context"]["nuon"]["install"]["licence"] = json!(text(&licence(root)));
        }
        let order: Order = serde_json::from_value(whole).unwrap();
        self.artifact = order.work.artifact().unwrap().digest.clone();
        order
    }

    /// Writes the text of a report about a job, which no record names yet.
    pub(crate) fn report_about(&self, job: &JobId, seq: u64) -> Digest {
        self.report(job, seq, AttemptEvent::Started)
    }

    pub(crate) fn report(&self, job: &JobId, seq: u64, event: AttemptEvent) -> Digest {
        let report = Report {
            tenant: "acme".parse().unwrap(),
            install: "globex".parse().unwrap(),
            runner: KeyId::of(&key(RUNNER).verifying_key()),
            at: AT.plus_secs(self.records),
            head: Some(ChainHead { seq: self.records, digest: self.previous.clone() }),
            body: ReportBody::Attempt(AttemptReport { job: job.clone(), fence: FENCE, seq, event }),
        };
        let sent = text(&Envelope::seal(&report, &[&key(RUNNER)]).unwrap());
        let digest = Digest::of(sent.as_bytes());
        self.write(&format!("audit/reports/{}", message_name(&digest)), sent.as_bytes());
        digest
    }

    /// Adds a record to the chain, one second after the one before.
    pub(crate) fn record(&mut self, event: AuditEvent) {
        self.record_at(AT.plus_secs(self.records + 1), event);
    }

    /// Adds a record to the chain.
    pub(crate) fn record_at(&mut self, at: Timestamp, event: AuditEvent) {
        self.records += 1;
        let record = AuditRecord {
            tenant: "acme".parse().unwrap(),
            install: "globex".parse().unwrap(),
            runner: KeyId::of(&key(RUNNER).verifying_key()),
            seq: self.records,
            previous: self.previous.clone(),
            at,
            event,
        };
        let bytes = text(&Envelope::seal(&record, &[&key(RUNNER)]).unwrap());
        self.previous = Digest::of(bytes.as_bytes());
        self.write(&format!("audit/{}", record_name(self.records)), bytes.as_bytes());
    }

    /// Adds the receipt for a record.
    fn confirm(&self, seq: u64, root: u8) {
        let name = record_name(seq);
        let digest = Digest::of(&std::fs::read(self.path(&format!("audit/{name}"))).unwrap());
        let receipt = Receipt {
            tenant: "acme".parse().unwrap(),
            install: "globex".parse().unwrap(),
            head: ChainHead { seq, digest },
            runner: KeyId::of(&key(RUNNER).verifying_key()),
            received_at: AT.plus_secs(10),
            issued_at: AT.plus_secs(20),
        };
        let signed = Envelope::seal_delegated(&receipt, &key(DELEGATE), &certificate(root)).unwrap();
        self.write(&format!("audit/receipts/{name}"), text(&signed).as_bytes());
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.place.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, bytes: &[u8]) {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    }

    /// Replaces a text in a file.
    pub(crate) fn edit(&self, name: &str, from: &str, to: &str) {
        let was = std::fs::read_to_string(self.path(name)).unwrap();
        assert!(was.contains(from), "{name} has no {from}");
        std::fs::write(self.path(name), was.replacen(from, to, 1)).unwrap();
    }

    pub(crate) fn remove(&self, name: &str) {
        std::fs::remove_file(self.path(name)).unwrap();
    }

    pub(crate) fn order_file(&self) -> String {
        format!("audit/orders/{}", message_name(&self.order))
    }

    pub(crate) fn report_file(&self) -> String {
        format!("audit/reports/{}", message_name(&self.report))
    }

    pub(crate) fn place(&self) -> &Path {
        self.place.path()
    }

    /// Asks a question of the copy, with the vendor's root key.
    pub(crate) fn ask(&self, words: &[&str]) -> (i32, Value) {
        let root = PublicKey::from(key(ROOT).verifying_key()).to_string();
        let copy = self.place.path().display().to_string();
        let all = [&["customer"], words, &["--copy", &copy, "--root-key", &root, "--json"]].concat();
        let done = freehold(self.place.path(), &all);
        let answer = serde_json::from_slice(&done.stdout);
        (done.status.code().unwrap(), answer.unwrap_or_else(|error| panic!("{words:?}: {error}: {done:?}")))
    }
}

/// Returns `freehold` without an account and without a network to speak of.
pub(crate) fn command(place: &Path, words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_freehold"));
    let nowhere = [("AWS_ENDPOINT_URL", "http://127.0.0.1:9"), ("AWS_EC2_METADATA_DISABLED", "true")];
    command.args(words).current_dir(place).env_clear().envs(nowhere);
    command
}

/// Runs `freehold` as [`command`] returns it.
pub(crate) fn freehold(place: &Path, words: &[&str]) -> Output {
    command(place, words).output().unwrap()
}

fn asker(name: &str) -> AskedBy {
    AskedBy::Caller { arn: format!("arn:aws:iam::111111111111:user/{name}").parse().unwrap() }
}

fn sealed(order: &Order, root: u8) -> Envelope {
    Envelope::seal_delegated(order, &key(DELEGATE), &certificate(root)).unwrap()
}

/// Returns a licence with a number of seats.
fn licence(root: u8) -> Envelope {
    let licence: Licence = serde_json::from_value(json!({
        "tenant": "acme", "install": "globex", "app": "shop", "serial": 3, "issued_at": AT, "signed_at": AT,
        "facts": { "seats": 4711 },
    }))
    .unwrap();
    Envelope::seal_delegated(&licence, &key(DELEGATE), &certificate(root)).unwrap()
}

fn certificate(root: u8) -> Envelope {
    let delegate = Delegate {
        send_until: None,
        tenant: "acme".parse().unwrap(),
        public_key: key(DELEGATE).verifying_key().into(),
        not_before: AT,
        not_after: AT.plus_secs(3600),
        uses: [KeyUse::Orders, KeyUse::Receipts, KeyUse::Licences].into(),
    };
    Envelope::seal(&delegate, &[&key(root)]).unwrap()
}
