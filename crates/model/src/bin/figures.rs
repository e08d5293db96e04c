//! Prints what the model checks find, one JSON object per line; ends with 1 when a rule is broken or a mutant lives.
//! `--short` searches the smallest spaces and hunts the mistakes that break a rule in them.

use std::process::ExitCode;

use freehold_model::bounds::Bounds;
use freehold_model::bug::Bug;
use freehold_model::copies::world::Space as Copies;
use freehold_model::explore::{
    Checked, check, check_approvals, check_copies, check_hellos, check_workflow, hunt, hunt_approvals, hunt_copies,
    hunt_hellos, hunt_workflows,
};
use freehold_model::workflow::world::Space;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let is_short = match words.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        [] => false,
        ["--short"] => true,
        _ => {
            eprintln!("usage: model-figures [--short]");
            return ExitCode::from(2);
        }
    };
    let (spaces, bugs): (&[Bounds], &[Bug]) =
        if is_short { (&[Bounds::TWINS], &[Bug::EqualFenceSecondWins]) } else { (&Bounds::ALL, &Bug::ALL) };
    let (copy_spaces, copy_bugs): (&[Copies], &[Bug]) = if is_short {
        (&[Copies::OTHER_GROUP], &[Bug::StartExcludesRedelivery])
    } else {
        (&Copies::ALL, &Bug::OF_COPIES)
    };
    let (workflow_spaces, workflow_bugs): (&[Space], &[Bug]) =
        if is_short { (&[Space::GATE], &[Bug::RollBackIsRolledBack]) } else { (&Space::ALL, &Bug::OF_WORKFLOWS) };

    let protocol = spaces.iter().map(|space| Found::of(check(*space)));
    let copies = copy_spaces.iter().map(|space| Found::of(check_copies(*space)));
    let workflows = workflow_spaces.iter().map(|space| Found::of(check_workflow(*space)));
    let others = [Found::of(check_hellos()), Found::of(check_approvals())];
    let spaces = protocol.chain(others).chain(copies).chain(workflows).collect();
    let protocol = bugs.iter().map(|bug| (*bug, Found::of(hunt(Bounds::ground_of(*bug)))));
    let hellos = Bug::OF_HELLOS.into_iter().map(|bug| (bug, Found::of(hunt_hellos(bug.into()))));
    let approvals = Bug::OF_APPROVALS.into_iter().map(|bug| (bug, Found::of(hunt_approvals(bug.into()))));
    let copies = copy_bugs.iter().map(|bug| (*bug, Found::of(hunt_copies((*bug).into()))));
    let workflows = workflow_bugs.iter().map(|bug| (*bug, Found::of(hunt_workflows((*bug).into()))));
    count(spaces, protocol.chain(hellos).chain(approvals).chain(copies).chain(workflows))
}

/// What a search found.
struct Found {
    name: &'static str,
    unique: usize,
    steps: usize,
    /// Each broken rule with the number of steps that break it.
    broken: Vec<(&'static str, usize)>,
    missing: usize,
    exhausted: bool,
    secs: f64,
}

impl Found {
    fn of<A>(checked: Checked<A>) -> Self {
        let Checked { name, unique, steps, broken, missing, exhausted, took } = checked;
        let broken = broken.into_iter().map(|(rule, steps)| (rule, steps.len())).collect();
        Self { name, unique, steps, broken, missing: missing.len(), exhausted, secs: took.as_secs_f64() }
    }
}

fn count(spaces: Vec<Found>, hunts: impl Iterator<Item = (Bug, Found)>) -> ExitCode {
    let secs = spaces.iter().map(|space| space.secs).sum();
    let held = spaces.iter().filter(|space| space.exhausted && space.missing == 0).count();
    let unique: usize = spaces.iter().map(|space| space.unique).sum();
    let violations: usize = spaces.iter().map(|space| space.broken.len() + space.missing).sum();
    for space in &spaces {
        eprintln!("{}: {} worlds, {} steps, broken: {:?}", space.name, space.unique, space.steps, space.broken);
    }
    print("model.unique_states", unique, spaces.len(), held, secs);
    print("model.violations", violations, spaces.len(), held, secs);

    let hunts: Vec<(Bug, Found)> = hunts.collect();
    let secs = hunts.iter().map(|(_, hunt)| hunt.secs).sum();
    let killed = hunts.iter().filter(|(_, hunt)| !hunt.broken.is_empty()).count();
    for (bug, hunt) in &hunts {
        let rules: Vec<_> = hunt.broken.iter().map(|(rule, steps)| format!("{rule} ({steps} steps)")).collect();
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
