//! A watch on all processes of the machine: their arguments, which every user of the machine can read, and further
//! files of them that a test names.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Looks at the argument lists of all processes of the machine until it is ended.
pub(crate) struct Processes {
    over: Arc<AtomicBool>,
    watching: std::thread::JoinHandle<String>,
}

impl Processes {
    /// The pause between two looks. A program that gets a secret runs for longer.
    const PAUSE: Duration = Duration::from_millis(2);
    /// After this many looks with the same arguments, a process is read in one look of as many.
    const STEADY: u32 = 10;

    /// Begins to look. Beside the arguments of a process, it reads these files of its folder in `/proc`, such as
    /// `environ`, where it may.
    pub(crate) fn watch(more: &'static [&'static str]) -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let until = Arc::clone(&over);
        let watching = std::thread::spawn(move || {
            let (mut seen, mut known, mut looks) = (BTreeSet::new(), BTreeMap::new(), 0_u32);
            while !until.load(Ordering::Relaxed) {
                let mut present = BTreeMap::new();
                for process in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
                    let (before, same): (Vec<u8>, u32) = known.remove(&process.file_name()).unwrap_or_default();
                    if same >= Self::STEADY && !looks.is_multiple_of(Self::STEADY) {
                        present.insert(process.file_name(), (before, same));
                        continue;
                    }
                    let file = |name: &str| std::fs::read(process.path().join(name)).unwrap_or_default();
                    let line = file("cmdline");
                    let same = if line == before { same.saturating_add(1) } else { 0 };
                    if same == 0 {
                        let more = more.iter().map(|name| String::from_utf8_lossy(&file(name)).into_owned());
                        seen.extend(more);
                        seen.insert(String::from_utf8_lossy(&line).into_owned());
                    }
                    present.insert(process.file_name(), (line, same));
                }
                known = present;
                looks = looks.wrapping_add(1);
                std::thread::sleep(Self::PAUSE);
            }
            seen.into_iter().collect::<Vec<_>>().join("\n")
        });
        Self { over, watching }
    }

    /// Ends the watch, and returns all that it has seen, in which `program` must be.
    pub(crate) fn end(self, program: &str) -> String {
        self.over.store(true, Ordering::Relaxed);
        let seen = self.watching.join().unwrap_or_default();
        assert!(seen.contains(program), "the watch saw no `{program}`");
        seen
    }
}
