//! Checks that a program has the SHA-256 that the runner's config names for it (table `programs`).

use std::collections::BTreeMap;
use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use freehold_protocol::Digest;

use super::environment::find_program;
use super::program::SandboxError;
use crate::config::Config;
use crate::files;

/// The digests of the files that were read so far, so that a file is read again only after it changed.
static KNOWN: Mutex<BTreeMap<Identity, Digest>> = Mutex::new(BTreeMap::new());

/// A file in one state. Every change of the content changes `changed`, which a program cannot set.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Identity {
    device: u64,
    inode: u64,
    size: u64,
    changed: (i64, i64),
}

/// A program that the config names, on this machine.
#[derive(Debug)]
pub struct Pinned {
    pub name: String,
    /// The path of the program, or why it must not run.
    pub state: Result<PathBuf, String>,
}

/// Refuses a program whose digest differs from the digest that the config has for its name. A program whose name the
/// config does not contain passes.
///
/// # Errors
/// [`SandboxError::OtherProgram`].
pub async fn check(config: &Config, program: &Path) -> Result<(), SandboxError> {
    let Some((name, wanted)) = named(config, program) else { return Ok(()) };
    let (name, wanted, program) = (name.to_owned(), wanted.clone(), program.to_owned());
    let checked = tokio::task::spawn_blocking(move || compare(&name, &wanted, &program)).await;
    checked.unwrap_or_else(|error| Err(error.to_string())).map_err(SandboxError::OtherProgram)
}

/// Compares each program that the config names with its digest.
pub fn pinned(config: &Config) -> Vec<Pinned> {
    let state = |(name, wanted): (&String, &Digest)| {
        let configured = config.terraform.clone().filter(|path| is_terraform(name) && path.is_file());
        let path = configured.or_else(|| find_program(&[name])).ok_or_else(|| format!("`{name}` is not on PATH"));
        path.and_then(|path| compare(name, wanted, &path).map(|()| path))
    };
    config.programs.iter().map(|one| Pinned { name: one.0.clone(), state: state(one) }).collect()
}

/// Returns the name under which the config has `program`, and its digest. The path in the key `terraform` may end with
/// any name.
fn named<'a>(config: &'a Config, program: &Path) -> Option<(&'a str, &'a Digest)> {
    let named = |(name, _): &(&String, &Digest)| {
        let own = program.file_name().is_some_and(|file| file == name.as_str());
        own || is_terraform(name) && config.terraform.as_deref() == Some(program)
    };
    config.programs.iter().find(named).map(|(name, wanted)| (name.as_str(), wanted))
}

fn is_terraform(name: &str) -> bool {
    matches!(name, "terraform" | "tofu")
}

fn compare(name: &str, wanted: &Digest, program: &Path) -> Result<(), String> {
    let unreadable = |error: io::Error| format!("`{}` cannot be read: {error}", program.display());
    let found = digest(program).map_err(unreadable)?;
    if found == *wanted {
        return Ok(());
    }
    Err(format!(
        "`{}` has the digest `{found}`, and the runner's config has `{wanted}` for `{name}` in `programs`; install that \
         program, or correct the config",
        program.display()
    ))
}

fn digest(program: &Path) -> io::Result<Digest> {
    let file = File::open(program)?;
    let identity = identity(&file.metadata()?);
    let known = || KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(found) = known().get(&identity) {
        return Ok(found.clone());
    }
    let found = files::digest(&file)?;
    known().insert(identity, found.clone());
    Ok(found)
}

fn identity(data: &Metadata) -> Identity {
    let changed = (data.ctime(), data.ctime_nsec());
    Identity { device: data.dev(), inode: data.ino(), size: data.size(), changed }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Role;

    fn config(name: &str, content: &[u8], terraform: Option<PathBuf>) -> Config {
        let programs = BTreeMap::from([(name.to_owned(), Digest::of(content))]);
        Config { programs, terraform, ..crate::testing::config("/state", Role::Install) }
    }

    #[tokio::test]
    async fn a_program_runs_only_with_the_content_that_the_config_names() {
        let directory = tempfile::tempdir().unwrap();
        let helm = directory.path().join("helm");
        std::fs::write(&helm, "helm 3").unwrap();
        let config = config("helm", b"helm 3", None);

        assert!(check(&config, &helm).await.is_ok());
        std::fs::write(&helm, "helm 4").unwrap();
        let refused = check(&config, &helm).await.unwrap_err().to_string();

        assert!(refused.contains("helm` has the digest `sha256:") && refused.contains("`programs`"), "{refused}");
        let other = directory.path().join("kubectl");
        std::fs::write(&other, "any").unwrap();
        assert!(check(&config, &other).await.is_ok(), "a name that the config does not have");
    }

    #[tokio::test]
    async fn the_terraform_of_the_config_is_checked_under_any_file_name() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("terraform_1.11.4");
        std::fs::write(&path, "another").unwrap();
        let config = config("terraform", b"terraform", Some(path.clone()));

        assert!(check(&config, &path).await.is_err());
        assert!(pinned(&config)[0].state.as_ref().unwrap_err().contains("terraform_1.11.4"));
    }

    #[test]
    fn a_program_that_is_not_there_is_reported() {
        let all = pinned(&config("no-such-program", b"", None));

        assert_eq!(all[0].state, Err("`no-such-program` is not on PATH".to_owned()));
    }
}
