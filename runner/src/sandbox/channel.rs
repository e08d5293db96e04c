//! The runner's end of the socket to the first process of a box.

use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};

use tokio::io::Interest;
use tokio::net::UnixStream;

use super::frame::{self, FromInit, Received, ToInit};

/// The runner's end of a socket pair. Dropping it ends the box.
#[derive(Debug)]
pub(super) struct Channel {
    socket: UnixStream,
    received: Received,
}

impl Channel {
    /// Returns the runner's end and the end for the box.
    pub(super) fn pair() -> io::Result<(Self, OwnedFd)> {
        let (ours, theirs) = std::os::unix::net::UnixStream::pair()?;
        ours.set_nonblocking(true)?;
        Ok((Self { socket: UnixStream::from_std(ours)?, received: Received::default() }, theirs.into()))
    }

    /// Sends a message with file descriptors.
    pub(super) async fn send(&self, message: &ToInit, fds: &[BorrowedFd<'_>]) -> io::Result<()> {
        let bytes = frame::encode(message, fds.len())?;
        let (mut rest, mut fds) = (bytes.as_slice(), fds);
        while !rest.is_empty() {
            let send = || frame::send_some(self.socket.as_fd(), rest, fds);
            let sent = self.socket.async_io(Interest::WRITABLE, send).await?;
            (rest, fds) = (rest.get(sent..).unwrap_or_default(), &[]);
        }
        Ok(())
    }

    /// Returns the next message with its file descriptors, or `None` when the box has ended. The future may be dropped
    /// without losing a message.
    pub(super) async fn receive(&mut self) -> io::Result<Option<(FromInit, Vec<OwnedFd>)>> {
        loop {
            if let Some(message) = self.received.take()? {
                return Ok(Some(message));
            }
            let (socket, received) = (&self.socket, &mut self.received);
            match socket.async_io(Interest::READABLE, || received.read(socket)).await {
                Ok(true) => {}
                Ok(false) => return Ok(None),
                Err(error) if error.kind() == io::ErrorKind::ConnectionReset => return Ok(None),
                Err(error) => return Err(error),
            }
        }
    }
}
