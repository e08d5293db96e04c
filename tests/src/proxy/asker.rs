//! Kills the process at the other end of a connection on this machine (Linux).

use std::fs;
use std::io;
use std::net::{IpAddr, SocketAddr};

use rustix::process::{Pid, Signal, kill_process};

/// The programs that may be killed: those of functions, which Lambda calls so, and runners.
const PROGRAMS: [&str; 3] = ["bootstrap", "freehold-runner", "freehold-builder"];

/// Kills (-9) the process whose end of a connection is `asker`; the other end is `here`.
///
/// # Errors
/// When there is no such process, or it is none that may be killed.
pub(super) fn kill(asker: SocketAddr, here: SocketAddr) -> io::Result<()> {
    let inode = inode(asker, here).ok_or_else(|| io::Error::other(format!("no connection from {asker}")))?;
    let pid = owner(&inode).ok_or_else(|| io::Error::other(format!("nobody has the socket {inode} of {asker}")))?;
    let program = fs::read_link(format!("/proc/{pid}/exe"))?;
    let name = program.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    if !PROGRAMS.contains(&name) {
        return Err(io::Error::other(format!("{asker} is `{name}` ({pid}), which is not to be killed")));
    }
    let pid = Pid::from_raw(pid).ok_or_else(|| io::Error::other("no process has the id 0"))?;
    kill_process(pid, Signal::KILL)?;
    Ok(())
}

/// Returns the inode of the socket, as `/proc/net/tcp` lists it.
fn inode(asker: SocketAddr, here: SocketAddr) -> Option<String> {
    let table = fs::read_to_string("/proc/net/tcp").ok()?;
    let (local, remote) = (written(asker)?, written(here)?);
    table.lines().skip(1).find_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        (words.get(1) == Some(&local.as_str()) && words.get(2) == Some(&remote.as_str()))
            .then(|| words.get(9).map(|&inode| inode.to_owned()))
            .flatten()
    })
}

/// Writes an address as `/proc/net/tcp` does: the bytes as a number of this machine, then the port.
fn written(address: SocketAddr) -> Option<String> {
    match address.ip() {
        IpAddr::V4(ip) => Some(format!("{:08X}:{:04X}", u32::from_ne_bytes(ip.octets()), address.port())),
        IpAddr::V6(_) => None,
    }
}

/// Returns the process that has the socket open.
fn owner(inode: &str) -> Option<i32> {
    let wanted = format!("socket:[{inode}]");
    let processes = fs::read_dir("/proc").ok()?.flatten();
    let mut pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    pids.find(|pid| {
        let descriptors = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
        descriptors
            .filter_map(|entry| fs::read_link(entry.path()).ok())
            .any(|target| target.to_str() == Some(wanted.as_str()))
    })
}
