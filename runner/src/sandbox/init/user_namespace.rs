//! Makes a user namespace inside the box for a program that makes an image. The program is root in that namespace and
//! has no privileges outside of it.
//!
//! The users of the namespace do not include those of the box's first process and of the runner. The mounts of the box
//! are locked: the program can neither unmount them nor make them writable.

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

/// The first argument of the process that becomes the program. The program and its arguments follow.
pub(super) const COMMAND: &str = "box-nested";
/// The temporary mount point of the new `/dev`.
const NEW_DEV: &str = "/tmp/dev";
const DEVICES: [&str; 6] = ["full", "null", "random", "tty", "urandom", "zero"];
const LINKS: [(&str, &str); 4] = [
    ("/proc/self/fd", "fd"),
    ("/proc/self/fd/0", "stdin"),
    ("/proc/self/fd/1", "stdout"),
    ("/proc/self/fd/2", "stderr"),
];

/// Returns the command for a process that makes its own namespaces and then becomes `program`.
pub(super) fn command(program: &Path) -> io::Result<Command> {
    let mut command = Command::new(std::env::current_exe()?);
    command.arg(COMMAND).arg(program);
    Ok(command)
}

/// Starts a command that [`command`] returned, and maps the users of its namespace when the namespace exists.
pub(super) fn start(mut command: Command) -> io::Result<Child> {
    let (mut ours, theirs) = UnixStream::pair()?;
    let child = command.stdin(OwnedFd::from(theirs)).spawn()?;
    // After this, only the child has the other end of the socket. If the child dies, the read below fails at once.
    drop(command);
    ours.read_exact(&mut [0])?;
    for file in ["uid_map", "gid_map"] {
        std::fs::write(format!("/proc/{}/{file}", child.id()), format!("0 {IMAGE_ROOT} {IMAGE_USERS}\n"))?;
    }
    ours.write_all(b"!")?;
    Ok(child)
}

/// Runs in the process that [`start`] started, and becomes the program. Returns only an error.
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

/// Replaces `/dev`. The box's own `/dev` is locked with the mount flag `nodev`. Buildah mounts `/dev` in each step
/// with other flags, which the kernel refuses for a locked mount.
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
