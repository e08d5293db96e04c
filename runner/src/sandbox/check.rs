//! Checks that this machine can make a box and that the box isolates its program, for `doctor` and the preflight.

use std::collections::BTreeMap;
use std::net::TcpListener;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::PathBuf;

use tokio::io::AsyncReadExt as _;
use tokio::net::unix::pipe;

use super::box_handle::Boxed;
use super::bubblewrap::{INIT, Spec, canonical};
use super::environment::find_program;
use super::frame::{FromInit, Start};
use super::program::INSIDE;
use super::purpose::Purpose;
use super::users::JobUser;
use super::walls::{self, Outside, Wall};
use crate::config::limits::Limits;

/// Makes a box and tests its isolation from inside. Returns a text that lists what the box isolates.
///
/// # Errors
/// A message that names the failed tests, or the reason why there is no box.
pub async fn check(limits: &Limits) -> Result<String, String> {
    let fallen: Vec<String> =
        walls(limits).await?.into_iter().filter(|wall| !wall.stands).map(|wall| wall.name).collect();
    if fallen.is_empty() {
        return Ok("the box has its own network, no capabilities, no new privileges, and seccomp filters".to_owned());
    }
    Err(format!("the box does not block the following on this machine: {}; report it", fallen.join(", ")))
}

/// Makes a box and returns the result of each isolation test ([`Wall`]).
///
/// # Errors
/// The reason why the box could not be made, and how to fix it.
pub async fn walls(limits: &Limits) -> Result<Vec<Wall>, String> {
    let bwrap = find_program(&["bwrap"]).ok_or("`bwrap` is not on PATH; install the package `bubblewrap`")?;
    try_walls(limits, canonical(&bwrap)).await.map_err(|error| {
        format!("{error}; the runner's user needs `bwrap` 0.8 or newer and unprivileged user namespaces")
    })
}

/// Returns whether jobs run as a user other than the runner's, and a sentence about that user.
pub fn user() -> (bool, String) {
    let user = JobUser::find();
    (user != JobUser::Same, user.describe())
}

async fn try_walls(limits: &Limits, bwrap: PathBuf) -> Result<Vec<Wall>, Box<dyn std::error::Error + Send + Sync>> {
    let directory = tempfile::tempdir()?;
    let (workspace, secret) = (directory.path().join("workspace"), directory.path().join("secret"));
    std::fs::create_dir(&workspace)?;
    std::fs::write(&secret, "data that only the runner may read")?;
    // The listeners do not need to accept: the kernel completes each connection that can reach them.
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let socket = directory.path().display().to_string();
    let _abstract = UnixListener::bind_addr(&SocketAddr::from_abstract_name(&socket)?)?;
    let outside = Outside { port: listener.local_addr()?.port(), socket, secret, bwrap };
    let mut made = Boxed::make(&Spec::plain(&workspace, None, limits), &JobUser::find(), limits).await?;
    let ((out, mut printed), (err, _errors)) = (pipe::pipe()?, pipe::pipe()?);
    let start = Start {
        program: INIT.into(),
        arguments: vec![walls::COMMAND.to_owned(), serde_json::to_string(&outside)?],
        environment: BTreeMap::from([("PATH".to_owned(), "/usr/bin:/bin".to_owned())]),
        directory: INSIDE.to_owned(),
        listen: Vec::new(),
        names: Vec::new(),
        user: made.program_user,
        purpose: Purpose::Program,
        writable: vec![INSIDE.into()],
        limits: limits.of_process(),
        until: u64::MAX,
    };
    made.start(start, [out.into_blocking_fd()?, err.into_blocking_fd()?]).await?;
    let mut text = String::new();
    printed.read_to_string(&mut text).await?;
    match made.next().await {
        Some(FromInit::Ended { code: 0 }) => Ok(text.lines().map(serde_json::from_str).collect::<Result<_, _>>()?),
        Some(other) => Err(format!("the box did not run its program, and sent the message `{}`", other.name()).into()),
        None => Err("the box ended before its program".into()),
    }
}
