//! The user of a job: another than the runner's wherever the machine allows it.

use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use super::environment::find_program;

/// The user of every program inside its box.
pub(super) const INSIDE_USER: u32 = 1000;
/// Whose user inside the box is the runner, where the job has another.
pub(super) const RUNNER_INSIDE: u32 = 0;
/// The user of jobs of a runner that is root; no user of a machine or of systemd has this number.
const OF_ROOT: u32 = 1_879_048_192;

/// Which user of the machine a job is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JobUser {
    /// The runner's own.
    Same,
    /// A user that has nothing else on this machine.
    Other(OtherUser),
}

/// A user of the machine, and how a box gets it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OtherUser {
    /// The user's number outside of the box, which is its group's too.
    uid: u32,
    gid: u32,
    map: Map,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Map {
    /// This process may write it.
    Written,
    /// `newuidmap` and `newgidmap` write it, by `/etc/subuid` and `/etc/subgid`.
    By { newuidmap: PathBuf, newgidmap: PathBuf },
}

impl JobUser {
    /// Finds the best that this machine gives.
    pub fn find() -> Self {
        if rustix::process::geteuid().is_root() {
            return Self::Other(OtherUser { uid: OF_ROOT, gid: OF_ROOT, map: Map::Written });
        }
        subordinate().map_or(Self::Same, Self::Other)
    }

    /// Says which user a job has.
    pub fn describe(&self) -> String {
        match self {
            Self::Same => "a job has the runner's own user: give the runner's user a range in `/etc/subuid` and \
                           `/etc/subgid` and install `newuidmap`, so that it gets another"
                .to_owned(),
            Self::Other(other) => format!("a job is user {} of this machine and the runner is another", other.uid),
        }
    }
}

fn subordinate() -> Option<OtherUser> {
    let (newuidmap, newgidmap) = (find_program(&["newuidmap"])?, find_program(&["newgidmap"])?);
    let own = rustix::process::geteuid().as_raw();
    let passwd = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let name = user_name(&passwd, own).unwrap_or_default();
    let first = |file: &str| first_of(&std::fs::read_to_string(file).ok()?, name, own);
    Some(OtherUser { uid: first("/etc/subuid")?, gid: first("/etc/subgid")?, map: Map::By { newuidmap, newgidmap } })
}

fn user_name(passwd: &str, uid: u32) -> Option<&str> {
    passwd.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)?.parse() == Ok(uid)).then_some(name)
    })
}

/// Returns the first number that a line of `/etc/subuid` gives to a user: `name:first:count`, subuid(5).
fn first_of(text: &str, name: &str, uid: u32) -> Option<u32> {
    text.lines().find_map(|line| {
        let mut fields = line.trim().split(':');
        let owner = fields.next()?;
        let (first, count): (u32, u32) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
        let is_own = (!name.is_empty() && owner == name) || owner.parse() == Ok(uid);
        (is_own && count > 0 && first > 0).then_some(first)
    })
}

impl OtherUser {
    /// Maps the users of the box whose first process is `process`: the runner and the job, and no other.
    pub(super) async fn map(&self, process: u32) -> io::Result<()> {
        let (uid, gid) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
        match &self.map {
            Map::Written => {
                let write = |file: &str, own: u32, job: u32| {
                    let lines = format!("{RUNNER_INSIDE} {own} 1\n{INSIDE_USER} {job} 1\n");
                    std::fs::write(format!("/proc/{process}/{file}"), lines)
                };
                write("uid_map", uid, self.uid)?;
                write("gid_map", gid, self.gid)
            }
            Map::By { newuidmap, newgidmap } => {
                run(newuidmap, process, uid, self.uid).await?;
                run(newgidmap, process, gid, self.gid).await
            }
        }
    }
}

async fn run(program: &Path, process: u32, own: u32, job: u32) -> io::Result<()> {
    let words = [process, RUNNER_INSIDE, own, 1, INSIDE_USER, job, 1].map(|number| number.to_string());
    let mut command = tokio::process::Command::new(program);
    let output = command.args(words).env_clear().stdin(Stdio::null()).kill_on_drop(true).output().await?;
    if output.status.success() {
        return Ok(());
    }
    let why = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(io::Error::other(format!("`{}` refused: {why}; look at `/etc/subuid` and `/etc/subgid`", program.display())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_found_by_name_and_by_number() {
        let text = "other:100000:65536\n# comment\nfreehold:165536:65536\n997:231072:65536\nempty:5:0\n";

        assert_eq!(first_of(text, "freehold", 990), Some(165_536));
        assert_eq!(first_of(text, "", 997), Some(231_072));
        assert_eq!(first_of(text, "empty", 5), None);
        assert_eq!(first_of(text, "nobody", 65534), None);
    }

    #[test]
    fn a_user_is_named_by_its_number() {
        let passwd = "root:x:0:0:root:/root:/bin/sh\nfreehold:x:997:995::/opt:/sbin/nologin\n";

        assert_eq!(user_name(passwd, 997), Some("freehold"));
        assert_eq!(user_name(passwd, 1), None);
    }
}
