//! The providers of a module that came without them, so that Terraform fetches them into its plugin cache. Each job has a
//! cache of its own in its workspace. The runner keeps a copy of a fetched provider if the module's lock file has the
//! hash of the copy, and later jobs can only read this copy.
//!
//! No job may write to a place from which another job runs programs. While `terraform init` fills the cache, it may run
//! any program: the tool image brings Terraform itself, and a module and its settings can name programs.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use freehold_aws_errors::chain;
use freehold_protocol::Digest;
use freehold_protocol::terraform::{ProviderPackage, own_platform};

use super::files::MODULE;
use super::provider_zip::{self, MAX_PACKED, ProviderZipError};
use super::providers::{KEPT, link, store};
use crate::job::Job;
use crate::job::failure::Failure;
use crate::sandbox;
use crate::unpacked_trees::{UnpackedTree, UnpackedTrees};
use crate::workspace::{self, WorkspaceError};

/// The directory of the plugin cache in the workspace.
const CACHE: &str = "plugins";
const LOCK: &str = ".terraform.lock.hcl";
/// The maximum number of files and directories of a provider that the runner keeps. All files are open at once.
const MAX_ENTRIES: usize = 200;

type Error = Box<dyn std::error::Error + Send + Sync>;

/// The providers that Terraform fetches for one job, or finds in its cache.
#[derive(Debug)]
pub(super) struct FetchedProviders {
    store: UnpackedTrees,
    /// The kept copies that the job can read.
    trees: Vec<UnpackedTree>,
    /// The providers of which this machine has no copy yet.
    missing: Vec<Locked>,
}

/// A provider in a lock file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Locked {
    address: String,
    version: String,
    /// The hashes of the files in its packages for several platforms, each with the prefix `h1:`.
    hashes: BTreeSet<String>,
}

/// Returns the path of the plugin cache as the job sees it.
pub(super) fn cache(job: &Job) -> String {
    sandbox::inside(job, CACHE)
}

impl FetchedProviders {
    /// Makes the plugin cache of the job. It has links to the kept copies of the providers in the module's lock file.
    pub(super) async fn find(job: &Job) -> Result<Self, Failure> {
        let wrong = |error: &dyn std::error::Error| Failure::because("could not make the plugin cache", error);
        let cache = job.workspace.join(CACHE);
        std::fs::create_dir_all(&cache).map_err(|error| wrong(&error))?;
        let store = store(job)?;
        // Terraform itself reports a lock file that cannot be read.
        let lock = workspace::read_text(&job.workspace, Path::new(MODULE).join(LOCK)).await.unwrap_or_default();
        let (mut trees, mut missing) = (Vec::new(), Vec::new());
        for locked in read_lock(&lock).into_iter().filter(|locked| !locked.hashes.is_empty()) {
            let package = locked.package();
            let (known, digest) = (store.clone(), package.digest.clone());
            let found = tokio::task::spawn_blocking(move || known.find(&digest)).await;
            match found.map_err(|error| wrong(&error))?.map_err(|error| wrong(&error))? {
                Some(tree) => {
                    link(&cache, &package, &tree.path)?;
                    trees.push(tree);
                }
                None => missing.push(locked),
            }
        }
        Ok(Self { store, trees, missing })
    }

    /// Returns the directories of the kept copies.
    pub(super) fn directories(&self) -> Vec<PathBuf> {
        self.trees.iter().map(|tree| tree.path.clone()).collect()
    }

    /// Keeps copies of the providers that Terraform fetched, for later jobs. A job does not fail when this fails: the
    /// next job fetches the provider again.
    pub(super) async fn keep(&self, job: &Job) {
        for locked in &self.missing {
            if let Err(error) = self.keep_one(job, locked).await {
                let name = locked.package().name();
                tracing::warn!("Cannot keep provider {name}, which Terraform fetched: {}", chain(&*error));
            }
        }
        let store = self.store.clone();
        if !self.missing.is_empty()
            && let Ok(Err(error)) = tokio::task::spawn_blocking(move || store.prune(KEPT)).await
        {
            tracing::warn!("Cannot remove old providers: {error}");
        }
    }

    async fn keep_one(&self, job: &Job, locked: &Locked) -> Result<(), Error> {
        let package = locked.package();
        let Some(path) = package.mirror_path() else { return Ok(()) };
        let directory = Path::new(CACHE).join(path);
        let names = match workspace::files_below(&job.workspace, &directory, MAX_ENTRIES).await {
            // Terraform did not need the provider.
            Err(WorkspaceError::Gone(_)) => return Ok(()),
            names => names?,
        };
        let mut files = BTreeMap::new();
        for name in names {
            let file = workspace::open(&job.workspace, directory.join(&name), MAX_PACKED).await?;
            let name = name.into_os_string().into_string();
            let name = name.map_err(|name| format!("the name `{}` is not UTF-8", name.to_string_lossy()))?;
            files.insert(name, file);
        }
        let (store, hashes) = (self.store.clone(), locked.hashes.clone());
        let kept = tokio::task::spawn_blocking(move || {
            store.find_or_unpack(&package.digest, |into| {
                let hash = provider_zip::copy(&files, into)?;
                if hashes.contains(&hash) { Ok(()) } else { Err(ProviderZipError::NotLocked(hash)) }
            })
        });
        kept.await??;
        Ok(())
    }
}

impl Locked {
    /// Returns the package for this machine's platform. Its digest is the name of its copy in the store, and covers all
    /// that the copy was compared with.
    fn package(&self) -> ProviderPackage {
        let Self { address, version, hashes } = self;
        let platform = own_platform();
        let hashes: Vec<&str> = hashes.iter().map(String::as_str).collect();
        let digest = Digest::of(format!("{address} {version} {platform} {}", hashes.join(" ")).as_bytes());
        ProviderPackage { address: address.clone(), version: version.clone(), platform: platform.to_owned(), digest }
    }
}

/// Returns the providers of a lock file in the format in which Terraform and OpenTofu write it: one value in a line. Of a
/// file in another format, providers or hashes are missing. Then the runner keeps no copies, and Terraform still
/// compares what it fetches with the lock file.
fn read_lock(lock: &str) -> Vec<Locked> {
    let mut all: Vec<Locked> = Vec::new();
    for line in lock.lines().map(str::trim) {
        let Some(value) = line.split('"').nth(1).map(str::to_owned) else { continue };
        if line.starts_with("provider ") {
            all.push(Locked { address: value, ..Locked::default() });
        } else if let Some(last) = all.last_mut() {
            if line.starts_with("version ") {
                last.version = value;
            } else if value.starts_with("h1:") {
                last.hashes.insert(value);
            }
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOCK: &str = r#"# This file is maintained automatically by "terraform init".
provider "registry.terraform.io/hashicorp/random" {
  version     = "3.7.1"
  constraints = "~> 3.0"
  hashes = [
    "h1:one=",
    "h1:two=",
    "zh:three",
  ]
}

provider "registry.example:8443/acme/note" {
  version = "1.0.0"
  hashes = [
    "zh:four",
  ]
}
"#;

    #[test]
    fn a_lock_file_names_each_provider_with_the_hashes_of_its_files() {
        let hashes = ["h1:one=", "h1:two="].map(str::to_owned).into();
        let random =
            Locked { address: "registry.terraform.io/hashicorp/random".into(), version: "3.7.1".into(), hashes };
        let note = Locked {
            address: "registry.example:8443/acme/note".into(),
            version: "1.0.0".into(),
            hashes: BTreeSet::new(),
        };

        assert_eq!(read_lock(LOCK), [random, note]);
        assert!(read_lock("").is_empty());
    }

    #[test]
    fn a_copy_serves_only_the_lock_entry_that_it_was_compared_with() {
        let mut locked = read_lock(LOCK).remove(0);
        let digest = locked.package().digest;
        assert_eq!(read_lock(LOCK)[0].package().digest, digest);

        locked.hashes.insert("h1:evil=".to_owned());

        assert_ne!(locked.package().digest, digest);
        let other = Locked { version: "3.7.2".to_owned(), ..read_lock(LOCK).remove(0) };
        assert_ne!(other.package().digest, digest);
    }
}
