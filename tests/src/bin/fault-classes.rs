//! Makes each of the thirty-four faults happen with real programs, again and again on several local clouds side by side, and
//! prints a figure for each as JSON lines.

use std::collections::{BTreeMap, VecDeque};
use std::process::ExitCode;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use clap::Parser;
use fastrand::Rng;
use freehold_skips::{lacking, skip_as};
use freehold_tests::bench::quantile;
use freehold_tests::faults::{Cell, Class, Point, Tried, classes};
use serde_json::json;

/// Tries faults by number and seed. A try counts when its fault happened; it passes when everything was right afterwards. The
/// exit code is 1 when a try did not pass, or a fault did not happen often enough.
#[derive(Debug, Parser)]
struct Arguments {
    /// How often each fault has to happen.
    #[arg(long, default_value_t = 20)]
    tries: u32,
    /// How many local clouds work side by side.
    #[arg(long, default_value_t = 6)]
    cells: usize,
    /// The seed of all draws.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The numbers of the faults, instead of all.
    #[arg(long, num_args = 1..)]
    only: Vec<u32>,
}

/// The longest that one try may take.
const LIMIT: Duration = Duration::from_secs(600);
/// So many tries of one fault are made in a row on one cloud.
const PORTION: u32 = 5;
/// A fault is tried this often in all, for each time that it has to happen.
const CHANCES: u32 = 3;
/// The work of a killed runner has to be taken up again within this time, in seconds.
const TAKEN_UP_WITHIN: f64 = 60.0;

/// What became of the tries of a class.
#[derive(Debug, Default, Clone)]
struct Count {
    /// Tries that were begun; the number of the next one.
    begun: u32,
    attempted: u32,
    passed: u32,
    missed: u32,
    secs: f64,
}

/// What the cells share.
#[derive(Debug)]
struct Shared {
    /// A class, and how often its fault has to happen.
    work: Mutex<VecDeque<(Class, u32)>>,
    counts: Mutex<BTreeMap<u32, Count>>,
    takeovers: Mutex<Vec<f64>>,
    seed: u64,
}

#[tokio::main]
async fn main() -> anyhow::Result<ExitCode> {
    let arguments = Arguments::parse();
    let all: Vec<Class> = classes().into_iter().filter(|class| is_wanted(&arguments, class)).collect();
    let mut work: Vec<(Class, u32)> = all.iter().flat_map(|class| portions(*class, arguments.tries)).collect();
    Rng::with_seed(arguments.seed).shuffle(&mut work);
    let shared = Arc::new(Shared {
        work: Mutex::new(work.into()),
        counts: Mutex::default(),
        takeovers: Mutex::default(),
        seed: arguments.seed,
    });
    eprintln!("{} faults, {} tries each, seed {}", all.len(), arguments.tries, arguments.seed);
    let cells: Vec<_> =
        (0..arguments.cells).map(|number| tokio::spawn(work_off(shared.clone(), number as u64))).collect();
    for cell in cells {
        cell.await.context("a cell ended")??;
    }
    Ok(report(&arguments, &all, &shared))
}

fn is_wanted(arguments: &Arguments, class: &Class) -> bool {
    if !(arguments.only.is_empty() || arguments.only.contains(&class.number)) {
        return false;
    }
    match lacking(class.needs) {
        None => true,
        Some(reason) => {
            skip_as(&format!("fault {}: {}", class.number, class.name), &reason);
            false
        }
    }
}

fn portions(class: Class, tries: u32) -> impl Iterator<Item = (Class, u32)> {
    let whole = (0..tries / PORTION).map(move |_| (class, PORTION));
    whole.chain((!tries.is_multiple_of(PORTION)).then_some((class, tries % PORTION)))
}

/// Works on one cloud until there is nothing more to do; after a try that went wrong on a new one, if need be.
async fn work_off(shared: Arc<Shared>, number: u64) -> anyhow::Result<()> {
    let mut cell = start(&shared, number).await?;
    while let Some((class, wanted)) = { lock(&shared.work).pop_front() } {
        cell.renew().await?;
        let mut happened = 0;
        for _ in 0..wanted * CHANCES {
            if happened == wanted {
                break;
            }
            let right = attempt(&shared, &mut cell, class).await;
            happened += u32::from(right != Some(Tried::Missed));
            if right.is_none() && cell.recover().await.is_err() {
                eprintln!("logs of a cloud that is left: {}", cell.world.keep().display());
                cell = start(&shared, number).await?;
            }
        }
    }
    Ok(())
}

async fn start(shared: &Shared, number: u64) -> anyhow::Result<Cell> {
    Cell::start(shared.seed.wrapping_mul(1000) + number).await.with_context(|| format!("cloud {number}"))
}

/// Tries one fault; returns nothing when something was wrong.
async fn attempt(shared: &Shared, cell: &mut Cell, class: Class) -> Option<Tried> {
    let number = {
        let mut counts = lock(&shared.counts);
        let count = counts.entry(class.number).or_default();
        count.begun += 1;
        count.begun - 1
    };
    let rng = Rng::with_seed(shared.seed ^ u64::from(class.number) << 32 ^ u64::from(number));
    let began = Instant::now();
    let tried = tokio::time::timeout(LIMIT, (class.attempt)(cell, Point { number, rng })).await;
    let tried = tried.context("it takes too long").flatten();
    let secs = began.elapsed().as_secs_f64();
    let mut counts = lock(&shared.counts);
    let count = counts.entry(class.number).or_default();
    count.secs += secs;
    match &tried {
        Ok(Tried::Missed) => count.missed += 1,
        Ok(Tried::Passed | Tried::TakenUp(_)) => {
            (count.attempted, count.passed) = (count.attempted + 1, count.passed + 1)
        }
        Err(_) => count.attempted += 1,
    }
    if let Ok(Tried::TakenUp(secs)) = &tried {
        lock(&shared.takeovers).push(*secs);
    }
    let text = match &tried {
        Ok(Tried::Missed) => "did not happen".to_owned(),
        Ok(Tried::Passed) => "right".to_owned(),
        Ok(Tried::TakenUp(after)) => format!("right, taken up after {after:.1} s"),
        Err(error) => format!("WRONG: {error:#}"),
    };
    eprintln!("fault {} ({}), try {number}: {text} in {secs:.1} s", class.number, class.name);
    tried.ok()
}

fn report(arguments: &Arguments, all: &[Class], shared: &Shared) -> ExitCode {
    let counts = lock(&shared.counts).clone();
    let print = |name: &str, value: f64, attempted: u32, passed: u32| {
        let value = if value.fract() == 0.0 { json!(value as u64) } else { json!(value) };
        let seed = arguments.seed;
        println!("{}", json!({"name": name, "value": value, "attempted": attempted, "passed": passed, "seed": seed}));
    };
    let mut whole = 0;
    for class in all {
        let count = counts.get(&class.number).cloned().unwrap_or_default();
        let Count { attempted, passed, missed, secs, .. } = count;
        eprintln!("{:>3} {}: {passed} of {attempted}, {missed} missed, {secs:.0} s", class.number, class.name);
        whole += u32::from(passed == attempted && passed >= arguments.tries);
        print(&format!("faults.{:02}", class.number), f64::from(passed), attempted, passed);
    }
    let classes = u32::try_from(all.len()).unwrap_or(u32::MAX);
    print("faults.classes", f64::from(whole), classes, whole);
    let takeovers = lock(&shared.takeovers).clone();
    if !takeovers.is_empty() {
        let p99 = (quantile(&takeovers, 0.99) * 10.0).round() / 10.0;
        let in_time = takeovers.iter().filter(|secs| **secs < TAKEN_UP_WITHIN).count();
        let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        print("takeover.p99_secs", p99, number(takeovers.len()), number(in_time));
        if in_time < takeovers.len() {
            return ExitCode::FAILURE;
        }
    }
    ExitCode::from(u8::from(whole < classes))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
