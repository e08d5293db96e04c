//! Channels: a move deploys the installs that follow, each once, a bounded number each minute, and says who waits and why.

use std::collections::BTreeMap;
use std::sync::Arc;

use freehold_app::ports::{Committed, Expect, Key, PortError, Row, Store, Write};
use freehold_app::sweep::handle_due_tasks::HandleDueTasks;
use freehold_app::table::{self, Due, DueWhat, Follower, put};
use freehold_app::testing::Memory;
use freehold_app::{Kind, read};
use freehold_domain::install::follows::MAX_CHANNELS;
use freehold_domain::workflow::WorkflowKind;
use freehold_protocol::api::{
    CancelWorkflowRequest, ChannelView, DeployComponentsRequest, Follows, MoveChannelRequest, ReasonRequest,
};
use freehold_protocol::{InstallId, Timestamp, WorkflowId};

use crate::support::channels::{demo, follow, move_to, release, stable};
use crate::support::runner::Behaviour;
use crate::support::{World, app, globex, member, with_input};

/// Returns a world in which `globex` follows the channel, which has release `one`, and release `two` is there.
async fn with_channel() -> World {
    let world = World::with_channel().await;
    world.memory.started.lock().unwrap().clear();
    world
}

/// Calls the schedule each minute for this long.
async fn minutes(world: &mut World, minutes: u64) {
    for _ in 0..minutes {
        world.handle_due_tasks().handle().await.unwrap();
        world.run().await;
        world.memory.advance_secs(60);
    }
}

fn deploys(world: &World) -> Vec<WorkflowId> {
    let started = world.memory.started.lock().unwrap();
    let mut ids: Vec<_> =
        started.iter().filter(|(kind, _)| *kind == WorkflowKind::DeployComponents).map(|(_, id)| id.clone()).collect();
    ids.dedup();
    ids
}

async fn version(world: &World) -> u64 {
    let install = table::install(&*world.memory, &globex()).await.unwrap().value;
    world.versions().load(&demo(), install.version()).await.unwrap().number
}

/// Returns the tasks of channels.
async fn due(world: &World) -> Vec<Due> {
    let later = Timestamp::from_millis(u64::MAX / 2);
    let all = table::due(&*world.memory, later, 5000).await.unwrap().into_iter().map(|stored| stored.value);
    all.filter(|one| matches!(one.what, DueWhat::Channel { .. } | DueWhat::Follow { .. })).collect()
}

/// Lets this many installs follow the channel, by their rows alone.
async fn followers(world: &World, number: usize) {
    for at in 0..number {
        let install = format!("i{at:05}").parse().unwrap();
        let follower = Follower { app: demo(), channel: stable(), install };
        let _ = world.memory.commit(vec![put(&follower, Expect::Any).unwrap()]).await.unwrap();
    }
}

#[tokio::test]
async fn a_move_deploys_the_install_that_follows_once_for_whoever_moved_it() {
    let mut world = with_channel().await;

    let moved = move_to(&world, "two").await.unwrap();
    minutes(&mut world, 10).await;
    world.settle().await;

    let ChannelView { moves, installs, moved_by, .. } = moved;
    assert_eq!((moves, installs, &moved_by), (2, 1, member()));
    assert_eq!(version(&world).await, 2);
    let [workflow] = deploys(&world).try_into().unwrap();
    let workflow = world.workflow(&workflow).await;
    assert_eq!((workflow.asked_by.as_ref(), workflow.state.as_str()), (Some(member()), "succeeded"));
    assert_eq!(read::workflow_view(&workflow).release, Some("two".parse().unwrap()));
    assert!(due(&world).await.is_empty());
}

#[tokio::test]
async fn a_move_to_the_release_that_the_channel_has_changes_nothing() {
    let mut world = with_channel().await;
    let rows = world.memory.rows();

    let moved = move_to(&world, "one").await.unwrap();

    assert_eq!((moved.moves, world.memory.rows()), (1, rows));
    minutes(&mut world, 2).await;
    assert!(deploys(&world).is_empty());
}

#[tokio::test]
async fn a_deploy_that_was_cancelled_before_it_began_is_asked_for_again() {
    let mut world = with_channel().await;
    move_to(&world, "two").await.unwrap();
    for _ in 0..2 {
        world.handle_due_tasks().handle().await.unwrap();
    }
    let [first] = deploys(&world).try_into().unwrap();
    let request = CancelWorkflowRequest { reason: Some("wrong hour".to_owned()) };
    world.cancel_workflow().cancel(&first, &request, member()).await.unwrap();
    world.settle().await;
    let before = version(&world).await;
    let again = |after| MoveChannelRequest { release: "two".parse().unwrap(), again_after: Some(after) };

    let moved = world.move_channel().move_channel(&demo(), &stable(), &again(2), member()).await.unwrap();
    let repeated = world.move_channel().move_channel(&demo(), &stable(), &again(2), member()).await.unwrap();
    minutes(&mut world, 10).await;
    world.settle().await;

    assert_eq!((before, moved.moves, repeated.moves, version(&world).await), (1, 3, 3, 2));
    assert_eq!(deploys(&world).len(), 2);
    let other = MoveChannelRequest { release: "three".parse().unwrap(), again_after: Some(1) };
    let late = world.move_channel().move_channel(&demo(), &stable(), &other, member()).await.unwrap_err();
    assert_eq!((late.kind, late.message.contains("was moved meanwhile")), (Kind::Conflict, true), "{late}");
}

#[tokio::test]
async fn an_install_that_is_worked_on_follows_later_and_says_why_it_waits() {
    let mut world = with_channel().await;
    world.deploy(&with_input("days", 9), "by-hand").await.unwrap();
    move_to(&world, "two").await.unwrap();

    world.handle_due_tasks().handle().await.unwrap();
    world.handle_due_tasks().handle().await.unwrap();
    let waiting = read::show_install(&world.versions(), &globex(), world.now()).await.unwrap();
    minutes(&mut world, 4).await;
    let early = version(&world).await;
    minutes(&mut world, 3).await;
    world.settle().await;
    let after = read::show_install(&world.versions(), &globex(), world.now()).await.unwrap();

    let [why] = waiting.problems.try_into().unwrap();
    assert!(
        why.starts_with(
            "release `two` of channel `stable` is not deployed yet; the deploy is tried again: install `globex` is"
        ),
        "{why}"
    );
    assert_eq!((early, version(&world).await, after.problems), (1, 2, Vec::<String>::new()));
}

#[tokio::test]
async fn an_install_that_stays_refused_is_tried_at_growing_pauses() {
    let world = with_channel().await;
    let unpaid = ReasonRequest { reason: "unpaid".to_owned() };
    world.disable_install().disable(&globex(), &unpaid).await.unwrap();
    move_to(&world, "two").await.unwrap();

    let mut tries = Vec::new();
    for minute in 0..200_u64 {
        let before = due(&world).await;
        world.handle_due_tasks().handle().await.unwrap();
        if due(&world).await != before {
            tries.push(minute);
        }
        world.memory.advance_secs(60);
    }

    // The first call stores the task that the second one tries.
    assert_eq!(tries, [0, 1, 6, 16, 36, 76, 136, 196]);
}

/// A table whose list of tasks is read before everything else.
struct Late {
    memory: Arc<Memory>,
    tasks: Vec<Row>,
}

#[async_trait::async_trait]
impl Store for Late {
    async fn get(&self, key: &Key) -> Result<Option<Row>, PortError> {
        self.memory.get(key).await
    }

    async fn query(&self, pk: &str, prefix: &str, after: Option<&str>, limit: u32) -> Result<Vec<Row>, PortError> {
        if pk == "due" {
            return Ok(if after.is_none() { self.tasks.clone() } else { Vec::new() });
        }
        self.memory.query(pk, prefix, after, limit).await
    }

    async fn commit(&self, writes: Vec<Write>) -> Result<Committed, PortError> {
        self.memory.commit(writes).await
    }
}

#[tokio::test]
async fn an_install_that_stays_refused_has_one_task_when_two_calls_handle_it() {
    let world = with_channel().await;
    let unpaid = ReasonRequest { reason: "unpaid".to_owned() };
    world.disable_install().disable(&globex(), &unpaid).await.unwrap();
    move_to(&world, "two").await.unwrap();
    world.handle_due_tasks().handle().await.unwrap();
    // The second call has read the task before the first one handles it, and ends a minute later.
    let late = Arc::new(Late {
        memory: Arc::clone(&world.memory),
        tasks: world.memory.query("due", "", None, 100).await.unwrap(),
    });
    let second = HandleDueTasks { store: late, ..world.handle_due_tasks() };

    world.handle_due_tasks().handle().await.unwrap();
    world.memory.advance_secs(60);
    second.handle().await.unwrap();

    assert_eq!(due(&world).await.len(), 1, "{:?}", due(&world).await);
}

#[tokio::test]
async fn an_install_that_stays_refused_has_one_task_however_often_the_channel_moves() {
    let mut world = with_channel().await;
    let unpaid = ReasonRequest { reason: "unpaid".to_owned() };
    world.disable_install().disable(&globex(), &unpaid).await.unwrap();

    for release in ["two", "one", "three", "two"] {
        move_to(&world, release).await.unwrap();
        minutes(&mut world, 7).await;
    }
    minutes(&mut world, 70).await;
    let waiting = due(&world).await;
    world.enable_install().enable(&globex()).await.unwrap();
    minutes(&mut world, 70).await;
    world.settle().await;

    assert_eq!(waiting.len(), 1, "{waiting:?}");
    assert_eq!((deploys(&world).len(), version(&world).await), (1, 2));
}

#[tokio::test]
async fn fifty_installs_start_each_minute_and_a_call_continues_behind_the_last_one() {
    let world = with_channel().await;
    followers(&world, 1100).await;
    move_to(&world, "two").await.unwrap();
    let first = world.now().as_millis() / 60_000;

    world.handle_due_tasks().handle().await.unwrap();

    let mut each: BTreeMap<u64, usize> = BTreeMap::new();
    let mut more = Vec::new();
    for one in due(&world).await {
        match one.what {
            DueWhat::Follow { .. } => *each.entry(one.minute - first).or_default() += 1,
            DueWhat::Channel { after, .. } => more.push((one.minute - first, after)),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(each, (0..20).map(|minute| (minute, 50)).collect());
    // `globex` is the first one in the list.
    assert_eq!(more, [(20, Some("i00998".parse::<InstallId>().unwrap()))]);
}

#[tokio::test]
async fn a_later_move_makes_the_task_of_an_earlier_one_void() {
    let world = with_channel().await;
    move_to(&world, "two").await.unwrap();
    let first = due(&world).await;
    move_to(&world, "one").await.unwrap();
    let _ = world.memory.commit(vec![put(&first[0], Expect::Any).unwrap()]).await.unwrap();

    world.handle_due_tasks().handle().await.unwrap();

    assert!(due(&world).await.is_empty(), "{:?}", due(&world).await);
}

#[tokio::test]
async fn an_install_that_left_the_channel_is_not_deployed() {
    let mut world = with_channel().await;
    move_to(&world, "two").await.unwrap();
    world.handle_due_tasks().handle().await.unwrap();

    follow(&world, Follows::Latest).await.unwrap();
    minutes(&mut world, 10).await;

    assert!(deploys(&world).is_empty());
    assert!(due(&world).await.is_empty());
    assert_eq!(read::list_channels(&*world.memory, &demo()).await.unwrap()[0].installs, 0);
}

#[tokio::test]
async fn a_deploy_that_failed_is_not_repeated_until_the_channel_moves_on() {
    let mut world = with_channel().await;
    world.runner("globex").behaviours.insert("storage".into(), Behaviour::FailsBefore(u32::MAX));
    move_to(&world, "two").await.unwrap();
    minutes(&mut world, 10).await;
    world.settle().await;
    let failed = deploys(&world).len();
    minutes(&mut world, 100).await;
    world.runner("globex").behaviours.clear();

    let same = deploys(&world).len();
    move_to(&world, "three").await.unwrap();
    minutes(&mut world, 10).await;
    world.settle().await;

    assert_eq!((failed, same, version(&world).await), (1, 1, 3));
}

#[tokio::test]
async fn an_install_goes_back_with_its_channel_while_it_is_still_deployed_forward() {
    let mut world = with_channel().await;
    move_to(&world, "two").await.unwrap();
    for _ in 0..2 {
        world.handle_due_tasks().handle().await.unwrap();
    }

    // The deploy of release `two` has begun, and the install has the version of release `one`.
    assert_eq!((deploys(&world).len(), version(&world).await), (1, 1));
    move_to(&world, "one").await.unwrap();
    minutes(&mut world, 10).await;
    world.settle().await;

    assert_eq!((deploys(&world).len(), version(&world).await), (2, 1));
    assert!(due(&world).await.is_empty());
}

#[tokio::test]
async fn an_install_with_parts_of_a_release_that_failed_goes_back_whole() {
    let mut world = with_channel().await;
    world.runner("globex").behaviours.insert("storage".into(), Behaviour::FailsBefore(u32::MAX));
    move_to(&world, "two").await.unwrap();
    minutes(&mut world, 3).await;
    world.settle().await;
    world.runner("globex").behaviours.clear();

    move_to(&world, "one").await.unwrap();
    minutes(&mut world, 3).await;
    world.settle().await;

    assert_eq!((deploys(&world).len(), version(&world).await), (2, 1));
    let newest = read::list_workflows(&*world.memory, &globex(), None).await.unwrap().items.remove(0);
    assert_eq!((newest.state.as_str(), newest.release), ("succeeded", Some("one".parse().unwrap())));
}

#[tokio::test]
async fn a_release_with_a_revoked_artifact_spreads_to_nobody() {
    let mut world = with_channel().await;
    let two = table::release(&*world.memory, &demo(), &"two".parse().unwrap()).await.unwrap();
    let artifact = two.contents.artifacts[&"storage".parse().unwrap()].clone();
    let because = ReasonRequest { reason: "CVE-2026-1".to_owned() };
    world.revoke_artifact().revoke(&artifact, &because).await.unwrap();

    move_to(&world, "two").await.unwrap();
    minutes(&mut world, 3).await;
    world.settle().await;

    assert!(deploys(&world).is_empty());
    let view = read::show_install(&world.versions(), &globex(), world.now()).await.unwrap();
    assert!(view.problems.iter().any(|why| why.contains("was revoked: CVE-2026-1")), "{:?}", view.problems);
    // The reason is about the channel, and an install that leaves it has none.
    follow(&world, Follows::Latest).await.unwrap();
    let view = read::show_install(&world.versions(), &globex(), world.now()).await.unwrap();
    assert_eq!(view.problems, Vec::<String>::new());
}

#[tokio::test]
async fn what_is_not_there_is_refused_and_so_is_one_channel_too_many() {
    let world = with_channel().await;
    let to = |release: &str| MoveChannelRequest { release: release.parse().unwrap(), again_after: None };
    for number in 1..MAX_CHANNELS {
        let name = format!("c{number}").parse().unwrap();
        world.move_channel().move_channel(&demo(), &name, &to("one"), member()).await.unwrap();
    }

    let mover = world.move_channel();
    let release = mover.move_channel(&demo(), &stable(), &to("nine"), member()).await.unwrap_err();
    let app = mover.move_channel(&"other".parse().unwrap(), &stable(), &to("one"), member()).await.unwrap_err();
    let more = mover.move_channel(&demo(), &"more".parse().unwrap(), &to("one"), member()).await.unwrap_err();

    assert_eq!((release.kind, app.kind, more.kind), (Kind::NotFound, Kind::NotFound, Kind::Conflict));
    assert!(more.message.starts_with("app `demo` has 20 channels, which is the maximum; move one that"), "{more}");
    assert_eq!(read::list_channels(&*world.memory, &demo()).await.unwrap().len(), MAX_CHANNELS);
}

#[tokio::test]
async fn the_channels_of_an_app_that_does_not_exist_are_not_an_empty_list() {
    let world = World::with_app().await;

    let none = read::list_channels(&*world.memory, &demo()).await.unwrap();
    let absent = read::list_channels(&*world.memory, &"dem".parse().unwrap()).await.unwrap_err();

    assert_eq!((none.len(), absent.kind), (0, Kind::NotFound));
}

#[tokio::test]
async fn a_release_of_the_version_that_runs_already_starts_nothing() {
    let mut world = with_channel().await;
    release(&world, "one-again", Some(app::document().digest().unwrap())).await;

    move_to(&world, "one-again").await.unwrap();
    minutes(&mut world, 3).await;

    assert!(deploys(&world).is_empty());
    let again = DeployComponentsRequest { all: true, ..DeployComponentsRequest::default() };
    assert!(world.deploy(&again, "all").await.is_ok());
}
