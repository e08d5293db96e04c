//! Doubles of the ports that `memory` leaves out: signer, root key, registry, queue administration. All fail
//! through the one fault injector of the control plane's memory.

use std::collections::{BTreeMap, BTreeSet};
use std::pin::Pin;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use ed25519_dalek::SigningKey;
use freehold_app::ports::{
    Clock, Committed, DeadLetters, DelegateKey, Key, LOOK_HIDES_SECS, PortError, QueueAdmin, ReceivedDeadLetter,
    Registry, RootKey, Row, Signer, Store, Write,
};
use freehold_app::testing::Memory;
use freehold_protocol::envelope::{Delegate, PublicKey};
use freehold_protocol::limits::DELEGATE_SEND_SECS;
use freehold_protocol::order::{Artifact, Descriptor};
use freehold_protocol::provenance::Statement;
use freehold_protocol::{AccountId, Digest, Envelope, InstallId, KeyUse, KeyUses, TenantName, Timestamp, names};

/// Holds the tenant's root key and certifies delegates with it.
pub(crate) struct Keys {
    pub(crate) memory: Arc<Memory>,
    pub(crate) tenant: TenantName,
    pub(crate) root: SigningKey,
    delegates: Mutex<Vec<(KeyUses, Arc<DelegateKey>)>>,
}

impl Keys {
    pub(crate) fn new(memory: Arc<Memory>, tenant: TenantName) -> Self {
        Self { memory, tenant, root: SigningKey::from_bytes(&[1; 32]), delegates: Mutex::default() }
    }

    pub(crate) fn public(&self) -> PublicKey {
        self.root.verifying_key().into()
    }

    /// Returns the signer of a function that signs only statements of `uses`.
    pub(crate) fn of_function(self: &Arc<Self>, uses: &[KeyUse]) -> Arc<FunctionKeys> {
        Arc::new(FunctionKeys { keys: Arc::clone(self), uses: uses.iter().copied().collect() })
    }

    fn certified(&self, until: Timestamp, uses: &KeyUses) -> Arc<DelegateKey> {
        let mut kept = self.delegates.lock().unwrap();
        let now = self.memory.now();
        if let Some((_, kept)) = kept.iter().find(|(of, kept)| of == uses && kept.lasts(now, until)) {
            return Arc::clone(kept);
        }
        let key = SigningKey::from_bytes(&[2; 32]);
        let (not_after, send_until) = (until.plus_secs(12 * 3600), now.plus_secs(DELEGATE_SEND_SECS));
        let delegate = Delegate {
            tenant: self.tenant.clone(),
            public_key: key.verifying_key().into(),
            not_before: now,
            not_after,
            send_until: Some(send_until),
            uses: uses.clone(),
        };
        let certificate = Envelope::seal(&delegate, &[&self.root]).unwrap();
        let made = Arc::new(DelegateKey { key, certificate, not_after, send_until });
        kept.push((uses.clone(), Arc::clone(&made)));
        made
    }
}

/// The keys as one function has them: its delegates are certified for what the function signs.
pub(crate) struct FunctionKeys {
    keys: Arc<Keys>,
    uses: KeyUses,
}

#[async_trait]
impl Signer for FunctionKeys {
    async fn delegate(&self, until: Timestamp) -> Result<Arc<DelegateKey>, PortError> {
        self.keys.memory.faults.run("delegate", || self.keys.certified(until, &self.uses))
    }

    async fn attest(&self, statement: &Statement) -> Result<Envelope, PortError> {
        self.keys.memory.faults.run("attest", || Envelope::seal(statement, &[&self.keys.root]).unwrap())
    }
}

#[async_trait]
impl RootKey for Keys {
    async fn public_key(&self) -> Result<PublicKey, PortError> {
        self.memory.faults.run("public_key", || self.public())
    }

    fn succession(&self) -> Vec<Envelope> {
        Vec::new()
    }

    fn second(&self) -> Option<PublicKey> {
        None
    }
}

/// A registry that holds what builds pushed.
pub(crate) struct MemoryRegistry {
    pub(crate) memory: Arc<Memory>,
    pub(crate) manifests: Mutex<BTreeMap<Digest, Vec<u8>>>,
}

impl MemoryRegistry {
    /// Pushes an artifact of two blobs, whose bytes depend on `source` alone.
    pub(crate) fn push(&self, source: &str) -> Artifact {
        let blob = |part: &str| {
            let bytes = format!("{source} {part}").into_bytes();
            let size = bytes.len() as u64;
            Descriptor { media_type: "application/octet-stream".into(), digest: Digest::of(&bytes), size }
        };
        let blobs = vec![blob("config"), blob("layer")];
        let manifest = serde_json::to_vec(&blobs).unwrap();
        let digest = Digest::of(&manifest);
        let media_type = "application/vnd.oci.image.manifest.v1+json".to_owned();
        let descriptor =
            Descriptor { media_type: media_type.clone(), digest: digest.clone(), size: manifest.len() as u64 };
        self.manifests.lock().unwrap().insert(digest.clone(), manifest);
        Artifact { digest, media_type, manifests: vec![descriptor], blobs, provenance: None }
    }
}

#[async_trait]
impl Registry for MemoryRegistry {
    async fn manifest(&self, manifest: &Descriptor) -> Result<Vec<u8>, PortError> {
        self.memory.faults.run("manifest", || self.manifests.lock().unwrap()[&manifest.digest].clone())
    }

    async fn blob_url(&self, blob: &Descriptor) -> Result<String, PortError> {
        self.memory.faults.run("blob_url", || format!("https://registry.invalid/{}", blob.digest))
    }
}

/// What another caller does in between.
pub(crate) type Meanwhile = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The table, with something that happens right before the next commit.
pub(crate) struct Racing {
    pub(crate) memory: Arc<Memory>,
    pub(crate) meanwhile: Mutex<Option<Meanwhile>>,
}

#[async_trait]
impl Store for Racing {
    async fn get(&self, key: &Key) -> Result<Option<Row>, PortError> {
        self.memory.get(key).await
    }

    async fn query(&self, pk: &str, prefix: &str, after: Option<&str>, limit: u32) -> Result<Vec<Row>, PortError> {
        self.memory.query(pk, prefix, after, limit).await
    }

    async fn commit(&self, writes: Vec<Write>) -> Result<Committed, PortError> {
        let meanwhile = self.meanwhile.lock().unwrap().take();
        if let Some(meanwhile) = meanwhile {
            meanwhile.await;
        }
        self.memory.commit(writes).await
    }
}

/// Orders queues that exist, and who may send reports.
pub(crate) struct MemoryQueues {
    pub(crate) memory: Arc<Memory>,
    pub(crate) created: Mutex<BTreeMap<InstallId, AccountId>>,
    /// The accounts whose runners may send, by the number of the reports queue.
    pub(crate) reporters: Mutex<BTreeMap<u32, BTreeSet<AccountId>>>,
    /// The installs whose orders queue nobody may read.
    pub(crate) closed: Mutex<BTreeSet<InstallId>>,
    /// Runs once, before the next policy is written.
    pub(crate) meanwhile: Mutex<Option<Meanwhile>>,
}

/// Returns the URL of a reports queue.
pub(crate) fn reports_url(shard: u32) -> String {
    let name = names::reports_queue(&"acme".parse().unwrap(), shard);
    format!("https://sqs.eu-west-1.amazonaws.com/111111111111/{name}")
}

/// Returns the URL of an install's orders queue.
pub(crate) fn queue_url(install: &str) -> String {
    format!("https://sqs.eu-west-1.amazonaws.com/111111111111/fh-acme--{install}.fifo")
}

#[async_trait]
impl QueueAdmin for MemoryQueues {
    async fn create_orders_queue(&self, install: &InstallId, account: &AccountId) -> Result<String, PortError> {
        self.memory.faults.run("create_orders_queue", || {
            self.created.lock().unwrap().insert(install.clone(), account.clone());
            queue_url(install.as_str())
        })
    }

    async fn turn_orders_queue(&self, install: &InstallId, _: &AccountId, open: bool) -> Result<(), PortError> {
        self.memory.faults.run("turn_orders_queue", || {
            let mut closed = self.closed.lock().unwrap();
            if open {
                closed.remove(install)
            } else {
                closed.insert(install.clone())
            };
        })
    }

    async fn remove_orders_queue(&self, install: &InstallId) -> Result<(), PortError> {
        self.memory.faults.run("remove_orders_queue", || {
            self.created.lock().unwrap().remove(install);
            let url = queue_url(install.as_str());
            self.memory.orders.lock().unwrap().retain(|(queue, ..)| *queue != url);
        })
    }

    async fn create_reports_queue(&self, shard: u32) -> Result<String, PortError> {
        self.memory.faults.run("create_reports_queue", || {
            self.reporters.lock().unwrap().entry(shard).or_default();
            reports_url(shard)
        })
    }

    async fn allow_reporters(&self, shard: u32, accounts: &BTreeSet<AccountId>) -> Result<(), PortError> {
        let meanwhile = self.meanwhile.lock().unwrap().take();
        if let Some(meanwhile) = meanwhile {
            meanwhile.await;
        }
        self.memory.faults.run("allow_reporters", || {
            self.reporters.lock().unwrap().insert(shard, accounts.clone());
        })
    }
}

/// A dead-letter queue. A look hides its messages for some time of the memory's clock.
pub(crate) struct MemoryLetters {
    pub(crate) memory: Arc<Memory>,
    pub(crate) messages: Mutex<Vec<ReceivedDeadLetter>>,
    /// The messages that returned to their queues.
    pub(crate) returned: Mutex<Vec<String>>,
    hidden: Mutex<BTreeMap<String, Timestamp>>,
}

impl MemoryLetters {
    pub(crate) fn new(memory: Arc<Memory>) -> Self {
        Self { memory, messages: Mutex::default(), returned: Mutex::default(), hidden: Mutex::default() }
    }

    /// Adds a message that a function refused.
    pub(crate) fn add_refused(&self, body: &str) {
        self.add(body, None, Some("refused"));
    }

    /// Adds a message that SQS moved after too many receives.
    pub(crate) fn add_moved(&self, body: &str) {
        self.add(body, Some("fh-acme--reports"), None);
    }

    fn add(&self, body: &str, source: Option<&str>, reason: Option<&str>) {
        let mut messages = self.messages.lock().unwrap();
        let receipt = messages.last().map_or(0, |last| last.receipt.parse::<u32>().unwrap() + 1).to_string();
        messages.push(ReceivedDeadLetter {
            receipt,
            body: body.to_owned(),
            source: source.map(str::to_owned),
            sender: None,
            sent_at: self.memory.now(),
            put_back: 0,
            charged: None,
            reason: reason.map(str::to_owned),
        });
    }

    pub(crate) fn bodies(&self) -> Vec<String> {
        self.messages.lock().unwrap().iter().map(|message| message.body.clone()).collect()
    }
}

#[async_trait]
impl DeadLetters for MemoryLetters {
    async fn look(&self, _: bool) -> Result<Vec<ReceivedDeadLetter>, PortError> {
        self.memory.faults.run("look", || {
            let now = self.memory.now();
            let mut hidden = self.hidden.lock().unwrap();
            hidden.retain(|_, until| *until > now);
            let messages = self.messages.lock().unwrap();
            let seen: Vec<ReceivedDeadLetter> =
                messages.iter().filter(|one| !hidden.contains_key(&one.receipt)).take(10).cloned().collect();
            let until = now.plus_secs(u64::from(LOOK_HIDES_SECS));
            hidden.extend(seen.iter().map(|one| (one.receipt.clone(), until)));
            seen
        })
    }

    async fn put_back(&self, message: &ReceivedDeadLetter) -> Result<bool, PortError> {
        self.memory.faults.run("put_back", || {
            let returns = message.source.is_some();
            if returns {
                self.returned.lock().unwrap().push(message.body.clone());
                self.messages.lock().unwrap().retain(|one| one.receipt != message.receipt);
            }
            returns
        })
    }

    async fn remove(&self, message: &ReceivedDeadLetter) -> Result<(), PortError> {
        self.memory.faults.run("remove_letter", || {
            self.messages.lock().unwrap().retain(|one| one.receipt != message.receipt);
        })
    }
}

/// A table in which each read of a state takes two seconds, for the states of one kind of thing.
pub(crate) struct Slow {
    memory: Arc<Memory>,
    /// How the partition keys of that kind begin.
    slows: &'static str,
    read: Mutex<BTreeSet<String>>,
}

impl Slow {
    pub(crate) fn new(memory: &Arc<Memory>, slows: &'static str) -> Self {
        Self { memory: Arc::clone(memory), slows, read: Mutex::default() }
    }

    /// Returns how many different states were read.
    pub(crate) fn read(&self) -> usize {
        self.read.lock().unwrap().len()
    }
}

#[async_trait]
impl Store for Slow {
    async fn get(&self, key: &Key) -> Result<Option<Row>, PortError> {
        if key.pk.starts_with(self.slows) && key.sk == "state" {
            self.memory.advance_secs(2);
            self.read.lock().unwrap().insert(key.pk.clone());
        }
        self.memory.get(key).await
    }

    async fn query(&self, pk: &str, prefix: &str, after: Option<&str>, limit: u32) -> Result<Vec<Row>, PortError> {
        self.memory.query(pk, prefix, after, limit).await
    }

    async fn commit(&self, writes: Vec<Write>) -> Result<Committed, PortError> {
        self.memory.commit(writes).await
    }
}
