//! The limits for one job's use of the machine: the table `limits` of the config file.

use std::path::Path;

use serde::{Deserialize, Serialize};

const MIB: u64 = 1 << 20;
/// The default for the size of a job's workspace, in MiB, on a disk that is large enough.
const DISK_MIB: u64 = 20 * 1024;
/// The part of the disk that jobs leave to the system, the journal and the spool, in MiB.
const RESERVE_MIB: u64 = 6 * 1024;
/// The smallest default for the size of a job's workspace, in MiB.
const LEAST_DISK_MIB: u64 = 1024;
/// The upper bound for the size of `/tmp` in a box, in bytes. That file system is in memory.
const MEMORY_FILES: u64 = 1 << 30;

/// The limits of one job. Every key has a default.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// The memory of all processes of a job together, in MiB. The default is three quarters of the machine's memory.
    pub memory_mib: u64,
    /// The processor time of a job, in percent of one processor. By default there is no limit, but the runner has
    /// priority.
    pub cpu_percent: Option<u64>,
    /// The number of processes and threads of a job.
    pub processes: u64,
    /// The number of open files of each process.
    pub open_files: u64,
    /// The size of the workspace of a job, in MiB. The default is smaller when the workspaces of all slots together
    /// would not fit on the disk.
    pub disk_mib: u64,
    /// The number of files and directories in the workspace of a job.
    pub files: u64,
    /// The rate at which a job may read from the disk of the workspaces, and also the rate at which it may write to
    /// this disk, in MiB per second. By default there is no limit, but the runner has priority.
    pub disk_mib_per_sec: Option<u64>,
    /// The number of reads from the disk of the workspaces that a job may make each second, and also the number of
    /// writes to this disk. By default there is no limit, but the runner has priority.
    pub disk_ops_per_sec: Option<u64>,
}

/// The limits of a program: the kernel enforces those of each process, and the box watches the workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ProcessLimits {
    /// The writable private memory of one process, in bytes.
    pub(crate) memory: u64,
    pub(crate) processes: u64,
    pub(crate) open_files: u64,
    /// The size limit of the workspace, in bytes. It is also the limit of each file.
    pub(crate) disk: u64,
    /// The maximum number of files and directories in the workspace.
    pub(crate) files: u64,
}

impl Default for Limits {
    fn default() -> Self {
        let machine = machine_memory().unwrap_or(4096 * MIB);
        Self {
            memory_mib: (machine / 4 * 3 / MIB).max(256),
            cpu_percent: None,
            processes: 4096,
            open_files: 65_536,
            disk_mib: DISK_MIB,
            files: 1_000_000,
            disk_mib_per_sec: None,
            disk_ops_per_sec: None,
        }
    }
}

impl Limits {
    /// Lowers the default size of a workspace if the disk of `state_dir` cannot hold a workspace of that size for each
    /// of the `slots` at the same time.
    #[must_use]
    pub(super) fn within_disk(self, state_dir: &Path, slots: u32) -> Self {
        let disk = state_dir.ancestors().find_map(|place| rustix::fs::statvfs(place).ok());
        let mib = disk.map(|disk| disk.f_blocks.saturating_mul(disk.f_frsize) / MIB);
        let disk_mib = if self.disk_mib == DISK_MIB { default_disk(mib, slots) } else { self.disk_mib };
        Self { disk_mib, ..self }
    }

    /// Returns the memory of all processes of a job, in bytes.
    pub const fn memory(&self) -> u64 {
        self.memory_mib.saturating_mul(MIB)
    }

    /// Returns the number of bytes that a job may read each second, which is also the number that it may write.
    pub(crate) fn disk_rate(&self) -> Option<u64> {
        self.disk_mib_per_sec.map(|mib| mib.saturating_mul(MIB))
    }

    /// Returns the limits for the use of the disk as a text, or `None` when there are none.
    pub(crate) fn of_disk(&self) -> Option<String> {
        let rate = self.disk_mib_per_sec.map(|mib| format!("{mib} MiB"));
        let operations = self.disk_ops_per_sec.map(|number| format!("{number} operations"));
        let each: Vec<String> = rate.into_iter().chain(operations).collect();
        (!each.is_empty()).then(|| format!("{} per second, for reads and for writes", each.join(" and ")))
    }

    /// Returns the size of `/tmp` in a box, in bytes. Its content counts as memory of the job.
    pub(crate) fn memory_files(&self) -> u64 {
        MEMORY_FILES.min(self.memory() / 2)
    }

    pub(crate) const fn of_process(&self) -> ProcessLimits {
        ProcessLimits {
            memory: self.memory(),
            processes: self.processes,
            open_files: self.open_files,
            disk: self.disk_mib.saturating_mul(MIB),
            files: self.files,
        }
    }

    /// Returns the log line for a job that exceeds the limit of its workspace.
    pub(crate) fn over_disk(&self, bytes: u64, files: u64) -> String {
        format!(
            "[freehold: stopped the program, because the workspace holds {} MiB in {files} files; in the runner's \
             config, `limits.disk_mib` allows {} MiB, and `limits.files` allows {} files]",
            bytes / MIB,
            self.disk_mib,
            self.files
        )
    }

    /// Returns a message about the first limit that is too small, or `None` when all limits are in range.
    pub(super) fn problem(&self) -> Option<String> {
        let each = [
            ("memory_mib", self.memory_mib, 64),
            ("processes", self.processes, 16),
            ("open_files", self.open_files, 64),
            ("disk_mib", self.disk_mib, 16),
            ("files", self.files, 100),
            ("cpu_percent", self.cpu_percent.unwrap_or(100), 5),
            ("disk_mib_per_sec", self.disk_mib_per_sec.unwrap_or(1), 1),
            ("disk_ops_per_sec", self.disk_ops_per_sec.unwrap_or(10), 10),
        ];
        let (name, value, least) = each.into_iter().find(|(_, value, least)| value < least)?;
        Some(format!("`{name}` is {value} and must be at least {least}; write a larger value or leave it out"))
    }
}

/// Returns the default size of a workspace on a disk of `disk` MiB, in MiB.
fn default_disk(disk: Option<u64>, slots: u32) -> u64 {
    let share = disk.map(|disk| disk.saturating_sub(RESERVE_MIB) / u64::from(slots.max(1)));
    share.unwrap_or(DISK_MIB).clamp(LEAST_DISK_MIB, DISK_MIB)
}

/// Returns the total memory of the machine in bytes, as proc_meminfo(5) defines it.
fn machine_memory() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find(|line| line.starts_with("MemTotal:"))?;
    let kib: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kib * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_workspaces_of_all_slots_fit_on_the_disk() {
        // The disk of the install stack's machine.
        assert_eq!(default_disk(Some(30 * 1024), 4), 6 * 1024);
        assert_eq!(default_disk(Some(500 * 1024), 4), 20 * 1024);
        assert_eq!(default_disk(Some(4 * 1024), 4), 1024);
        assert_eq!(default_disk(None, 4), 20 * 1024);
    }

    #[test]
    fn the_limits_of_the_disk_are_those_that_the_config_names() {
        let text = |disk_mib_per_sec, disk_ops_per_sec| {
            Limits { disk_mib_per_sec, disk_ops_per_sec, ..Limits::default() }.of_disk()
        };

        assert_eq!(text(Some(20), None).unwrap(), "20 MiB per second, for reads and for writes");
        assert_eq!(text(Some(20), Some(9)).unwrap(), "20 MiB and 9 operations per second, for reads and for writes");
        assert_eq!(text(None, None), None);
    }

    #[test]
    fn a_size_that_the_config_names_is_kept() {
        let limits = Limits { disk_mib: 900_000_000, ..Limits::default() };

        assert_eq!(limits.within_disk(Path::new("/no/such/place"), 4).disk_mib, 900_000_000);
    }
}
