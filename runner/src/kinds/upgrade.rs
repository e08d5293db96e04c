//! `upgrade`: brings a program of a signed release to the disk and hands the runner over to it. The order is then
//! delivered again: to the new program, which thereby proves its health, or to the old program, which reports why the
//! new one did not work.

use std::path::{Path, PathBuf};
use std::time::Duration;

use freehold_oci::{BlobSource, client, fetch};
use freehold_protocol::Digest;
use freehold_protocol::grant::GrantAnswer;
use freehold_protocol::limits::MAX_SOURCE_BYTES;
use freehold_protocol::order::upgrade::{HEALTH_SECS, RUNNER_ARCHIVE, RUNNER_PROGRAM};
use freehold_protocol::order::{Descriptor, UpgradeRunner};
use semver::Version;
use serde_json::json;
use tokio::process::Command;

use crate::job::failure::{Failure, until_stopped};
use crate::job::{Job, StopReason};
use crate::kinds::archive::{self, Budget};
use crate::kinds::result::Done;
use crate::upgrade::programs::{
    Candidate, Phase, Programs, Released, is_program, keep, launched_by, own_program, path_of,
};

const VERSION: &str = env!("CARGO_PKG_VERSION");
/// The time limit for a program to print its version.
const SAYS_VERSION: Duration = Duration::from_secs(20);
/// The limits of the unpacked archive. No signature covers other files, so the archive must contain the program alone.
const PROGRAM_ALONE: Budget = Budget { bytes: 1 << 30, files: 1 };

pub(super) async fn run(job: &Job, work: &UpgradeRunner) -> Result<Done, Failure> {
    let state_dir = job.config.state_dir.as_path();
    let programs = Programs::load(state_dir);
    let own = own_program().map_err(|error| Failure::because("cannot read the runner's own program", &error))?;
    if own == work.program {
        return until_stopped(job, report_health(job, work, programs)).await;
    }
    if let Some(Candidate { phase: Phase::Failed { reason }, .. }) = programs.candidate_of(&job.order) {
        return Err(Failure::new(format!("{reason}; rolled back to the old program")));
    }
    if let Some(Candidate { released, job: other, .. }) = programs.on_trial(&own) {
        let version = &released.version;
        return Err(Failure::new(format!(
            "this runner is program {version} on trial for job `{other}`; order this upgrade again when that job has ended"
        )));
    }
    not_older(&work.version)?;
    until_stopped(job, on_disk(job, work)).await?;
    let candidate = Candidate {
        released: Released::of(work),
        job: job.order.job.clone(),
        dispatch: job.order.dispatch,
        health_secs: work.health_secs.clamp(*HEALTH_SECS.start(), *HEALTH_SECS.end()),
        phase: Phase::Ready,
    };
    // This program is the launcher, unless a launcher started it.
    let launcher = launched_by().unwrap_or(own);
    let programs = Programs { launcher: Some(launcher), candidate: Some(candidate), ..programs };
    store(&programs, state_dir)?;
    job.log.line(&format!("program {} is ready; it takes over when the other jobs have ended", work.version));
    job.hand_over.begin();
    let reason = job.stop.stopped().await;
    if reason != StopReason::Draining {
        store(&Programs { candidate: None, ..programs }, state_dir)?;
    }
    Err(Failure::stopped(reason))
}

/// Reports success from the requested program: it runs, has read the journal and has received this order. Its health is
/// proved once the reports queue also has its hello.
async fn report_health(job: &Job, work: &UpgradeRunner, programs: Programs) -> Result<Done, Failure> {
    let state_dir = &job.config.state_dir;
    if programs.on_trial(&work.program).is_some() {
        job.hand_over.announced().await;
        let proof = programs.succeeded();
        if let Err(failure) = store(&proof, state_dir) {
            // The launcher returns to the old program when this program has ended. So this program hands over now: if
            // it waited for the end of its trial, the launcher would kill its running jobs.
            job.hand_over.begin();
            return Err(failure);
        }
        proof.remove_others(state_dir);
        job.log.line(&format!("program {} has proved its health", work.version));
    } else {
        job.log.line(&format!("program {} works already", work.version));
    }
    let outputs = [("version", json!(VERSION)), ("program", json!(work.program))];
    let outputs = outputs.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    Ok(Done { outputs, ..Done::default() })
}

fn store(programs: &Programs, state_dir: &Path) -> Result<(), Failure> {
    programs.store(state_dir).map_err(|error| Failure::because("cannot write into the state directory", &error))
}

/// A customer who permits new releases does not thereby permit an older release, whose faults are known.
fn not_older(asked: &str) -> Result<(), Failure> {
    let parsed =
        |text: &str| Version::parse(text).map_err(|error| Failure::because(&format!("version `{text}`"), &error));
    if parsed(asked)? >= parsed(VERSION)? {
        return Ok(());
    }
    Err(Failure::new(format!(
        "the runner has version {VERSION}, and an order may not put the older version {asked} in its place; to go back, \
         launch the template that names it"
    )))
}

/// Downloads the program into the state directory, unless it is there.
async fn on_disk(job: &Job, work: &UpgradeRunner) -> Result<(), Failure> {
    if work.archive_size > MAX_SOURCE_BYTES {
        let size = work.archive_size;
        return Err(Failure::new(format!("the archive has {size} bytes, more than the maximum of {MAX_SOURCE_BYTES}")));
    }
    let path = path_of(&job.config.state_dir, &work.program);
    if !is_program(&path, &work.program) {
        let unpacked = download(job, work).await?;
        if !is_program(&unpacked.join(RUNNER_PROGRAM), &work.program) {
            return Err(Failure::new(format!(
                "`{RUNNER_PROGRAM}` in the archive `{}` is not the program `{}` of the order; report it to the vendor",
                work.archive, work.program
            )));
        }
        keep(&unpacked, &job.config.state_dir, &work.program)
            .map_err(|error| Failure::because("cannot put the program into the state directory", &error))?;
    }
    says_version(&path, &work.version).await
}

/// Downloads and unpacks the archive, and returns the directory.
async fn download(job: &Job, work: &UpgradeRunner) -> Result<PathBuf, Failure> {
    let archive =
        Descriptor { media_type: RUNNER_ARCHIVE.to_owned(), digest: work.archive.clone(), size: work.archive_size };
    let packed = job.workspace.join("runner.tar.gz");
    let source = BlobSource::Url { http: client()?, url: request_url(job, &archive.digest).await? };
    fetch(&source, &archive, &packed).await?;
    let unpacked = job.workspace.join("runner");
    let mut left = PROGRAM_ALONE;
    archive::unpack_within(&packed, &mut left, &unpacked)
        .map_err(|error| Failure::because("cannot unpack the program", &error))?;
    job.log.line(&format!("downloaded program {} ({})", work.version, work.program));
    Ok(unpacked)
}

async fn request_url(job: &Job, archive: &Digest) -> Result<String, Failure> {
    match job.grants.request(job, archive, vec![archive.clone()], 0).await? {
        GrantAnswer::Granted { blobs, .. } => {
            let url = blobs.into_iter().find(|blob| blob.digest == *archive).map(|blob| blob.url);
            url.ok_or_else(|| Failure::new(format!("the grant holds no URL for the program's archive `{archive}`")))
        }
        GrantAnswer::Refused { refusal, reason } => {
            Err(Failure::new(format!("program `{archive}` was not granted ({}): {reason}", refusal.as_str())))
        }
        GrantAnswer::Attested { .. } => {
            Err(Failure::new(format!("the answer to the request for the program `{archive}` is not a grant")))
        }
    }
}

/// Starts the program once, and compares the version that it prints with the version of the order. The signature covers
/// the bytes of the program and not the version in the order.
async fn says_version(path: &Path, version: &str) -> Result<(), Failure> {
    let mut command = Command::new(path);
    command.arg("--version").env_clear().kill_on_drop(true);
    let limit = SAYS_VERSION.as_secs();
    let output = match tokio::time::timeout(SAYS_VERSION, command.output()).await {
        Ok(Ok(output)) => output,
        Ok(Err(error)) => return Err(Failure::because("the new program does not start on this machine", &error)),
        Err(_) => return Err(Failure::new(format!("the new program did not print its version within {limit} s"))),
    };
    let printed = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    if output.status.success() && printed == format!("{RUNNER_PROGRAM} {version}") {
        return Ok(());
    }
    let shown: String = printed.chars().take(80).collect();
    Err(Failure::new(format!(
        "the new program does not report version {version}: it ended with {} and printed `{shown}`",
        output.status
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reason(result: Result<(), Failure>) -> Option<String> {
        match result {
            Ok(()) => None,
            Err(Failure::Failed { reason, .. }) => Some(reason),
            Err(other) => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_same_version_and_newer_ones_are_taken_and_older_ones_are_not() {
        let newer = {
            let now = Version::parse(VERSION).unwrap();
            Version::new(now.major, now.minor + 1, 0).to_string()
        };

        assert_eq!((reason(not_older(VERSION)), reason(not_older(&newer))), (None, None));
        assert!(reason(not_older("0.0.1")).unwrap().contains("may not put the older version 0.0.1"));
        assert!(reason(not_older("latest")).unwrap().starts_with("version `latest`"));
    }

    #[tokio::test]
    async fn a_program_that_does_not_start_or_says_another_version_is_not_tried() {
        use std::os::unix::fs::PermissionsExt as _;
        let place = tempfile::tempdir().unwrap();
        let program = |text: &str| {
            let path = place.path().join("program");
            std::fs::write(&path, text).unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
            path
        };

        let right = says_version(&program("#!/bin/sh\necho freehold-runner 9.9.9"), "9.9.9").await;
        assert_eq!(reason(right), None);
        let other = says_version(&program("#!/bin/sh\necho freehold-runner 9.9.8"), "9.9.9").await;
        let other = reason(other).unwrap();
        assert!(
            other.starts_with("the new program does not report version 9.9.9: it ended with exit status: 0"),
            "{other}"
        );
        assert!(other.contains("freehold-runner 9.9.8"), "{other}");
        let failed = says_version(&program("#!/bin/sh\necho freehold-runner 9.9.9\nexit 3"), "9.9.9").await;
        assert!(reason(failed).unwrap().contains("does not report version 9.9.9: it ended with exit status: 3"));
        let broken = says_version(&program("not a program"), "9.9.9").await;
        assert!(reason(broken).unwrap().contains("does not start on this machine"));
    }
}
