//! Machines of one install that record events at the same time, crash, lose their disk or get a new key.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Context as _;
use ed25519_dalek::SigningKey;
use fastrand::Rng;
use freehold_protocol::audit::AuditEvent;
use freehold_protocol::audit::verify::{Known, Position, RecordsCopy, verify};
use freehold_protocol::report::Fence;
use freehold_protocol::{InstallId, JobId, KeyId, Timestamp};
use freehold_runner::keys::runner_key::Identity;
use freehold_runner::record::audit::{Audit, Author, BUCKET_LIMIT};
use tempfile::TempDir;
use tokio::task::JoinSet;

use super::bucket::{Door, Store};
use super::messages::{self, ControlPlane, Exchange};
use super::reader;

/// The number of times that all machines record an event.
const ROUNDS: usize = 60;
/// The maximum number of machines that run at the same time.
const AT_ONCE: usize = 3;

/// The folders below `audit/` in the order in which a customer lists them while machines write.
pub(super) type Folders = &'static [&'static str];

/// A chain in a bucket with the messages beside it, and the keys that signed it.
#[derive(Debug)]
pub struct Chain {
    pub copy: RecordsCopy,
    pub keys: BTreeMap<KeyId, SigningKey>,
}

/// What happened in a run.
#[derive(Debug)]
pub struct Run {
    pub chain: Chain,
    /// The number of faults, by their kind.
    pub faults: BTreeMap<&'static str, u64>,
    /// Holes and forks of the chain, and events that are lost, doubled or not in their order.
    pub holes: Vec<String>,
    /// The number of copies that a customer made while machines wrote.
    pub copies: u64,
    /// The problems that the verification found in these copies.
    pub alarms: Vec<String>,
}

#[derive(Debug)]
struct Machine {
    number: usize,
    directory: TempDir,
    door: Door,
    key: SigningKey,
    /// The trail of the running process; `None` after a crash.
    audit: Option<Audit>,
}

impl Machine {
    /// Returns the trail of the running process, or starts a new process.
    fn audit(&mut self, install: &InstallId) -> anyhow::Result<Audit> {
        if let Some(audit) = self.audit.take() {
            return Ok(audit);
        }
        let author = Author {
            identity: Arc::new(Identity::from_key(self.key.clone())),
            tenant: "acme".parse()?,
            install: install.clone(),
            host: format!("i-{}", self.number),
        };
        Ok(Audit::open(self.directory.path(), author, Some(Arc::new(self.door.clone())))?)
    }

    /// Leaves a part of a line at the end of the file.
    fn tear(&self) -> anyhow::Result<()> {
        let path = self.directory.path().join("audit.spool");
        let mut file = std::fs::OpenOptions::new().append(true).open(path)?;
        Ok(file.write_all(b"{\"entry\":{\"at\":17")?)
    }

    /// Takes back the last lines of the file that were not written durably. `runner/src/durability_tests.rs` shows that the
    /// lines of the other kinds are synced before the runner continues.
    fn lose_power(&self) -> anyhow::Result<()> {
        let path = self.directory.path().join("audit.spool");
        let text = std::fs::read_to_string(&path)?;
        let mut lines: Vec<&str> = text.split_inclusive('\n').collect();
        while lines.last().is_some_and(|line| line.starts_with("\"placed\"") || line.starts_with("{\"head\"")) {
            lines.pop();
        }
        Ok(std::fs::write(path, lines.concat())?)
    }
}

/// What is known of an event.
#[derive(Debug)]
struct Event {
    machine: usize,
    /// Whether the call that announced it succeeded.
    is_announced: bool,
}

#[derive(Debug)]
struct World {
    rng: Rng,
    install: InstallId,
    store: Arc<Mutex<Store>>,
    machines: Vec<Machine>,
    made: usize,
    /// The machines that were lost with their disk.
    lost: BTreeSet<usize>,
    keys: BTreeMap<KeyId, SigningKey>,
    /// The events; the number of the first one is 1.
    events: Vec<Event>,
    holes: Vec<String>,
    control_plane: ControlPlane,
    /// The order in which the customer copies the bucket.
    folders: Folders,
    /// The last record of the customer's last copy.
    seen: Option<Position>,
    copies: u64,
    alarms: Vec<String>,
}

impl Run {
    /// Makes the run of this seed for an install of this name, whose customer copies the bucket in this order.
    ///
    /// # Errors
    /// When a directory cannot be used, or a trail cannot be opened after a crash.
    pub async fn of(seed: u64, install: &str, folders: Folders) -> anyhow::Result<Self> {
        let mut rng = Rng::with_seed(seed);
        let mut world = World {
            store: Arc::new(Mutex::new(Store::new(rng.fork()))),
            rng,
            install: install.parse()?,
            machines: Vec::new(),
            made: 0,
            lost: BTreeSet::new(),
            keys: BTreeMap::new(),
            events: Vec::new(),
            holes: Vec::new(),
            control_plane: ControlPlane::default(),
            folders,
            seen: None,
            copies: 0,
            alarms: Vec::new(),
        };
        for _ in 0..ROUNDS {
            if world.machines.is_empty() || (world.machines.len() < AT_ONCE && world.rng.u8(0..6) == 0) {
                world.add_machine()?;
            }
            world.round().await?;
        }
        world.end().await
    }
}

impl World {
    fn add_machine(&mut self) -> anyhow::Result<()> {
        let (number, key) = (self.made, self.new_key());
        let door = Door { store: self.store.clone(), crashed: Arc::default() };
        self.made += 1;
        self.machines.push(Machine { number, directory: directory()?, door, key, audit: None });
        Ok(())
    }

    fn new_key(&mut self) -> SigningKey {
        let mut seed = [0; 32];
        self.rng.fill(&mut seed);
        let key = SigningKey::from_bytes(&seed);
        self.keys.insert(KeyId::of(&key.verifying_key()), key.clone());
        key
    }

    /// Lets every machine record an event and exchange messages, all at the same time. In some rounds a customer copies the
    /// bucket meanwhile. Machines whose process crashed come back in the next round, unless they are lost.
    async fn round(&mut self) -> anyhow::Result<()> {
        let copies = self.rng.u8(0..3) == 0;
        let reader = copies.then(|| tokio::spawn(reader::copy(self.store.clone(), self.folders)));
        let mut calls = JoinSet::new();
        for at in 0..self.machines.len() {
            let announces = self.rng.u8(0..4) > 0;
            let machine = &mut self.machines[at];
            let audit = machine.audit(&self.install)?;
            self.events.push(Event { machine: machine.number, is_announced: false });
            let (number, crashed) = (self.events.len(), machine.door.crashed.clone());
            let exchange = self.exchange(at, number);
            calls.spawn(async move {
                let mut is_announced = false;
                let call = async {
                    audit.record(event(number))?;
                    if announces {
                        audit.flush(BUCKET_LIMIT).await?;
                        is_announced = true;
                    }
                    exchange.run(&audit).await
                };
                let answer = tokio::select! {
                    answer = call => Some(answer),
                    () = crashed.notified() => None,
                };
                // A crash leaves nothing of the process.
                (at, number, is_announced, answer.is_some().then_some(audit))
            });
        }
        while let Some(done) = calls.join_next().await {
            let (at, number, is_announced, audit) = done?;
            self.machines[at].audit = audit;
            self.events[number - 1].is_announced = is_announced;
            if is_announced && !self.store().events.contains_key(&event_job(number)) {
                self.holes.push(format!("event {number} was announced and is not in the bucket"));
            }
        }
        if let Some(reader) = reader {
            self.look_at(&reader.await?);
        }
        self.after_crashes()
    }

    /// Draws what a machine exchanges with the control plane after the event of this number.
    fn exchange(&mut self, at: usize, number: usize) -> Exchange {
        Exchange {
            control_plane: self.control_plane.clone(),
            install: self.install.clone(),
            key: self.machines[at].key.clone(),
            at: Timestamp::from_millis(number as u64 * 1000),
            reports: self.rng.u8(0..3) == 0,
            is_recorded_first: self.rng.bool(),
            gets_order: self.rng.u8(0..6) == 0,
        }
    }

    /// Verifies a copy as its customer does, who noted the last record of the copy before.
    fn look_at(&mut self, copy: &RecordsCopy) {
        let (seen, roots) = (Vec::from_iter(self.seen.take()), messages::roots());
        let verified = verify(copy, Known { seen: &seen, roots: Some(&roots), ..Known::default() });
        self.copies += 1;
        let first = verified.problems.first().map(|problem| format!("copy {}: {problem}", self.copies));
        self.alarms.extend(first);
        self.seen = verified.last;
    }

    /// Decides what the crashes of a round did to the disks.
    fn after_crashes(&mut self) -> anyhow::Result<()> {
        for at in (0..self.machines.len()).rev() {
            if self.machines[at].audit.is_some() {
                continue;
            }
            let fault = match self.rng.u8(0..8) {
                0 => {
                    self.machines[at].tear()?;
                    "a torn line"
                }
                1 => {
                    self.machines[at].lose_power()?;
                    "a power failure"
                }
                2 => {
                    self.machines[at].key = self.new_key();
                    "a new key"
                }
                3 => {
                    self.lost.insert(self.machines.swap_remove(at).number);
                    "a lost disk"
                }
                _ => continue,
            };
            self.store().count(fault);
        }
        Ok(())
    }

    /// Ends the faults, lets every machine write what it has, and looks for holes.
    async fn end(mut self) -> anyhow::Result<Run> {
        self.store().fails = false;
        for at in 0..self.machines.len() {
            let machine = &mut self.machines[at];
            let (number, audit) = (machine.number, machine.audit(&self.install)?);
            self.events.push(Event { machine: number, is_announced: true });
            audit.record(event(self.events.len()))?;
            audit.flush(BUCKET_LIMIT).await.context("without faults")?;
        }
        let (copy, faults, written) = {
            let store = self.store();
            (store.copy(), store.faults.clone(), store.events.clone())
        };
        let problems = verify(&copy, Known { roots: Some(&messages::roots()), ..Known::default() }).problems;
        self.holes.extend(problems.iter().map(ToString::to_string));
        let mut last = BTreeMap::new();
        for (number, Event { machine, is_announced }) in (1..).zip(&self.events) {
            let is_kept = *is_announced || !self.lost.contains(machine);
            match written.get(&event_job(number)).map_or(&[][..], Vec::as_slice) {
                [] if is_kept => self.holes.push(format!("event {number} is lost")),
                [] => {}
                [seq] if last.insert(machine, *seq).is_some_and(|before| before > *seq) => {
                    self.holes.push(format!("event {number} has an earlier record than the event before it"));
                }
                [_] => {}
                several => self.holes.push(format!("event {number} has {} records", several.len())),
            }
        }
        let (chain, holes) = (Chain { copy, keys: self.keys }, self.holes);
        Ok(Run { chain, faults, holes, copies: self.copies, alarms: self.alarms })
    }

    fn store(&self) -> std::sync::MutexGuard<'_, Store> {
        self.store.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn event(number: usize) -> AuditEvent {
    let fence = Fence { dispatch: 1, receive: 1 };
    let result = "succeeded".to_owned();
    AuditEvent::Ended { job: event_job(number), fence, result, log: None, order: None, sent_at: None }
}

fn event_job(number: usize) -> JobId {
    format!("job_{number:020x}").parse().expect("a job's id")
}

/// Returns a directory in memory, where the machine has one: the runs write durably thousands of times.
fn directory() -> std::io::Result<tempfile::TempDir> {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() }
}
