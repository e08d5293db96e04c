//! Reports whose keys no hello has announced: how many of them wait in the queue.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use freehold_app::ports::Row;
use freehold_app::table::{WriterId, unbelievable_key, unknown_reports_key};
use freehold_app::workflow::accept_report::AcceptReport;
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use serde_json::Value;

use super::*;
use crate::support::interleaving::Interleaved;

/// The role of one install floods the queue with reports of keys that no hello announces.
#[tokio::test]
async fn a_flood_of_unknown_keys_is_set_aside_after_a_while_and_costs_only_its_sender() {
    let (world, _, job) = deploying(Behaviour::Hangs).await;
    let stranger = Runner::new(&world.tenant, "globex", queue_url("globex"), 77);
    let flood = stranger.says(&job, FIRST, 9, finished(success()), world.now());
    let from =
        |role: &str| Arrival { sender: Some(role.to_owned()), install: Some(globex()), ..Arrival::from(world.now()) };

    let (mut waiting, mut aside) = (0, 0);
    for _ in 0..5_100 {
        match world.accept_report().accept(&flood, from("AROAFLOOD")).await {
            Err(error) if error.kind == Kind::Conflict => waiting += 1,
            Ok(Accepted::Aside(_)) => aside += 1,
            other => panic!("{other:?}"),
        }
    }
    let announced = world.copy();
    announced.accept_report().accept(&stranger.hello(world.now()), world.now()).await.unwrap();
    let put_back = announced.accept_report().accept(&flood, from("AROAFLOOD")).await.unwrap();
    let other = world.accept_report().accept(&flood, from("AROAOTHER")).await.unwrap_err();
    let end = world.runners["globex"].says(&job, FIRST, 2, finished(success()), world.now());
    let end = world.accept_report().accept(&end, from("AROAFLOOD")).await.unwrap();
    world.memory.advance_secs(3600);
    let later = world.accept_report().accept(&flood, from("AROAFLOOD")).await.unwrap_err();

    assert_eq!((waiting, aside), (5_000, 100));
    assert!(!matches!(put_back, Accepted::Aside(_)), "it counts once a hello has announced its key: {put_back:?}");
    assert_eq!((other.kind, end, later.kind), (Kind::Conflict, Accepted::Taken, Kind::Conflict));
    let counts = |row: &Row| row.key.pk.starts_with("sender#") && row.key.sk == "unknown";
    let rows = world.memory.rows().into_iter().filter(counts).count();
    assert_eq!(rows, 2, "a row for each sender, not for each message");
}

/// A customer makes many roles, and each of them sends one report of a key that no hello announces.
#[tokio::test]
async fn reports_of_unknown_keys_are_counted_together_for_all_unknown_roles() {
    let (world, _, job) = deploying(Behaviour::Hangs).await;
    let stranger = Runner::new(&world.tenant, "globex", queue_url("globex"), 77);
    let report = stranger.says(&job, FIRST, 9, finished(success()), world.now());
    let from = |role: String| Arrival { sender: Some(role), ..Arrival::from(world.now()) };

    let mut aside = 0;
    for role in 0..5_100 {
        match world.accept_report().accept(&report, from(format!("AROA{role}"))).await {
            Err(error) if error.kind == Kind::Conflict => {}
            Ok(Accepted::Aside(_)) => aside += 1,
            other => panic!("{other:?}"),
        }
    }
    let known = Arrival { install: Some(globex()), ..from("AROAGLOBEX".into()) };
    let known = world.accept_report().accept(&report, known).await.unwrap_err();

    assert_eq!((aside, known.kind), (100, Kind::Conflict));
}

/// Lets a copy of the function accept `body`, which is counted and returns.
fn accepting(
    copy: &AcceptReport,
    (body, arrival): (&str, &Arrival),
    called: &Arc<AtomicBool>,
) -> Box<dyn Fn() -> BoxFuture<'static, ()> + Send + Sync> {
    let (copy, body, arrival, called) = (copy.clone(), body.to_owned(), arrival.clone(), Arc::clone(called));
    Box::new(move || {
        let (copy, body, arrival, called) = (copy.clone(), body.clone(), arrival.clone(), Arc::clone(&called));
        async move {
            assert!(copy.accept_or_drop(&body, arrival).await.is_err());
            called.store(true, Ordering::Relaxed);
        }
        .boxed()
    })
}

/// Between any two calls to the table, another copy of the function counts a message too: a report of an unknown key, or a
/// message that is not authentic.
#[tokio::test]
async fn copies_that_count_at_the_same_moment_count_each_message() {
    let (start, _, job) = deploying(Behaviour::Hangs).await;
    let stranger = Runner::new(&start.tenant, "globex", queue_url("globex"), 77);
    let report = stranger.says(&job, FIRST, 9, finished(success()), start.now());
    let arrival = Arrival { sender: Some("AROAGLOBEX".into()), install: Some(globex()), ..Arrival::from(start.now()) };
    for (body, key, field, calls) in [
        (report.as_str(), unknown_reports_key("AROAGLOBEX"), "receives", 3),
        ("{", unbelievable_key(Some(&globex())), "messages", 2),
    ] {
        let mut counts = 0;
        for at in 0.. {
            let world = start.copy();
            let other = AcceptReport { writer: WriterId::of(2), ..world.accept_report() };
            let called = Arc::new(AtomicBool::new(false));
            let act = accepting(&other, (body, &arrival), &called);
            let store = Arc::new(Interleaved::new(world.memory.clone(), at, act));

            let one = AcceptReport { store, ..world.accept_report() };
            assert!(one.accept_or_drop(body, arrival.clone()).await.is_err());
            if !called.load(Ordering::Relaxed) {
                break;
            }

            let row = world.memory.get(&key).await.unwrap().unwrap();
            let row: Value = serde_json::from_str(&row.body).unwrap();
            assert_eq!(row[field], 2, "before call {at}");
            counts += 1;
        }
        assert_eq!(counts, calls, "{field}");
    }
}
