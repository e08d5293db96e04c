//! The process in which policies are evaluated: reads one question from standard input and writes a line for each
//! policy. The kernel ends this process when it needs too much memory. The parent process ends it when it takes too
//! long.

use std::io::{self, Write as _};
use std::process::ExitCode;

use rustix::process::{Resource, Rlimit, setrlimit};

use crate::question::{Answer, PolicyText, Question};
use crate::{Verdict, evaluate};

/// The argument with which a program runs as the process that evaluates policies.
pub const COMMAND: &str = "policy-asker";

/// Evaluates policies when the command line names [`COMMAND`] and nothing else. Returns `None` for other command lines.
/// Each program that has an [`Evaluator`](crate::Evaluator) calls this first.
pub fn run_if_asked() -> Option<ExitCode> {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next()? != COMMAND || arguments.next().is_some() {
        return None;
    }
    Some(match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{COMMAND}: {error}");
            ExitCode::FAILURE
        }
    })
}

fn run() -> io::Result<()> {
    limit(Resource::Core, 0)?;
    let question: Question = serde_json::from_reader(io::stdin().lock())?;
    // The texts of policies are not trusted, so their evaluation has a memory limit.
    limit(Resource::As, question.memory_mib * 1024 * 1024)?;
    let mut out = io::stdout().lock();
    for policy in &question.policies {
        let mut line = serde_json::to_vec(&ask(policy, &question))?;
        line.push(b'\n');
        out.write_all(&line)?;
        out.flush()?;
    }
    Ok(())
}

fn ask(policy: &PolicyText, question: &Question) -> Answer {
    let mut all = Verdict::default();
    for input in &question.inputs {
        match evaluate(policy, input) {
            Ok(verdict) => all.extend(verdict),
            Err(error) => return Answer::Failed(error.to_string()),
        }
    }
    Answer::Says(all)
}

fn limit(resource: Resource, most: u64) -> io::Result<()> {
    Ok(setrlimit(resource, Rlimit { current: Some(most), maximum: Some(most) })?)
}
