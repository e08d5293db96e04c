//! The job that upgrades the runner, with programs on the disk and a bucket that serves one.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use async_trait::async_trait;
use flate2::Compression;
use flate2::write::GzEncoder;
use freehold_protocol::Digest;
use freehold_protocol::grant::{BlobUrl, GrantAnswer};
use freehold_protocol::order::{Artifact, SignedSums, UpgradeRunner, Work};
use freehold_protocol::provenance::BuildFacts;
use freehold_protocol::report::Outcome;
use freehold_runner::job::{GrantError, Grants, HandOver, Job, StopReason};
use freehold_runner::kinds::execute;
use freehold_runner::upgrade::programs::{Candidate, Phase, Programs, Released, is_program, own_program, path_of};

use crate::fixture::{Bench, outputs, reason};

/// The version that the work asks for: that of the runner under test.
const VERSION: &str = env!("CARGO_PKG_VERSION");

fn program(text: &str) -> Vec<u8> {
    format!("#!/bin/sh\necho freehold-runner {VERSION} # {text}\n").into_bytes()
}

fn packed(program: &[u8]) -> Vec<u8> {
    packed_files(&[("freehold-runner", program)])
}

fn packed_files(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut tar = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
    for (name, bytes) in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(bytes.len() as u64);
        header.set_mode(0o644);
        tar.append_data(&mut header, name, *bytes).unwrap();
    }
    tar.into_inner().unwrap().finish().unwrap()
}

fn work(program: &[u8], archive: &[u8]) -> UpgradeRunner {
    UpgradeRunner {
        version: VERSION.to_owned(),
        program: Digest::of(program),
        archive: Digest::of(archive),
        archive_size: archive.len() as u64,
        release: SignedSums { sums: String::new(), signature: String::new() },
        health_secs: 60,
    }
}

/// Serves one archive, and counts the grants.
#[derive(Debug)]
struct Bucket {
    url: String,
    granted: AtomicU32,
}

impl Bucket {
    fn serving(archive: Vec<u8>) -> Arc<Self> {
        Self::cutting(archive, 0)
    }

    /// Serves the archive like S3, from the byte that is asked for. Cuts the first `cuts` answers after half of the bytes.
    fn cutting(archive: Vec<u8>, cuts: usize) -> Arc<Self> {
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/archive", server.local_addr().unwrap());
        std::thread::spawn(move || {
            for number in 0.. {
                let (mut stream, _) = server.accept().unwrap();
                let asked = BufReader::new(&stream).lines().map(Result::unwrap).take_while(|line| !line.is_empty());
                let range =
                    asked.filter_map(|line| line.to_lowercase().strip_prefix("range: bytes=").map(str::to_owned));
                let from = range.last().map(|range| range.trim_end_matches('-').parse::<usize>().unwrap());
                let (rest, status) = match from {
                    Some(from) => (&archive[from..], "206 Partial Content"),
                    None => (&archive[..], "200 OK"),
                };
                let first = from.unwrap_or_default();
                let (last, all, length) = (archive.len() - 1, archive.len(), rest.len());
                let head = format!(
                    "HTTP/1.1 {status}\r\ncontent-length: {length}\r\ncontent-range: bytes {first}-{last}/{all}\r\n\
                     connection: close\r\n\r\n"
                );
                let sent = if number < cuts { &rest[..length / 2] } else { rest };
                stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(sent)).unwrap();
            }
        });
        Arc::new(Self { url, granted: AtomicU32::new(0) })
    }
}

#[async_trait]
impl Grants for Bucket {
    async fn request(
        &self,
        _: &Job,
        artifact: &Digest,
        missing: Vec<Digest>,
        _: u32,
    ) -> Result<GrantAnswer, GrantError> {
        self.granted.fetch_add(1, Ordering::Relaxed);
        assert_eq!(missing, std::slice::from_ref(artifact));
        let blob = BlobUrl { digest: artifact.clone(), size: 0, url: self.url.clone() };
        Ok(GrantAnswer::Granted { manifests: Vec::new(), blobs: vec![blob] })
    }

    async fn attest(&self, _: &Job, artifact: &Artifact, _: BuildFacts) -> Result<GrantAnswer, GrantError> {
        Err(GrantError::Stopped(artifact.digest.clone()))
    }
}

/// Stops the job when it hands over, as a runner that has drained does, or for another reason.
#[derive(Debug)]
struct Drains(tokio::sync::watch::Sender<Option<StopReason>>, StopReason);

#[async_trait]
impl HandOver for Drains {
    fn begin(&self) {
        self.0.send_replace(Some(self.1));
    }

    async fn announced(&self) {}
}

/// Returns a bench for the work, whose hand-over stops the job for `reason`.
fn bench(work: UpgradeRunner, reason: StopReason) -> Bench {
    let mut bench = Bench::new(Work::Upgrade(work));
    bench.job.hand_over = Arc::new(Drains(bench.stop.clone(), reason));
    std::fs::create_dir_all(&bench.job.config.state_dir).unwrap();
    bench
}

fn programs(bench: &Bench) -> Programs {
    Programs::load(&bench.job.config.state_dir)
}

fn phase(bench: &Bench) -> Option<Phase> {
    programs(bench).candidate.map(|candidate| candidate.phase)
}

fn put_on_disk(bench: &Bench, program: &[u8]) {
    use std::os::unix::fs::PermissionsExt as _;
    let path = path_of(&bench.job.config.state_dir, &Digest::of(program));
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, program).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

#[tokio::test]
async fn the_program_is_downloaded_once_and_waits_beside_the_old_one_until_the_runner_has_drained() {
    let (wanted, state) = (program("new"), |bench: &Bench| bench.job.config.state_dir.clone());
    let archive = packed(&wanted);
    let mut bench = bench(work(&wanted, &archive), StopReason::Draining);
    let bucket = Bucket::serving(archive);
    bench.job.grants = bucket.clone();

    let first = execute(&bench.job).await;
    bench.next_attempt();
    bench.job.hand_over = Arc::new(Drains(bench.stop.clone(), StopReason::Draining));
    let again = execute(&bench.job).await;

    assert!(matches!(first, Outcome::Failed { partial: false, .. }), "{first:?}");
    assert_eq!(first, again);
    assert_eq!(bucket.granted.load(Ordering::Relaxed), 1);
    assert!(is_program(&path_of(&state(&bench), &Digest::of(&wanted)), &Digest::of(&wanted)));
    let found = programs(&bench);
    assert_eq!(found.launcher, Some(own_program().unwrap()));
    assert_eq!((found.current, phase(&bench)), (None, Some(Phase::Ready)));
}

#[tokio::test]
async fn an_archive_with_another_program_than_the_order_names_is_not_used() {
    let archive = packed(&program("another"));
    let mut bench = bench(work(&program("new"), &archive), StopReason::Draining);
    bench.job.grants = Bucket::serving(archive);

    let (reason, partial) = reason(execute(&bench.job).await);

    assert!(reason.contains("is not the program") && !partial, "{reason}");
    assert_eq!(programs(&bench), Programs::default());
    assert!(!Path::new(&bench.job.config.state_dir).join("programs").exists());
}

#[tokio::test]
async fn bytes_that_are_not_the_archive_are_refused() {
    let archive = packed(&program("new"));
    let mut bench = bench(work(&program("new"), &archive), StopReason::Draining);
    let mut other = archive;
    *other.last_mut().unwrap() ^= 1;
    bench.job.grants = Bucket::serving(other);

    let (reason, _) = reason(execute(&bench.job).await);

    assert!(reason.contains("sha256:"), "{reason}");
    assert_eq!(programs(&bench), Programs::default());
}

#[tokio::test]
async fn a_download_that_is_interrupted_resumes_and_needs_no_second_grant() {
    let wanted = program("new");
    let archive = packed(&wanted);
    let mut bench = bench(work(&wanted, &archive), StopReason::Draining);
    let bucket = Bucket::cutting(archive, 2);
    bench.job.grants = bucket.clone();

    let ended = execute(&bench.job).await;

    assert!(matches!(ended, Outcome::Failed { partial: false, .. }), "{ended:?}");
    assert_eq!((phase(&bench), bucket.granted.load(Ordering::Relaxed)), (Some(Phase::Ready), 1));
}

#[tokio::test]
async fn an_archive_with_more_than_the_program_or_with_a_link_in_its_place_is_not_used() {
    let wanted = program("new");
    let more = packed_files(&[("freehold-runner", &wanted), ("libc.so.6", b"other")]);
    let link = {
        let mut tar = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(tar::EntryType::Symlink);
        header.set_size(0);
        tar.append_link(&mut header, "freehold-runner", "elsewhere").unwrap();
        tar.into_inner().unwrap().finish().unwrap()
    };
    for (archive, why) in [(more, "or 1 files"), (link, "is not the program")] {
        let mut bench = bench(work(&wanted, &archive), StopReason::Draining);
        bench.job.grants = Bucket::serving(archive);

        let (reason, _) = reason(execute(&bench.job).await);

        assert!(reason.contains(why), "{reason}");
        assert_eq!(programs(&bench), Programs::default());
        assert!(!bench.job.config.state_dir.join("programs").exists());
    }
}

#[tokio::test]
async fn an_archive_that_is_too_large_is_refused_before_it_is_granted() {
    let large = UpgradeRunner { archive_size: u64::MAX, ..work(&program("new"), b"") };
    let mut bench = bench(large, StopReason::Draining);
    let bucket = Bucket::serving(Vec::new());
    bench.job.grants = bucket.clone();

    let (reason, _) = reason(execute(&bench.job).await);

    assert!(reason.contains("more than the maximum"), "{reason}");
    assert_eq!(bucket.granted.load(Ordering::Relaxed), 0);
}

#[tokio::test]
async fn a_disk_that_takes_no_more_ends_the_job_and_the_old_program_works_on() {
    let wanted = program("new");
    let archive = packed(&wanted);
    for (full, why) in [
        ("programs", "cannot put the program into the state directory"),
        ("programs.json.new", "cannot write into the state directory"),
    ] {
        let mut bench = bench(work(&wanted, &archive), StopReason::Draining);
        bench.job.grants = Bucket::serving(archive.clone());
        // What has the wrong type cannot be written either, for every user.
        let path = bench.job.config.state_dir.join(full);
        if full == "programs" {
            std::fs::write(path, "").unwrap()
        } else {
            std::fs::create_dir(path).unwrap()
        }

        let (reason, _) = reason(execute(&bench.job).await);

        assert!(reason.contains(why), "{reason}");
        assert_eq!((programs(&bench), *bench.stop.borrow()), (Programs::default(), None));
    }
}

#[tokio::test]
async fn an_older_version_is_refused_before_it_is_downloaded() {
    let older = UpgradeRunner { version: "0.0.1".to_owned(), ..work(&program("new"), b"") };
    let bench = bench(older, StopReason::Draining);

    let (reason, _) = reason(execute(&bench.job).await);

    assert!(reason.contains("may not put the older version 0.0.1 in its place"), "{reason}");
}

#[tokio::test]
async fn an_upgrade_that_is_cancelled_while_the_runner_drains_leaves_no_candidate() {
    let wanted = program("new");
    let bench = bench(work(&wanted, b""), StopReason::Cancelled);
    put_on_disk(&bench, &wanted);

    let ended = execute(&bench.job).await;

    assert_eq!((ended, phase(&bench)), (Outcome::Cancelled, None));
}

#[tokio::test]
async fn the_old_program_reports_why_the_new_one_did_not_work_and_another_order_tries_it_again() {
    let wanted = program("new");
    let mut bench = bench(work(&wanted, b""), StopReason::Draining);
    put_on_disk(&bench, &wanted);
    assert!(matches!(execute(&bench.job).await, Outcome::Failed { .. }));
    programs(&bench).failed("it ended").store(&bench.job.config.state_dir).unwrap();

    bench.next_attempt();
    let (why, _) = reason(execute(&bench.job).await);
    bench.next_attempt();
    bench.job.hand_over = Arc::new(Drains(bench.stop.clone(), StopReason::Draining));
    bench.change_order(|order| order.dispatch = 2);
    let _ = execute(&bench.job).await;

    assert_eq!(why, "it ended; rolled back to the old program");
    assert_eq!(phase(&bench), Some(Phase::Ready));
}

/// Writes that this process is the program of `ordered`, on trial for the bench's order.
fn put_on_trial(bench: &Bench, ordered: &UpgradeRunner) -> Programs {
    let candidate = Candidate {
        released: Released::of(ordered),
        job: bench.job.order.job.clone(),
        dispatch: 1,
        health_secs: 60,
        phase: Phase::OnTrial,
    };
    let on_trial = Programs { launcher: Some(Digest::of(b"launcher")), current: None, candidate: Some(candidate) };
    on_trial.store(&bench.job.config.state_dir).unwrap();
    on_trial
}

#[tokio::test]
async fn a_program_on_trial_takes_no_other_upgrade_before_it_has_proved_its_health() {
    let wanted = program("new");
    let bench = bench(work(&wanted, b""), StopReason::Draining);
    put_on_disk(&bench, &wanted);
    let own = UpgradeRunner { program: own_program().unwrap(), ..work(b"", b"") };
    let on_trial = put_on_trial(&bench, &own);

    let (reason, _) = reason(execute(&bench.job).await);

    assert!(reason.contains("on trial for job"), "{reason}");
    assert_eq!(programs(&bench), on_trial);
}

#[tokio::test]
async fn a_program_that_cannot_write_its_proof_ends_so_that_the_old_one_works_again() {
    let ordered = UpgradeRunner { program: own_program().unwrap(), ..work(b"", b"") };
    let bench = bench(ordered.clone(), StopReason::Draining);
    let on_trial = put_on_trial(&bench, &ordered);
    std::fs::create_dir(bench.job.config.state_dir.join("programs.json.new")).unwrap();

    let (reason, _) = reason(execute(&bench.job).await);

    assert!(reason.contains("cannot write into the state directory"), "{reason}");
    assert_eq!((programs(&bench), *bench.stop.borrow()), (on_trial, Some(StopReason::Draining)));
}

#[tokio::test]
async fn the_new_program_proves_its_health_and_the_same_order_again_succeeds() {
    let own = own_program().unwrap();
    let ordered = UpgradeRunner { program: own.clone(), ..work(b"", b"") };
    let mut bench = bench(ordered.clone(), StopReason::Draining);
    let _ = put_on_trial(&bench, &ordered);
    put_on_disk(&bench, &program("the one before"));

    let first = outputs(execute(&bench.job).await);
    let proved = programs(&bench);
    bench.next_attempt();
    let again = outputs(execute(&bench.job).await);

    assert!(proved.is_current(&own) && proved.candidate.is_none(), "{proved:?}");
    assert_eq!((&first, first["program"].as_str()), (&again, Some(own.as_str())));
    assert_eq!(programs(&bench), proved);
    let before = Digest::of(&program("the one before"));
    assert!(!path_of(&bench.job.config.state_dir, &before).exists(), "a program that nothing needs is still there");
}
