//! Simulates whole lives of installs, with messages that are delivered in any order and up to three times, counts the
//! events, and prints the figures as JSON lines. The exit code is 1 when an action did not run exactly once for each
//! event.

use std::process::ExitCode;

use clap::Parser;
use serde_json::json;

use support::events::life;

#[expect(dead_code, reason = "only the tests use the other functions of the module")]
#[expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "the module is written for tests, which may panic"
)]
#[path = "../tests/support/mod.rs"]
mod support;

/// Simulates the lives of installs, counts the runs of their actions, and prints the figures.
#[derive(Debug, Parser)]
struct Arguments {
    /// The number of installs to simulate, each from its provisioning to its teardown.
    #[arg(long, default_value_t = 200)]
    lives: u64,
    /// The seed of the random choices. The same seed gives the same simulation.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let Arguments { lives, seed } = Arguments::parse();
    let (mut happened, mut fired, mut doubled) = (0, 0, 0);
    for number in 0..lives {
        for count in life(Some(seed.wrapping_mul(1_000_000).wrapping_add(number))).await {
            if count.ran != count.happened {
                eprintln!("an action did not run once for each event (seed {seed}, install {number}): {count:?}");
            }
            happened += count.happened;
            fired += count.ran.min(count.happened);
            doubled += count.ran.saturating_sub(count.happened);
        }
    }
    let row = |name: &str, value: usize, passed: usize| {
        println!("{}", json!({ "name": name, "value": value, "attempted": happened, "passed": passed, "seed": seed }));
    };
    row("triggers.fired", fired, fired);
    row("triggers.doubled", doubled, happened.saturating_sub(doubled));
    ExitCode::from(u8::from(fired != happened || doubled > 0))
}
