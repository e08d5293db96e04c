//! Proves on this machine that a box can be made and that its walls stand, for `doctor` and the preflight.

use std::collections::BTreeMap;
use std::path::PathBuf;

use tokio::io::AsyncReadExt as _;
use tokio::net::unix::pipe;

use super::boxed::Boxed;
use super::bubblewrap::Spec;
use super::environment::find_program;
use super::frame::{FromInit, Start};
use super::program::INSIDE;
use super::users::{INSIDE_USER, JobUser};
use crate::config::limits::Limits;

/// Prints the name of each wall that does not stand.
const WALLS: &str = "\
grep -q '^CapEff:.0*$' /proc/self/status || echo capabilities
grep -q '^NoNewPrivs:.1$' /proc/self/status || echo privileges
grep -q '^Seccomp:.2$' /proc/self/status || echo seccomp
[ $(grep -c : /proc/net/dev) = 1 ] || echo network
[ -e /sys/kernel ] && echo sysfs
(: > /usr/.freehold) 2> /dev/null && echo 'read-only root'
true";

/// Makes a box and tries its walls from inside; returns what holds.
///
/// # Errors
/// What does not, with the way out.
pub async fn check(limits: &Limits) -> Result<String, String> {
    let bwrap = find_program(&["bwrap"]).ok_or("`bwrap` is not on PATH; install the package `bubblewrap`")?;
    let fallen = walls(limits).await.map_err(|error| {
        format!("{error}; the runner's user needs `bwrap` 0.8 or newer and unprivileged user namespaces")
    })?;
    if fallen.is_empty() {
        return Ok(format!("{}: own network, no capability, no new privilege, seccomp", bwrap.display()));
    }
    Err(format!("these walls of the box do not stand on this machine: {}; report it", fallen.join(", ")))
}

/// Says which user a job has, and whether that is another than the runner's.
pub fn user() -> (bool, String) {
    let user = JobUser::find();
    (user != JobUser::Same, user.describe())
}

async fn walls(limits: &Limits) -> Result<Vec<String>, Box<dyn std::error::Error + Send + Sync>> {
    let workspace = tempfile::tempdir()?;
    let user = JobUser::find();
    let mut made = Boxed::make(&Spec::plain(workspace.path(), limits), &user, limits).await?;
    let ((out, mut printed), (err, _said)) = (pipe::pipe()?, pipe::pipe()?);
    let start = Start {
        program: PathBuf::from("/bin/sh"),
        arguments: vec!["-c".to_owned(), WALLS.to_owned()],
        environment: BTreeMap::from([("PATH".to_owned(), "/usr/bin:/bin".to_owned())]),
        directory: INSIDE.to_owned(),
        listen: Vec::new(),
        names: Vec::new(),
        user: (user != JobUser::Same).then_some(INSIDE_USER),
        writable: vec![INSIDE.into()],
        limits: limits.of_process(),
        until: u64::MAX,
    };
    made.start(start, [out.into_blocking_fd()?, err.into_blocking_fd()?]).await?;
    let mut text = String::new();
    printed.read_to_string(&mut text).await?;
    match made.next().await {
        Some(FromInit::Ended { code: 0 }) => Ok(text.lines().map(str::to_owned).collect()),
        other => Err(format!("the box did not run its program: {other:?}").into()),
    }
}
