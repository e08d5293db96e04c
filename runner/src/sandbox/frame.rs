//! The messages between the runner and the first process of a box: the length, the number of file descriptors, then JSON.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::mem::MaybeUninit;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::purpose::Purpose;

/// The most file descriptors of one message.
pub(super) const MOST_FDS: usize = 128;
/// The largest message, in bytes; arguments and environment of one program are at most 2 MiB on Linux.
const MAX_BYTES: usize = 4 * 1024 * 1024;
const HEAD: usize = 8;

/// What the runner tells the first process of a box.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum ToInit {
    /// Comes once, with standard output and standard error.
    Start(Box<Start>),
    /// Sends a signal to the program and to what it started.
    Signal(i32),
    /// Removes all in the workspace; comes instead of a program.
    Clear,
    /// Lets the box live until this time (`CLOCK_BOOTTIME`, in nanoseconds).
    Live { until: u64 },
}

/// What the first process of a box tells the runner.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum FromInit {
    /// The box is made.
    Ready,
    /// Comes with the listeners that were asked for, in their order.
    Listening,
    Started,
    NotStarted {
        reason: String,
    },
    /// The workspace holds more than it may.
    OverDisk {
        bytes: u64,
        files: u64,
    },
    /// The workspace is empty, or why it is not.
    Cleared {
        error: Option<String>,
    },
    /// All processes of the program are gone.
    Ended {
        code: i32,
    },
}

/// A program to start in a box.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Start {
    pub(super) program: PathBuf,
    pub(super) arguments: Vec<String>,
    pub(super) environment: BTreeMap<String, String>,
    pub(super) directory: String,
    /// Where to listen, on the loopback of the box.
    pub(super) listen: Vec<SocketAddr>,
    /// Lines of `/etc/hosts`.
    pub(super) names: Vec<(IpAddr, String)>,
    /// The user inside the box that the program runs as; it owns `writable` meanwhile. Without one it is the box's own.
    pub(super) user: Option<u32>,
    pub(super) purpose: Purpose,
    /// The directories inside the box that the program may write to and that are on disk.
    pub(super) writable: Vec<PathBuf>,
    pub(super) limits: ProcessLimits,
    /// When the box ends unless it is told another time (`CLOCK_BOOTTIME`, in nanoseconds).
    pub(super) until: u64,
}

/// What the kernel limits for each process, and what the box watches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ProcessLimits {
    /// Writable private memory of one process, in bytes.
    pub(crate) memory: u64,
    pub(crate) processes: u64,
    pub(crate) open_files: u64,
    /// What the workspace may hold, in bytes; also the largest file.
    pub(crate) disk: u64,
    /// How many files and directories the workspace may hold.
    pub(crate) files: u64,
}

/// Returns the bytes of `message`, which travels with `count` file descriptors.
pub(super) fn encode(message: &impl Serialize, count: usize) -> io::Result<Vec<u8>> {
    let body = serde_json::to_vec(message)?;
    let too_much = || io::Error::new(io::ErrorKind::InvalidInput, "the message to a box is too large");
    if body.len() > MAX_BYTES || count > MOST_FDS {
        return Err(too_much());
    }
    let mut bytes = Vec::with_capacity(HEAD + body.len());
    for number in [body.len(), count] {
        bytes.extend_from_slice(&u32::try_from(number).map_err(|_| too_much())?.to_le_bytes());
    }
    bytes.extend_from_slice(&body);
    Ok(bytes)
}

/// Sends all of `message` through a socket that blocks.
pub(super) fn send(socket: impl AsFd, message: &impl Serialize, fds: &[BorrowedFd<'_>]) -> io::Result<()> {
    let bytes = encode(message, fds.len())?;
    let (mut rest, mut fds) = (bytes.as_slice(), fds);
    while !rest.is_empty() {
        match send_some(socket.as_fd(), rest, fds) {
            Ok(sent) => (rest, fds) = (rest.get(sent..).unwrap_or_default(), &[]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Sends as many of `bytes` as the socket takes, and all of `fds`.
pub(super) fn send_some(socket: BorrowedFd<'_>, bytes: &[u8], fds: &[BorrowedFd<'_>]) -> io::Result<usize> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_FDS))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !fds.is_empty() {
        control.push(SendAncillaryMessage::ScmRights(fds));
    }
    Ok(rustix::net::sendmsg(socket, &[io::IoSlice::new(bytes)], &mut control, SendFlags::NOSIGNAL)?)
}

/// What has come through a socket and was not taken yet.
#[derive(Debug, Default)]
pub(super) struct Received {
    bytes: Vec<u8>,
    fds: VecDeque<OwnedFd>,
}

impl Received {
    /// Reads what has come; `false` at the end.
    pub(super) fn read(&mut self, socket: impl AsFd) -> io::Result<bool> {
        let mut chunk = [0; 16 * 1024];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_FDS))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let into = &mut [io::IoSliceMut::new(&mut chunk)];
        let got = rustix::net::recvmsg(socket, into, &mut control, RecvFlags::CMSG_CLOEXEC)?;
        for message in control.drain() {
            if let RecvAncillaryMessage::ScmRights(fds) = message {
                self.fds.extend(fds);
            }
        }
        self.bytes.extend_from_slice(chunk.get(..got.bytes).unwrap_or_default());
        Ok(got.bytes > 0)
    }

    /// Takes the next message with its file descriptors, when all of it is there.
    pub(super) fn take<T: DeserializeOwned>(&mut self) -> io::Result<Option<(T, Vec<OwnedFd>)>> {
        let Some((length, count)) = self.head() else { return Ok(None) };
        if length > MAX_BYTES || count > MOST_FDS {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "a message of a box is too large"));
        }
        let Some(body) = self.bytes.get(HEAD..HEAD + length) else { return Ok(None) };
        let message = serde_json::from_slice(body)?;
        self.bytes.drain(..HEAD + length);
        let fds: Vec<OwnedFd> = self.fds.drain(..count.min(self.fds.len())).collect();
        if fds.len() < count {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "a message of a box lacks file descriptors"));
        }
        Ok(Some((message, fds)))
    }

    fn head(&self) -> Option<(usize, usize)> {
        let number = |at: usize| {
            let bytes = self.bytes.get(at..at + 4)?.try_into().ok()?;
            usize::try_from(u32::from_le_bytes(bytes)).ok()
        };
        Some((number(0)?, number(4)?))
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn messages_and_their_descriptors_arrive_in_order_in_whatever_pieces() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let (out, mut into) = io::pipe().unwrap();
        send(&ours, &ToInit::Signal(15), &[]).unwrap();
        send(&ours, &ToInit::Live { until: 7 }, &[out.as_fd()]).unwrap();
        drop((ours, out));
        let mut received = Received::default();
        while received.read(&theirs).unwrap() {}

        let (first, none) = received.take::<ToInit>().unwrap().unwrap();
        let (second, mut fds) = received.take::<ToInit>().unwrap().unwrap();

        assert!(matches!((first, second), (ToInit::Signal(15), ToInit::Live { until: 7 })));
        assert!(none.is_empty() && received.take::<ToInit>().unwrap().is_none());
        into.write_all(b"x").unwrap();
        drop(into);
        let mut text = String::new();
        io::Read::read_to_string(&mut std::fs::File::from(fds.pop().unwrap()), &mut text).unwrap();
        assert_eq!(text, "x");
    }

    #[test]
    fn a_length_that_no_message_has_is_refused() {
        let (mut ours, theirs) = UnixStream::pair().unwrap();
        ours.write_all(&[0xff; 8]).unwrap();
        let mut received = Received::default();
        received.read(&theirs).unwrap();

        assert!(received.take::<ToInit>().is_err());
    }
}
