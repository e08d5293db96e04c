//! Switches core dumps off for the runner and for the programs that it starts. A core dump is a copy of the memory of a
//! crashed process, which can hold credentials; the kernel's setting `kernel.core_pattern` defines where the copy goes.

use std::io;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The limit of a core dump. With 1, Linux writes no file (a limit below the size of a page), and starts no program that
/// `kernel.core_pattern` pipes dumps to. With 0 it would start that program, which may keep the dump (fs/coredump.c of Linux).
const BYTES: u64 = 1;

/// Switches core dumps off, for this process and for all processes that it starts. Only a privileged process can switch
/// them on again.
///
/// # Errors
/// When the limit cannot be set.
pub(crate) fn forbid() -> io::Result<()> {
    // If the machine has a lower hard limit, that limit stays.
    let most = getrlimit(Resource::Core).maximum.map_or(BYTES, |hard| hard.min(BYTES));
    Ok(setrlimit(Resource::Core, Rlimit { current: Some(most), maximum: Some(most) })?)
}
