//! Lets jobs print the credentials that their endpoint gave them, counts what leaves by the log, and prints the figure as a
//! JSON line. The exit code is 1 when anything leaves.

use std::process::ExitCode;
use std::time::Instant;

use clap::Parser;
use freehold_fuzz::Draw;
use freehold_tests::canaries::{Canary, SPELLINGS};
use serde_json::json;

/// Canaries by seed and number; each is printed in ten spellings.
#[derive(Debug, Parser)]
struct Arguments {
    /// How many credentials.
    #[arg(long, default_value_t = 1_000)]
    canaries: u64,
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The number of the first; with `--canaries 1` that one is made again.
    #[arg(long, default_value_t = 0)]
    from: u64,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<ExitCode> {
    let Arguments { canaries, seed, from } = Arguments::parse();
    let begun = Instant::now();
    let mut leaked = 0;
    for number in from..from + canaries {
        let mut draw = Draw::new(seed, number);
        let spellings = Canary::draw(&mut draw).leaks(&mut draw).await?;
        if !spellings.is_empty() {
            eprintln!("seed {seed}, number {number}: {spellings:?}");
        }
        leaked += spellings.len() as u64;
    }
    let attempted = canaries * SPELLINGS.len() as u64;
    let figure = json!({ "name": "canaries.leaked", "value": leaked, "attempted": attempted,
        "passed": attempted - leaked, "seed": seed, "seconds": begun.elapsed().as_secs_f64().round() });
    println!("{figure}");
    Ok(ExitCode::from(u8::from(leaked > 0)))
}
