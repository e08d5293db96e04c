//! Tampers with artifacts, manifests, statements and grants, counts refusals and prints the figure as a JSON line. The exit
//! code is 1 when anything tampered is accepted.

use std::process::ExitCode;

use clap::Parser;
use freehold_fuzz::run;
use freehold_tests::tamper::Tampers;
use serde_json::json;

/// Tampers by seed and number; each has to be refused by the code that ships.
#[derive(Debug, Parser)]
struct Arguments {
    /// How many.
    #[arg(long, default_value_t = 10_000)]
    tamperings: u64,
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The number of the first; with `--tamperings 1` that one is made again.
    #[arg(long, default_value_t = 0)]
    from: u64,
}

fn main() -> anyhow::Result<ExitCode> {
    let Arguments { tamperings, seed, from } = Arguments::parse();
    let tampers = Tampers::new(seed)?;
    let originals = match tampers.accepted_originals() {
        Ok(originals) => originals,
        Err(refused) => {
            eprintln!("untampered ones are refused, so that the figure says nothing:\n{refused}");
            return Ok(ExitCode::FAILURE);
        }
    };
    let outcome = run(&tampers, seed, from..from + tamperings, 4);
    for crash in &outcome.crashes {
        eprintln!("seed {seed}, number {}: {}: {}", crash.number, crash.input, crash.message);
    }
    let more = outcome.crashed - outcome.crashes.len() as u64;
    if more > 0 {
        eprintln!("and {more} more");
    }
    for ((family, reason), count) in tampers.refused() {
        eprintln!("{count:>6} {family}: {reason}");
    }
    eprintln!("all {originals} untampered ones were accepted before");
    let refused = outcome.attempted - outcome.crashed;
    let figure = json!({ "name": "artifacts.tampered_refused", "value": refused, "attempted": outcome.attempted,
        "passed": refused, "seed": seed, "seconds": outcome.took.as_secs_f64().round() });
    println!("{figure}");
    Ok(ExitCode::from(u8::from(outcome.crashed > 0)))
}
