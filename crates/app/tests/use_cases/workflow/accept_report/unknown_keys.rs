//! Reports whose keys no hello has announced: how many of them wait in the queue.

use freehold_app::ports::Row;

use super::*;

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
