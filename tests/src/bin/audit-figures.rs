//! Writes audit chains with several machines while calls fail and processes crash, looks for holes, tampers with the
//! chains, and prints the figures as JSON lines. The exit code is 1 when a chain has a hole, when a tampering is not found
//! with its place, or when a whole chain is called broken.

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::Instant;

use anyhow::Context as _;
use clap::Parser;
use fastrand::Rng;
use freehold_tests::audit::{Found, tampered, whole};
use serde_json::json;

/// Faults and tamperings by seed.
#[derive(Debug, Parser)]
struct Arguments {
    /// How many faults at least.
    #[arg(long, default_value_t = 10_000)]
    faults: u64,
    /// How many tamperings, and how many whole copies beside those that are made while machines write.
    #[arg(long, default_value_t = 1_000)]
    tamperings: u64,
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

// No call has to wait for a clock.
#[tokio::main(flavor = "current_thread", start_paused = true)]
async fn main() -> anyhow::Result<ExitCode> {
    let Arguments { faults, tamperings, seed } = Arguments::parse();
    let (began, mut rng) = (Instant::now(), Rng::with_seed(seed));
    let found = Found::with_faults(seed, faults).await?;
    for (fault, times) in &found.faults {
        eprintln!("{times:>6} {fault}");
    }
    let records: usize = found.chains.iter().map(|chain| chain.copy.records.len()).sum();
    eprintln!("{} chains with {records} records, {} copies while machines wrote", found.chains.len(), found.copies);
    let faults: u64 = found.faults.values().sum();
    let (mut wrong, mut kinds) = ([found.holes.clone(), found.alarms.clone()].concat(), BTreeMap::new());
    let mut false_alarms = found.alarms.len() as u64;
    for number in 0..tamperings {
        let (chain, other) = found.draw(&mut rng);
        let (kind, verdict) = tampered(chain, other, &mut rng).context("a record of a whole chain")?;
        let (attempted, passed): &mut (u64, u64) = kinds.entry(kind).or_default();
        *attempted += 1;
        match verdict {
            Ok(()) => *passed += 1,
            Err(why) => wrong.push(format!("tampering {number}, {kind:?}: {why}")),
        }
        if let Some(problem) = whole(chain, &mut rng).context("a receipt of a whole chain")?.problems.first() {
            false_alarms += 1;
            wrong.push(format!("whole copy {number}: {problem}"));
        }
    }
    for (kind, (attempted, passed)) in &kinds {
        eprintln!("{passed:>6} of {attempted} {kind:?}");
    }
    wrong.iter().take(20).for_each(|line| eprintln!("{line}"));
    let named: u64 = kinds.values().map(|(_, passed)| passed).sum();
    let seconds = began.elapsed().as_secs();
    let print = |name: &str, value: u64, attempted: u64, passed: u64| {
        let figure = json!({ "name": name, "value": value, "attempted": attempted, "passed": passed, "seed": seed,
            "seconds": seconds });
        println!("{figure}");
    };
    let holes = found.holes.len() as u64;
    print("audit.holes", holes, faults, faults.saturating_sub(holes));
    print("audit.tampered_found", named, tamperings, named);
    let whole = tamperings + found.copies;
    print("audit.false_alarms", false_alarms, whole, whole - false_alarms);
    Ok(ExitCode::from(u8::from(!wrong.is_empty())))
}
