//! No process of a box remains when the runner or `bwrap` is killed, not even while the box is made.

use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use freehold_runner::sandbox;
use freehold_skips::have;
use rustix::process::{Pid, Signal, kill_process};
use tokio::process::{Child, Command};

use crate::fixture::{descendants, eventually, processes};
use crate::sandbox::{bench, code, run};

/// A runner that makes a box with a `bwrap` that sends a signal to the runner before it begins.
struct Making {
    runner: Child,
    /// The process of `bwrap`, which is also the number of its process group.
    bwrap: u32,
    _directory: tempfile::TempDir,
}

impl Making {
    async fn signalled_by_bwrap(signal: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let begun = directory.path().join("begun");
        let real = sandbox::find_program(&["bwrap"]).unwrap();
        let script =
            format!("#!/bin/sh\necho $$ > {}\nkill -{signal} $PPID\nexec {} \"$@\"\n", begun.display(), real.display());
        let bwrap = directory.path().join("bwrap");
        std::fs::write(&bwrap, script).unwrap();
        std::fs::set_permissions(&bwrap, std::fs::Permissions::from_mode(0o755)).unwrap();
        let path: Vec<PathBuf> = [directory.path().to_owned()]
            .into_iter()
            .chain(std::env::split_paths(&std::env::var_os("PATH").unwrap()))
            .collect();
        let runner = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "sandbox::a_runner_with_a_long_job"])
            .env("FREEHOLD_TEST_LONG_JOB", "1")
            .env("PATH", std::env::join_paths(path).unwrap())
            .stdout(std::process::Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let number = || std::fs::read_to_string(&begun).ok()?.strip_suffix('\n')?.parse().ok();
        eventually("`bwrap` begins", || number().is_some()).await;
        Self { runner, bwrap: number().unwrap(), _directory: directory }
    }

    /// Returns the processes of `bwrap`. They have its process group until they start the first process of the box.
    fn left(&self) -> Vec<u32> {
        processes("").into_iter().filter(|id| field(*id, 2) == Some(self.bwrap.to_string())).collect()
    }
}

/// Returns a field of `/proc/ID/stat` after the name of the program: 0 is the state, 1 the parent, 2 the process group.
fn field(id: u32, number: usize) -> Option<String> {
    let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    stat.rsplit_once(')')?.1.split_whitespace().nth(number).map(str::to_owned)
}

/// Returns whether `bwrap` has written its JSON about the box, and sleeps. With `--die-with-parent` it would have bound
/// its life to the runner's just before. Where another process maps the users, it then waits for the runner, which is
/// stopped, and its child waits for it.
fn waits(bwrap: u32) -> bool {
    let line = std::fs::read_to_string(format!("/proc/{bwrap}/cmdline")).unwrap_or_default();
    let info = line.split('\0').skip_while(|word| *word != "--info-fd").nth(1).map(str::to_owned);
    let open = std::fs::read_dir(format!("/proc/{bwrap}/fd"));
    let open = open.map(|open| open.filter_map(|file| file.ok()?.file_name().into_string().ok()).collect::<Vec<_>>());
    let has_written = info.is_some_and(|info| open.is_ok_and(|open| !open.is_empty() && !open.contains(&info)));
    has_written && field(bwrap, 0).as_deref() == Some("S")
}

/// This tests that `bwrap` does not die of SIGPIPE when nobody reads its JSON about the box any more. It says nothing
/// about `--die-with-parent`, which has no effect when the runner is gone before `bwrap` begins.
#[tokio::test]
async fn a_runner_that_is_killed_before_bwrap_begins_leaves_no_process() {
    if !have(&["bwrap"]) {
        return;
    }
    let mut making = Making::signalled_by_bwrap("KILL").await;

    assert!(!making.runner.wait().await.unwrap().success());

    eventually("no process is left", || making.left().is_empty()).await;
}

/// With `--die-with-parent` this fails in most runs, and not in all: the end of the runner closes the pipe that `bwrap`
/// reads before it sends the signal of that option, so `bwrap` may continue first. Where the runner maps no users
/// (`JobUser::Same`), `bwrap` waits for nobody, and the test checks only that a box ends with the runner.
#[tokio::test]
async fn a_runner_that_is_killed_while_bwrap_waits_for_it_leaves_no_process() {
    if !have(&["bwrap"]) {
        return;
    }
    let mut making = Making::signalled_by_bwrap("STOP").await;
    let both = || [vec![making.bwrap], descendants(making.bwrap)].concat();
    eventually("`bwrap` waits for the runner", || both().len() == 2 && waits(making.bwrap)).await;
    let waiting = both();

    making.runner.kill().await.unwrap();

    let remains = |id: &u32| field(*id, 0).is_some_and(|state| state != "Z");
    eventually("no process is left", || making.left().is_empty() && !waiting.iter().any(remains)).await;
}

#[tokio::test]
async fn a_box_ends_when_bwrap_is_killed() {
    if !have(&["bwrap"]) {
        return;
    }
    let bench = bench();
    let program = || processes("sleep\u{0}31536016").first().copied();

    let (ended, ()) = tokio::join!(run(&bench, "exec sleep 31536016"), async {
        eventually("it runs", || program().is_some()).await;
        let parent = |id: u32| field(id, 1).unwrap().parse::<u32>().unwrap();
        // Above the program are the first process of the box and `bwrap`.
        let bwrap = i32::try_from(parent(parent(program().unwrap()))).unwrap();
        kill_process(Pid::from_raw(bwrap).unwrap(), Signal::KILL).unwrap();
    });

    assert_eq!(code(ended), 137);
    eventually("it is gone", || program().is_none()).await;
}
