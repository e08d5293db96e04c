//! The control group of a box on a kernel that delegates one. Machines of tests often have none, so the kernel is User Mode
//! Linux, an ordinary program that takes the machine's file system as its own.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use freehold_runner::job::StopReason;
use freehold_runner::sandbox::{Ended, cgroup};
use freehold_skips::{have, skip};

use super::{bench, run};
use crate::fixture::{Bench, eventually};

/// The group that the first process makes, as systemd does for a unit with `Delegate=yes`.
const UNIT: &str = "/sys/fs/cgroup/freehold.service";
/// Each process stays below its own limit, and all of them together do not stay below the limit of 96 MiB.
const TAKE_MEMORY: &str = r#"
import os, time
for _ in range(4):
    if os.fork() == 0:
        held = bytearray(40 << 20)
        open("/workspace/%d" % os.getpid(), "w").close()
        time.sleep(600)
while len(os.listdir("/workspace")) < 5: time.sleep(0.05)
print("held", flush=True)
os.killpg(0, 9)
"#;

/// What User Mode Linux prints before its first process dies, on a processor whose registers are larger than it knows, such as
/// one with AMX.
const REGISTERS: &str = "ptrace set fp regs failed";
const NO_KERNEL: &str = "User Mode Linux cannot run programs on this processor (`ptrace set fp regs failed`)";

/// Starts the kernel, whose first process runs the test `inside`; returns what it printed. `None` where it cannot run a
/// program. The temporary files of the test are on the file system in the file `disk`, or in memory.
fn in_a_kernel(inside: &str, disk: Option<&Path>) -> Option<String> {
    let directory = tempfile::tempdir().unwrap();
    let files = disk.map_or("tmpfs tmpfs", |_| "ext4 /dev/ubda");
    let (first, exe) = (directory.path().join("first"), std::env::current_exe().unwrap());
    let script = format!(
        "#!/bin/sh\n\
         mount -t proc proc /proc; mount -t sysfs sysfs /sys; mount -t {files} /tmp; mount -t cgroup2 none /sys/fs/cgroup\n\
         echo '+cpu +memory +pids +io' > /sys/fs/cgroup/cgroup.subtree_control; mkdir {UNIT}\n\
         export PATH={path} FREEHOLD_TEST_IN_KERNEL=1\n\
         sh -c 'echo $$ > {UNIT}/cgroup.procs; exec {exe} --exact {inside} --nocapture' 2>&1; echo \"ended with $?\"\n\
         echo o > /proc/sysrq-trigger; sleep 60\n",
        path = std::env::var("PATH").unwrap(),
        exe = exe.display(),
    );
    std::fs::write(&first, script).unwrap();
    std::fs::set_permissions(&first, std::fs::Permissions::from_mode(0o755)).unwrap();
    let kernel = Command::new("linux.uml")
        .args(["mem=1G", "rootfstype=hostfs", "rootflags=/", "rw", "quiet", "con=null", "con0=null,fd:1"])
        .arg(format!("init={}", first.display()))
        .arg(format!("uml_dir={}", directory.path().display()))
        .args(disk.map(|disk| format!("ubd0={}", disk.display())))
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let printed = String::from_utf8_lossy(&kernel.stdout).into_owned();
    (!printed.contains(REGISTERS)).then_some(printed)
}

/// Waits for the group of the only box.
async fn group() -> PathBuf {
    let find = || {
        let all = std::fs::read_dir(UNIT).unwrap().flatten();
        all.map(|entry| entry.path()).find(|path| path.file_name().unwrap().to_string_lossy().starts_with("box-"))
    };
    eventually("the box has a group", || find().is_some()).await;
    find().unwrap()
}

/// Returns a number in a file of a group: the whole file, or the line of `key`.
fn number(group: &Path, file: &str, key: &str) -> u64 {
    let text = std::fs::read_to_string(group.join(file)).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix(key)).unwrap_or_default();
    line.trim().parse().unwrap_or_default()
}

async fn stop_when(bench: &Bench, script: &str, holds: impl AsyncFnOnce(PathBuf)) {
    let (ended, ()) = tokio::join!(run(bench, script), async {
        holds(group().await).await;
        bench.stop.send(Some(StopReason::Cancelled)).unwrap();
    });
    assert!(matches!(ended, Ended::Stopped(StopReason::Cancelled)), "{ended:?}");
    no_group().await;
}

/// Waits until the group of the last box is gone, so that the next one is the only one.
async fn no_group() {
    eventually("the group is gone", || {
        let mut left = std::fs::read_dir(UNIT).unwrap().flatten();
        !left.any(|entry| entry.file_name().to_string_lossy().starts_with("box-"))
    })
    .await;
}

/// Does nothing unless its variable is set, because it needs a group that is delegated.
#[tokio::test]
async fn each_limit_of_a_group() {
    let Ok(_) = std::env::var("FREEHOLD_TEST_IN_KERNEL") else { return };
    let first = bench();
    cgroup::claim(first.directory.path()).unwrap();
    assert!(std::fs::read_to_string(format!("{UNIT}/runner/cgroup.procs")).unwrap().lines().count() == 1);

    for (memory_mib, holds) in [(96, false), (512, true)] {
        let mut bench = bench();
        bench.change_config(|config| config.limits.memory_mib = memory_mib);
        std::fs::write(bench.job.workspace.join("take.py"), TAKE_MEMORY).unwrap();
        let ended = run(&bench, "exec python3 take.py").await;
        assert!(matches!(ended, Ended::Code { code: 137, .. }), "{memory_mib} MiB: {ended:?}");
        assert_eq!(bench.log().contains("held"), holds, "{memory_mib} MiB: {}", bench.log());
        println!("memory {memory_mib}");
        no_group().await;
    }

    let mut bench = bench();
    bench.change_config(|config| config.limits.processes = 24);
    // A shell ends when it is refused a process. So a subshell starts them, and the job continues.
    let many = "(i=0; while [ $i -lt 64 ]; do sleep 600 & i=$((i+1)); done; echo all); exec sleep 600";
    stop_when(&bench, many, async |group| {
        eventually("a process is refused", || number(&group, "pids.events", "max ") > 0).await;
        assert_eq!(number(&group, "pids.max", ""), 24);
        assert!(number(&group, "pids.current", "") <= 24);
    })
    .await;
    assert!(!bench.log().contains("all"), "{}", bench.log());
    println!("processes");

    let mut bench = super::bench();
    bench.change_config(|config| config.limits.cpu_percent = Some(20));
    stop_when(&bench, "while :; do :; done", async |group| {
        let (begun, before) = (Instant::now(), number(&group, "cpu.stat", "usage_usec "));
        eventually("the box waits for the processor", || number(&group, "cpu.stat", "nr_throttled ") > 20).await;
        let used = u128::from(number(&group, "cpu.stat", "usage_usec ") - before);
        assert!(used * 100 <= begun.elapsed().as_micros() * 30, "{used} µs of {:?}", begun.elapsed());
    })
    .await;
    println!("processor");
}

/// Does nothing unless its variable is set, because it needs a group that is delegated, and temporary files on a disk.
#[tokio::test]
async fn the_use_of_a_disk() {
    let Ok(_) = std::env::var("FREEHOLD_TEST_IN_KERNEL") else { return };
    assert_eq!(cgroup::claim(bench().directory.path()), Ok(None));

    // Without a limit, either takes a small part of a second. What the runner writes meanwhile may wait for the job: a
    // file system with a journal writes the data of both with one entry.
    for (what, mib, operations, writes) in [
        ("rate", Some(2), None, "bs=64k count=64 conv=fsync"),
        ("operations", None, Some(50), "bs=4k count=100 oflag=dsync"),
    ] {
        let mut bench = bench();
        bench.change_config(|config| {
            config.limits.disk_mib_per_sec = mib;
            config.limits.disk_ops_per_sec = operations;
        });
        let (begun, script) = (Instant::now(), format!("exec dd if=/dev/zero of=/workspace/x {writes}"));
        let ended = run(&bench, &script).await;
        let took = begun.elapsed();
        assert!(matches!(ended, Ended::Code { code: 0, .. }), "{what}: {ended:?} {}", bench.log());
        assert!(took > Duration::from_millis(1500), "{what}: {took:?}");
        println!("disk {what}");
        no_group().await;
    }
}

/// Does nothing unless its variable is set: it is the program that a launcher starts.
#[test]
fn the_launched_program() {
    let Ok(_) = std::env::var("FREEHOLD_TEST_IN_KERNEL") else { return };
    let claimed = cgroup::claim(Path::new("/tmp"));
    println!("claimed: {claimed:?}");
}

/// Does nothing unless its variable is set: it is the launcher.
#[test]
fn a_launcher() {
    let Ok(_) = std::env::var("FREEHOLD_TEST_IN_KERNEL") else { return };
    let launched = || {
        let mut command = Command::new(std::env::current_exe().unwrap());
        let output =
            command.args(["--exact", "sandbox::groups::the_launched_program", "--nocapture"]).output().unwrap();
        let printed = String::from_utf8_lossy(&output.stdout).into_owned();
        printed.lines().find_map(|line| line.split_once("claimed: ")).unwrap().1.to_owned()
    };
    println!("in the group: {}", launched());
    cgroup::step_aside().unwrap();
    println!("aside: {}", launched());
}

#[test]
fn a_program_that_a_launcher_starts_limits_its_jobs_if_the_launcher_has_stepped_aside() {
    if !have(&["linux.uml"]) {
        return;
    }

    let Some(printed) = in_a_kernel("sandbox::groups::a_launcher", None) else { return skip(NO_KERNEL) };

    assert!(printed.contains("ended with 0"), "{printed}");
    assert!(printed.contains("in the group: Err(") && printed.contains("aside: Ok("), "{printed}");
}

#[test]
fn a_delegated_group_holds_memory_processes_and_processor_of_a_whole_job() {
    if !have(&["bwrap", "python3", "linux.uml"]) {
        return;
    }

    let Some(printed) = in_a_kernel("sandbox::groups::each_limit_of_a_group", None) else { return skip(NO_KERNEL) };

    assert!(printed.contains("ended with 0"), "{printed}");
    for limit in ["memory 96", "memory 512", "processes", "processor"] {
        assert!(printed.contains(limit), "{printed}");
    }
}

#[test]
fn a_delegated_group_limits_the_use_of_the_disk_by_a_job() {
    if !have(&["bwrap", "dd", "mke2fs", "linux.uml"]) {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let disk = directory.path().join("disk");
    let made = Command::new("mke2fs").args(["-q", "-F", "-t", "ext4"]).arg(&disk).arg("128M").output().unwrap();
    assert!(made.status.success(), "{made:?}");

    let inside = "sandbox::groups::the_use_of_a_disk";
    let Some(printed) = in_a_kernel(inside, Some(&disk)) else { return skip(NO_KERNEL) };

    assert!(printed.contains("ended with 0"), "{printed}");
    for limit in ["disk rate", "disk operations"] {
        assert!(printed.contains(limit), "{printed}");
    }
}
