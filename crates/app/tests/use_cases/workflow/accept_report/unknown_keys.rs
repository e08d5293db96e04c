//! Reports whose keys no hello has announced: how many of them wait in the queue.

use std::sync::Arc;

use async_trait::async_trait;
use freehold_app::ports::{Committed, Key, PortError, Row, Store, Write};
use freehold_app::table::{UnknownReports, load, unknown_reports_key};
use freehold_app::testing::Memory;
use freehold_app::workflow::accept_report::AcceptReport;
use futures_util::future::join_all;

use super::*;

/// A table that lets all others act before each call.
struct Yielding(Arc<Memory>);

#[async_trait]
impl Store for Yielding {
    async fn get(&self, key: &Key) -> Result<Option<Row>, PortError> {
        tokio::task::yield_now().await;
        self.0.get(key).await
    }

    async fn query(&self, pk: &str, prefix: &str, after: Option<&str>, limit: u32) -> Result<Vec<Row>, PortError> {
        tokio::task::yield_now().await;
        self.0.query(pk, prefix, after, limit).await
    }

    async fn commit(&self, writes: Vec<Write>) -> Result<Committed, PortError> {
        tokio::task::yield_now().await;
        self.0.commit(writes).await
    }
}

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

/// Handles `count` reports of unknown roles at the same moment. Returns how many wait in the queue, how many are set
/// aside, and how many are counted.
async fn at_once(count: usize) -> (usize, usize, u32) {
    let (world, _, job) = deploying(Behaviour::Hangs).await;
    let stranger = Runner::new(&world.tenant, "globex", queue_url("globex"), 77);
    let report = stranger.says(&job, FIRST, 9, finished(success()), world.now());
    let accept = AcceptReport { store: Arc::new(Yielding(world.memory.clone())), ..world.accept_report() };
    let from = |role: usize| Arrival { sender: Some(format!("AROA{role}")), ..Arrival::from(world.now()) };

    let answers = join_all((0..count).map(|role| accept.accept(&report, from(role)))).await;

    let waiting = answers.iter().filter(|one| matches!(one, Err(error) if error.kind == Kind::Conflict)).count();
    let aside = answers.iter().filter(|one| matches!(one, Ok(Accepted::Aside(_)))).count();
    let row = load::<UnknownReports>(&*world.memory, &unknown_reports_key("unknown-roles")).await.unwrap();
    (waiting, aside, row.unwrap().value.receives)
}

#[tokio::test]
async fn reports_of_unknown_keys_that_come_at_once_are_all_counted_or_set_aside() {
    assert_eq!(at_once(10).await, (10, 0, 10));

    let (waiting, aside, counted) = at_once(100).await;

    assert_eq!((waiting, waiting + aside), (usize::try_from(counted).unwrap(), 100));
    assert!(aside > 0, "a row that 100 calls change at once is given up by some of them");
}
