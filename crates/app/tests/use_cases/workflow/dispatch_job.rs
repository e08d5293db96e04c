//! Orders: signed, complete, the same bytes on a redelivery, and not sent for a job that does not need one.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use freehold_app::messages::DispatchMessage;
use freehold_app::ports::{Expect, OrdersQueue, PortError, Store as _};
use freehold_app::table::evidence;
use freehold_app::table::{self, Sending, Stored, WriterId, load, put};
use freehold_app::testing::{Fault, Memory};
use freehold_app::workflow::dispatch_job::DispatchJob;
use freehold_domain::JobState;
use freehold_domain::build::{Build, BuildState};
use freehold_protocol::envelope::PublicKey;
use freehold_protocol::limits::{DELEGATE_SEND_SECS, MAX_ENVELOPE_BYTES};
use freehold_protocol::order::{Mode, Order, Redelivery, Work};
use freehold_protocol::report::{AttemptEvent, Fence, Outcome};
use freehold_protocol::{Envelope, EnvelopeError, JobId, Payload as _};
use serde_json::json;

use crate::support::doubles::{Meanwhile, Racing};
use crate::support::runner::Behaviour;
use crate::support::{World, app, globex, with_input};

/// Returns a world in which the order of `storage` is due.
async fn due() -> (World, JobId, DispatchMessage) {
    let mut world = World::with_install().await;
    let workflow = world.deploy(&with_input("days", 8), "deploy-1").await.unwrap();
    world.walk().await;
    let job = world.workflow(&workflow).await.active_jobs().next().unwrap().clone();
    let message = world.memory.take_dispatched().remove(0);
    world.forget_orders();
    (world, job, message)
}

#[tokio::test]
async fn an_order_carries_all_that_its_job_needs() {
    let (world, job, message) = due().await;

    world.dispatch_job().perform(&message).await.unwrap();

    let (queue, group, dedup, body) = world.memory.orders.lock().unwrap()[0].clone();
    let envelope = Envelope::parse(body.as_bytes()).unwrap();
    let order: Order = envelope.open_delegated(&world.keys.public(), &world.tenant, world.now()).unwrap();
    assert_eq!((queue.ends_with("fh-acme--globex.fifo"), group.as_str()), (true, "component:storage"));
    assert_eq!(dedup, format!("{job}.1"));
    assert_eq!((order.install, &order.job, order.dispatch, order.mode), (globex(), &job, 1, Mode::Maintenance));
    assert_eq!((order.redelivery, order.timeout_secs), (Redelivery::Resume, 600));
    assert_eq!(order.not_after, world.now().plus_secs(3600 + 600));
    let runner: PublicKey = world.runners["globex"].key.verifying_key().into();
    assert_eq!(order.runner, Some(runner.key_id()));
    let Work::TerraformModule(work) = order.work else { panic!("{:?}", order.work) };
    assert_eq!(work.vars["days"], json!("{{ .nuon.inputs.inputs.days }}"));
    assert_eq!(order.context["nuon"]["inputs"]["inputs"], json!({ "days": 8, "greeting": "hi" }));
    assert_eq!(order.context["nuon"]["components"]["settings"]["outputs"]["name"], json!("settings-out"));
}

#[tokio::test]
async fn only_the_orders_of_a_component_that_asks_for_it_skip_a_plan_without_changes() {
    let mut world = World::with_install().await;
    let mut document = app::document();
    for component in document.components.iter_mut().filter(|one| one.name.as_str() == "storage") {
        component.settings.skip_noops = true;
    }
    world.sync(&document).await;
    world.forget_orders();

    world.deploy(&with_input("days", 8), "deploy-1").await.unwrap();
    world.settle().await;

    let sent = world.memory.orders.lock().unwrap().clone();
    let envelopes = sent.iter().map(|(_, _, _, body)| Envelope::parse(body.as_bytes()).unwrap());
    let orders = envelopes.filter(|one| one.payload_type == Order::TYPE).map(|one| one.peek::<Order>().unwrap());
    let skipping = |order: &Order| order.skip_noops;
    let (skip, apply): (Vec<Order>, Vec<Order>) = orders.partition(skipping);
    let components = |orders: &[Order]| orders.iter().map(|one| one.group.to_string()).collect::<Vec<_>>();
    assert_eq!(components(&skip), ["component:storage"]);
    assert!(components(&apply).contains(&"component:info".to_owned()), "{apply:?}");
}

#[tokio::test]
async fn an_order_that_is_sent_again_is_the_same() {
    let (world, _, message) = due().await;
    world.dispatch_job().perform(&message).await.unwrap();
    let first = std::mem::take(&mut *world.memory.orders.lock().unwrap());
    world.memory.advance_secs(120);

    world.dispatch_job().perform(&message).await.unwrap();

    let second = world.memory.orders.lock().unwrap().clone();
    assert_eq!(second, first);
}

#[tokio::test]
async fn a_second_copy_of_an_order_is_sent_only_while_sqs_would_drop_it() {
    let (mut world, _, message) = due().await;
    let mut sent = Vec::new();

    // The first copy is sent however late it comes. The function is killed after each send, so its message comes back.
    for secs in [600, 90, 90, 90, 10, 1, 3000] {
        world.memory.advance_secs(secs);
        world.forget_orders();
        world.dispatch_job().perform(&message).await.unwrap();
        sent.push(world.memory.orders.lock().unwrap().len());
    }

    assert_eq!(sent, [1, 1, 1, 1, 1, 0, 0]);
}

/// An orders queue that refuses every message while `refuses` is set.
struct Refusing {
    memory: Arc<Memory>,
    refuses: AtomicBool,
}

#[async_trait::async_trait]
impl OrdersQueue for Refusing {
    async fn send(&self, queue_url: &str, group: &str, dedup: &str, body: &str) -> Result<(), PortError> {
        if self.refuses.load(Ordering::Relaxed) {
            return Err(PortError::Failed { what: "orders queue".into(), reason: "QueueDoesNotExist".into() });
        }
        self.memory.send(queue_url, group, dedup, body).await
    }
}

#[tokio::test]
async fn an_order_that_sqs_refused_is_sent_however_late_unless_one_try_had_no_answer() {
    for (lost_answer, sent) in [(false, 1), (true, 0)] {
        let (world, _, message) = due().await;
        let queue = Arc::new(Refusing { memory: world.memory.clone(), refuses: true.into() });
        let dispatch = DispatchJob { orders: queue.clone(), ..world.dispatch_job() };
        for secs in [0, 100, 400, 900] {
            world.memory.advance_secs(secs);
            assert!(dispatch.perform(&message).await.is_err());
        }
        queue.refuses.store(false, Ordering::Relaxed);
        if lost_answer {
            world.memory.faults.set(|what| (what == "send").then_some(Fault::Before));
            assert!(dispatch.perform(&message).await.is_err());
            world.memory.faults.set(|_| None);
        }
        world.memory.advance_secs(281);

        dispatch.perform(&message).await.unwrap();

        assert_eq!(world.memory.orders.lock().unwrap().len(), sent);
    }
}

#[tokio::test]
async fn an_order_that_is_sent_too_late_for_its_key_is_signed_anew_and_kept_so() {
    let (world, job, message) = due().await;
    let queue = Arc::new(Refusing { memory: world.memory.clone(), refuses: true.into() });
    let dispatch = DispatchJob { orders: queue.clone(), ..world.dispatch_job() };
    assert!(dispatch.perform(&message).await.is_err());
    let kept = async || {
        let found = evidence::kept(&*world.memory, &evidence::order_key(&job, 1)).await.unwrap();
        found.unwrap().signed().envelope()
    };
    let first = kept().await;
    world.memory.advance_secs(DELEGATE_SEND_SECS);
    queue.refuses.store(false, Ordering::Relaxed);

    dispatch.perform(&message).await.unwrap();

    let body = world.memory.orders.lock().unwrap()[0].3.clone();
    let (sent, now) = (Envelope::parse(body.as_bytes()).unwrap(), world.now());
    assert!(sent.open_sent::<Order>(&world.keys.public(), &world.tenant, now, now).is_ok());
    assert_eq!((kept().await, &first.payload), (sent.clone(), &sent.payload));
    let late = first.open_sent::<Order>(&world.keys.public(), &world.tenant, now.plus_secs(61), now.plus_secs(61));
    assert!(matches!(late, Err(EnvelopeError::SentLate { .. })), "{late:?}");
}

#[tokio::test]
async fn a_delivery_that_claimed_an_order_meanwhile_keeps_it_from_counting_as_refused() {
    let (world, job, message) = due().await;
    let queue = Arc::new(Refusing { memory: world.memory.clone(), refuses: true.into() });
    let dispatch = DispatchJob { orders: queue.clone(), ..world.dispatch_job() };
    assert!(dispatch.perform(&message).await.is_err());
    let stored: Stored<Sending> = load(&*world.memory, &table::sending_key(&job, 1)).await.unwrap().unwrap();
    let refused = stored.value.first_try;

    // Another delivery has written its claim, and has not sent yet.
    let claim = Sending { first_try: Some(world.now()), ..stored.value };
    let _ = world.memory.commit(vec![put(&claim, Expect::Rev(stored.rev)).unwrap()]).await.unwrap();
    world.memory.advance_secs(60);
    assert!(dispatch.perform(&message).await.is_err());

    let kept: Stored<Sending> = load(&*world.memory, &table::sending_key(&job, 1)).await.unwrap().unwrap();
    assert_eq!((refused, kept.value.first_try), (None, claim.first_try));
}

/// Another delivery writes its claim at the same moment, and sends the order. SQS refuses the order of this one.
#[tokio::test]
async fn of_two_deliveries_at_the_same_moment_only_one_claims_an_order() {
    let (world, job, message) = due().await;
    let queue = Arc::new(Refusing { memory: world.memory.clone(), refuses: true.into() });
    let dispatch = DispatchJob { orders: queue, ..world.dispatch_job() };
    assert!(dispatch.perform(&message).await.is_err());
    let stored: Stored<Sending> = load(&*world.memory, &table::sending_key(&job, 1)).await.unwrap().unwrap();
    let claim = Sending { first_try: Some(world.now()), by: WriterId::of(2), ..stored.value };
    let (memory, write) = (world.memory.clone(), put(&claim, Expect::Rev(stored.rev)).unwrap());
    let meanwhile: Meanwhile = Box::pin(async move {
        let _ = memory.commit(vec![write]).await.unwrap();
    });
    let store = Racing { memory: world.memory.clone(), meanwhile: Mutex::new(Some(meanwhile)) };

    let error = DispatchJob { store: Arc::new(store), ..dispatch }.perform(&message).await.unwrap_err();

    let kept: Stored<Sending> = load(&*world.memory, &table::sending_key(&job, 1)).await.unwrap().unwrap();
    assert!(error.is_transient() && error.message.contains("is being sent by another delivery"), "{error}");
    assert_eq!(kept.value, claim);
}

#[tokio::test]
async fn an_order_that_is_sent_at_once_writes_no_row_about_its_tries() {
    let (world, job, message) = due().await;

    world.dispatch_job().perform(&message).await.unwrap();

    assert_eq!(world.memory.get(&table::sending_key(&job, 1)).await.unwrap(), None);
}

#[tokio::test]
async fn a_job_that_runs_or_was_cancelled_gets_no_order() {
    let (mut world, job, message) = due().await;
    let wrong = DispatchMessage::Order { job: job.clone(), dispatch: 2 };
    world.dispatch_job().perform(&wrong).await.unwrap();
    let none = world.memory.orders.lock().unwrap().len();
    world.dispatch_job().perform(&message).await.unwrap();
    world.run().await;
    world.forget_orders();

    world.dispatch_job().perform(&message).await.unwrap();

    assert!(matches!(world.job(&job).await.state, JobState::Succeeded { .. }));
    assert_eq!((none, world.memory.orders.lock().unwrap().len()), (0, 0));
}

#[tokio::test]
async fn without_the_installs_queue_the_message_stays() {
    let (world, _, message) = due().await;
    let stored = table::install(&*world.memory, &globex()).await.unwrap();
    let mut install = stored.value;
    install.orders_queue_url = None;
    let _ = world.memory.commit(vec![put(&install, Expect::Rev(stored.rev)).unwrap()]).await.unwrap();

    assert!(world.dispatch_job().perform(&message).await.unwrap_err().is_transient());
}

#[tokio::test]
async fn an_order_that_missed_every_resend_is_sent_however_late_if_it_was_never_sent() {
    let (world, job, _) = due().await;
    world.memory.advance_secs(3000);

    for _ in 0..2 {
        world.dispatch_job().perform(&DispatchMessage::Order { job: job.clone(), dispatch: 1 }).await.unwrap();
        world.memory.advance_secs(600);
    }

    assert_eq!(world.memory.orders.lock().unwrap().len(), 1);
}

/// Returns a world in which the order of `storage` is due, after `change` of its install.
async fn due_with(change: impl FnOnce(&mut freehold_domain::Install)) -> (World, JobId, DispatchMessage) {
    let (world, job, message) = due().await;
    let stored = table::install(&*world.memory, &globex()).await.unwrap();
    let mut install = stored.value;
    change(&mut install);
    let _ = world.memory.commit(vec![put(&install, Expect::Rev(stored.rev)).unwrap()]).await.unwrap();
    (world, job, message)
}

/// Returns the world, with a job whose order `change` makes impossible.
async fn hopeless(change: impl FnOnce(&mut freehold_domain::Install)) -> (World, JobId) {
    let (world, job, message) = due_with(change).await;
    (ended_unsent(world, &message).await, job)
}

/// Returns the world after the order of `message` was tried twice, and not sent.
async fn ended_unsent(mut world: World, message: &DispatchMessage) -> World {
    for _ in 0..2 {
        world.dispatch_job().perform(message).await.unwrap();
    }
    let orders = world.memory.orders.lock().unwrap().len();
    assert_eq!(orders, 0);
    world.settle().await;
    world
}

/// Returns a text of `bytes` letters that compresses to three quarters of its length at best.
fn incompressible(bytes: usize) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let next = |state: &mut u64| {
        *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        char::from(LETTERS[(*state >> 58) as usize])
    };
    (0..bytes).scan(7, |state, _| Some(next(state))).collect()
}

#[tokio::test]
async fn an_order_of_any_size_is_sent_whole_or_ends_its_job_with_its_size() {
    let plain = |kib: usize| ("x".repeat(kib * 1024), true);
    let random = |kib: usize| (incompressible(kib * 1024), false);
    // An order has each input twice.
    let texts = [
        (plain(1), None),
        (plain(200), None),
        (plain(295), None),
        (plain(305), Some("more than the 614400 that fit into a message")),
        (plain(1024), Some("more than the 614400 that fit into a message")),
        (plain(2048), Some("more than the 614400 that fit into a message")),
        (random(100), None),
        (random(200), None),
        (random(250), Some("more than the 327680 that fit into a row of the table")),
        (random(2048), Some("more than the 614400 that fit into a message")),
    ];
    for ((text, compresses), refused) in texts {
        let what = format!("{} bytes, compressible: {compresses}", text.len());
        let greeting = text.clone();
        let (mut world, job, message) =
            due_with(|install| drop(install.inputs.insert("greeting".into(), json!(text)))).await;
        match refused {
            None => {
                world.dispatch_job().perform(&message).await.unwrap();
                let sent = world.memory.orders.lock().unwrap().first().map(|sent| sent.3.clone());
                let Some(body) = sent else { panic!("{what}: {:?}", world.job(&job).await.state) };
                assert!(body.len() <= MAX_ENVELOPE_BYTES, "{what}: a message of {} bytes", body.len());
                let envelope = Envelope::parse(body.as_bytes()).unwrap();
                let order: Order = envelope.open_delegated(&world.keys.public(), &world.tenant, world.now()).unwrap();
                assert_eq!(order.context["nuon"]["inputs"]["inputs"]["greeting"], json!(greeting), "{what}");
                world.run().await;
                assert_eq!(world.job(&job).await.state.as_str(), "succeeded", "{what}");
            }
            Some(reason) => {
                let world = ended_unsent(world, &message).await;
                let state = world.job(&job).await.state;
                assert!(matches!(state, JobState::Failed { partial: false, .. }), "{what}: {state:?}");
                assert!(state.reason().unwrap().contains(reason), "{what}: {state:?}");
                assert!(world.open().is_empty());
            }
        }
    }
}

#[tokio::test]
async fn inputs_that_do_not_resolve_end_the_job_with_the_reason() {
    let (world, job) = hopeless(|install| {
        install.inputs.insert("days".into(), json!("many"));
    })
    .await;

    let state = world.job(&job).await.state;
    assert!(state.reason().is_some_and(|reason| reason.contains("days")), "{state:?}");
    assert!(world.open().is_empty());
}

#[tokio::test]
async fn an_artifact_that_was_removed_after_the_plan_ends_the_job_with_the_way_out() {
    let (world, job, message) = due().await;
    let workflow = world.workflow(&world.job(&job).await.workflow).await;
    let node = workflow.nodes.iter().find(|node| node.name == "storage").unwrap();
    let (_, used) = node.target.uses()[0];
    let key = table::build_key(&app::document().app, used.build);
    let stored: Stored<Build> = load(&*world.memory, &key).await.unwrap().unwrap();
    let mut build = stored.value;
    let BuildState::Built { artifact, .. } = build.state else { panic!("{:?}", build.state) };
    build.state = BuildState::Removed { artifact, at: world.now(), done: true };
    let _ = world.memory.commit(vec![put(&build, Expect::Rev(stored.rev)).unwrap()]).await.unwrap();

    let world = ended_unsent(world, &message).await;

    let state = world.job(&job).await.state;
    assert!(state.reason().is_some_and(|reason| reason.contains("was removed; build the app again")), "{state:?}");
    assert!(world.open().is_empty());
}

#[tokio::test]
async fn an_order_that_was_sent_is_sent_again_although_the_answers_changed_and_its_job_continues() {
    let values = [("days", json!("many")), ("greeting", json!("x".repeat(700 * 1024)))];
    for (name, value) in values {
        let (mut world, job, message) = due().await;
        world.dispatch_job().perform(&message).await.unwrap();
        let first = world.memory.orders.lock().unwrap().clone();
        world.memory.orders.lock().unwrap().clear();
        let stored = table::install(&*world.memory, &globex()).await.unwrap();
        let mut install = stored.value;
        install.inputs.insert(name.into(), value);
        let _ = world.memory.commit(vec![put(&install, Expect::Rev(stored.rev)).unwrap()]).await.unwrap();
        world.memory.advance_secs(90);

        let copy = DispatchMessage::Order { job: job.clone(), dispatch: 1 };
        world.dispatch_job().perform(&copy).await.unwrap();

        assert_eq!(*world.memory.orders.lock().unwrap(), first);
        world.run().await;
        assert_eq!(world.job(&job).await.state.as_str(), "succeeded", "{name}");
    }
}

#[tokio::test]
async fn effects_that_are_repeated_late_send_no_second_copy_of_an_order() {
    let mut world = World::with_install().await;
    world.runner("globex").behaviours.insert("info".into(), Behaviour::Ignores);
    let workflow = world.deploy(&with_input("days", 8), "deploy-1").await.unwrap();
    world.run().await;
    assert_eq!(world.node_states(&workflow).await, ["info active", "storage succeeded"]);
    let ended = JobId::derive(&workflow, "storage");
    let outcome = Outcome::Succeeded { outputs: Default::default(), sensitive: Default::default(), artifact: None };
    let event = AttemptEvent::finished(outcome, "");
    let again = world.runners["globex"].says(&ended, Fence { dispatch: 1, receive: 1 }, 9, event, world.now());
    let mut sent = Vec::new();

    // SQS drops second copies in the first five minutes.
    for secs in [0, 300] {
        world.memory.advance_secs(secs);
        world.forget_orders();
        world.accept_report().accept(&again, world.now()).await.unwrap();
        world.run().await;
        sent.push(world.memory.orders.lock().unwrap().len());
        world.forget_orders();
        world.plan_workflow().run(&workflow, 0, "token".into()).await.unwrap();
        world.run().await;
        sent.push(world.memory.orders.lock().unwrap().len());
    }

    assert_eq!(sent, [1, 1, 0, 0]);
}
