//! The limits for one job's use of the machine: the table `limits` of the config file.

use serde::Deserialize;

use crate::sandbox::ProcessLimits;

const MIB: u64 = 1 << 20;
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
    /// The size of the workspace of a job, in MiB.
    pub disk_mib: u64,
    /// The number of files and directories in the workspace of a job.
    pub files: u64,
}

impl Default for Limits {
    fn default() -> Self {
        let machine = machine_memory().unwrap_or(4096 * MIB);
        Self {
            memory_mib: (machine / 4 * 3 / MIB).max(256),
            cpu_percent: None,
            processes: 4096,
            open_files: 65_536,
            disk_mib: 20 * 1024,
            files: 1_000_000,
        }
    }
}

impl Limits {
    /// Returns the memory of all processes of a job, in bytes.
    pub const fn memory(&self) -> u64 {
        self.memory_mib.saturating_mul(MIB)
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
            "[freehold: ended, because the workspace holds {} MiB in {files} files; in the runner's config, \
             `limits.disk_mib` allows {} MiB, and `limits.files` allows {} files]",
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
        ];
        let (name, value, least) = each.into_iter().find(|(_, value, least)| value < least)?;
        Some(format!("`{name}` is {value} and must be at least {least}; write a larger value or leave it out"))
    }
}

/// Returns the total memory of the machine in bytes, as proc_meminfo(5) defines it.
fn machine_memory() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find(|line| line.starts_with("MemTotal:"))?;
    let kib: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kib * 1024)
}
