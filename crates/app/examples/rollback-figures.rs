//! Simulates histories of installs, with messages that are delivered in any order and up to three times, counts the
//! roll backs, and prints the figure as a JSON line. The exit code is 1 when an install does not run the same after a
//! roll back as before it.

use std::collections::BTreeMap;
use std::process::ExitCode;

use clap::Parser;
use serde_json::json;

use support::histories::history;

#[expect(dead_code, reason = "only the tests use the other functions of the module")]
#[expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "the module is written for tests, which may panic"
)]
#[path = "../tests/support/mod.rs"]
mod support;

/// Simulates histories of installs, compares what runs before and after each roll back, and prints the figure.
#[derive(Debug, Parser)]
struct Arguments {
    /// The number of installs to simulate, each with one roll back or two.
    #[arg(long, default_value_t = 100)]
    histories: u64,
    /// The seed of the random choices. The same seed gives the same simulation.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let Arguments { histories, seed } = Arguments::parse();
    let (mut attempted, mut same, mut broken) = (0_u64, 0_u64, 0_u64);
    let mut causes = BTreeMap::new();
    for number in 0..histories {
        let wanted = 1 + usize::from(number % 2 == 1);
        let rolled_back = match history(seed.wrapping_mul(1_000_000).wrapping_add(number), wanted).await {
            Ok(rolled_back) => rolled_back,
            Err(error) => {
                eprintln!("history {number} of seed {seed} did not reach its roll backs: {error}");
                broken += 1;
                continue;
            }
        };
        for one in rolled_back {
            attempted += 1;
            same += u64::from(one.differences.is_empty());
            *causes.entry(one.cause).or_insert(0) += 1;
            for difference in &one.differences {
                eprintln!(
                    "not the same after a roll back (seed {seed}, history {number}, {:?}): {difference}",
                    one.cause
                );
            }
        }
    }
    eprintln!("roll backs by cause: {causes:?}");
    println!(
        "{}",
        json!({ "name": "rollback.same", "value": same, "attempted": attempted, "passed": same, "seed": seed })
    );
    ExitCode::from(u8::from(same != attempted || attempted == 0 || broken > 0))
}
