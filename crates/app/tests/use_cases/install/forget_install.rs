//! Forgetting: it is refused while something is there, nothing of the install is left afterwards, and late messages do
//! nothing.

use std::collections::{BTreeMap, BTreeSet};

use freehold_app::messages::{DispatchMessage, GrantMessage};
use freehold_app::ports::{DeadLetters as _, Expect, LOOK_HIDES_SECS, Row, Store as _};
use freehold_app::table::{Forgetting, WriterId, put};
use freehold_app::workflow::accept_report::{Accepted, Arrival};
use freehold_app::workflow::admit_report::{AdmitReport, Admitted};
use freehold_app::{Kind, read};
use freehold_protocol::api::{DeployComponentsRequest, ForgetInstallRequest, TeardownInstallRequest};
use freehold_protocol::report::{AttemptEvent, Away, AwayReason, Fence, ReportBody};
use freehold_protocol::{AccountId, InstallId, JobId, WorkflowId};

use crate::support::doubles::queue_url;
use crate::support::grants::grant_request;
use crate::support::runner::{Behaviour, Runner};
use crate::support::walk::{At, Mail};
use crate::support::{World, app, globex, member, with_input};

const FIRST: Fence = Fence { dispatch: 1, receive: 1 };
const TWO_HOURS: u64 = 2 * 3600;

fn asked() -> ForgetInstallRequest {
    ForgetInstallRequest::default()
}

fn gone() -> ForgetInstallRequest {
    ForgetInstallRequest { customer_gone: true }
}

/// Everything that a tenant has: rows, app versions, queues, who may report, messages, dead letters.
#[derive(Debug, PartialEq)]
struct Tenant {
    rows: Vec<Row>,
    swept: Vec<String>,
    shards: Vec<String>,
    versions: usize,
    queues: BTreeMap<InstallId, AccountId>,
    reporters: BTreeSet<AccountId>,
    orders: Vec<(String, String, String, String)>,
    letters: Vec<String>,
}

/// Returns everything but two kinds of rows that name no install: the texts that orders of an app have in common, and the
/// number of installs that are gone.
fn everything(world: &World) -> Tenant {
    let shared = |row: &Row| row.key.pk.starts_with("text#") || row.key.pk == "gone";
    let (shared, rows): (Vec<Row>, Vec<Row>) = world.memory.rows().into_iter().partition(shared);
    assert!(shared.iter().all(|row| !format!("{row:?}").contains("globex")), "{shared:?}");
    // A sweep moves the next sweep of an open workflow, and removes that of an ended one.
    let is_open = |row: &Row| rows.iter().any(|open| open.key.pk == "open" && row.key.sk.ends_with(&open.key.sk));
    let moves = |row: &Row| ["next-sweep", "open"].contains(&row.key.pk.as_str());
    let swept = rows.iter().filter(|row| moves(row) && is_open(row)).map(|row| {
        let workflow = row.key.sk.rsplit('#').next().unwrap();
        format!("{} {workflow}", row.key.pk)
    });
    let swept = swept.collect();
    let rows: Vec<Row> = rows.iter().filter(|row| !moves(row)).cloned().collect();
    // The row of a reports queue stays without installs.
    let (queues, rows): (Vec<Row>, Vec<Row>) = rows.into_iter().partition(|row| row.key.pk == "reports");
    let shards = queues.into_iter().map(|row| row.body).filter(|body| !body.contains("\"installs\":{}")).collect();
    Tenant {
        rows,
        swept,
        shards,
        versions: world.memory.versions.lock().unwrap().len(),
        queues: world.queues.created.lock().unwrap().clone(),
        reporters: world.queues.reporters.lock().unwrap().values().flatten().cloned().collect(),
        orders: world.memory.orders.lock().unwrap().clone(),
        letters: world.letters.iter().flat_map(|letters| letters.bodies()).collect(),
    }
}

/// Gives `globex` a life with everything that leaves rows: deploys, actions by hand and by cron, used and refused grants,
/// refused reports, a failed job, and dead letters.
async fn live(world: &mut World) {
    world.create().await;
    world.run().await;
    world.hello("globex");
    world.settle().await;
    world.deploy(&DeployComponentsRequest { all: true, ..Default::default() }, "deploy-1").await.unwrap();
    world.settle().await;
    world.runner("globex").behaviours.insert("storage".into(), Behaviour::Hangs);
    let workflow = world.deploy(&with_input("days", 8), "deploy-2").await.unwrap();
    world.run().await;
    let job = world.workflow(&workflow).await.active_jobs().next().unwrap().clone();
    refuse_some(world, &job).await;
    send_many(world).await;
    world.cancel_workflow().cancel(&workflow, &Default::default(), member()).await.unwrap();
    world.settle().await;
    world.runner("globex").behaviours.clear();
    world.handle_due_tasks().handle().await.unwrap();
    world.memory.advance_secs(300);
    world.handle_due_tasks().handle().await.unwrap();
    world.settle().await;
    add_dead_letters(world, &job);
}

/// Leaves a refused grant and refused reports: with a stale fence, and of a runner that was replaced.
async fn refuse_some(world: &World, job: &JobId) {
    world.grant_artifact().answer(&grant_of(job)).await.unwrap();
    let now = world.now();
    let stale = world.runners["globex"].says(job, Fence { dispatch: 1, receive: 0 }, 1, AttemptEvent::Started, now);
    let answer = world.accept_report().accept(&stale, now).await.unwrap();
    assert!(matches!(answer, Accepted::Refused(_)), "{answer:?}");
}

/// Leaves the role of the runner, and its budget of reports.
async fn send_many(world: &World) {
    let (now, sender) = (world.now(), Some("AROAGLOBEX".to_owned()));
    let hello = world.runners["globex"].hello(now);
    let arrival = Arrival { sender, ..Arrival::from(now) };
    assert_eq!(world.accept_report().accept(&hello, arrival).await.unwrap(), Accepted::Taken);
    let admit = AdmitReport::new(world.memory.clone(), world.memory.clone(), WriterId::of(1));
    for _ in 0..100 {
        assert_eq!(admit.admit(Some("AROAGLOBEX"), false).await.unwrap(), Admitted::Handle(Some(globex())));
    }
}

/// A request for a grant that the job does not have.
fn grant_of(job: &JobId) -> GrantMessage {
    let artifact = freehold_protocol::Digest::of(b"another artifact");
    grant_request(job, &artifact, vec![artifact.clone()], 9)
}

fn order_of(job: &JobId) -> DispatchMessage {
    DispatchMessage::Order { job: job.clone(), dispatch: 1 }
}

fn add_dead_letters(world: &World, job: &JobId) {
    let now = world.now();
    world.letters[0].add_refused(&world.runners["globex"].hello(now));
    world.letters[0].add_refused(&serde_json::to_string(&order_of(job)).unwrap());
    world.letters[0].add_refused(&serde_json::to_string(&grant_of(job)).unwrap());
    let orders = world.memory.orders.lock().unwrap().clone();
    let globex = orders.iter().filter(|(queue, ..)| queue.contains("globex"));
    globex.for_each(|(.., body)| world.letters[1].add_refused(body));
}

/// Returns a tenant with another install, whose messages are dead letters too, and the same tenant after the life and the
/// teardown of `globex`.
async fn torn_down() -> (Tenant, World) {
    let mut world = World::with_app().await;
    world.sync(&app::with_schedule()).await;
    world.build("build-2").await;
    world.settle().await;
    world.create_install().create(&world.creation("initech"), member()).await.unwrap();
    world.run().await;
    world.letters[0].add_refused(&world.runners["build"].hello(world.now()));
    world.letters[0].add_refused("not a message of Freehold");
    let before = everything(&world);
    live(&mut world).await;
    world.teardown(&TeardownInstallRequest::default(), "teardown-1").await.unwrap();
    world.settle().await;
    world.memory.advance_secs(TWO_HOURS);
    assert_eq!(world.refusals().len(), 2, "{:?}", world.refusals());
    (before, world)
}

#[tokio::test]
async fn nothing_of_a_forgotten_install_is_left_in_the_tenant() {
    let (before, mut world) = torn_down().await;
    assert!(everything(&world).rows.len() > before.rows.len() + 30);

    world.forget_install().forget(&globex(), &asked()).await.unwrap();
    world.forgotten().await;

    let after = everything(&world);
    let left: Vec<&Row> = after.rows.iter().filter(|row| !before.rows.contains(row)).collect();
    assert!(left.is_empty(), "{left:#?}");
    assert_eq!(after, before);
    assert_eq!(read::show_install(&world.versions(), &globex(), world.now()).await.unwrap_err().kind, Kind::NotFound);
}

#[tokio::test]
async fn rows_stay_until_no_function_can_write_one_that_it_decided_on_before() {
    let (_, mut world) = torn_down().await;

    world.forget_install().forget(&globex(), &asked()).await.unwrap();
    let first = world.remove_forgotten().remove().await.unwrap();
    let rows = world.memory.rows().len();
    let view = read::show_install(&world.versions(), &globex(), world.now()).await.unwrap();
    world.memory.advance_secs(90);
    let second = world.remove_forgotten().remove().await.unwrap();
    let third = world.remove_forgotten().remove().await.unwrap();

    assert_eq!((first.forgotten, first.pending), (0, 1));
    assert!(!world.queues.created.lock().unwrap().contains_key(&globex()));
    assert_eq!(view.state, "forgetting");
    assert_eq!((second.forgotten, second.pending, third), (1, 0, Default::default()));
    assert!(world.memory.rows().len() < rows);
    world.run().await;
}

#[tokio::test]
async fn a_sweep_that_was_down_for_long_closes_the_install_before_it_removes_rows() {
    let (_, world) = torn_down().await;
    world.forget_install().forget(&globex(), &asked()).await.unwrap();
    world.memory.advance_secs(TWO_HOURS);
    let rows = world.memory.rows().len();

    let mut forgotten = Vec::new();
    for secs in [0, 89, 1] {
        world.memory.advance_secs(secs);
        forgotten.push((world.remove_forgotten().remove().await.unwrap().forgotten, world.memory.rows().len() < rows));
    }

    assert_eq!(forgotten, [(0, false), (0, false), (1, true)]);
}

#[tokio::test]
async fn it_is_refused_while_something_is_there_and_says_what() {
    let mut world = World::with_install().await;
    world.runner("globex").behaviours.insert("storage".into(), Behaviour::Hangs);
    let forget = async |world: &World, request| world.forget_install().forget(&globex(), &request).await.unwrap_err();

    let deployed = forget(&world, asked()).await;
    let workflow = world.deploy(&with_input("days", 8), "deploy-1").await.unwrap();
    world.run().await;
    let running = forget(&world, gone()).await;
    world.runner("globex").behaviours.clear();
    world.cancel_workflow().cancel(&workflow, &Default::default(), member()).await.unwrap();
    world.settle().await;
    world.teardown(&TeardownInstallRequest::default(), "teardown-1").await.unwrap();
    world.settle().await;
    let heard = forget(&world, asked()).await;
    let builds = world.forget_install().forget(&"build".parse().unwrap(), &gone()).await.unwrap_err();
    let unknown = world.forget_install().forget(&"initech".parse().unwrap(), &gone()).await.unwrap_err();

    assert!(deployed.message.contains("are deployed there; run `freehold teardown globex` first"), "{deployed}");
    assert!(running.message.contains(&format!("while workflow `{workflow}` runs")), "{running}");
    assert!(heard.message.contains("its runner reported"), "{heard}");
    assert_eq!([builds.kind, unknown.kind], [Kind::Invalid, Kind::NotFound]);
    assert!(world.memory.rows().iter().all(|row| row.key.pk != "forgetting"));
}

#[tokio::test]
async fn nothing_starts_in_an_install_that_is_being_forgotten_and_a_repeated_request_changes_nothing() {
    let (_, world) = torn_down().await;
    let first = world.forget_install().forget(&globex(), &asked()).await.unwrap();
    let rows = world.memory.rows();

    world.memory.advance_secs(30);
    let again = world.forget_install().forget(&globex(), &asked()).await.unwrap();
    let deploy = world.deploy(&with_input("days", 9), "deploy-9").await.unwrap_err();
    let create = world.create_install().create(&world.creation("globex"), member()).await.unwrap_err();
    let delete = world.delete_install().delete(&globex(), member()).await.unwrap_err();

    assert_eq!(again, first);
    for error in [&deploy, &create, &delete] {
        assert_eq!(
            error.message,
            "install `globex` is being forgotten; wait some minutes, then its name is free again"
        );
    }
    assert_eq!(world.memory.rows(), rows);
}

#[tokio::test]
async fn late_messages_of_a_forgotten_install_do_nothing_and_leave_no_row() {
    let (_, mut world) = torn_down().await;
    let job: JobId = {
        let entry = |row: Row| serde_json::from_str::<freehold_domain::Job>(&row.body).ok();
        let mut jobs = world.memory.rows().into_iter().filter(|row| row.key.pk.starts_with("job#")).filter_map(entry);
        jobs.find(|job| job.install == globex()).unwrap().id
    };
    let now = world.now();
    let globex_runner = &world.runners["globex"];
    let late = [
        Mail::Report(globex_runner.hello(now), now),
        Mail::Report(globex_runner.says(&job, FIRST, 7, AttemptEvent::Started, now), now),
        Mail::Dispatch(order_of(&job)),
        Mail::Dispatch(DispatchMessage::Cancel { job: job.clone(), dispatch: 1, receive: None, runner: None }),
        Mail::Grant(grant_of(&job)),
    ];
    world.forget_install().forget(&globex(), &asked()).await.unwrap();

    for _ in 0..2 {
        let before = everything(&world);
        late.clone().into_iter().for_each(|mail| world.post(mail));
        world.run().await;
        let _ = world.handle_due_tasks().handle().await.unwrap();
        let missing = WorkflowId::derive("globex", "forgotten");
        let late = world.plan_workflow().run(&missing, 0, "token".into()).await.unwrap_err();
        assert_eq!(
            (late.kind, world.finish_workflow().finish(&missing, 0, None).await.unwrap().state),
            (Kind::NotFound, "cancelled")
        );
        let after = everything(&world);
        assert!(after.rows.iter().all(|row| before.rows.contains(row)), "{:#?}", after.rows);
        assert_eq!(after.orders, before.orders);
        assert!(world.dead.is_empty(), "{:?}", world.dead);
        // First while it is being forgotten, then when nothing is left.
        world.forgotten().await;
    }
}

#[tokio::test]
async fn what_a_customer_who_is_gone_left_running_is_ended_and_forgotten() {
    let mut world = World::with_app().await;
    let before = everything(&world);
    live(&mut world).await;
    world.runner("globex").behaviours.insert("storage".into(), Behaviour::Ignores);
    let workflow = world.deploy(&with_input("days", 11), "deploy-3").await.unwrap();
    world.run().await;
    world.memory.advance_secs(TWO_HOURS);

    let refused = world.forget_install().forget(&globex(), &asked()).await.unwrap_err();
    world.forget_install().forget(&globex(), &gone()).await.unwrap();
    world.forgotten().await;

    assert_eq!(refused.kind, Kind::Conflict);
    assert!(matches!(world.machines[&workflow].at, At::Ended(_)), "{:?}", world.machines[&workflow].at);
    assert_eq!(everything(&world), before);
}

#[tokio::test]
async fn a_deploy_that_waits_for_a_runner_whose_stack_was_deleted_does_not_hold_the_install_of_a_customer_who_is_gone()
{
    let mut world = World::with_app().await;
    let before = everything(&world);
    live(&mut world).await;
    world.runner("globex").behaviours.insert("storage".into(), Behaviour::Ignores);
    let workflow = world.deploy(&with_input("days", 11), "deploy-3").await.unwrap();
    world.run().await;
    let away = Away { reason: AwayReason::StackDeleted, detail: "the stack is being deleted".into() };
    let runner = &world.runners["globex"];
    let report = runner.sign(&runner.report(ReportBody::Away(away), world.now()));
    world.accept_report().accept(&report, world.now()).await.unwrap();

    world.forget_install().forget(&globex(), &gone()).await.unwrap();
    world.forgotten().await;

    assert!(matches!(world.machines[&workflow].at, At::Ended(_)), "{:?}", world.machines[&workflow].at);
    assert_eq!(everything(&world), before);
}

#[tokio::test]
async fn the_name_of_a_forgotten_install_is_given_again_and_its_provisioning_is_another_execution() {
    let mut world = World::with_app().await;
    let first = world.create().await;
    world.run().await;
    world.forget_install().forget(&globex(), &asked()).await.unwrap();
    world.forgotten().await;
    world.forget_orders();

    let second = world.create().await;
    world.run().await;
    world.hello("globex");
    world.settle().await;

    assert_ne!(first, second, "Step Functions takes no name twice");
    let install = freehold_app::table::install(&*world.memory, &globex()).await.unwrap().value;
    assert!(install.next_serial > 1 << 32, "a machine that served the first install takes orders of the second one");
    assert!(matches!(world.machines[&first].at, At::Ended(_)), "nothing waits for the runner any more");
    assert_eq!(world.machines[&second].at, At::Ended("succeeded"));
}

#[tokio::test]
async fn late_reports_of_a_forgotten_install_are_dropped_when_another_install_has_its_name() {
    let (_, mut world) = torn_down().await;
    let now = world.now();
    let first = &world.runners["globex"];
    let job = JobId::derive(&WorkflowId::derive("globex", "deploy-1"), "storage");
    let late = [first.hello(now), first.says(&job, FIRST, 7, AttemptEvent::Started, now)];
    world.forget_install().forget(&globex(), &asked()).await.unwrap();
    world.forgotten().await;
    world.forget_orders();
    world.create().await;
    world.run().await;
    let before = everything(&world);

    for body in &late {
        let answer = world.accept_report().accept(body, now).await.unwrap();
        assert!(matches!(&answer, Accepted::Refused(why) if why.contains("had the same name")), "{answer:?}");
    }
    assert_eq!(everything(&world), before);
    let later = world.accept_report().accept(&late[1], world.now()).await.unwrap_err();
    assert_eq!(later.kind, Kind::Conflict, "a report that came after the new install may be waiting for its hello");
    world.hello("globex");
    world.settle().await;
}

#[tokio::test]
async fn a_mark_of_an_earlier_install_removes_nothing_of_its_namesake() {
    let mut world = World::with_install().await;
    let mark = Forgetting { install: globex(), since: world.now(), closed_at: None };
    world.memory.advance_secs(TWO_HOURS);
    let _ = world.memory.commit(vec![put(&mark, Expect::Absent).unwrap()]).await.unwrap();
    let before = everything(&world);

    world.remove_forgotten().remove().await.unwrap();

    assert_eq!(everything(&world), before);
    world.hello("globex");
    world.settle().await;
}

#[tokio::test]
async fn two_installs_that_are_forgotten_at_once_leave_no_dead_letter_and_others_return_to_their_queue() {
    let mut world = World::with_app().await;
    let mut second = world.creation("initech");
    second.account = "333333333333".parse().unwrap();
    world.create().await;
    world.create_install().create(&second, member()).await.unwrap();
    world.run().await;
    let now = world.now();
    let initech = Runner::new(&world.tenant, "initech", queue_url("initech"), 30);
    for hello in [world.runners["globex"].hello(now), initech.hello(now)] {
        world.letters.iter().for_each(|letters| letters.add_refused(&hello));
    }
    for install in [globex(), "initech".parse().unwrap()] {
        world.forget_install().forget(&install, &asked()).await.unwrap();
    }
    let others = world.runners["build"].hello(now);
    world.letters[0].add_moved(&others);

    let first = world.remove_forgotten().remove().await.unwrap();
    let left: Vec<String> = world.letters.iter().flat_map(|letters| letters.bodies()).collect();
    world.forgotten().await;

    assert_eq!((first.pending, first.put_back, left), (2, 1, Vec::<String>::new()));
    assert_eq!(*world.letters[0].returned.lock().unwrap(), [others]);
    assert!(world.memory.rows().iter().all(|row| row.key.pk != "forgetting"));
}

#[tokio::test]
async fn dead_letters_that_one_sweep_has_hidden_are_removed_by_the_next_one() {
    let (before, world) = torn_down().await;
    world.forget_install().forget(&globex(), &asked()).await.unwrap();
    let use_case = world.remove_forgotten();
    use_case.remove().await.unwrap();
    world.memory.advance_secs(90);
    world.letters[0].add_refused(&world.runners["globex"].hello(world.now()));
    let hidden = world.letters[0].look(true).await.unwrap();

    // The next sweep comes when the messages are visible again.
    world.memory.advance_secs(u64::from(LOOK_HIDES_SECS));
    let done = use_case.remove().await.unwrap();

    assert_eq!((hidden.len(), done.forgotten), (before.letters.len() + 1, 1));
    assert_eq!(everything(&world).letters, before.letters);
}

#[tokio::test]
async fn while_a_sweep_cannot_see_all_dead_letters_no_install_is_forgotten() {
    let (_, world) = torn_down().await;
    (0..50).for_each(|at| world.letters[0].add_refused(&format!("refused message {at}")));
    world.forget_install().forget(&globex(), &asked()).await.unwrap();
    let clock = world.memory.clone();
    world.memory.faults.set(move |what| {
        if what == "look" {
            clock.advance_secs(3);
        }
        None
    });

    let mut slow = Vec::new();
    for _ in 0..3 {
        let removed = world.remove_forgotten().remove().await.unwrap();
        slow.push((removed.pending, removed.unseen));
        world.memory.advance_secs(90);
    }
    world.memory.faults.set(|_| None);
    let mut quick = Vec::new();
    for _ in 0..2 {
        quick.push(world.remove_forgotten().remove().await.unwrap().forgotten);
        world.memory.advance_secs(90);
    }

    assert_eq!((slow, quick), (vec![(1, 1); 3], vec![0, 1]));
}
