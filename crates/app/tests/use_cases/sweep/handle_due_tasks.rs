//! Actions with a cron schedule: each minute's run once, late ones in bounds, none beside the one before it.

use std::sync::Arc;

use freehold_app::ports::{Committed, Expect, Key, PortError, Row, Store as _, Write};
use freehold_app::read;
use freehold_app::sweep::handle_due_tasks::{HandleDueTasks, Handled};
use freehold_app::table::{self, Due, DueWhat, Record as _, put};
use freehold_domain::workflow::WorkflowKind;
use freehold_protocol::Timestamp;
use freehold_protocol::api::{DeployComponentsRequest, ReasonRequest};
use freehold_protocol::app_version::AppVersion;

use crate::support::doubles::Slow;
use crate::support::runner::Behaviour;
use crate::support::{World, app, globex};

async fn deploy(world: &mut World, version: &AppVersion, cause: &str) {
    world.sync(version).await;
    let all = DeployComponentsRequest { all: true, ..DeployComponentsRequest::default() };
    world.deploy(&all, cause).await.unwrap();
    world.settle().await;
}

async fn start(world: &World) -> Handled {
    world.handle_due_tasks().handle().await.unwrap()
}

/// Returns how many runs of actions were started.
fn runs(world: &World) -> usize {
    let started = world.memory.started.lock().unwrap();
    let ids: std::collections::BTreeSet<_> =
        started.iter().filter(|(kind, _)| *kind == WorkflowKind::RunAction).map(|(_, id)| id.clone()).collect();
    ids.len()
}

/// Returns every row of what is due, whenever that is, without the tasks that see whether a runner is away.
async fn noted(world: &World) -> Vec<Due> {
    let later = Timestamp::from_millis(u64::MAX / 2);
    let due = table::due(&*world.memory, later, 100).await.unwrap().into_iter().map(|stored| stored.value);
    due.filter(|due| due.what != DueWhat::RunnerAway).collect()
}

#[tokio::test]
async fn each_minute_that_is_due_starts_one_run() {
    let mut world = World::with_schedule().await;

    let mut counts = Vec::new();
    for _ in 0..11 {
        counts.push(start(&world).await.started);
        start(&world).await;
        world.run().await;
        world.memory.advance_secs(60);
    }

    assert_eq!(counts, [1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1]);
    assert_eq!(runs(&world), 3);
    assert_eq!(noted(&world).await.len(), 1);
}

#[tokio::test]
async fn a_run_whose_next_minute_was_not_noted_is_not_started_again() {
    let mut world = World::with_schedule().await;
    let before = noted(&world).await;
    start(&world).await;
    world.settle().await;

    // As after a crash between the start of the run and the note of the next one.
    let lost = put(&before[0], Expect::Any).unwrap();
    let _ = world.memory.commit(vec![lost]).await.unwrap();
    start(&world).await;
    world.settle().await;

    assert_eq!(runs(&world), 1);
    assert_eq!(noted(&world).await.len(), 1);
}

#[tokio::test]
async fn of_the_minutes_that_were_missed_one_is_run_and_none_that_is_an_hour_old() {
    let mut world = World::with_schedule().await;
    world.memory.advance_secs(37 * 60);

    let soon = start(&world).await;
    world.settle().await;
    world.memory.advance_secs(3 * 3600);
    let late = start(&world).await;

    assert_eq!((soon.started, late), (1, Handled { skipped: 1, ..Handled::default() }));
    assert_eq!(runs(&world), 1);
}

#[tokio::test]
async fn no_run_starts_beside_the_one_before_it() {
    let mut world = World::with_schedule().await;
    world.runner("globex").behaviours.insert("action:check".into(), Behaviour::Hangs);
    let first = start(&world).await;
    world.run().await;

    world.memory.advance_secs(300);
    let second = start(&world).await;

    assert_eq!((first.started, second), (1, Handled { skipped: 1, ..Handled::default() }));
}

#[tokio::test]
async fn a_disabled_install_runs_nothing_and_resumes_when_it_is_enabled() {
    let mut world = World::with_schedule().await;
    world.disable_install().disable(&globex(), &ReasonRequest { reason: "unpaid".into() }).await.unwrap();
    let disabled = start(&world).await;
    world.enable_install().enable(&globex()).await.unwrap();

    world.memory.advance_secs(300);
    let enabled = start(&world).await;
    world.settle().await;

    assert_eq!((disabled.skipped, enabled.started), (1, 1));
    assert_eq!(runs(&world), 1);
}

#[tokio::test]
async fn a_run_that_the_install_refuses_is_a_problem_of_the_install_until_the_next_one_starts() {
    let mut world = World::with_schedule().await;
    world.disable_install().disable(&globex(), &ReasonRequest { reason: "unpaid".into() }).await.unwrap();
    let problems =
        async |world: &World| read::show_install(&world.versions(), &globex(), world.now()).await.unwrap().problems;
    let before = problems(&world).await;

    let mut seen = Vec::new();
    for _ in 0..2 {
        start(&world).await;
        seen.push(problems(&world).await);
        world.memory.advance_secs(300);
    }
    world.enable_install().enable(&globex()).await.unwrap();
    start(&world).await;
    world.settle().await;

    let [first, second] = &seen[..] else { panic!("{seen:?}") };
    assert!(first[0].starts_with("the run of action `check` that was due at 20"), "{first:?}");
    assert!(first[0].contains("unpaid") && second.len() == 1 && first != second, "{first:?} {second:?}");
    assert_eq!((before, problems(&world).await), (vec![], vec![]));
}

#[tokio::test]
async fn a_refused_run_is_not_a_problem_after_the_next_start_also_when_its_next_minute_was_not_noted() {
    let mut world = World::with_schedule().await;
    let before = noted(&world).await;
    world.disable_install().disable(&globex(), &ReasonRequest { reason: "unpaid".into() }).await.unwrap();
    start(&world).await;
    world.enable_install().enable(&globex()).await.unwrap();

    // As after a crash between the note of the reason and the note of the next minute.
    let next = noted(&world).await.iter().map(|due| Write::Delete { key: due.key() }).collect();
    let _ = world.memory.commit(next).await.unwrap();
    let _ = world.memory.commit(vec![put(&before[0], Expect::Any).unwrap()]).await.unwrap();
    let again = start(&world).await;
    world.settle().await;

    assert_eq!(again.started, 1);
    assert_eq!(read::show_install(&world.versions(), &globex(), world.now()).await.unwrap().problems, [""; 0]);
}

#[tokio::test]
async fn a_version_without_the_schedule_ends_it() {
    let mut world = World::with_schedule().await;
    deploy(&mut world, &app::document(), "deploy-2").await;

    let counts = start(&world).await;

    assert_eq!((counts, noted(&world).await.len()), (Handled::default(), 0));
}

#[tokio::test]
async fn what_could_not_be_read_is_started_a_minute_later_under_the_minute_that_was_due() {
    let mut world = World::with_schedule().await;
    world.memory.faults.set(|what| (what == "start").then_some(freehold_app::testing::Fault::Before));
    let failed = start(&world).await;
    world.memory.faults.set(|_| None);
    world.memory.advance_secs(60);

    let started = start(&world).await;
    world.settle().await;

    assert_eq!((failed.failed, started.started, runs(&world)), (1, 1, 1));
}

#[tokio::test]
async fn a_task_of_a_later_release_does_not_stop_the_others() {
    let world = World::with_schedule().await;
    let mut key = noted(&world).await.first().unwrap().key();
    key.sk = format!("{:010}#globex#later", 0);
    let body = serde_json::json!({ "minute": 0, "install": "globex", "due": "later" }).to_string();
    let later = Write::Put { key, body, expect: Expect::Absent, expires: None };
    let _ = world.memory.commit(vec![later]).await.unwrap();

    assert_eq!(start(&world).await.started, 1);
}

#[tokio::test]
async fn a_call_ends_after_its_time_and_the_next_one_handles_the_rest() {
    let world = World::with_install().await;
    let names = (0..20).map(|number| format!("c{number:02}").parse().unwrap());
    for name in names {
        let due = Due::at(world.now(), name, DueWhat::Drift);
        let _ = world.memory.commit(vec![put(&due, Expect::Absent).unwrap()]).await.unwrap();
    }
    let slow = Arc::new(Slow::new(&world.memory, "install#"));

    let mut left = Vec::new();
    for _ in 0..4 {
        let call = HandleDueTasks { store: slow.clone(), ..world.handle_due_tasks() };
        let counts = call.handle().await.unwrap();
        left.push((counts.left as usize, noted(&world).await.len()));
    }

    // A read takes two seconds, and a call has fifteen.
    assert_eq!(left, [(12, 12), (4, 4), (0, 0), (0, 0)]);
}

/// A table in which a read of an install waits until as many others wait.
struct Meeting {
    memory: Arc<freehold_app::testing::Memory>,
    all: tokio::sync::Barrier,
}

#[async_trait::async_trait]
impl freehold_app::ports::Store for Meeting {
    async fn get(&self, key: &Key) -> Result<Option<Row>, PortError> {
        if key.pk.starts_with("install#c") && key.sk == "state" {
            self.all.wait().await;
        }
        self.memory.get(key).await
    }

    async fn query(&self, pk: &str, prefix: &str, after: Option<&str>, limit: u32) -> Result<Vec<Row>, PortError> {
        self.memory.query(pk, prefix, after, limit).await
    }

    async fn commit(&self, writes: Vec<Write>) -> Result<Committed, PortError> {
        self.memory.commit(writes).await
    }
}

#[tokio::test]
async fn one_install_does_not_wait_for_another() {
    let world = World::with_install().await;
    for number in 0..16 {
        store(&world, &Due::at(world.now(), format!("c{number:02}").parse().unwrap(), DueWhat::Drift)).await;
    }
    let meeting = Meeting { memory: Arc::clone(&world.memory), all: tokio::sync::Barrier::new(8) };
    let call = HandleDueTasks { store: Arc::new(meeting), ..world.handle_due_tasks() };

    let counts = tokio::time::timeout(std::time::Duration::from_secs(60), call.handle()).await;

    assert_eq!(counts.unwrap().unwrap(), Handled::default());
    assert!(noted(&world).await.is_empty());
}

/// Returns a notification as a task that is due now.
fn telling(world: &World) -> Due {
    let notification = freehold_domain::notification::test(None, None, "key", world.now());
    Due::at(world.now(), globex(), DueWhat::Notify { notification: Box::new(notification) })
}

async fn store(world: &World, due: &Due) {
    let _ = world.memory.commit(vec![put(due, Expect::Absent).unwrap()]).await.unwrap();
}

#[tokio::test]
async fn deploys_that_stay_open_do_not_keep_other_tasks_from_being_read() {
    let mut world = World::with_install().await;
    world.runner("globex").behaviours.insert("storage".into(), Behaviour::Hangs);
    let open = world.deploy(&crate::support::with_input("days", 9), "deploy-9").await.unwrap();
    world.run().await;
    for number in 0..1200 {
        let name = format!("c{number:04}").parse().unwrap();
        store(&world, &Due::at(world.now(), name, DueWhat::Schedules { workflow: open.clone() })).await;
    }
    store(&world, &telling(&world)).await;

    // Each minute reads 500 tasks.
    for _ in 0..3 {
        start(&world).await;
    }

    assert_eq!(world.memory.notifications.lock().unwrap().len(), 1);
    // Those that are open are looked at again after a minute, and after at most a quarter of an hour.
    world.memory.advance_secs(2 * 3600);
    start(&world).await;
    let now = world.now().as_secs() / 60;
    let all = table::due(&*world.memory, Timestamp::from_millis(u64::MAX / 2), 5000).await.unwrap();
    let looked = all.iter().filter(|row| matches!(row.value.what, DueWhat::Schedules { .. }) && row.value.minute > now);
    let pauses: std::collections::BTreeSet<u64> = looked.map(|row| row.value.minute - now).collect();
    assert_eq!(pauses, [15].into());
}

#[tokio::test]
async fn a_task_that_nobody_can_handle_is_held_for_ten_minutes_and_one_beside_it_is_handled() {
    let mut world = World::with_schedule().await;
    // A version that cannot be read.
    let row = |row: &freehold_app::ports::Row| row.key.sk.starts_with("version#");
    for broken in world.memory.rows().into_iter().filter(row) {
        let write = Write::Put { key: broken.key, body: "{}".to_owned(), expect: Expect::Any, expires: None };
        let _ = world.memory.commit(vec![write]).await.unwrap();
    }
    let due = noted(&world).await;
    store(&world, &telling(&world)).await;

    let first = start(&world).await;
    let held = noted(&world).await;
    let second = start(&world).await;
    world.memory.advance_secs(600);
    let third = start(&world).await;

    assert_eq!(world.memory.notifications.lock().unwrap().len(), 1);
    assert_eq!((first.failed, second.failed, third.failed), (1, 0, 1), "{due:?}");
    assert_eq!(held.len(), 1);
    assert_eq!((held[0].minute, &held[0].what), (due[0].minute, &due[0].what));
    world.settle().await;
}

#[tokio::test]
async fn a_topic_that_takes_nothing_is_asked_once_in_a_call() {
    let world = World::with_install().await;
    for key in ["a", "b", "c"] {
        let notification = freehold_domain::notification::test(None, None, key, world.now());
        store(&world, &Due::at(world.now(), globex(), DueWhat::Notify { notification: Box::new(notification) })).await;
    }
    let asked = Arc::new(std::sync::Mutex::new(0));
    let counted = Arc::clone(&asked);
    world.memory.faults.set(move |what| {
        *counted.lock().unwrap() += u32::from(what == "publish");
        (what == "publish").then_some(freehold_app::testing::Fault::Before)
    });

    start(&world).await;
    world.memory.faults.set(|_| None);
    world.memory.advance_secs(600);
    start(&world).await;

    assert_eq!(*asked.lock().unwrap(), 1);
    assert_eq!(world.memory.notifications.lock().unwrap().len(), 3);
}
