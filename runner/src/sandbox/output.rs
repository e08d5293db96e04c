//! Reads the output of a program into the job's log, line by line, or keeps it for the runner.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek as _};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use serde::de::DeserializeOwned;
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::net::unix::pipe;
use tokio::task::JoinHandle;

use crate::record::log::LogStream;
use crate::work::job::Job;
use crate::workspace::MAX_DOCUMENT;

/// How much of the end of standard error is kept for the sentence that says why a program failed, in bytes.
const LAST_WORDS: usize = 4 * 1024;
/// How long the output of an ended program is read when a process outside of its group still holds the output open.
const DRAIN: Duration = Duration::from_secs(5);

/// Where standard output goes; standard error always goes into the log.
#[derive(Debug, Clone)]
pub enum Output {
    /// Into the log, each line after `prefix`.
    Log { prefix: String },
    /// To the runner, which reads it when the program has ended.
    Kept(Printed),
}

impl Output {
    /// Returns the log without a prefix.
    pub const fn log() -> Self {
        Self::Log { prefix: String::new() }
    }
}

/// What a program prints, in a file without a name: nothing that a job puts into its workspace leads to it.
#[derive(Debug, Clone)]
pub struct Printed(Arc<File>);

impl Printed {
    /// Makes the file, on the disk that holds the workspace of `job`.
    ///
    /// # Errors
    /// When the disk has no place for it.
    pub fn new(job: &Job) -> io::Result<Self> {
        let beside = job.workspace.parent().unwrap_or(&job.workspace);
        tempfile::tempfile_in(beside).map(|file| Self(Arc::new(file)))
    }

    /// Returns it as text.
    ///
    /// # Errors
    /// When it cannot be read, or is no text or too long for one.
    pub async fn text(self) -> io::Result<String> {
        self.read(|mut from| {
            let mut text = String::new();
            from.read_to_string(&mut text).map(|_| text)
        })
        .await
    }

    /// Returns the JSON document.
    ///
    /// # Errors
    /// When it cannot be read, or is another document or too long for one.
    pub async fn json<T: DeserializeOwned + Send + 'static>(self) -> io::Result<T> {
        self.read(|from| Ok(serde_json::from_reader(from)?)).await
    }

    /// Reads off the loop. The program has ended, so nobody else moves the place in the file.
    async fn read<T: Send + 'static>(
        self,
        read: impl FnOnce(BufReader<&File>) -> io::Result<T> + Send + 'static,
    ) -> io::Result<T> {
        let reading = tokio::task::spawn_blocking(move || {
            let mut file = &*self.0;
            let size = file.metadata()?.len();
            if size > MAX_DOCUMENT {
                return Err(io::Error::other(format!("it is {size} bytes and at most {MAX_DOCUMENT} are read")));
            }
            file.rewind()?;
            read(BufReader::new(file))
        });
        reading.await.map_err(io::Error::other)?
    }
}

/// The readers of a program's outputs.
pub(super) struct Pump {
    stdout: Option<JoinHandle<Vec<u8>>>,
    stderr: Option<JoinHandle<Vec<u8>>>,
}

/// Starts to read what a program will write; returns its standard output and standard error.
pub(super) fn pump(job: &Job, output: &Output) -> std::io::Result<(Pump, [OwnedFd; 2])> {
    let prefix = match output {
        Output::Log { prefix } => prefix.as_str(),
        Output::Kept(_) => "",
    };
    let start = || -> std::io::Result<(OwnedFd, JoinHandle<Vec<u8>>)> {
        let (sender, receiver) = pipe::pipe()?;
        let lines = Lines { stream: job.log.stream(), prefix: prefix.to_owned(), at_start: true };
        Ok((sender.into_blocking_fd()?, tokio::spawn(read(receiver, lines))))
    };
    let (err, stderr) = start()?;
    let (out, stdout) = match output {
        Output::Log { .. } => start().map(|(out, stdout)| (out, Some(stdout)))?,
        Output::Kept(printed) => (printed.0.try_clone()?.into(), None),
    };
    Ok((Pump { stdout, stderr: Some(stderr) }, [out, err]))
}

impl Pump {
    /// Reads to the end and returns the last words of standard error, or of standard output when that is empty.
    pub(super) async fn finish(self) -> String {
        let stdout = drain(self.stdout).await;
        let stderr = drain(self.stderr).await;
        let words = if stderr.iter().all(u8::is_ascii_whitespace) { stdout } else { stderr };
        String::from_utf8_lossy(&words).trim().to_owned()
    }
}

async fn drain(reader: Option<JoinHandle<Vec<u8>>>) -> Vec<u8> {
    let Some(mut reader) = reader else { return Vec::new() };
    match tokio::time::timeout(DRAIN, &mut reader).await {
        Ok(ended) => ended.unwrap_or_default(),
        Err(_) => {
            reader.abort();
            Vec::new()
        }
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

/// Puts the prefix before every line.
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
