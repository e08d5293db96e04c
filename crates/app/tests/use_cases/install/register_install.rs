//! Registering: the queue exists, and the policy names every account, in any order of writers and for any number of
//! installs.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use freehold_app::install::create_install::CreateInstall;
use freehold_app::install::register_install::RegisterInstall;
use freehold_app::new_workflow::{NewWorkflow, workflow_of, workflow_writes};
use freehold_app::ports::{Committed, Expect, Key, PortError, Row, Store, Write};
use freehold_app::table::{self, InstallEntry, put};
use freehold_app::testing::Memory;
use freehold_domain::install::{Install, Serves};
use freehold_domain::reports::shards::MAX_ACCOUNTS;
use freehold_domain::workflow::{Request, RollBack, WorkflowKind};
use freehold_protocol::order::Mode;
use freehold_protocol::{AccountId, InstallId, WorkflowId};

use crate::support::doubles::{queue_url, reports_url};
use crate::support::{World, globex, member};

fn account(number: usize) -> AccountId {
    format!("{number:012}").parse().unwrap()
}

#[tokio::test]
async fn an_install_gets_its_queues_and_may_report() {
    let mut world = World::with_app().await;
    let workflow = world.create().await;

    for _ in 0..2 {
        world.register_install().register(&workflow).await.unwrap();
    }

    let install = table::install(&*world.memory, &globex()).await.unwrap();
    assert_eq!(install.value.orders_queue_url, Some(queue_url("globex")));
    assert_eq!((install.value.reports_shard, install.value.reports_queue_url), (Some(1), Some(reports_url(1))));
    assert_eq!(install.rev, 3, "the second call writes nothing");
    let reporters = world.queues.reporters.lock().unwrap().clone();
    assert_eq!(reporters, [(1, ["222222222222".parse().unwrap()].into())].into());
}

#[tokio::test]
async fn of_two_that_register_at_once_neither_loses_its_permission() {
    let mut world = World::with_app().await;
    let workflow = world.create().await;
    let (installs, register) = (world.create_install(), world.register_install());
    let mut request = world.creation("initech");
    request.account = account(3);
    *world.queues.meanwhile.lock().unwrap() = Some(Box::pin(async move {
        let (_, workflow) = installs.create(&request, member()).await.unwrap();
        register.register(&workflow).await.unwrap();
    }));

    world.register_install().register(&workflow).await.unwrap();

    let reporters = world.queues.reporters.lock().unwrap().clone();
    assert_eq!(reporters, [(1, [account(3), "222222222222".parse().unwrap()].into())].into());
}

/// An install that the version before has registered has no number, and its launched stack names the first queue.
#[tokio::test]
async fn installs_of_the_version_before_stay_in_the_first_queue() {
    let mut world = World::with_app().await;
    let older = world.create().await;
    world.register_install().register(&older).await.unwrap();
    // The rows as that version left them: no rows of shards, and an install without a number.
    let stored = table::install(&*world.memory, &globex()).await.unwrap();
    let mut install = stored.value;
    (install.reports_shard, install.reports_queue_url) = (None, None);
    let shards =
        ["shards", "shard#000001"].map(|sk| Write::Delete { key: Key { pk: "reports".into(), sk: sk.into() } });
    let row = put(&install, Expect::Any).unwrap();
    assert_eq!(world.memory.commit(shards.into_iter().chain([row]).collect()).await.unwrap(), Committed::Done);
    let mut request = world.creation("initech");
    request.account = account(3);
    world.create_install().create(&request, member()).await.unwrap();

    world.register_install().register(&world.provisioning("initech").await).await.unwrap();
    world.register_install().register(&older).await.unwrap();

    let reporters = world.queues.reporters.lock().unwrap().clone();
    assert_eq!(reporters, [(1, [account(3), "222222222222".parse().unwrap()].into())].into());
    let install = table::install(&*world.memory, &globex()).await.unwrap().value;
    assert_eq!((install.reports_shard, install.reports_queue_url), (Some(1), Some(reports_url(1))));
}

/// The table, which counts its calls and the rows that it answers with.
struct Counted {
    memory: Arc<Memory>,
    calls: AtomicU64,
    rows: AtomicU64,
}

impl Counted {
    fn add(&self, rows: usize) {
        self.calls.fetch_add(1, Ordering::Relaxed);
        self.rows.fetch_add(rows as u64, Ordering::Relaxed);
    }

    /// Returns and resets the counts.
    fn take(&self) -> (u64, u64) {
        (self.calls.swap(0, Ordering::Relaxed), self.rows.swap(0, Ordering::Relaxed))
    }
}

#[async_trait]
impl Store for Counted {
    async fn get(&self, key: &Key) -> Result<Option<Row>, PortError> {
        let row = self.memory.get(key).await?;
        self.add(usize::from(row.is_some()));
        Ok(row)
    }

    async fn query(&self, pk: &str, prefix: &str, after: Option<&str>, limit: u32) -> Result<Vec<Row>, PortError> {
        let rows = self.memory.query(pk, prefix, after, limit).await?;
        self.add(rows.len());
        Ok(rows)
    }

    async fn commit(&self, writes: Vec<Write>) -> Result<Committed, PortError> {
        self.add(0);
        self.memory.commit(writes).await
    }
}

/// Writes the rows of an install and of its provisioning, as its creation does.
async fn add(world: &World, number: usize) -> WorkflowId {
    let id: InstallId = format!("c{number:05}").parse().unwrap();
    let serves = Serves::App { app: "demo".parse().unwrap(), version: None };
    let install = Install::new(id.clone(), serves, account(number), "eu-west-1".into(), world.now());
    let new = NewWorkflow {
        id: install.provisioning(),
        kind: WorkflowKind::ProvisionInstall,
        mode: Mode::Provision,
        request: Request::deploy_latest(),
        digest: None,
        asked_by: member().clone(),
        run: None,
        now: false,
        roll_back: RollBack::None,
    };
    let workflow = workflow_of(&install, new, 1, world.now());
    let mut writes = workflow_writes(&workflow).unwrap();
    writes.push(put(&install, Expect::Absent).unwrap());
    writes.push(put(&InstallEntry { install: id, account: account(number) }, Expect::Absent).unwrap());
    assert_eq!(world.memory.commit(writes).await.unwrap(), Committed::Done);
    workflow.id
}

/// Each install has an account of its own. The last ones are created and registered by as few calls as the first ones.
#[tokio::test]
async fn five_thousand_installs_are_registered_without_a_full_policy_or_a_full_scan() {
    const INSTALLS: usize = 5_000;
    let world = World::with_app().await;
    let counted =
        Arc::new(Counted { memory: world.memory.clone(), calls: AtomicU64::default(), rows: AtomicU64::default() });
    let register = RegisterInstall { store: counted.clone(), queues: world.queues.clone() };
    let mut most = (0, 0);

    for number in 0..INSTALLS {
        let workflow = add(&world, number).await;
        register.register(&workflow).await.unwrap();
        let (calls, rows) = counted.take();
        most = (most.0.max(calls), most.1.max(rows));
    }
    let create = CreateInstall { store: counted.clone(), ..world.create_install() };
    create.create(&world.creation("c-another"), member()).await.unwrap();
    let created = counted.take();

    let reporters = world.queues.reporters.lock().unwrap().clone();
    let all: usize = reporters.values().map(BTreeSet::len).sum();
    let fullest = reporters.values().map(BTreeSet::len).max();
    assert_eq!((all, reporters.len(), fullest), (INSTALLS, INSTALLS.div_ceil(MAX_ACCOUNTS), Some(MAX_ACCOUNTS)));
    assert!(most.0 < 20 && most.1 < 20, "calls and rows of a registration: {most:?}");
    assert!(created.0 < 30 && created.1 < 10, "calls and rows of a creation: {created:?}");
}

#[tokio::test]
async fn a_place_that_an_install_leaves_is_given_to_the_next_account() {
    let world = World::with_app().await;
    for number in 0..=MAX_ACCOUNTS {
        let workflow = add(&world, number).await;
        world.register_install().register(&workflow).await.unwrap();
    }
    world.delete_install().delete(&"c00007".parse().unwrap(), member()).await.unwrap();

    let workflow = add(&world, 9_999).await;
    world.register_install().register(&workflow).await.unwrap();

    let reporters = world.queues.reporters.lock().unwrap().clone();
    assert_eq!(reporters[&2], [account(MAX_ACCOUNTS)].into());
    assert!(reporters[&1].contains(&account(9_999)) && !reporters[&1].contains(&account(7)));
}
