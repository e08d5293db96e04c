//! The messages between the runner and the first process of a box. A message is its length and the number of its file
//! descriptors (four bytes each, little endian), then JSON.

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
use crate::config::limits::ProcessLimits;

/// The maximum number of file descriptors of one message.
pub(super) const MOST_FDS: usize = 128;
/// The size limit of a message, in bytes. The arguments and the environment of a program are at most 2 MiB on Linux.
const MAX_BYTES: usize = 4 * 1024 * 1024;
const HEAD: usize = 8;

/// A message from the runner to the first process of a box.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum ToInit {
    /// Starts the program. The runner sends this message once, with the file descriptors for standard output and
    /// standard error.
    Start(Box<Start>),
    /// Sends the signal of this number to the program's process group.
    Signal(i32),
    /// Removes the content of the workspace. The runner sends this message instead of `Start`.
    Clear,
    /// Sets the deadline at which the box ends (`CLOCK_BOOTTIME`, in nanoseconds).
    Live { until: u64 },
}

/// A message from the first process of a box to the runner.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum FromInit {
    /// The box is ready for a program.
    Ready,
    /// The listeners are open. The message has their file descriptors, in the order of [`Start::listen`].
    Listening,
    Started,
    NotStarted {
        reason: String,
    },
    /// The workspace exceeds its limits. It holds this many bytes and files.
    OverDisk {
        bytes: u64,
        files: u64,
    },
    /// The workspace is empty, or `error` is the reason why it could not be emptied.
    Cleared {
        error: Option<String>,
    },
    /// The program has ended with this exit code, and all processes that it started have ended.
    Ended {
        code: i32,
    },
}

impl FromInit {
    /// Returns the name of the message, for error messages.
    pub(super) const fn name(&self) -> &'static str {
        match self {
            Self::Ready => "ready",
            Self::Listening => "listening",
            Self::Started => "started",
            Self::NotStarted { .. } => "not started",
            Self::OverDisk { .. } => "over disk",
            Self::Cleared { .. } => "cleared",
            Self::Ended { .. } => "ended",
        }
    }
}

/// A program to start in a box.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Start {
    pub(super) program: PathBuf,
    pub(super) arguments: Vec<String>,
    pub(super) environment: BTreeMap<String, String>,
    pub(super) directory: String,
    /// The addresses to listen at, on the loopback of the box.
    pub(super) listen: Vec<SocketAddr>,
    /// The lines of `/etc/hosts`: an address and a host name each.
    pub(super) names: Vec<(IpAddr, String)>,
    /// The user id inside the box under which the program runs. That user owns the files in `writable` meanwhile. With
    /// `None`, the program runs as the box's own user.
    pub(super) user: Option<u32>,
    pub(super) purpose: Purpose,
    /// The directories on disk that the program may write to, as paths inside the box.
    pub(super) writable: Vec<PathBuf>,
    pub(super) limits: ProcessLimits,
    /// The first deadline of the box (`CLOCK_BOOTTIME`, in nanoseconds). The box ends then unless [`ToInit::Live`]
    /// moves it.
    pub(super) until: u64,
}

/// Returns the bytes of `message`, which is sent with `count` file descriptors.
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

/// Sends `message` through a blocking socket.
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

/// Sends all of `fds`, and as many of `bytes` as the socket accepts. Returns the number of these bytes.
pub(super) fn send_some(socket: BorrowedFd<'_>, bytes: &[u8], fds: &[BorrowedFd<'_>]) -> io::Result<usize> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_FDS))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !fds.is_empty() {
        control.push(SendAncillaryMessage::ScmRights(fds));
    }
    Ok(rustix::net::sendmsg(socket, &[io::IoSlice::new(bytes)], &mut control, SendFlags::NOSIGNAL)?)
}

/// A buffer for bytes and file descriptors from a socket. They stay in it until [`Received::take`] returns their
/// message.
#[derive(Debug, Default)]
pub(super) struct Received {
    bytes: Vec<u8>,
    fds: VecDeque<OwnedFd>,
}

impl Received {
    /// Reads once from the socket into the buffer. Returns `false` at the end of the stream.
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

    /// Removes the next message from the buffer and returns it with its file descriptors. Returns `None` while the
    /// message is incomplete.
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
