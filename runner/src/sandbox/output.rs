//! Copies the output of a program into the job's log, or stores it for the runner.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek as _};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use serde::de::DeserializeOwned;
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::net::unix::pipe;
use tokio::task::JoinHandle;

use crate::job::Job;
use crate::record::log::LogStream;
use crate::workspace::MAX_DOCUMENT;

/// The number of bytes at the end of the output that are stored for the message about a failed program.
const LAST_WORDS: usize = 4 * 1024;
/// The time limit for reading the rest of the output after the program has ended. A process outside of the program's
/// group may still have the output open.
const DRAIN: Duration = Duration::from_secs(5);

/// The destination of standard output. Standard error always goes into the log.
#[derive(Debug, Clone)]
pub enum Output {
    /// Standard output goes into the log, and each line begins with `prefix`.
    Log { prefix: String },
    /// Standard output goes into a file that the runner reads when the program has ended.
    Kept(Printed),
}

impl Output {
    /// Returns the log, without a prefix, as the destination.
    pub const fn log() -> Self {
        Self::Log { prefix: String::new() }
    }
}

/// The file with the standard output of a program. The file has no name, so no file or link in the workspace leads to
/// it.
#[derive(Debug, Clone)]
pub struct Printed(Arc<File>);

impl Printed {
    /// Makes the file, on the same disk as the workspace of `job`.
    ///
    /// # Errors
    /// When the file cannot be made.
    pub fn new(job: &Job) -> io::Result<Self> {
        let beside = job.workspace.parent().unwrap_or(&job.workspace);
        tempfile::tempfile_in(beside).map(|file| Self(Arc::new(file)))
    }

    /// Returns the standard output as text.
    ///
    /// # Errors
    /// When the file cannot be read, is not UTF-8, or is larger than `MAX_DOCUMENT`.
    pub async fn text(self) -> io::Result<String> {
        self.read(|mut from| {
            let mut text = String::new();
            from.read_to_string(&mut text).map(|_| text)
        })
        .await
    }

    /// Returns the standard output as a JSON document.
    ///
    /// # Errors
    /// When the file cannot be read, is not a JSON document of type `T`, or is larger than `MAX_DOCUMENT`.
    pub async fn json<T: DeserializeOwned + Send + 'static>(self) -> io::Result<T> {
        self.read(|from| Ok(serde_json::from_reader(from)?)).await
    }

    /// Reads the file on a blocking thread. The program has ended, so no other process changes the position in the
    /// file.
    async fn read<T: Send + 'static>(
        self,
        read: impl FnOnce(BufReader<&File>) -> io::Result<T> + Send + 'static,
    ) -> io::Result<T> {
        let reading = tokio::task::spawn_blocking(move || {
            let mut file = &*self.0;
            let size = file.metadata()?.len();
            if size > MAX_DOCUMENT {
                return Err(io::Error::other(format!("it has {size} bytes; the runner reads at most {MAX_DOCUMENT}")));
            }
            file.rewind()?;
            read(BufReader::new(file))
        });
        reading.await.map_err(io::Error::other)?
    }
}

/// The tasks that read a program's standard output and standard error. Dropping this value ends them, so that nothing
/// more is logged when nobody waits for the program any more.
pub(super) struct Pump {
    stdout: Option<Reader>,
    stderr: Option<Reader>,
}

/// A task that reads one output, and ends when this is dropped.
struct Reader(JoinHandle<Vec<u8>>);

impl Drop for Reader {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Starts the tasks that read a program's output. Returns the file descriptors for its standard output and standard
/// error.
pub(super) fn pump(job: &Job, output: &Output) -> std::io::Result<(Pump, [OwnedFd; 2])> {
    let prefix = match output {
        Output::Log { prefix } => prefix.as_str(),
        Output::Kept(_) => "",
    };
    let start = || -> std::io::Result<(OwnedFd, Reader)> {
        let (sender, receiver) = pipe::pipe()?;
        let lines = Lines { stream: job.log.stream(), prefix: prefix.to_owned(), at_start: true };
        Ok((sender.into_blocking_fd()?, Reader(tokio::spawn(read(receiver, lines)))))
    };
    let (err, stderr) = start()?;
    let (out, stdout) = match output {
        Output::Log { .. } => start().map(|(out, stdout)| (out, Some(stdout)))?,
        Output::Kept(printed) => (printed.0.try_clone()?.into(), None),
    };
    Ok((Pump { stdout, stderr: Some(stderr) }, [out, err]))
}

impl Pump {
    /// Reads to the end. Returns the end of standard error, or of standard output when standard error is empty.
    pub(super) async fn finish(self) -> String {
        let stdout = drain(self.stdout).await;
        let stderr = drain(self.stderr).await;
        let words = if stderr.iter().all(u8::is_ascii_whitespace) { stdout } else { stderr };
        String::from_utf8_lossy(&words).trim().to_owned()
    }
}

async fn drain(reader: Option<Reader>) -> Vec<u8> {
    let Some(mut reader) = reader else { return Vec::new() };
    match tokio::time::timeout(DRAIN, &mut reader.0).await {
        Ok(ended) => ended.unwrap_or_default(),
        Err(_) => Vec::new(),
    }
}

async fn read(mut pipe: impl AsyncRead + Unpin, mut lines: Lines) -> Vec<u8> {
    let mut last = Vec::new();
    let mut chunk = vec![0; 8 * 1024];
    while let Ok(read @ 1..) = pipe.read(&mut chunk).await {
        let bytes = chunk.get(..read).unwrap_or_default();
        lines.write(bytes);
        last.extend_from_slice(bytes);
        let excess = last.len().saturating_sub(LAST_WORDS);
        last.drain(..excess);
    }
    last
}

/// A writer that puts a prefix before every line in the log.
struct Lines {
    stream: LogStream,
    prefix: String,
    at_start: bool,
}

impl Lines {
    fn write(&mut self, bytes: &[u8]) {
        if self.prefix.is_empty() {
            return self.stream.bytes(bytes);
        }
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            if self.at_start {
                self.stream.bytes(self.prefix.as_bytes());
            }
            self.stream.bytes(piece);
            self.at_start = piece.ends_with(b"\n");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_reader_that_nobody_waits_for_ends_with_its_pump() {
        let (sender, receiver) = tokio::sync::oneshot::channel::<()>();
        let task = async move {
            let _held = sender;
            std::future::pending().await
        };
        let pump = Pump { stdout: None, stderr: Some(Reader(tokio::spawn(task))) };

        drop(pump);

        assert!(receiver.await.is_err(), "the task has dropped its end");
    }
}
