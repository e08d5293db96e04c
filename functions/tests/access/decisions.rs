//! Drawn members, policies and requests: the answers of the API, a second evaluation of the policies, and Cedar's own
//! answer. Prints the figures `access.*` of docs/figures.md. `FREEHOLD_DECISIONS` has the number of requests, and
//! `FREEHOLD_SEED` the seed.

use std::collections::BTreeSet;
use std::num::NonZero;

use fastrand::Rng;
use freehold_access::{ActionInfo, Resource, actions};
use freehold_app::testing::Memory;
use freehold_functions::api::routes::Route;
use serde_json::json;
use tracing_subscriber::layer::SubscriberExt as _;

use super::cedar::Cedar;
use super::mutants::MUTANTS;
use super::notes::{Note, Notes};
use super::rules::{Rule, evaluated};
use super::tenant::{iam, setting};
use super::world::{Asked, World, rules};

/// The policies that each tenant has, one after another, and the requests about each of them.
const POLICIES: usize = 5;
const REQUESTS: usize = 100;
/// The requests among which each mistake of an evaluation has to make a difference.
const ENOUGH: usize = 20_000;

/// What was found about the decisions of some tenants.
#[derive(Debug, Default)]
struct Counts {
    asked: usize,
    allowed: usize,
    wrong: Vec<String>,
    /// The wrong evaluations that differ from a decision of the API.
    killed: BTreeSet<&'static str>,
}

impl Counts {
    fn with(mut self, other: Self) -> Self {
        self.asked += other.asked;
        self.allowed += other.allowed;
        self.wrong.extend(other.wrong);
        self.killed.extend(other.killed);
        self
    }

    /// Counts a decision, and the wrong evaluations that differ from it.
    fn note(&mut self, rules: &[Rule], asked: &Asked<'_>, notes: &[Note]) {
        let is_allowed = notes.iter().any(|note| note.is_allowed == Some(true));
        self.asked += 1;
        self.allowed += usize::from(is_allowed);
        let action = action(&asked.route.operation.action());
        for (name, permits) in MUTANTS {
            let is_alive = !self.killed.contains(name);
            if is_alive && permits(rules, asked.caller.principal.clone(), action, &asked.resource) != is_allowed {
                self.killed.insert(name);
            }
        }
    }
}

fn action(name: &str) -> &'static ActionInfo {
    actions().iter().find(|action| action.name == name).unwrap()
}

/// Returns what is wrong about a decision of the API: about its log line, or about the status of its response.
fn mistake(rules: &[Rule], cedar: &Cedar, asked: &Asked<'_>, notes: &[Note], status: i64) -> Option<String> {
    let (principal, resource) = (&asked.caller.principal, &asked.resource);
    let action_asked = action(&asked.route.operation.action());
    let expected = evaluated(rules, principal, action_asked, resource);
    let own = cedar.decide(principal, action_asked.name, resource);
    let [note] = notes else { return Some(format!("{} decisions were logged", notes.len())) };
    let found = (note.is_allowed == Some(true), note.policies.clone());
    if found != expected || found != own {
        return Some(format!("the API decides {found:?}, the second evaluation {expected:?}, Cedar {own:?}"));
    }
    if note.action != action_asked.name || note.principal != principal.who.to_string() {
        return Some(format!("the log line is about `{}` of `{}`", note.action, note.principal));
    }
    // Whoever may not see the thing gets the answer about a thing that does not exist.
    let sees = match resource {
        Resource::Tenant => true,
        Resource::App { .. } => evaluated(rules, principal, action("show_app"), resource).0,
        Resource::Install { .. } => evaluated(rules, principal, action("show_install"), resource).0,
    };
    let fits = match (expected.0, sees) {
        (true, _) => ![401, 403].contains(&status),
        (false, true) => status == 403,
        (false, false) => status == 404,
    };
    (!fits).then(|| format!("the status is {status}, and the decision {expected:?}"))
}

async fn ask_tenant(mut draw: Rng, routes: &[Route], notes: &Notes, counts: &mut Counts) {
    let world = World::draw(&mut draw).await;
    let before = Memory::default();
    for _ in 0..POLICIES {
        let rules = rules(&mut draw);
        let text: String = rules.iter().enumerate().map(|(number, rule)| rule.text(number)).collect();
        let cedar = Cedar::new(&text);
        let set = world.tenant.send(&iam(), "POST", "/v1/access/policies", &json!({ "policies": text })).await;
        assert_eq!(set.0, 200, "{}\n{text}", set.1);
        before.restore(&world.tenant.memory);
        for _ in 0..REQUESTS {
            world.tenant.memory.restore(&before);
            let asked = world.request(routes, &mut draw);
            notes.take();

            let (status, answer) = super::ask(&world.tenant, &asked.caller.sender, &asked.route, asked.ids).await;

            let noted = notes.take();
            counts.note(&rules, &asked, &noted);
            if let Some(mistake) = mistake(&rules, &cedar, &asked, &noted, status) {
                counts.wrong.push(format!("{mistake}: {asked:?} {answer}\n{text}"));
            }
        }
        world.tenant.memory.restore(&before);
    }
}

/// Asks the tenants with these numbers, in a thread of its own.
fn of_tenants(numbers: impl Iterator<Item = usize>, seed: usize) -> Counts {
    let notes = Notes::default();
    let _guard = tracing::subscriber::set_default(tracing_subscriber::registry().with(notes.clone()));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let decided = super::routes().filter(|route| !super::OF_ALL.contains(&route.operation));
    let (routes, mut counts) = (decided.collect::<Vec<Route>>(), Counts::default());
    for number in numbers {
        let draw = Rng::with_seed((seed * 1_000_000 + number) as u64);
        runtime.block_on(ask_tenant(draw, &routes, &notes, &mut counts));
    }
    counts
}

fn print(counts: &Counts, seed: usize) {
    let (asked, wrong, killed) = (counts.asked, counts.wrong.len(), counts.killed.len());
    for (name, value, attempted, passed) in [
        ("access.decisions", asked, asked, asked - wrong),
        ("access.wrong", wrong, asked, asked - wrong),
        ("access.mutants_killed", killed, MUTANTS.len(), killed),
    ] {
        let figure = json!({ "name": name, "value": value, "attempted": attempted, "passed": passed, "seed": seed });
        println!("{figure}");
    }
}

#[test]
fn the_api_decides_as_the_text_of_the_policies_says_and_as_cedar_does() {
    let (decisions, seed) = (setting("FREEHOLD_DECISIONS", 500), setting("FREEHOLD_SEED", 1));
    let tenants = decisions.div_ceil(POLICIES * REQUESTS);
    let threads = std::thread::available_parallelism().map_or(1, NonZero::get);

    let counts = std::thread::scope(|scope| {
        let numbers = move |first| (first..tenants).step_by(threads);
        let start = |first| scope.spawn(move || of_tenants(numbers(first), seed));
        let workers: Vec<_> = (0..threads).map(start).collect();
        workers.into_iter().map(|worker| worker.join().unwrap()).fold(Counts::default(), Counts::with)
    });

    print(&counts, seed);
    eprintln!("{} of {} requests were permitted", counts.allowed, counts.asked);
    assert_eq!(counts.wrong.first(), None);
    assert!(counts.allowed * 50 > counts.asked && counts.allowed < counts.asked, "{} are permitted", counts.allowed);
    let alive: Vec<&str> = MUTANTS.iter().map(|(name, _)| *name).filter(|name| !counts.killed.contains(name)).collect();
    assert!(counts.asked < ENOUGH || alive.is_empty(), "no decision differs from these evaluations: {alive:?}");
}
