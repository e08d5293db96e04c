//! Reads the output of a program into the job's log, line by line, or into a file.

use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::process::Child;
use tokio::task::JoinHandle;

use crate::record::log::LogStream;
use crate::work::job::Job;

/// How much of the end of standard error is kept for the sentence that says why a program failed, in bytes.
const LAST_WORDS: usize = 4 * 1024;
/// How long the output of a program that has ended is read, should a process outside its group hold it.
const DRAIN: Duration = Duration::from_secs(5);

/// Where standard output goes; standard error always goes into the log.
#[derive(Debug, Clone)]
pub enum Output {
    /// Into the log, each line after `prefix`.
    Log { prefix: String },
    /// Into a new file.
    File(PathBuf),
}

impl Output {
    /// Returns the log without a prefix.
    pub const fn log() -> Self {
        Self::Log { prefix: String::new() }
    }

    pub(super) fn stdout(&self) -> std::io::Result<Stdio> {
        match self {
            Self::Log { .. } => Ok(Stdio::piped()),
            Self::File(path) => Ok(std::fs::File::create(path)?.into()),
        }
    }
}

/// The readers of a program's outputs.
pub(super) struct Pump {
    stdout: Option<JoinHandle<Vec<u8>>>,
    stderr: Option<JoinHandle<Vec<u8>>>,
}

pub(super) fn pump(job: &Job, child: &mut Child, output: &Output) -> std::io::Result<Pump> {
    let prefix = match output {
        Output::Log { prefix } => prefix.as_str(),
        Output::File(_) => "",
    };
    let start = || Lines { stream: job.log.stream(), prefix: prefix.to_owned(), at_start: true };
    Ok(Pump {
        stdout: child.stdout.take().map(|stdout| tokio::spawn(read(stdout, start()))),
        stderr: child.stderr.take().map(|stderr| tokio::spawn(read(stderr, start()))),
    })
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
