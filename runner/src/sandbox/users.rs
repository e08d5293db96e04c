//! Finds the user that jobs run as: a user other than the runner's, if the machine allows it.

use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use super::environment::find_program;
use super::purpose::{IMAGE_ROOT, IMAGE_USERS, Purpose};

/// The user id inside a box under which programs run.
pub(super) const INSIDE_USER: u32 = 1000;
/// The user id inside a box that is the runner's user outside, when the job runs as a user other than the runner's.
pub(super) const RUNNER_INSIDE: u32 = 0;
/// The user id of jobs when the runner is root. Neither systemd nor the usual tools that add users assign this number
/// or the 65,535 after it.
const OF_ROOT: u32 = 1_879_048_192;

/// The user of the machine under which a job runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JobUser {
    /// The runner's own user.
    Same,
    /// A user that owns nothing else on this machine.
    Other(OtherUser),
}

/// A range of users of the machine, and how a box gets them. The first one is the job's user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OtherUser {
    /// The id of the first user, outside of the box.
    uid: u32,
    gid: u32,
    /// The number of consecutive user ids from `uid` on, and of group ids from `gid` on.
    count: u32,
    map: Map,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Map {
    /// The runner is root and writes the map itself.
    Written,
    /// `newuidmap` and `newgidmap` write the map, as `/etc/subuid` and `/etc/subgid` allow.
    By { newuidmap: PathBuf, newgidmap: PathBuf },
}

impl JobUser {
    /// Returns a user other than the runner's if this machine allows it, and the runner's user otherwise.
    pub fn find() -> Self {
        if rustix::process::geteuid().is_root() {
            return Self::Other(OtherUser { uid: OF_ROOT, gid: OF_ROOT, count: IMAGE_USERS, map: Map::Written });
        }
        subordinate().map_or(Self::Same, Self::Other)
    }

    /// Returns whether there are enough users for the files of an image.
    pub fn can_build_images(&self) -> bool {
        matches!(self, Self::Other(other) if other.count >= IMAGE_USERS)
    }

    /// Returns the user id inside a box for `purpose` under which its program runs; `None` for the box's own user.
    pub(super) fn inside(&self, purpose: Purpose) -> Option<u32> {
        match (self, purpose) {
            (Self::Same, _) => None,
            (Self::Other(_), Purpose::Program) => Some(INSIDE_USER),
            (Self::Other(_), Purpose::ImageBuild) => Some(IMAGE_ROOT),
        }
    }

    /// Returns a sentence about the user of a job.
    pub fn describe(&self) -> String {
        match self {
            Self::Same => "jobs run as the runner's own user: give that user a range in `/etc/subuid` and \
                           `/etc/subgid` and install `newuidmap`, so that jobs run as another user"
                .to_owned(),
            Self::Other(other) => {
                format!("a job runs as user {} of this machine, which is not the runner's user", other.uid)
            }
        }
    }
}

fn subordinate() -> Option<OtherUser> {
    let (newuidmap, newgidmap) = (find_program(&["newuidmap"])?, find_program(&["newgidmap"])?);
    let own = rustix::process::geteuid().as_raw();
    let passwd = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let name = user_name(&passwd, own).unwrap_or_default();
    let range = |file: &str| range_of(&std::fs::read_to_string(file).ok()?, name, own);
    let ((uid, users), (gid, groups)) = (range("/etc/subuid")?, range("/etc/subgid")?);
    Some(OtherUser { uid, gid, count: users.min(groups), map: Map::By { newuidmap, newgidmap } })
}

fn user_name(passwd: &str, uid: u32) -> Option<&str> {
    passwd.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)?.parse() == Ok(uid)).then_some(name)
    })
}

/// Returns the largest range of ids that `text`, in the format of subuid(5), gives to a user: the first id and the
/// number of ids.
fn range_of(text: &str, name: &str, uid: u32) -> Option<(u32, u32)> {
    let ranges = text.lines().filter_map(|line| {
        let mut fields = line.trim().split(':');
        let owner = fields.next()?;
        let (first, count): (u32, u32) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
        let is_own = (!name.is_empty() && owner == name) || owner.parse() == Ok(uid);
        (is_own && count > 0 && first > 0).then_some((first, count))
    });
    // When ranges are equally large, the first one wins.
    ranges.reduce(|best, next| if next.1 > best.1 { next } else { best })
}

impl OtherUser {
    /// Maps the users of the box whose first process is `process`: the runner's user, and the users for the box's
    /// purpose.
    pub(super) async fn map(&self, process: u32, purpose: Purpose) -> io::Result<()> {
        let (uid, gid) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
        let (inside, count) = match purpose {
            Purpose::Program => (INSIDE_USER, 1),
            Purpose::ImageBuild => (IMAGE_ROOT, IMAGE_USERS),
        };
        let ranges = |own: u32, first: u32| [[RUNNER_INSIDE, own, 1], [inside, first, count]];
        match &self.map {
            Map::Written => {
                write(process, "uid_map", ranges(uid, self.uid))?;
                write(process, "gid_map", ranges(gid, self.gid))
            }
            Map::By { newuidmap, newgidmap } => {
                run(newuidmap, process, ranges(uid, self.uid)).await?;
                run(newgidmap, process, ranges(gid, self.gid)).await
            }
        }
    }
}

fn write(process: u32, file: &str, ranges: [[u32; 3]; 2]) -> io::Result<()> {
    let lines: String = ranges.map(|[inside, outside, count]| format!("{inside} {outside} {count}\n")).concat();
    std::fs::write(format!("/proc/{process}/{file}"), lines)
}

async fn run(program: &Path, process: u32, ranges: [[u32; 3]; 2]) -> io::Result<()> {
    let words = [process].into_iter().chain(ranges.into_iter().flatten()).map(|number| number.to_string());
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
        let text = "freehold:50:1\nother:100000:65536\n# comment\nfreehold:165536:65536\n997:231072:65536\nempty:5:0\n";

        assert_eq!(range_of(text, "freehold", 990), Some((165_536, 65_536)));
        assert_eq!(range_of(text, "", 997), Some((231_072, 65_536)));
        assert_eq!(range_of(text, "empty", 5), None);
        assert_eq!(range_of(text, "nobody", 65534), None);
    }

    #[test]
    fn a_program_has_a_user_of_its_own_where_the_machine_has_another_one() {
        let other = OtherUser { uid: 5, gid: 5, count: 2, map: Map::Written };

        assert_eq!(JobUser::Same.inside(Purpose::Program), None);
        assert_eq!(JobUser::Other(other).inside(Purpose::Program), Some(INSIDE_USER));
    }

    #[test]
    fn a_user_is_named_by_its_number() {
        let passwd = "root:x:0:0:root:/root:/bin/sh\nfreehold:x:997:995::/opt:/sbin/nologin\n";

        assert_eq!(user_name(passwd, 997), Some("freehold"));
        assert_eq!(user_name(passwd, 1), None);
    }
}
