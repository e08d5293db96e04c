//! Prints what the model checks find, one JSON object per line; ends with 1 when a rule is broken or a mutant lives.

use std::process::ExitCode;

use freehold_model::bounds::Bounds;
use freehold_model::bug::Bug;
use freehold_model::explore::{Checked, check, hunt};

fn main() -> ExitCode {
    let spaces: Vec<Checked> = Bounds::ALL.into_iter().map(check).collect();
    let secs = spaces.iter().map(|space| space.took.as_secs_f64()).sum();
    let held = spaces.iter().filter(|space| space.exhausted && space.missing.is_empty()).count();
    let unique: usize = spaces.iter().map(|space| space.unique).sum();
    let violations: usize = spaces.iter().map(|space| space.broken.len() + space.missing.len()).sum();
    for space in &spaces {
        eprintln!("{}: {} worlds, {} steps, broken: {:?}", space.name, space.unique, space.steps, space.broken);
    }
    print("model.unique_states", unique, spaces.len(), held, secs);
    print("model.violations", violations, spaces.len(), held, secs);

    let hunts: Vec<(Bug, Checked)> = Bug::ALL.into_iter().map(|bug| (bug, hunt(Bounds::ground_of(bug)))).collect();
    let secs = hunts.iter().map(|(_, hunt)| hunt.took.as_secs_f64()).sum();
    let killed = hunts.iter().filter(|(_, hunt)| !hunt.broken.is_empty()).count();
    for (bug, hunt) in &hunts {
        let rules: Vec<_> = hunt.broken.iter().map(|(rule, steps)| format!("{rule} ({} steps)", steps.len())).collect();
        eprintln!("{bug:?}: {}", if rules.is_empty() { "SURVIVED".to_owned() } else { rules.join(", ") });
    }
    print("model.mutants_killed", killed, hunts.len(), killed, secs);
    ExitCode::from(u8::from(held < spaces.len() || killed < hunts.len()))
}

/// The search is exhaustive and draws nothing, hence the seed 0.
fn print(name: &str, value: usize, attempted: usize, passed: usize, seconds: f64) {
    println!(
        r#"{{"name":"{name}","value":{value},"attempted":{attempted},"passed":{passed},"seed":0,"seconds":{seconds:.1}}}"#
    );
}
