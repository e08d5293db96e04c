//! A user namespace inside the box for a program that makes an image. It is root there; outside it is nobody.
//!
//! The box's first process and the runner are not among its users. What the box mounted is locked for it: it can neither
//! unmount it nor make it writable.

use std::io;
use std::io::{Read as _, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sched::{CloneFlags, unshare};
use nix::unistd::{Gid, Uid, setgroups, setresgid, setresuid};

use crate::sandbox::purpose::{IMAGE_ROOT, IMAGE_USERS};

/// The command line of the process that becomes the program: this word, then the program and its arguments.
pub(super) const COMMAND: &str = "box-nested";
/// A new `/dev` is made here and moved.
const NEW_DEV: &str = "/tmp/dev";
const DEVICES: [&str; 6] = ["full", "null", "random", "tty", "urandom", "zero"];
const LINKS: [(&str, &str); 4] = [
    ("/proc/self/fd", "fd"),
    ("/proc/self/fd/0", "stdin"),
    ("/proc/self/fd/1", "stdout"),
    ("/proc/self/fd/2", "stderr"),
];

/// Returns the command of a process that becomes `program` in its own namespace.
pub(super) fn command(program: &Path) -> io::Result<Command> {
    let mut command = Command::new(std::env::current_exe()?);
    command.arg(COMMAND).arg(program);
    Ok(command)
}

/// Starts such a command, and maps its users when it has its namespace.
pub(super) fn start(mut command: Command) -> io::Result<Child> {
    let (mut ours, theirs) = UnixStream::pair()?;
    let child = command.stdin(OwnedFd::from(theirs)).spawn()?;
    // The other end is the child's alone, so that its death ends the wait.
    drop(command);
    ours.read_exact(&mut [0])?;
    for file in ["uid_map", "gid_map"] {
        std::fs::write(format!("/proc/{}/{file}", child.id()), format!("0 {IMAGE_ROOT} {IMAGE_USERS}\n"))?;
    }
    ours.write_all(b"!")?;
    Ok(child)
}

/// Runs as the started process: returns only when it cannot become the program.
pub(super) fn become_program(mut words: impl Iterator<Item = std::ffi::OsString>) -> io::Error {
    let Some(program) = words.next() else { return io::Error::other("the program is missing") };
    match enter() {
        Ok(()) => Command::new(program).args(words).stdin(Stdio::null()).exec(),
        Err(error) => error,
    }
}

fn enter() -> io::Result<()> {
    unshare(CloneFlags::CLONE_NEWUSER | CloneFlags::CLONE_NEWNS)?;
    let mut init = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    init.write_all(b"?")?;
    init.read_exact(&mut [0])?;
    setgroups(&[])?;
    setresgid(Gid::from_raw(0), Gid::from_raw(0), Gid::from_raw(0))?;
    setresuid(Uid::from_raw(0), Uid::from_raw(0), Uid::from_raw(0))?;
    own_devices()
}

/// Replaces `/dev`, which the box locked as `nodev`: Buildah shows it to each step under other flags, which the kernel refuses.
fn own_devices() -> io::Result<()> {
    const NOTHING: Option<&str> = None;
    std::fs::create_dir(NEW_DEV)?;
    mount(Some("dev"), NEW_DEV, Some("tmpfs"), MsFlags::MS_NOSUID, Some("mode=755,size=64k"))?;
    for device in DEVICES {
        let new = format!("{NEW_DEV}/{device}");
        std::fs::write(&new, "")?;
        mount(Some(format!("/dev/{device}").as_str()), new.as_str(), NOTHING, MsFlags::MS_BIND, NOTHING)?;
    }
    for (target, name) in LINKS {
        symlink(target, format!("{NEW_DEV}/{name}"))?;
    }
    for directory in ["pts", "shm"] {
        std::fs::create_dir(format!("{NEW_DEV}/{directory}"))?;
    }
    mount(Some(NEW_DEV), "/dev", NOTHING, MsFlags::MS_BIND | MsFlags::MS_REC, NOTHING)?;
    umount2(NEW_DEV, MntFlags::MNT_DETACH)?;
    std::fs::remove_dir(NEW_DEV)
}
