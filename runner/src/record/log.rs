//! A job's log: complete lines without secrets. Reports contain a limited part of the log; its file contains more.

use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use freehold_protocol::limits::MAX_LOG_BYTES_PER_REPORT;
use freehold_redaction::Secrets;

/// The maximum size, in bytes, of the log text that waits for the next report. Text beyond it is left out of reports.
const PENDING_MAX: usize = 128 * 1024;
/// The maximum size of the log text that reports carry for one attempt, in bytes.
const REPORTED_MAX: usize = 1024 * 1024;
/// The maximum size of the log file of one attempt, in bytes.
const KEPT_MAX: usize = 32 * 1024 * 1024;
/// A line longer than this, in bytes, is cut into several lines.
const LINE_MAX: usize = 8 * 1024;

/// The log of an attempt, for people. Clones write to the same log.
#[derive(Debug, Clone, Default)]
pub struct JobLog {
    inner: Arc<Mutex<Inner>>,
}

/// One output of a process. Its lines stay complete while other outputs write.
#[derive(Debug)]
pub struct LogStream {
    log: JobLog,
    partial: Vec<u8>,
}

#[derive(Debug, Default)]
struct Inner {
    secrets: Secrets,
    partial: Vec<u8>,
    /// Redacted text that is not in a report yet.
    pending: String,
    /// Bytes left out of reports since the last log line about omitted text.
    skipped: usize,
    reported: usize,
    file: Option<File>,
    kept: usize,
}

impl JobLog {
    /// Returns a log that is also written to the file at `path`.
    ///
    /// # Errors
    /// When the file cannot be created.
    pub fn to_file(path: &Path) -> std::io::Result<Self> {
        let file = File::create(path)?;
        Ok(Self { inner: Arc::new(Mutex::new(Inner { file: Some(file), ..Inner::default() })) })
    }

    /// Writes each line of `text`.
    pub fn line(&self, text: &str) {
        let mut inner = self.lock();
        for line in text.lines() {
            inner.emit(line.as_bytes());
        }
    }

    /// Writes raw output of a process. A call may end in the middle of a line.
    pub fn bytes(&self, bytes: &[u8]) {
        let mut inner = self.lock();
        let mut partial = std::mem::take(&mut inner.partial);
        inner.split(&mut partial, bytes);
        inner.partial = partial;
    }

    /// Returns a writer for one output of a process.
    pub fn stream(&self) -> LogStream {
        LogStream { log: self.clone(), partial: Vec::new() }
    }

    /// Redacts `secret`, in the forms that programs print, in text that is written later or not yet reported. Texts of
    /// fewer than [`freehold_redaction::SHORTEST`] bytes are not redacted, because they are too common.
    pub fn add_secret(&self, secret: &str) {
        self.add(|secrets| secrets.add(secret));
    }

    /// Redacts each of `secrets`, like [`JobLog::add_secret`]. Takes seconds for thousands of them.
    pub fn add_secrets(&self, secrets: &[&str]) {
        self.add(|secrets_of_log| secrets_of_log.add_each(secrets));
    }

    /// Redacts `secrets` and parts of them, like [`JobLog::add_secret`]. They must be random, like AWS credentials.
    pub fn add_credentials(&self, secrets: &[&str]) {
        self.add(|secrets_of_log| secrets_of_log.add_credentials(secrets));
    }

    fn add(&self, add: impl FnOnce(&mut Secrets)) {
        let mut inner = self.lock();
        add(&mut inner.secrets);
        let pending = std::mem::take(&mut inner.pending);
        inner.pending = String::from_utf8_lossy(&inner.secrets.redact(pending.as_bytes())).into_owned();
    }

    /// Returns `text` without secrets, for texts that leave the runner outside of the log.
    pub fn redacted(&self, text: &str) -> String {
        String::from_utf8_lossy(&self.lock().secrets.redact(text.as_bytes())).into_owned()
    }

    /// Returns whether there is log text to report.
    pub fn has_pending(&self) -> bool {
        !self.lock().pending.is_empty()
    }

    /// Removes and returns complete lines for one report, at most [`MAX_LOG_BYTES_PER_REPORT`]; empty when there are
    /// none.
    pub fn take_chunk(&self) -> String {
        let mut inner = self.lock();
        let cut = cut_at_line(&inner.pending, MAX_LOG_BYTES_PER_REPORT);
        let rest = inner.pending.split_off(cut);
        std::mem::replace(&mut inner.pending, rest)
    }

    /// Writes an incomplete last line, and the note about omitted text. Call it when the process has ended.
    pub fn close(&self) {
        let mut inner = self.lock();
        let partial = std::mem::take(&mut inner.partial);
        if !partial.is_empty() {
            inner.emit(&partial);
        }
        inner.say_skipped();
        if let Some(file) = &mut inner.file {
            // A full disk may cut the log file short. It must not make the job fail.
            let _ = file.flush();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LogStream {
    /// Writes raw output. A call may end in the middle of a line.
    pub fn bytes(&mut self, bytes: &[u8]) {
        self.log.lock().split(&mut self.partial, bytes);
    }
}

impl Drop for LogStream {
    fn drop(&mut self) {
        if !self.partial.is_empty() {
            self.log.lock().emit(&self.partial);
        }
    }
}

impl Inner {
    /// Emits each complete line of `partial` followed by `bytes`, and leaves the rest in `partial`.
    fn split(&mut self, partial: &mut Vec<u8>, bytes: &[u8]) {
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            partial.extend_from_slice(piece);
            if partial.last() == Some(&b'\n') {
                partial.pop();
                self.emit(partial);
                partial.clear();
            } else if partial.len() > LINE_MAX + 2 * self.secrets.longest() {
                self.cut_long_line(partial);
            }
        }
    }

    /// Emits the first part of a line that is too long. Leaves as many bytes as the start of a secret could have.
    fn cut_long_line(&mut self, partial: &mut Vec<u8>) {
        let mut at = self.secrets.cut(partial);
        while at > 0 && partial.get(at).is_some_and(|byte| byte & 0b1100_0000 == 0b1000_0000) {
            at -= 1;
        }
        let rest = partial.split_off(at);
        self.emit(partial);
        *partial = rest;
    }

    fn emit(&mut self, line: &[u8]) {
        let kept_full = self.file.is_none() || self.kept >= KEPT_MAX;
        if kept_full && self.reported >= REPORTED_MAX {
            self.skipped += line.len() + 1;
            return;
        }
        let redacted = self.secrets.redact(line);
        let text = String::from_utf8_lossy(&redacted);
        let text = text.trim_end_matches('\r');
        self.keep(text);
        self.report(text);
    }

    fn keep(&mut self, text: &str) {
        let Some(file) = &mut self.file else { return };
        if self.kept >= KEPT_MAX {
            return;
        }
        self.kept += text.len() + 1;
        // A full disk may cut the log file short. It must not make the job fail.
        let _ = writeln!(file, "{text}");
        if self.kept >= KEPT_MAX {
            let _ = writeln!(file, "[freehold: the rest of the log is not stored; the limit is {KEPT_MAX} bytes]");
        }
    }

    fn report(&mut self, text: &str) {
        let size = text.len() + 1;
        if self.reported + size > REPORTED_MAX || self.pending.len() + size > PENDING_MAX {
            self.skipped += size;
            if self.reported + size > REPORTED_MAX {
                self.reported = REPORTED_MAX;
            }
            return;
        }
        self.say_skipped();
        self.pending.push_str(text);
        self.pending.push('\n');
        self.reported += size;
    }

    fn say_skipped(&mut self) {
        if self.skipped > 0 {
            let line = format!("[freehold: {} bytes of log left out here]\n", self.skipped);
            self.pending.push_str(&line);
            self.skipped = 0;
        }
    }
}

/// Returns how many bytes of `text` to take: at most `max`, and only complete lines unless the first line is longer.
fn cut_at_line(text: &str, max: usize) -> usize {
    if text.len() <= max {
        return text.len();
    }
    let end = text.floor_char_boundary(max);
    match text.get(..end).and_then(|head| head.rfind('\n')) {
        Some(newline) => newline + 1,
        None => end,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(log: &JobLog) -> String {
        log.close();
        let mut text = String::new();
        while log.has_pending() {
            text.push_str(&log.take_chunk());
        }
        text
    }

    #[test]
    fn a_secret_split_over_two_writes_is_taken_out() {
        let log = JobLog::default();
        log.add_secret("correct horse");

        log.bytes(b"before correct ho");
        log.bytes(b"rse after\nnext");

        assert_eq!(all(&log), "before [redacted] after\nnext\n");
    }

    #[test]
    fn a_secret_inside_a_line_that_never_ends_is_taken_out() {
        let log = JobLog::default();
        log.add_secret("correct horse");

        for _ in 0..2_000 {
            log.bytes(b"xxxxxcorrect ho");
            log.bytes(b"rseyyyyy");
        }

        let text = all(&log);
        assert!(!text.contains("correct") && !text.contains("horse"), "a part of the secret is left");
        assert_eq!(text.matches("[redacted]").count() + text.replace('\n', "").matches("[redacted]").count(), 4_000);
    }

    #[test]
    fn a_secret_added_later_is_taken_out_of_what_has_not_left() {
        let log = JobLog::default();
        log.line("token is hunter22");

        log.add_secret("hunter22");

        assert_eq!(all(&log), "token is [redacted]\n");
    }

    #[test]
    fn two_outputs_keep_their_lines_whole() {
        let log = JobLog::default();
        let (mut out, mut err) = (log.stream(), log.stream());

        out.bytes(b"one ");
        err.bytes(b"bad ");
        out.bytes(b"line\n");
        err.bytes(b"thing");
        drop(err);

        assert_eq!(all(&log), "one line\nbad thing\n");
    }

    #[test]
    fn a_flood_is_cut_and_the_cut_is_reported() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("log");
        let log = JobLog::to_file(&path).unwrap();

        for _ in 0..20_000 {
            log.line("0123456789012345678901234567890123456789");
        }

        let text = all(&log);
        assert!(text.len() <= PENDING_MAX + 100, "{}", text.len());
        assert!(text.ends_with("bytes of log left out here]\n"));
        assert_eq!(std::fs::metadata(&path).unwrap().len(), 20_000 * 41);
    }

    #[test]
    fn a_report_takes_whole_lines_up_to_its_cap() {
        let log = JobLog::default();
        for _ in 0..1_000 {
            log.line("0123456789012345678901234567890123456789");
        }

        let chunk = log.take_chunk();

        assert!(chunk.len() <= MAX_LOG_BYTES_PER_REPORT && chunk.len() > MAX_LOG_BYTES_PER_REPORT - 41);
        assert!(chunk.ends_with('\n'));
    }

    #[test]
    fn binary_output_becomes_text() {
        let log = JobLog::default();

        log.bytes(&[0xff, 0xfe, b'a', b'\r', b'\n']);

        assert_eq!(all(&log), "\u{fffd}\u{fffd}a\n");
    }
}
