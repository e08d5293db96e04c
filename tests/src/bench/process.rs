//! The resources that a process uses, as the kernel reports them (Linux `/proc`).

use std::path::PathBuf;

/// Returns a size from `/proc/<pid>/status` in MiB: `VmRSS` is resident now, `VmHWM` the most that ever was.
pub fn memory_mib(pid: u32, key: &str) -> f64 {
    let status = std::fs::read_to_string(proc(pid, "status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'));
    let kib = line.and_then(|text| text.split_whitespace().next()?.parse::<f64>().ok());
    kib.unwrap_or(f64::NAN) / 1024.0
}

/// Returns the memory of a process and of every process below it in MiB, where shared memory counts once (`Pss`); not a
/// number when the kernel does not tell.
pub fn tree_memory_mib(pid: u32) -> f64 {
    let text = std::fs::read_to_string(proc(pid, "smaps_rollup")).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("Pss:"));
    let kib = line.and_then(|text| text.split_whitespace().next()?.parse::<f64>().ok());
    kib.unwrap_or(f64::NAN) / 1024.0 + children(pid).into_iter().map(tree_memory_mib).sum::<f64>()
}

/// Returns the CPU time of all threads that live, in milliseconds, exact: unlike wall time it does not suffer from a busy
/// machine. Threads that have ended are missing.
pub fn cpu_ms(pid: u32) -> f64 {
    let tasks = std::fs::read_dir(proc(pid, "task")).into_iter().flatten().flatten();
    let nanos = tasks.filter_map(|task| {
        let text = std::fs::read_to_string(task.path().join("schedstat")).ok()?;
        text.split_whitespace().next()?.parse::<f64>().ok()
    });
    nanos.sum::<f64>() / 1e6
}

/// Returns the CPU time of a process and of every process below it that lives, with their number: two equal answers mean that
/// none of them did anything in between.
pub fn activity(pid: u32) -> (usize, f64) {
    let below = children(pid).into_iter().map(activity);
    below.fold((1, cpu_ms(pid)), |(processes, cpu), (more, spent)| (processes + more, cpu + spent))
}

fn children(pid: u32) -> Vec<u32> {
    let tasks = std::fs::read_dir(proc(pid, "task")).into_iter().flatten().flatten();
    tasks
        .filter_map(|task| std::fs::read_to_string(task.path().join("children")).ok())
        .flat_map(|text| text.split_whitespace().filter_map(|child| child.parse().ok()).collect::<Vec<u32>>())
        .collect()
}

/// Returns the CPU time of the process, threads that have ended included, in steps of 10 ms.
pub fn whole_cpu_ms(pid: u32) -> f64 {
    let stat = std::fs::read_to_string(proc(pid, "stat")).unwrap_or_default();
    // After the name, which may hold anything: utime and stime are the 12th and 13th words, in ticks of 10 ms.
    let words = stat.rsplit_once(')').map_or("", |(_, rest)| rest).split_whitespace().skip(11).take(2);
    words.filter_map(|word| word.parse::<f64>().ok()).sum::<f64>() * 10.0
}

fn proc(pid: u32, name: &str) -> PathBuf {
    PathBuf::from(format!("/proc/{pid}/{name}"))
}
