//! The control group of a box, which limits memory, processor time and the number of processes for all processes of the
//! box together (cgroups(7), version 2).

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
/// The processor weight of a box. The runner has 100, so it has priority over jobs.
const WEIGHT: u32 = 50;

/// The group that the machine delegated to this process, or the reason why there is none. [`claim`] sets it.
static CLAIMED: OnceLock<Result<PathBuf, String>> = OnceLock::new();

/// Prepares the group that the machine delegated to this process, so that boxes can get groups below it.
///
/// # Errors
/// The reason why the group cannot be used, as a sentence.
pub fn claim() -> Result<(), String> {
    let claimed = CLAIMED.get_or_init(|| {
        let home = delegated()?;
        prepare(&home).map_err(|error| format!("`{}` cannot be used: {error}", home.display()))?;
        Ok(home)
    });
    claimed.as_ref().map(|_| ()).map_err(Clone::clone)
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
    let path = own.lines().find_map(|line| line.strip_prefix("0::")).ok_or("this process is in no cgroup v2")?;
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

fn prepare(home: &Path) -> io::Result<()> {
    let own = home.join(OWN);
    make(&own)?;
    std::fs::write(own.join("cgroup.procs"), std::process::id().to_string())?;
    let all = NEEDED.map(|name| format!("+{name}")).join(" ");
    std::fs::write(home.join("cgroup.subtree_control"), all)
}

/// Makes a group for a box. Returns `None` when this process has not claimed a group.
pub(super) fn new_group(name: &str, limits: &Limits) -> io::Result<Option<Group>> {
    match CLAIMED.get() {
        Some(Ok(home)) => Group::make(home, name, limits).map(Some),
        Some(Err(_)) | None => Ok(None),
    }
}

/// The group of one box. Dropping it kills all processes in the group.
#[derive(Debug)]
pub(super) struct Group(PathBuf);

impl Group {
    fn make(home: &Path, name: &str, limits: &Limits) -> io::Result<Self> {
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
    fn a_group_has_every_limit_of_the_config() {
        let home = tempfile::tempdir().unwrap();
        let limits = Limits { memory_mib: 64, cpu_percent: Some(150), processes: 99, ..Limits::default() };

        let group = Group::make(home.path(), "box-1", &limits).unwrap();
        group.add(7).unwrap();

        let read = |file: &str| std::fs::read_to_string(home.path().join("box-1").join(file)).unwrap();
        assert_eq!(read("memory.max"), (64 << 20).to_string());
        assert_eq!((read("memory.swap.max"), read("memory.oom.group")), ("0".to_owned(), "1".to_owned()));
        assert_eq!((read("pids.max"), read("cpu.max")), ("99".to_owned(), "150000 100000".to_owned()));
        assert_eq!((read("cpu.weight"), read("cgroup.procs")), ("50".to_owned(), "7".to_owned()));
    }

    #[test]
    fn a_machine_without_delegation_says_what_to_write() {
        match delegated() {
            Ok(home) => assert!(home.starts_with(TOP)),
            Err(reason) => assert!(reason.contains("cgroup v2") || reason.contains("Delegate=yes"), "{reason}"),
        }
    }
}
