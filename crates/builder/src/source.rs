//! Fetches a source that is a directory or a commit of a Git repository, and checks that it is the one that the order
//! names.

use std::path::PathBuf;

use freehold_protocol::Digest;
use freehold_protocol::order::Source;
use freehold_protocol::source::SourceAddress;
use freehold_runner::job::bucket::JobBucket;
use freehold_runner::job::failure::{Failure, until_stopped};
use freehold_runner::job::{Job, sdk_config};
use freehold_runner::kinds::archive;
use freehold_runner::sandbox::{self, Ended, Program};

use crate::private_source::git::GitAccess;

/// The largest packed source, in bytes.
const MAX_BYTES: u64 = 256 * 1024 * 1024;
/// The directory of the source in the workspace.
pub(crate) const SOURCE: &str = "source";
/// A shell script that fetches one commit. `--` ends the options: git must not read a URL as an option. The build
/// runner checks the id of the fetched commit afterwards.
const GIT: &str = r#"git init -q source && cd source && git fetch -q --depth 1 -- "$0" "$1" && git checkout -q --detach FETCH_HEAD && git rev-parse HEAD > ../head"#;

/// Fetches the source into the workspace and returns its path.
pub(crate) async fn fetch(job: &Job, source: &Source) -> Result<PathBuf, Failure> {
    match source {
        Source::Directory { digest } => until_stopped(job, directory(job, digest)).await,
        Source::Git { url, commit, directory, branch: _ } => git(job, url, commit, directory).await,
        Source::Image { .. } | Source::EcrImage { .. } | Source::Chart { .. } | Source::Version => {
            Err(Failure::new(format!("{} is not a directory", source.describe())))
        }
    }
}

async fn directory(job: &Job, digest: &Digest) -> Result<PathBuf, Failure> {
    let store = JobBucket::of(job, &sdk_config(job).await)?;
    let packed = job.workspace.join("source.tar.gz");
    store.fetch(&format!("sources/{}.tar.gz", digest.hex()), digest, MAX_BYTES, &packed).await?;
    let into = job.workspace.join(SOURCE);
    let (from, to) = (packed, into.clone());
    let unpacked = tokio::task::spawn_blocking(move || archive::unpack(&from, &to)).await;
    unpacked
        .map_err(|error| Failure::because("could not unpack the source", &error))?
        .map_err(|error| Failure::because("could not unpack the source", &error))?;
    Ok(into)
}

async fn git(job: &Job, url: &str, commit: &str, directory: &str) -> Result<PathBuf, Failure> {
    if commit.len() != 40 || !commit.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')) {
        return Err(Failure::new(format!("`{commit}` is not a commit; expected 40 lower-case hex digits")));
    }
    let missing =
        |name: &str| Failure::new(format!("`{name}` is not on this runner's `PATH`; install the package `{name}`"));
    let shell = sandbox::find_program(&["sh"]).ok_or_else(|| missing("sh"))?;
    // The shell starts Git, so the runner does not compare Git's digest when it starts the shell.
    let git = sandbox::find_program(&["git"]).ok_or_else(|| missing("git"))?;
    sandbox::check_program(&job.config, &git).await?;
    let mut environment = sandbox::base_environment(job);
    let fixed =
        [("GIT_TERMINAL_PROMPT", "0"), ("GIT_CONFIG_NOSYSTEM", "1"), ("GIT_ALLOW_PROTOCOL", "https:http:ssh:file:git")];
    environment.extend(fixed.map(|(name, value)| (name.to_owned(), value.to_owned())));
    let access = GitAccess::to(job, [url.to_owned()]).await?;
    environment.extend(access.environment());
    // With a credential, Git connects to a service of the runner and reaches no host itself.
    let hosts = if access.is_empty() { vec![url.to_owned()] } else { Vec::new() };
    let arguments = vec!["-c".to_owned(), GIT.to_owned(), url.to_owned(), commit.to_owned()];
    let program = Program { services: access.services(), hosts, ..Program::new(&shell, arguments, environment) };
    match sandbox::run(job, program).await? {
        Ended::Code { code: 0, .. } => {}
        Ended::Code { last_words, .. } => {
            let why = last_words.lines().last().unwrap_or("git gave no reason");
            let why = access.obstacle().unwrap_or_else(|| format!("{why}{}", hint(url, access.is_empty())));
            return Err(Failure::new(format!("could not fetch commit `{commit}` of `{url}`: {why}")));
        }
        Ended::Stopped(reason) => return Err(Failure::stopped(reason)),
    }
    let head = std::fs::read_to_string(job.workspace.join("head"));
    let head = head.map_err(|error| Failure::because("could not read the commit that git fetched", &error))?;
    if head.trim() != commit {
        return Err(Failure::new(format!("`{url}` gave commit `{}` instead of `{commit}`", head.trim())));
    }
    inside(&job.workspace.join(SOURCE), directory)
}

/// Returns the hint for a private repository when no credential for `url` is stored.
fn hint(url: &str, is_public: bool) -> String {
    let address = SourceAddress::of_git(url).filter(|_| is_public);
    address.map_or_else(String::new, |address| {
        format!("; if the repository is private, store a credential for it with `freehold tenant source add {address}`")
    })
}

/// Returns the path of `directory` in the repository. Refuses a link that leads out of the repository.
fn inside(repository: &std::path::Path, directory: &str) -> Result<PathBuf, Failure> {
    let missing =
        || Failure::new(format!("the commit has no directory `{directory}`; correct `directory` in the app config"));
    let root = repository.canonicalize().map_err(|_| missing())?;
    let path = root.join(directory.trim_matches('/')).canonicalize().map_err(|_| missing())?;
    if path.starts_with(&root) && path.is_dir() { Ok(path) } else { Err(missing()) }
}
