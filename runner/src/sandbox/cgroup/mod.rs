//! The control group of a box, which limits memory, processor time, the number of processes and the use of the disk for
//! all processes of the box together (cgroups(7), version 2).

mod block_device;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use crate::config::limits::Limits;

/// The mount point of the machine's control groups.
const TOP: &str = "/sys/fs/cgroup";
/// The name of the runner's own group. The runner needs one, because a group that has limited subgroups cannot have
/// processes itself.
const OWN: &str = "runner";
const NEEDED: [&str; 3] = ["cpu", "memory", "pids"];
/// The controller of disks. Boxes are made without it where the machine lacks it.
const DISK: &str = "io";
/// The weight of a box for processors and disks. The runner has 100, so it has priority over jobs.
const WEIGHT: u32 = 50;

/// The group that the machine delegated to this process, or the reason why there is none. [`claim`] sets it.
static CLAIMED: OnceLock<Result<Claimed, String>> = OnceLock::new();

#[derive(Debug)]
struct Claimed {
    home: PathBuf,
    /// The disk of the workspaces, or the reason why its use cannot be limited.
    disk: Result<String, String>,
}

/// Prepares the group that the machine delegated to this process, so that boxes can get groups below it. Returns `None`
/// when the group can limit the use of the disk of `state_dir`, otherwise the reason why it cannot.
///
/// # Errors
/// The reason why the group cannot be used, as a sentence.
pub fn claim(state_dir: &Path) -> Result<Option<String>, String> {
    let claimed = CLAIMED.get_or_init(|| {
        let home = delegated()?;
        prepare(&home).map_err(|error| format!("`{}` cannot be used: {error}", home.display()))?;
        let disk = disk(&home, state_dir).and_then(|disk| try_disk(&home, disk));
        Ok(Claimed { home, disk })
    });
    claimed.as_ref().map(|claimed| claimed.disk.as_ref().err().cloned()).map_err(Clone::clone)
}

/// Returns whether the machine divides the use of `disk` by the weights of groups, so that the runner comes before
/// jobs.
pub(crate) fn has_weights(disk: &str) -> bool {
    let costs = std::fs::read_to_string(Path::new(TOP).join("io.cost.qos")).unwrap_or_default();
    block_device::has_weights(disk, &costs)
}

/// Returns the disk on which `state_dir` is, if a group below `home` can limit its use. Changes nothing.
///
/// # Errors
/// The reason why it cannot, as a sentence.
pub(crate) fn disk(home: &Path, state_dir: &Path) -> Result<String, String> {
    if !home.join("io.max").is_file() {
        let home = home.display();
        return Err(format!(
            "`{home}` has no `io.max`; write `Delegate=yes` into the runner's unit, and see whether the \
                            kernel has CONFIG_BLK_DEV_THROTTLING"
        ));
    }
    block_device::of(state_dir)
}

/// Finds out whether the kernel can limit the use of `disk`: writes the value `max`, which means no limit, for the
/// runner's own group. A kernel that cannot limit the use refuses the value.
fn try_disk(home: &Path, disk: String) -> Result<String, String> {
    let limited = std::fs::write(home.join("cgroup.subtree_control"), format!("+{DISK}"))
        .and_then(|()| std::fs::write(home.join(OWN).join("io.max"), format!("{disk} rbps=max wbps=max")));
    limited.map(|()| disk.clone()).map_err(|error| format!("the kernel does not limit the use of disk {disk}: {error}"))
}

/// Returns the group that the machine delegated to this process, and changes nothing.
///
/// # Errors
/// The reason why there is no usable group, as a sentence.
pub(crate) fn delegated() -> Result<PathBuf, String> {
    let top = Path::new(TOP);
    if !top.join("cgroup.controllers").is_file() {
        return Err(format!("this machine has no cgroup v2 at `{TOP}`"));
    }
    let own = std::fs::read_to_string("/proc/self/cgroup").map_err(|error| error.to_string())?;
    let path =
        own.lines().find_map(|line| line.strip_prefix("0::")).ok_or("this process does not belong to a cgroup v2")?;
    let home = top.join(path.trim_start_matches('/'));
    let home = if home.ends_with(OWN) { home.parent().map(Path::to_owned).unwrap_or(home) } else { home };
    let has = std::fs::read_to_string(home.join("cgroup.controllers")).unwrap_or_default();
    let missing: Vec<&str> =
        NEEDED.into_iter().filter(|name| !has.split_whitespace().any(|one| one == *name)).collect();
    if !missing.is_empty() {
        return Err(format!(
            "`{}` lacks {}; write `Delegate=yes` into the runner's unit",
            home.display(),
            missing.join(", ")
        ));
    }
    if rustix::fs::access(home.join("cgroup.subtree_control"), rustix::fs::Access::WRITE_OK).is_err() {
        return Err(format!(
            "`{}` does not belong to the runner's user; write `Delegate=yes` into the runner's unit",
            home.display()
        ));
    }
    Ok(home)
}

/// Moves this process, and with it each program that it starts later, into the runner's own group. Such a program can
/// then claim the delegated group, whose subgroups get no limits while a process is in it. Changes nothing without a
/// delegated group.
///
/// # Errors
/// When the kernel refuses the move.
pub fn step_aside() -> io::Result<()> {
    delegated().map_or(Ok(()), |home| enter(&home))
}

fn enter(home: &Path) -> io::Result<()> {
    let own = home.join(OWN);
    make(&own)?;
    std::fs::write(own.join("cgroup.procs"), std::process::id().to_string())
}

fn prepare(home: &Path) -> io::Result<()> {
    enter(home)?;
    let all = NEEDED.map(|name| format!("+{name}")).join(" ");
    std::fs::write(home.join("cgroup.subtree_control"), all)
}

/// Makes a group for a box. Returns `None` when this process has not claimed a group.
pub(super) fn new_group(name: &str, limits: &Limits) -> io::Result<Option<Group>> {
    match CLAIMED.get() {
        Some(Ok(Claimed { home, disk })) => Group::make(home, name, limits, disk.as_deref().ok()).map(Some),
        Some(Err(_)) | None => Ok(None),
    }
}

/// The group of one box. Dropping it kills all processes in the group.
#[derive(Debug)]
pub(super) struct Group(PathBuf);

impl Group {
    fn make(home: &Path, name: &str, limits: &Limits, disk: Option<&str>) -> io::Result<Self> {
        let group = Self(home.join(name));
        make(&group.0)?;
        let set = |file: &str, value: String| std::fs::write(group.0.join(file), value);
        set("memory.max", limits.memory().to_string())?;
        set("memory.oom.group", "1".to_owned())?;
        set("pids.max", limits.processes.to_string())?;
        set("cpu.weight", WEIGHT.to_string())?;
        if let Some(percent) = limits.cpu_percent {
            // The quota and the period, in microseconds.
            set("cpu.max", format!("{} 100000", percent.saturating_mul(1000)))?;
        }
        // This file does not exist on a kernel without swap accounting.
        let _ = set("memory.swap.max", "0".to_owned());
        if let Some(disk) = disk {
            // Each file exists only if the kernel has what reads it: the cost model of disks, and the scheduler BFQ.
            let _ = set("io.weight", WEIGHT.to_string());
            let _ = set("io.bfq.weight", WEIGHT.to_string());
            let rate = limits.disk_rate().map(|bytes| format!(" rbps={bytes} wbps={bytes}"));
            let operations = limits.disk_ops_per_sec.map(|number| format!(" riops={number} wiops={number}"));
            let most: String = rate.into_iter().chain(operations).collect();
            if !most.is_empty() {
                set("io.max", format!("{disk}{most}"))?;
            }
        }
        Ok(group)
    }

    /// Moves a process into the group. Processes that it starts later belong to the group too.
    pub(super) fn add(&self, process: u32) -> io::Result<()> {
        std::fs::write(self.0.join("cgroup.procs"), process.to_string())
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = std::fs::write(self.0.join("cgroup.kill"), "1");
        let group = std::mem::take(&mut self.0);
        // The kernel refuses to remove the group until its last process has ended, shortly after the kill.
        let remove = move || {
            for _ in 0..200 {
                match std::fs::remove_dir(&group) {
                    Err(error) if error.kind() == io::ErrorKind::ResourceBusy => {
                        std::thread::sleep(std::time::Duration::from_millis(10));
                    }
                    Ok(()) | Err(_) => return,
                }
            }
        };
        match tokio::runtime::Handle::try_current() {
            Ok(runtime) => drop(runtime.spawn_blocking(remove)),
            Err(_) => remove(),
        }
    }
}

fn make(path: &Path) -> io::Result<()> {
    match std::fs::create_dir(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_steps_aside_is_in_the_runners_own_group_and_limits_nothing() {
        let home = tempfile::tempdir().unwrap();

        enter(home.path()).unwrap();
        enter(home.path()).unwrap();

        let own = std::fs::read_to_string(home.path().join(OWN).join("cgroup.procs")).unwrap();
        assert_eq!(own, std::process::id().to_string());
        assert!(!home.path().join("cgroup.subtree_control").exists());
    }

    #[test]
    fn a_group_has_every_limit_of_the_config() {
        let home = tempfile::tempdir().unwrap();
        let (cpu_percent, disk_mib_per_sec, disk_ops_per_sec) = (Some(150), Some(3), Some(80));
        let (memory_mib, processes) = (64, 99);
        let limits =
            Limits { memory_mib, cpu_percent, processes, disk_mib_per_sec, disk_ops_per_sec, ..Limits::default() };

        let group = Group::make(home.path(), "box-1", &limits, Some("259:0")).unwrap();
        group.add(7).unwrap();

        let read = |file: &str| std::fs::read_to_string(home.path().join("box-1").join(file)).unwrap();
        assert_eq!(read("memory.max"), (64 << 20).to_string());
        assert_eq!((read("memory.swap.max"), read("memory.oom.group")), ("0".to_owned(), "1".to_owned()));
        assert_eq!((read("pids.max"), read("cpu.max")), ("99".to_owned(), "150000 100000".to_owned()));
        assert_eq!((read("cpu.weight"), read("cgroup.procs")), ("50".to_owned(), "7".to_owned()));
        assert_eq!([read("io.weight"), read("io.bfq.weight")], ["50", "50"]);
        assert_eq!(read("io.max"), "259:0 rbps=3145728 wbps=3145728 riops=80 wiops=80");
    }

    #[test]
    fn a_group_without_a_limit_or_without_a_disk_has_no_rate() {
        let home = tempfile::tempdir().unwrap();
        let slow = Limits { disk_mib_per_sec: Some(3), ..Limits::default() };

        let _unlimited = Group::make(home.path(), "box-1", &Limits::default(), Some("259:0")).unwrap();
        let _elsewhere = Group::make(home.path(), "box-2", &slow, None).unwrap();

        assert!(!home.path().join("box-1/io.max").exists() && !home.path().join("box-2/io.max").exists());
    }

    #[test]
    fn a_disk_is_limited_where_the_group_has_the_file_for_it() {
        let home = tempfile::tempdir().unwrap();
        let lacking = disk(home.path(), Path::new("/proc")).unwrap_err();
        std::fs::write(home.path().join("io.max"), "").unwrap();
        let elsewhere = disk(home.path(), Path::new("/proc")).unwrap_err();
        std::fs::create_dir(home.path().join(OWN)).unwrap();

        let tried = try_disk(home.path(), "259:0".to_owned());
        std::fs::remove_dir_all(home.path().join(OWN)).unwrap();
        let refused = try_disk(home.path(), "259:0".to_owned()).unwrap_err();

        assert!(lacking.contains("has no `io.max`; write `Delegate=yes`"), "{lacking}");
        assert!(elsewhere.contains("is not on a disk"), "{elsewhere}");
        assert_eq!(tried, Ok("259:0".to_owned()));
        assert!(refused.starts_with("the kernel does not limit the use of disk 259:0: "), "{refused}");
    }

    #[test]
    fn a_machine_without_delegation_says_what_to_write() {
        match delegated() {
            Ok(home) => assert!(home.starts_with(TOP)),
            Err(reason) => assert!(reason.contains("cgroup v2") || reason.contains("Delegate=yes"), "{reason}"),
        }
    }
}
