//! The records on which an answer is based: from a copy of the install's bucket, without a network or an account, or
//! from the bucket, with the customer's own credentials.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use aws_sdk_s3::Client;
use aws_sdk_s3::error::ProvideErrorMetadata as _;
use clap::Args;
use freehold_protocol::audit::verify::{Known, Position, RecordsCopy, Verified, verify};
use freehold_protocol::audit::{AuditRecord, MAX_OBJECT_BYTES, READING_ORDER};
use freehold_protocol::envelope::{PublicKey, SuccessionError};
use freehold_protocol::report::Fence;
use freehold_protocol::succession::Roots;
use freehold_protocol::{Envelope, InstallId, JobId, KeyId, TenantName};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use super::super::own_install::OwnInstall;
use super::local_copy::{self, LocalCopy};
use crate::context::Context;
use crate::error::{Error, Kind, Result, ResultExt};
use crate::output;

/// The prefix of the records in the bucket.
const AUDIT: &str = "audit/";
/// The number of objects that are read at the same time.
const AT_ONCE: usize = 16;

/// The place of the records, and the customer's knowledge about them.
#[derive(Debug, Args)]
pub(crate) struct Records {
    /// Name of the install, whose bucket is read with your own AWS credentials; `--tenant` names the vendor's tenant.
    #[arg(conflicts_with = "copy")]
    install: Option<InstallId>,
    /// A copy of the install's bucket, or of all objects below `audit/` in it. The command reads the copy instead of
    /// the bucket.
    #[arg(long, value_name = "DIR")]
    copy: Option<PathBuf>,
    #[command(flatten)]
    known: KnownRecords,
}

/// The customer's knowledge about the records.
#[derive(Debug, Default, Args)]
pub(crate) struct KnownRecords {
    /// The vendor's root key (base64), with which orders and receipts are verified; by default, the output `TenantKey` of
    /// your install stack.
    #[arg(long, value_name = "KEY")]
    root_key: Option<PublicKey>,
    /// The id of a runner's key, as `freehold-runner doctor` prints it; records of any other key are refused. Repeatable.
    #[arg(long = "runner", value_name = "KEY")]
    runners: Vec<KeyId>,
    /// A record that an earlier copy contained; the chain must still contain this record. Repeatable.
    #[arg(long, value_name = "RECORD")]
    seen: Vec<Position>,
}

/// The records, and the result of their verification.
#[derive(Debug)]
pub(crate) struct Evidence {
    pub(crate) copy: RecordsCopy,
    pub(super) skipped: BTreeMap<String, usize>,
    pub(crate) chain: Verified,
    pub(super) roots: Option<Roots>,
    /// Whether the customer named the keys of the runners.
    pub(super) knows_runners: bool,
    /// The text by which messages name where the records come from.
    pub(super) whose: String,
    place: Place,
}

#[derive(Debug)]
enum Place {
    Directory(PathBuf),
    Bucket { client: Client, name: String },
}

impl Records {
    /// Reads the records and verifies them.
    pub(super) async fn read(&self, context: &Context) -> Result<Evidence> {
        match (&self.copy, &self.install) {
            (Some(directory), _) => self.known.read_copy(directory),
            (None, Some(install)) => self.known.read_bucket(&OwnInstall::find(context, install).await?).await,
            (None, None) => Err(Error::invalid("no install is given").or("name the install, or pass `--copy DIR`")),
        }
    }

    /// Returns the account of the install's queues, as the launched stack names it; `None` for a copy of the records.
    pub(super) async fn queue_account(&self, context: &Context) -> Result<Option<String>> {
        let Some(install) = self.install.as_ref().filter(|_| self.copy.is_none()) else { return Ok(None) };
        OwnInstall::find(context, install).await?.queue_account().await
    }
}

impl KnownRecords {
    /// Reads the records in a copy and verifies them.
    fn read_copy(&self, directory: &Path) -> Result<Evidence> {
        let LocalCopy { copy, skipped } = local_copy::read(directory)?;
        let roots = self.root_key.clone().and_then(|key| Some(Roots::given(tenant_of(&copy)?, key, None)));
        let whose = format!("`{}`", directory.display());
        self.verify(copy, roots, (whose, Place::Directory(directory.to_owned()), skipped))
    }

    /// Reads the records in the bucket of an install and verifies them.
    pub(in crate::customer) async fn read_bucket(&self, own: &OwnInstall) -> Result<Evidence> {
        let roots = match &self.root_key {
            Some(key) => Some(Roots::given(own.tenant.clone(), key.clone(), None)),
            None => own.roots().await?,
        };
        let (client, name) = (own.s3(), own.bucket());
        let copy = download(&client, &name).await?;
        self.verify(copy, roots, (format!("bucket `{name}`"), Place::Bucket { client, name }, BTreeMap::new()))
    }

    fn verify(
        &self,
        copy: RecordsCopy,
        mut roots: Option<Roots>,
        (whose, place, skipped): (String, Place, BTreeMap<String, usize>),
    ) -> Result<Evidence> {
        if let Some(roots) = &mut roots {
            learn(roots, &copy)?;
        }
        let runners: Vec<String> = self.runners.iter().map(ToString::to_string).collect();
        let chain = verify(&copy, Known { runners: &runners, seen: &self.seen, roots: roots.as_ref() });
        Ok(Evidence { copy, skipped, chain, roots, knows_runners: !self.runners.is_empty(), whose, place })
    }
}

impl Evidence {
    /// Reads and verifies the records in the bucket of an install. If the stack cannot be read, the signatures of the vendor
    /// are not verified.
    pub(crate) async fn of_install(own: &OwnInstall) -> Result<Self> {
        let (client, name) = (own.s3(), own.bucket());
        let copy = download(&client, &name).await?;
        let mut roots = own.roots().await.ok().flatten();
        if let Some(roots) = &mut roots {
            learn(roots, &copy)?;
        }
        let chain = verify(&copy, Known { runners: &[], seen: &[], roots: roots.as_ref() });
        let (skipped, whose) = (BTreeMap::new(), format!("bucket `{name}`"));
        Ok(Self { copy, skipped, chain, roots, knows_runners: false, whose, place: Place::Bucket { client, name } })
    }

    /// Returns whether the signatures of the vendor were verified with a root key.
    pub(crate) const fn knows_root(&self) -> bool {
        self.roots.is_some()
    }

    /// Returns whether the place can have logs of jobs. A copy of `audit/` alone contains no logs.
    pub(super) fn has_logs(&self) -> bool {
        match &self.place {
            Place::Directory(directory) => directory.join("logs").is_dir() || directory.join("audit").is_dir(),
            Place::Bucket { .. } => true,
        }
    }

    /// Returns whether this is a copy in a directory whose reports or receipts name a record after its last one. Either
    /// the chain was cut, or a runner wrote while somebody made the copy in another order than [`READING_ORDER`].
    pub(super) fn may_be_mixed(&self) -> bool {
        let last = self.chain.last.as_ref().map(|last| last.seq);
        matches!(self.place, Place::Directory(_)) && self.chain.problems.iter().any(|problem| problem.record > last)
    }

    /// Returns the full log of an attempt; `None` if the bucket does not contain it any more.
    pub(super) async fn log(&self, job: &JobId, fence: Fence) -> Result<Option<Vec<u8>>> {
        let key = format!("logs/{job}/{fence}.log");
        match &self.place {
            Place::Directory(directory) => {
                let path = directory.join(&key);
                if path.exists() { crate::file::read(&path, crate::file::COPY_OF_AUDIT).map(Some) } else { Ok(None) }
            }
            Place::Bucket { client, name } => match client.get_object().bucket(name).key(&key).send().await {
                Ok(object) => {
                    let body = object.body.collect().await;
                    let body =
                        body.map_err(|error| Error::transient(format!("cannot read `{key}`: {error}; try again")))?;
                    Ok(Some(body.to_vec()))
                }
                Err(error) if error.code() == Some("NoSuchKey") => Ok(None),
                Err(error) => Err(error).doing(format!("read `{key}` of bucket `{name}`")),
            },
        }
    }
}

/// Returns the tenant that the first readable record names.
fn tenant_of(copy: &RecordsCopy) -> Option<TenantName> {
    let records = copy.records.values().filter_map(|bytes| Envelope::parse(bytes).ok()?.peek::<AuditRecord>().ok());
    records.map(|record| record.tenant).next()
}

/// Follows the successions of root keys that the vendor's messages contain. Without them, a message under a replaced
/// root key would look valid, because the message itself does not name the succession.
fn learn(roots: &mut Roots, copy: &RecordsCopy) -> Result<()> {
    let messages = copy.orders.values().chain(copy.receipts.values());
    for statements in messages.filter_map(|bytes| Envelope::parse(bytes).ok()?.succession().ok()) {
        match roots.follow(&statements) {
            // A message with statements that are not signed is refused when it is verified.
            Ok(()) | Err(SuccessionError::Unsigned(_) | SuccessionError::Elsewhere(_)) => {}
            Err(error) => {
                return Err(Error::quoting(
                    Kind::Failed,
                    format!("the vendor's root keys contradict each other: {error}"),
                )
                .or("stop the runner (`EnableRunner=false`), and ask the vendor"));
            }
        }
    }
    Ok(())
}

/// Returns the keys of the objects with the prefix `inside` below `audit/`; if `inside` is empty, of the objects directly in
/// `audit/`.
async fn list(client: &Client, bucket: &str, inside: &str) -> Result<Vec<String>> {
    let (prefix, delimiter) = match inside {
        "" => (AUDIT.to_owned(), Some("/".to_owned())),
        inside => (format!("{AUDIT}{inside}/"), None),
    };
    let request = client.list_objects_v2().bucket(bucket).prefix(prefix).set_delimiter(delimiter);
    let (mut pages, mut keys) = (request.into_paginator().send(), Vec::new());
    while let Some(page) = pages.next().await {
        if page.as_ref().is_err_and(|error| error.code() == Some("NoSuchBucket")) {
            return Err(Error::not_found(format!("there is no bucket `{bucket}`"))
                .or("check the install's name, `--tenant` and the account of your credentials"));
        }
        let page = page.doing(format!("list the records in bucket `{bucket}`"))?;
        keys.extend(page.contents().iter().filter_map(|object| object.key().map(str::to_owned)));
    }
    Ok(keys)
}

/// Reads an object of at most [`MAX_OBJECT_BYTES`].
async fn read(client: &Client, bucket: &str, key: &str) -> Result<Vec<u8>> {
    let object = client.get_object().bucket(bucket).key(key).send().await;
    let (mut body, mut bytes) = (object.doing(format!("read `{key}` of bucket `{bucket}`"))?.body, Vec::new());
    loop {
        let chunk = body.try_next().await;
        let chunk = chunk.map_err(|error| Error::transient(format!("cannot read `{key}`: {error}; try again")))?;
        let Some(chunk) = chunk else { return Ok(bytes) };
        bytes.extend_from_slice(&chunk);
        if bytes.len() > MAX_OBJECT_BYTES {
            let most = output::bytes(MAX_OBJECT_BYTES.try_into().unwrap_or(u64::MAX));
            let message = format!("object `{key}` of bucket `{bucket}` has more than {most}");
            return Err(Error::failed(message).or(local_copy::FOREIGN));
        }
    }
}

/// Reads all objects below `audit/`, while runners may write.
async fn download(client: &Client, bucket: &str) -> Result<RecordsCopy> {
    let mut keys = Vec::new();
    for prefix in READING_ORDER {
        keys.extend(list(client, bucket, prefix).await?);
    }
    let (mut copy, mut reads, turns) = (RecordsCopy::default(), JoinSet::new(), Arc::new(Semaphore::new(AT_ONCE)));
    // Other objects below `audit/` are the customer's own.
    for key in keys.into_iter().filter(|key| RecordsCopy::takes(key.strip_prefix(AUDIT).unwrap_or(key))) {
        let (client, bucket, turns) = (client.clone(), bucket.to_owned(), turns.clone());
        reads.spawn(async move {
            let _turn = turns.acquire().await;
            let bytes = read(&client, &bucket, &key).await?;
            Ok::<_, Error>((key, bytes))
        });
    }
    while let Some(read) = reads.join_next().await {
        let (key, bytes) = read.map_err(|error| Error::internal(error.to_string()))??;
        copy.add(key.strip_prefix(AUDIT).unwrap_or(&key), bytes);
    }
    if copy.records.is_empty() {
        return Err(Error::not_found(format!("bucket `{bucket}` has no audit records")).or("start the runner first"));
    }
    Ok(copy)
}
