//! Prints the results of the fuzzers, one JSON object per line; exits with 1 when an input crashes.

use std::process::ExitCode;
use std::thread;

use freehold_fuzz::{Configs, Outcome, Target, Templates, run};

const USAGE: &str = "usage: fuzz-figures [--inputs N] [--seed N] [--from N] [--only fuzz.appconfig|fuzz.template]";

fn main() -> ExitCode {
    let Some(options) = Options::read(std::env::args().skip(1)) else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    let crashed =
        options.run("fuzz.appconfig", &Configs::default()) + options.run("fuzz.template", &Templates::default());
    ExitCode::from(u8::from(crashed > 0))
}

struct Options {
    inputs: u64,
    seed: u64,
    from: u64,
    only: Option<String>,
}

impl Options {
    fn read(mut words: impl Iterator<Item = String>) -> Option<Self> {
        let mut options = Self { inputs: 1_000_000, seed: 1, from: 0, only: None };
        while let Some(word) = words.next() {
            let value = words.next()?;
            match word.as_str() {
                "--inputs" => options.inputs = value.parse().ok()?,
                "--seed" => options.seed = value.parse().ok()?,
                "--from" => options.from = value.parse().ok()?,
                "--only" => options.only = Some(value),
                _ => return None,
            }
        }
        Some(options)
    }

    /// Runs one target, unless another one is asked for; returns how many inputs crashed.
    fn run(&self, name: &str, target: &impl Target) -> u64 {
        if self.only.as_deref().is_some_and(|only| only != name) {
            return 0;
        }
        let threads = thread::available_parallelism().map_or(1, usize::from);
        let outcome = run(target, self.seed, self.from..self.from + self.inputs, threads);
        for crash in &outcome.crashes {
            eprintln!("{name}: input {} crashed: {}\n{}", crash.number, crash.message, crash.input);
        }
        self.print(name, &outcome);
        outcome.crashed
    }

    fn print(&self, name: &str, outcome: &Outcome) {
        let Outcome { attempted, accepted, crashed, slowest: (number, slowest), took, .. } = outcome;
        eprintln!("{name}: {accepted} accepted whole; the slowest, input {number}, took {} ms", slowest.as_millis());
        let (passed, seed, seconds) = (attempted - crashed, self.seed, took.as_secs_f64());
        println!(
            r#"{{"name":"{name}","value":{crashed},"attempted":{attempted},"passed":{passed},"seed":{seed},"seconds":{seconds:.1}}}"#
        );
    }
}
