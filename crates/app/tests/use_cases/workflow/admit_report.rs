//! Admitting reports: one sender's flood is handled up to its budget, and costs the others nothing.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use freehold_app::table::{BudgetRecord, Budgeted, Stored, WriterId, budget_key, load};
use freehold_app::testing::Fault;
use freehold_app::workflow::accept_report::{Accepted, Arrival};
use freehold_app::workflow::admit_report::{AdmitReport, Admitted};
use freehold_domain::reports::budget::Rates;
use freehold_protocol::report::{Report, ReportBody};
use freehold_protocol::{Envelope, InstallId, KeyId};
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;

use crate::support::interleaving::Interleaved;
use crate::support::{World, globex};

const GLOBEX: &str = "AROAGLOBEX";

/// What became of some reports.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
struct Counts {
    handled: u64,
    waiting: u64,
    dropped: u64,
}

impl Counts {
    fn add(&mut self, admitted: &Admitted) {
        match admitted {
            Admitted::Handle(_) => self.handled += 1,
            Admitted::Wait(_) => self.waiting += 1,
            Admitted::Drop => self.dropped += 1,
        }
    }
}

fn function(world: &World) -> AdmitReport {
    AdmitReport::new(world.memory.clone(), world.memory.clone(), WriterId::of(1))
}

fn from(world: &World, sender: &str) -> Arrival {
    Arrival { sender: Some(sender.to_owned()), ..Arrival::from(world.now()) }
}

/// Returns a world whose runner of `globex` has announced itself, from the role `GLOBEX`.
async fn announced() -> World {
    let mut world = World::with_app().await;
    world.create().await;
    world.run().await;
    let hello = world.runners["globex"].hello(world.now());
    let arrival = from(&world, GLOBEX);
    assert_eq!(world.accept_report().accept(&hello, arrival).await.unwrap(), Accepted::Taken);
    world
}

async fn budget(world: &World, of: &Budgeted) -> BudgetRecord {
    let found: Option<Stored<BudgetRecord>> = load(&*world.memory, &budget_key(of)).await.unwrap();
    found.unwrap().value
}

#[tokio::test]
async fn a_role_is_known_once_its_hello_has_proven_it() {
    let world = World::with_app().await;
    let before = function(&world).admit(Some(GLOBEX), false).await.unwrap();

    let world = announced().await;

    assert_eq!(before, Admitted::Handle(None));
    assert_eq!(function(&world).admit(Some(GLOBEX), false).await.unwrap(), Admitted::Handle(Some(globex())));
    assert_eq!(function(&world).admit(Some("AROAOTHER"), false).await.unwrap(), Admitted::Handle(None));
    assert_eq!(
        function(&world).admit(None, false).await.unwrap(),
        Admitted::Handle(None),
        "from the tenant's own account"
    );
}

#[tokio::test]
async fn whoever_sends_a_signed_report_of_an_install_is_not_bound_to_it() {
    let world = announced().await;
    let runner = &world.runners["globex"];
    let report = Report {
        tenant: world.tenant.clone(),
        install: globex(),
        runner: KeyId::of(&runner.key.verifying_key()),
        at: world.now(),
        head: None,
        body: ReportBody::Heartbeat,
    };
    let body = Envelope::seal(&report, &[&runner.key]).unwrap().to_json().unwrap();

    let answer = world.accept_report().accept(&body, from(&world, "AROATHIEF")).await.unwrap();

    assert_eq!(answer, Accepted::Taken);
    assert_eq!(function(&world).admit(Some("AROATHIEF"), false).await.unwrap(), Admitted::Handle(None));
    assert_eq!(function(&world).admit(Some(GLOBEX), false).await.unwrap(), Admitted::Handle(Some(globex())));
}

#[tokio::test]
async fn a_role_of_one_install_cannot_speak_of_another() {
    let world = announced().await;
    let rows = world.memory.rows();
    let hello = world.runners["globex"].hello(world.now());
    let initech: InstallId = "initech".parse().unwrap();

    let arrival = Arrival { install: Some(initech), ..from(&world, "AROAINITECH") };
    let answer = world.accept_report().accept(&hello, arrival).await.unwrap();

    assert!(matches!(&answer, Accepted::Refused(why) if why.contains("belongs to install `initech`")), "{answer:?}");
    assert_eq!(world.memory.rows(), rows);
}

/// One million messages within a minute, at twenty copies of the function, with the reports of another install among
/// them.
#[tokio::test]
async fn a_flood_of_one_million_costs_its_install_and_nobody_else() {
    const FLOOD: u64 = 1_000_000;
    const COPIES: usize = 20;
    let world = announced().await;
    let copies: Vec<AdmitReport> = (0..COPIES).map(|_| function(&world)).collect();
    let (mut flood, mut other) = (Counts::default(), Counts::default());

    for number in 0..FLOOD {
        let copy = &copies[usize::try_from(number).unwrap() % COPIES];
        flood.add(&copy.admit(Some(GLOBEX), false).await.unwrap());
        if number % 10_000 == 0 {
            let admitted =
                copies[usize::try_from(number / 10_000).unwrap() % COPIES].admit(Some("AROAINITECH"), false).await;
            other.add(&admitted.unwrap());
        }
        if number % (FLOOD / 60) == 0 {
            world.memory.advance_secs(1);
        }
    }

    assert_eq!(other, Counts { handled: 100, ..Counts::default() });
    let Rates { handled, waiting } = Rates::INSTALL;
    // Each copy handles some reports without a claim: 30 at once, and one more every three seconds.
    let free = COPIES as u64 * (30 + 60 / 3);
    let most =
        |rate: freehold_domain::reports::budget::Rate| u64::from(rate.most) + 61 * u64::from(rate.per_hour) / 3600;
    assert!(flood.handled <= most(handled) + free, "{flood:?}");
    assert!(flood.waiting <= most(waiting), "{flood:?}");
    assert_eq!(flood.handled + flood.waiting + flood.dropped, FLOOD);
    let counted = budget(&world, &Budgeted::Install(globex())).await.budget.dropped;
    // A copy of the function counts its drops in the table every ten seconds.
    assert!(counted > flood.dropped / 2 && counted <= flood.dropped, "{counted} of {flood:?}");
}

#[tokio::test]
async fn a_flood_asks_the_table_by_the_dozen_and_not_for_each_message() {
    let world = announced().await;
    let copy = function(&world);
    let calls = Arc::new(std::sync::atomic::AtomicU64::new(0));
    let seen = Arc::clone(&calls);
    world.memory.faults.set(move |_| {
        seen.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        None
    });

    for _ in 0..100_000 {
        let _ = copy.admit(Some(GLOBEX), false).await.unwrap();
    }

    // 25,000 reports are claimed, 50 at a time; a claim reads a row and writes it.
    let calls = calls.load(std::sync::atomic::Ordering::Relaxed);
    assert!(calls < 1_100, "{calls}");
}

/// Lets a copy of the function decide about one more report.
fn admitting(
    copy: &Arc<AdmitReport>,
    called: &Arc<AtomicBool>,
) -> Box<dyn Fn() -> BoxFuture<'static, ()> + Send + Sync> {
    let (copy, called) = (Arc::clone(copy), Arc::clone(called));
    Box::new(move || {
        let (copy, called) = (Arc::clone(&copy), Arc::clone(&called));
        async move {
            let _ = copy.admit(Some(GLOBEX), false).await.unwrap();
            called.store(true, Ordering::Relaxed);
        }
        .boxed()
    })
}

/// Between any two calls to the table, another copy of the function claims reports too.
#[tokio::test]
async fn copies_that_claim_at_the_same_moment_claim_different_reports() {
    let start = announced().await;
    let mut claims = 0;
    for at in 0.. {
        let world = start.copy();
        let other = Arc::new(AdmitReport::new(world.memory.clone(), world.memory.clone(), WriterId::of(2)));
        // So many reports are handled without a claim.
        for _ in 0..30 {
            let _ = other.admit(Some(GLOBEX), false).await.unwrap();
        }
        let called = Arc::new(AtomicBool::new(false));
        let store = Arc::new(Interleaved::new(world.memory.clone(), at, admitting(&other, &called)));
        let one = AdmitReport::new(store, world.memory.clone(), WriterId::of(1));

        for _ in 0..31 {
            let _ = one.admit(Some(GLOBEX), false).await.unwrap();
        }
        if !called.load(Ordering::Relaxed) {
            break;
        }

        let left = budget(&world, &Budgeted::Install(globex())).await.budget.handled.count;
        assert_eq!(left, Rates::INSTALL.handled.most - 2 * 50, "before call {at}");
        claims += 1;
    }
    assert_eq!(claims, 3, "the role, the budget and the claim");
}

#[tokio::test]
async fn an_unknown_role_has_a_small_budget_of_its_own_and_its_other_reports_wait() {
    let world = announced().await;
    let copy = function(&world);
    let mut stranger = Counts::default();

    for _ in 0..2_000 {
        stranger.add(&copy.admit(Some("AROASTRANGER"), false).await.unwrap());
    }
    let other = copy.admit(Some("AROANEW"), false).await.unwrap();

    assert_eq!(stranger, Counts { handled: 30 + 60, waiting: 2_000 - 90, dropped: 0 });
    assert_eq!(other, Admitted::Handle(None));
}

/// A customer makes a thousand roles and floods the queue from all of them.
#[tokio::test]
async fn all_unknown_roles_together_fill_one_budget_of_reports_that_wait() {
    let world = announced().await;
    let copy = function(&world);
    let (mut invented, mut known) = (Counts::default(), Counts::default());

    for role in 0..1_000 {
        for _ in 0..200 {
            invented.add(&copy.admit(Some(&format!("AROA{role}")), false).await.unwrap());
        }
        known.add(&copy.admit(Some(GLOBEX), false).await.unwrap());
    }

    let waiting = u64::from(Rates::UNKNOWN_ROLES.waiting.most);
    assert_eq!(invented, Counts { handled: 1_000 * 90, waiting, dropped: 1_000 * 110 - waiting });
    assert_eq!(known, Counts { handled: 1_000, ..Counts::default() });
}

#[tokio::test]
async fn a_report_that_waits_is_counted_once_and_makes_room_when_it_is_handled() {
    let world = announced().await;
    let copy = function(&world);
    for _ in 0..30_000 {
        let _ = copy.admit(Some(GLOBEX), false).await.unwrap();
    }
    let new = copy.admit(Some(GLOBEX), false).await.unwrap();
    let calls = Arc::new(std::sync::atomic::AtomicU64::new(0));
    let seen = Arc::clone(&calls);
    world.memory.faults.set(move |_| {
        seen.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        None
    });
    let mut back = Counts::default();
    for _ in 0..1_000 {
        back.add(&copy.admit(Some(GLOBEX), true).await.unwrap());
    }
    let calls = calls.load(std::sync::atomic::Ordering::Relaxed);

    for _ in 0..150 {
        copy.note_handled(Some(GLOBEX), None).await;
    }
    world.memory.advance_secs(11);
    let mut later = Counts::default();
    for _ in 0..300 {
        later.add(&copy.admit(Some(GLOBEX), false).await.unwrap());
    }

    assert_eq!((new, back), (Admitted::Drop, Counts { waiting: 1_000, ..Counts::default() }));
    assert_eq!(calls, 0, "a report that comes back costs no read of the table");
    // In eleven seconds the budget handles 22 reports again, and this copy of the function 3 more.
    assert_eq!(later, Counts { handled: 25, waiting: 150, dropped: 300 - 175 });
}

/// A role is made anew: its runner sends what it has stored before its hello is handled.
#[tokio::test]
async fn a_report_makes_room_in_the_budget_in_which_it_was_counted_also_when_its_role_is_known_later() {
    let mut world = World::with_app().await;
    world.create().await;
    world.run().await;
    let copy = function(&world);
    let mut charged = Vec::new();
    for _ in 0..30 + 60 + 100 {
        if let Admitted::Wait(waiting) = copy.admit(Some(GLOBEX), false).await.unwrap() {
            charged.extend(waiting.charged);
        }
    }
    let before = budget(&world, &Budgeted::UnknownRoles).await.budget.waiting.count;
    let hello = world.runners["globex"].hello(world.now());
    let arrival = from(&world, GLOBEX);
    assert_eq!(world.accept_report().accept(&hello, arrival).await.unwrap(), Accepted::Taken);
    world.memory.advance_secs(11);

    for of in &charged {
        copy.note_handled(Some(GLOBEX), Some(of)).await;
    }

    let after = budget(&world, &Budgeted::UnknownRoles).await.budget.waiting.count;
    let most = Rates::UNKNOWN_ROLES.waiting.most;
    assert_eq!((charged.len(), before, after), (100, most - 100, most));
}

/// A customer makes so many roles that a copy of the function forgets to which installs they belong.
#[tokio::test]
async fn many_unknown_roles_do_not_make_a_copy_forget_the_room_of_an_install() {
    let world = announced().await;
    let copy = function(&world);
    for _ in 0..30_000 {
        let _ = copy.admit(Some(GLOBEX), false).await.unwrap();
    }
    let before = budget(&world, &Budgeted::Install(globex())).await.budget.waiting.count;

    for _ in 0..49 {
        copy.note_handled(Some(GLOBEX), None).await;
    }
    for role in 0..10_001 {
        let _ = copy.admit(Some(&format!("AROA{role}")), false).await.unwrap();
    }
    copy.note_handled(Some(GLOBEX), None).await;

    let after = budget(&world, &Budgeted::Install(globex())).await.budget.waiting.count;
    assert_eq!((before, after), (0, 50));
}

#[tokio::test]
async fn a_report_that_is_set_aside_after_it_was_admitted_uses_the_same_budget() {
    let world = announced().await;
    let copy = function(&world);
    let most = Rates::INSTALL.waiting.most;
    let why = || "unknown key".to_owned();

    let mut waiting = 0;
    for _ in 0..most + 100 {
        waiting += u32::from(copy.set_aside(Some(GLOBEX), false, why()).await.unwrap().is_some());
    }

    assert_eq!(waiting, most);
    assert!(copy.set_aside(Some(GLOBEX), true, why()).await.unwrap().is_some(), "it waits already");
    assert!(copy.set_aside(Some("AROASTRANGER"), false, why()).await.unwrap().is_some());
}

#[tokio::test]
async fn a_budget_comes_back_with_time() {
    let world = announced().await;
    let copy = function(&world);
    for _ in 0..30_000 {
        let _ = copy.admit(Some(GLOBEX), false).await.unwrap();
    }
    let used_up = copy.admit(Some(GLOBEX), false).await.unwrap();

    world.memory.advance_secs(600);
    let mut later = Counts::default();
    for _ in 0..1_000 {
        later.add(&copy.admit(Some(GLOBEX), false).await.unwrap());
    }

    assert_eq!((used_up, later), (Admitted::Drop, Counts { handled: 1_000, ..Counts::default() }));
}

#[tokio::test]
async fn while_the_table_does_not_answer_nothing_is_dropped() {
    let world = announced().await;
    let copy = function(&world);
    for _ in 0..30 {
        let _ = copy.admit(Some(GLOBEX), false).await.unwrap();
    }
    world.memory.faults.set(|what| (what == "commit").then_some(Fault::Before));

    let asked = copy.admit(Some(GLOBEX), false).await;

    assert!(asked.unwrap_err().is_transient());
    world.memory.faults.set(|_| None);
    assert_eq!(copy.admit(Some(GLOBEX), false).await.unwrap(), Admitted::Handle(Some(globex())));
}
