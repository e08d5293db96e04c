//! Evaluates policies in a separate process. The process is killed at a time limit, and the kernel ends it at a memory
//! limit.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::thread;
use std::time::Duration;

use serde_json::Value;

use crate::child::COMMAND;
use crate::error::PolicyError;
use crate::question::{Answer, PolicyText, Question};

/// The maximum length of all results, in bytes.
const MAX_ANSWERS_BYTES: u64 = 16 * 1024 * 1024;

/// The limits of one evaluation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The time limit for one policy over all documents.
    pub time: Duration,
    /// The memory limit of the whole process, in MiB.
    pub memory_mib: u64,
}

/// The limits of an evaluation on a runner. The slowest of the built-in policies needs 1.7 s and 160 MiB for
/// a plan of 10,000 roles (8.5 MB).
pub const LIMITS: Limits = Limits { time: Duration::from_secs(10), memory_mib: 1024 };

/// Evaluates policies in separate processes.
#[derive(Debug, Clone)]
pub struct Evaluator {
    program: PathBuf,
    limits: Limits,
}

impl Evaluator {
    /// Returns an evaluator that starts `program`, which must call [`run_if_asked`](crate::run_if_asked).
    pub fn new(program: impl Into<PathBuf>, limits: Limits) -> Self {
        Self { program: program.into(), limits }
    }

    /// Evaluates each policy on each document. Blocks until all are evaluated. Returns a result for each policy, in the
    /// order of `policies`.
    ///
    /// # Errors
    /// [`PolicyError`] when the process cannot be started, had to be stopped, or ended by itself. Then no results are
    /// returned.
    pub fn ask(&self, policies: Vec<PolicyText>, inputs: Vec<Value>) -> Result<Vec<Answer>, PolicyError> {
        if policies.is_empty() {
            return Ok(Vec::new());
        }
        let files: Vec<String> = policies.iter().map(|policy| policy.file.clone()).collect();
        let question = Question { policies, inputs, memory_mib: self.limits.memory_mib };
        let question = serde_json::to_vec(&question).map_err(|error| PolicyError::NotStarted(error.to_string()))?;
        let mut running = Running::start(&self.program, question)?;
        let mut answers = Vec::new();
        for file in files {
            match running.next(self.limits.time) {
                Next::Answer(answer) => answers.push(answer),
                Next::TooSlow => return Err(PolicyError::TooSlow { file, secs: self.limits.time.as_secs() }),
                Next::Ended(how) => {
                    return Err(PolicyError::Crashed { file, mib: self.limits.memory_mib, how });
                }
            }
        }
        Ok(answers)
    }
}

/// The result of one policy.
enum Next {
    Answer(Answer),
    TooSlow,
    Ended(String),
}

/// The process. It is killed when this value is dropped.
struct Running {
    child: Child,
    lines: Receiver<Option<Answer>>,
}

impl Running {
    fn start(program: &PathBuf, question: Vec<u8>) -> Result<Self, PolicyError> {
        let failed = |what: &str| PolicyError::NotStarted(format!("`{}`: {what}", program.display()));
        let mut command = Command::new(program);
        command.arg(COMMAND).env_clear().current_dir("/");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().map_err(|error| failed(&error.to_string()))?;
        let (Some(mut into), Some(out)) = (child.stdin.take(), child.stdout.take()) else {
            // INVARIANT: both are configured above.
            return Err(failed("it has no standard input or output"));
        };
        // The process may end before it has read everything. Its exit status shows the reason.
        thread::spawn(move || into.write_all(&question));
        Ok(Self { child, lines: read(out) })
    }

    fn next(&mut self, limit: Duration) -> Next {
        match self.lines.recv_timeout(limit) {
            Ok(Some(answer)) => Next::Answer(answer),
            Ok(None) | Err(RecvTimeoutError::Disconnected) => Next::Ended(self.end()),
            Err(RecvTimeoutError::Timeout) => Next::TooSlow,
        }
    }

    fn end(&mut self) -> String {
        let _ = self.child.kill();
        self.child.wait().map_or_else(|error| error.to_string(), |status| status.to_string())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.end();
    }
}

/// Reads a line for each result. `None` means that the line is not a result.
fn read(out: ChildStdout) -> Receiver<Option<Answer>> {
    let (sender, lines) = sync_channel(1);
    thread::spawn(move || {
        for line in BufReader::new(out.take(MAX_ANSWERS_BYTES)).lines().map_while(Result::ok) {
            if sender.send(serde_json::from_str(&line).ok()).is_err() {
                break;
            }
        }
    });
    lines
}
