//! Makes each of the thirty-four faults happen with real programs, again and again on several local clouds side by side, and
//! prints a figure for each as JSON lines.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::process::ExitCode;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use clap::Parser;
use fastrand::Rng;
use freehold_skips::{lacking, skip_as};
use freehold_tests::bench::quantile;
use freehold_tests::faults::{Cell, Class, Place, Point, Tried, classes};
use serde_json::json;

/// Tries faults by number and seed. A try counts when its fault happened; it passes when everything was right afterwards. The
/// exit code is 1 when a try did not pass, when a fault did not happen often enough, or when a program is missing without which
/// it cannot happen.
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
    /// The numbers of the faults, instead of all. Those whose programs are missing are skipped.
    #[arg(long, num_args = 1..)]
    only: Vec<u32>,
    /// Skip faults whose programs are missing, as the tests do on a machine without them. They are attempted and not passed in
    /// the figures.
    #[arg(long)]
    skip_missing: bool,
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
    /// The points that were tried, those at which something was wrong, and how many points there are.
    points: BTreeSet<usize>,
    wrong: BTreeSet<usize>,
    of: usize,
}

impl Count {
    fn has_passed(&self, tries: u32) -> bool {
        self.passed == self.attempted && self.passed >= tries
    }
}

/// What the cells share.
#[derive(Debug)]
struct Shared {
    /// A class, and how often its fault has to happen.
    work: Mutex<VecDeque<(Class, u32)>>,
    counts: Mutex<BTreeMap<u32, Count>>,
    takeovers: Mutex<Vec<f64>>,
    seed: u64,
    /// Whether each fault is tried once, at its first point.
    tries_once: bool,
}

#[tokio::main]
async fn main() -> anyhow::Result<ExitCode> {
    let arguments = Arguments::parse();
    let wanted = |class: &Class| arguments.only.is_empty() || arguments.only.contains(&class.number);
    let all: Vec<Class> = classes().into_iter().filter(wanted).collect();
    let ready: Vec<Class> = all.iter().copied().filter(has_programs).collect();
    let mut work: Vec<(Class, u32)> = ready.iter().flat_map(|class| portions(*class, arguments.tries)).collect();
    Rng::with_seed(arguments.seed).shuffle(&mut work);
    let cells = arguments.cells.min(work.len()) as u64;
    let shared = Arc::new(Shared {
        work: Mutex::new(work.into()),
        counts: Mutex::default(),
        takeovers: Mutex::default(),
        seed: arguments.seed,
        tries_once: arguments.tries == 1,
    });
    eprintln!("{} faults, {} tries each, seed {}", ready.len(), arguments.tries, arguments.seed);
    let cells: Vec<_> = (0..cells).map(|number| tokio::spawn(work_off(shared.clone(), number))).collect();
    for cell in cells {
        cell.await.context("a cell ended")??;
    }
    Ok(report(&arguments, &all, &shared))
}

/// Returns whether this machine has the programs without which a fault cannot happen.
fn has_programs(class: &Class) -> bool {
    let reason = lacking(class.needs);
    if let Some(reason) = &reason {
        skip_as(&format!("fault {}: {}", class.number, class.name), reason);
    }
    reason.is_none()
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
    let point = Point::new(number, rng, shared.tries_once);
    let tried = tokio::time::timeout(LIMIT, (class.attempt)(cell, point.clone())).await;
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
    if let Some(Place { point, of }) = point.place().filter(|_| !matches!(tried, Ok(Tried::Missed))) {
        count.of = count.of.max(of);
        count.points.insert(point);
        if tried.is_err() {
            count.wrong.insert(point);
        }
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
    let at = point.place().map(|place| format!(" at point {} of {}", place.point, place.of)).unwrap_or_default();
    eprintln!("fault {} ({}), try {number}{at}: {text} in {secs:.1} s", class.number, class.name);
    tried.ok()
}

fn report(arguments: &Arguments, all: &[Class], shared: &Shared) -> ExitCode {
    let counts = lock(&shared.counts).clone();
    let (mut passed, mut missing, mut points) = (0, 0, [0; 3]);
    for class in all {
        let Some(count) = counts.get(&class.number) else {
            missing += 1;
            continue;
        };
        let tried = format!("{} of {}, {} missed", count.passed, count.attempted, count.missed);
        let at = format!("{} of {} points, {:.0} s", count.points.len(), count.of, count.secs);
        eprintln!("{:>3} {}: {tried}, {at}", class.number, class.name);
        passed += usize::from(count.has_passed(arguments.tries));
        points[0] += count.points.len();
        points[1] += count.of;
        points[2] += count.points.difference(&count.wrong).count();
        let numbers = [count.attempted, count.passed].map(|count| count as usize);
        print(arguments, &format!("faults.{:02}", class.number), f64::from(count.passed), numbers);
    }
    print(arguments, "faults.classes", passed as f64, [all.len(), passed]);
    if !shared.tries_once {
        let [tried, of, right] = points;
        let figure = json!({"name": "faults.points", "value": tried, "attempted": tried, "possible": of, "passed": right,
            "seed": arguments.seed});
        println!("{figure}");
    }
    let may_skip = arguments.skip_missing || !arguments.only.is_empty();
    let is_in_time = report_takeovers(arguments, &lock(&shared.takeovers));
    ExitCode::from(u8::from(!is_in_time || !is_enough(all.len(), passed, if may_skip { missing } else { 0 })))
}

/// Returns whether all faults passed but those that may be skipped.
const fn is_enough(all: usize, passed: usize, skipped: usize) -> bool {
    passed + skipped >= all
}

/// Prints how long killed runners took; returns whether each was in time.
fn report_takeovers(arguments: &Arguments, takeovers: &[f64]) -> bool {
    if takeovers.is_empty() {
        return true;
    }
    let p99 = (quantile(takeovers, 0.99) * 10.0).round() / 10.0;
    let in_time = takeovers.iter().filter(|secs| **secs < TAKEN_UP_WITHIN).count();
    print(arguments, "takeover.p99_secs", p99, [takeovers.len(), in_time]);
    in_time == takeovers.len()
}

fn print(arguments: &Arguments, name: &str, value: f64, [attempted, passed]: [usize; 2]) {
    let value = if value.fract() == 0.0 { json!(value as u64) } else { json!(value) };
    let seed = arguments.seed;
    println!("{}", json!({"name": name, "value": value, "attempted": attempted, "passed": passed, "seed": seed}));
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_that_was_not_tried_is_not_among_those_that_passed() {
        assert!(is_enough(34, 34, 0));
        assert!(!is_enough(34, 32, 0), "two programs are missing");
        assert!(is_enough(34, 32, 2), "they may be missing");
        assert!(!is_enough(34, 31, 2), "one fault did not pass");
    }

    #[test]
    fn a_fault_passes_with_all_wanted_tries_and_none_that_was_wrong() {
        let count = |attempted, passed| Count { attempted, passed, ..Count::default() };

        assert!(count(20, 20).has_passed(20));
        assert!(!count(19, 19).has_passed(20) && !count(21, 20).has_passed(20) && !count(0, 0).has_passed(1));
    }
}
