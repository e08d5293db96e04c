//! Nothing is deprovisioned by itself: without a request to tear an install down or to switch a component off, no job
//! runs in the mode `deprovision`, whatever else happens and however long it lasts.

use freehold_protocol::api::{DeployComponentsRequest, TeardownInstallRequest};
use freehold_protocol::app_version::{AppVersion, Trigger};
use freehold_protocol::order::{Mode, Order};
use freehold_protocol::report::Outcome;
use freehold_protocol::{Envelope, Payload as _};
use proptest::prelude::*;

use crate::support::runner::{Behaviour, Runner};
use crate::support::walk::Rng;
use crate::support::{World, app, globex, member, with_input};

/// More jobs than a runner ever holds here. A workflow counts only its own jobs against the slots, so a scheduled action
/// beside a deploy exceeds them, and the real runner lets its orders wait. The runner of these tests cannot.
const SLOTS: u32 = 64;

/// Something that happens to an install, other than a request to remove something.
#[derive(Debug, Clone)]
enum Event {
    Deploy(u64),
    DeployAll,
    Action,
    NewVersion(u8),
    /// From now on, jobs of this part end so; `None` for success.
    Behaves(&'static str, Option<Behaviour>),
    Hello,
    /// Another machine with another key takes over.
    OtherMachine(u8),
    CancelAll,
    Disable,
    Enable,
    /// Messages arrive in any order and up to three times.
    Chaos(u64),
    /// Nothing but the schedules and `sweep` happens for this time.
    Minutes(u64),
}

fn event() -> impl Strategy<Value = Event> {
    let ends = |outcome| Some(Behaviour::Ends(outcome));
    let behaviour = prop::sample::select(vec![
        None,
        Some(Behaviour::Hangs),
        Some(Behaviour::Ignores),
        ends(Outcome::Failed { reason: "no".into(), partial: true }),
        ends(Outcome::Failed { reason: "no".into(), partial: false }),
        ends(Outcome::Interrupted { reason: "no".into() }),
        ends(Outcome::Cancelled),
    ]);
    let part = prop::sample::select(vec!["info", "settings", "storage", "action:check", "action:welcome"]);
    prop_oneof![
        (1..90_u64).prop_map(Event::Deploy),
        Just(Event::DeployAll),
        Just(Event::Action),
        (2..9_u8).prop_map(Event::NewVersion),
        (part, behaviour).prop_map(|(part, behaviour)| Event::Behaves(part, behaviour)),
        Just(Event::Hello),
        (21..99_u8).prop_map(Event::OtherMachine),
        Just(Event::CancelAll),
        Just(Event::Disable),
        Just(Event::Enable),
        any::<u64>().prop_map(Event::Chaos),
        // Up to thirty days: longer than every timer and than the retention of every queue.
        prop_oneof![1..30_u64, 60..400_u64, 1_440..43_200_u64].prop_map(Event::Minutes),
    ]
}

/// Returns the app with a schedule, and with an action that a teardown starts.
fn document() -> AppVersion {
    let mut document = app::with_schedule();
    document.actions[1].triggers.insert(Trigger::Event { event: "pre-deprovision".into(), component: None });
    document
}

async fn install() -> World {
    let mut world = World::with_install().await;
    world.runner("globex").slots = SLOTS;
    world.sync(&document()).await;
    world.deploy(&DeployComponentsRequest::default(), "deploy-0").await.unwrap();
    world.settle().await;
    world
}

/// Lets the event happen. A request that is refused, for example while another workflow runs, is one that nobody made.
async fn happens(world: &mut World, event: &Event, cause: &str) {
    match event {
        Event::Deploy(days) => drop(world.deploy(&with_input("days", *days), cause).await),
        Event::DeployAll => {
            drop(world.deploy(&DeployComponentsRequest { all: true, ..Default::default() }, cause).await);
        }
        Event::Action => drop(world.action("check", cause).await),
        Event::NewVersion(number) => {
            let mut version = document();
            version.components = app::with_source("storage", &format!("example/storage:{number}")).components;
            world.sync(&version).await;
            world.build(cause).await;
        }
        Event::Behaves(part, behaviour) => {
            let behaviours = &mut world.runner("globex").behaviours;
            behaviours.remove(*part);
            behaviours.extend(behaviour.clone().map(|behaviour| ((*part).to_owned(), behaviour)));
        }
        Event::Hello => world.hello("globex"),
        Event::OtherMachine(seed) => {
            let former = world.runners["globex"].clone();
            let mut next = Runner::new(&world.tenant, "globex", former.queue.clone(), *seed);
            next.slots = SLOTS;
            next.seen = former.seen;
            world.runners.insert("globex".into(), next);
            world.hello("globex");
        }
        Event::CancelAll => {
            let workflows: Vec<_> = world.machines.keys().cloned().collect();
            for id in workflows {
                drop(world.cancel_workflow().cancel(&id, &Default::default(), member()).await);
            }
        }
        Event::Disable => {
            let because = freehold_protocol::api::ReasonRequest { reason: "unpaid".into() };
            drop(world.disable_install().disable(&globex(), &because).await);
        }
        Event::Enable => drop(world.enable_install().enable(&globex()).await),
        Event::Chaos(seed) => world.chaos = Some(Rng::new(*seed)),
        Event::Minutes(minutes) => world.memory.advance_secs(minutes * 60),
    }
    // Whatever starts work without a request.
    for _ in 0..3 {
        drop(world.handle_due_tasks().handle().await);
        drop(world.sweeper().sweep().await);
        drop(world.remove_forgotten().remove().await);
        world.run().await;
        world.memory.advance_secs(60);
    }
}

/// Returns the modes of all orders that were ever sent to `globex`.
fn modes(world: &World) -> Vec<Mode> {
    let orders = world.memory.orders.lock().unwrap().clone();
    let envelopes = orders.iter().map(|(.., body)| Envelope::parse(body.as_bytes()).unwrap());
    let orders = envelopes.filter(|envelope| envelope.payload_type == Order::TYPE);
    orders.map(|envelope| envelope.peek::<Order>().unwrap().mode).collect()
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn nothing_is_deprovisioned_without_a_request(events in prop::collection::vec(event(), 1..12)) {
        let modes = block_on(async {
            let mut world = install().await;
            for (at, event) in events.iter().enumerate() {
                happens(&mut world, event, &format!("request-{at}")).await;
            }
            modes(&world)
        });

        prop_assert!(!modes.contains(&Mode::Deprovision), "{modes:?}");
    }
}

#[tokio::test]
async fn a_requested_teardown_deprovisions() {
    let mut world = install().await;

    world.teardown(&TeardownInstallRequest::default(), "teardown-1").await.unwrap();
    happens(&mut world, &Event::Hello, "hello").await;

    assert!(modes(&world).contains(&Mode::Deprovision));
}
