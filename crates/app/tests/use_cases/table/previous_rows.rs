//! Rows of the version before, as its own tests wrote them at commit d19711f5: each is read as its type, and a tenant in the
//! middle of a deploy continues.

use std::collections::{BTreeMap, BTreeSet};

use freehold_app::ports::{Expect, Key, Row, Store, Write};
use freehold_app::table::evidence::{Evidence, MadeBy, UsedBy};
use freehold_app::table::{self, Record, parse};
use freehold_app::testing::Memory;
use freehold_domain::Job;
use freehold_domain::build::Build;
use freehold_domain::install::Install;
use freehold_domain::workflow::WorkflowKind;
use freehold_protocol::api::DeployComponentsRequest;
use freehold_protocol::report::{AttemptEvent, Fence, Outcome};
use freehold_protocol::{Digest, WorkflowId, canonical};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::support::World;
use crate::support::doubles::queue_url;
use crate::support::runner::Runner;
use crate::support::walk::Mail;

/// One row of each kind and shape.
const ROWS: &str = include_str!("../../../golden/previous/rows.json");
/// All rows of a tenant whose install `globex` deploys `storage`: the job runs, and `info` waits for it.
const TENANT: &str = include_str!("../../../golden/previous/tenant.json");

/// Fields of rows that the version before wrote and that are not written any more, with the reason.
const DROPPED: [(&str, &str); 0] = [];

#[derive(Deserialize)]
struct Kept {
    pk: String,
    sk: String,
    body: Value,
}

impl Kept {
    fn key(&self) -> Key {
        Key { pk: self.pk.clone(), sk: self.sk.clone() }
    }

    fn write(&self) -> Write {
        Write::Put { key: self.key(), body: self.body.to_string(), expect: Expect::Any, expires: None }
    }

    /// The parts of its key that say what it is.
    fn kind(&self) -> (&str, &str) {
        let first = self.pk.split('#').next().unwrap_or_default();
        let second = match first {
            "apps" | "installs" | "open" | "due" | "token" | "forgetting" | "gone" => "",
            "grant" if !self.sk.starts_with("refused#") => "grant",
            _ => self.sk.split('#').next().unwrap_or_default(),
        };
        (first, second)
    }
}

#[derive(Deserialize)]
struct Tenant {
    workflow: WorkflowId,
    now: u64,
    rows: Vec<Kept>,
    versions: Vec<Value>,
}

/// Reads a row as its type, and writes it again.
fn again<T: Record>(kept: &Kept) -> (Key, Value) {
    let row = Row { key: kept.key(), rev: 1, body: kept.body.to_string() };
    let record = parse::<T>(&row).unwrap_or_else(|error| panic!("{error}: {:?}", error.source)).value;
    (record.key(), serde_json::to_value(&record).unwrap())
}

/// Returns the row as this version reads and writes it; `None` for a row that is read together with others.
fn read_and_written(kept: &Kept) -> Option<(Key, Value)> {
    Some(match kept.kind() {
        ("apps", _) => again::<table::AppRecord>(kept),
        ("app", "version") => again::<table::VersionRecord>(kept),
        ("app", "number") => again::<table::VersionEntry>(kept),
        ("app", "build") => again::<Build>(kept),
        ("app", "release") => again::<table::ReleaseRecord>(kept),
        ("app", "terms") => again::<table::TermsRecord>(kept),
        ("app", "contract") => again::<table::ContractRecord>(kept),
        ("installs", _) => again::<table::InstallEntry>(kept),
        ("install", "state") => again::<Install>(kept),
        ("install", "contact") => again::<table::Contact>(kept),
        ("install", "component") => again::<table::DeployedRecord>(kept),
        ("install", "workflow") => again::<table::WorkflowEntry>(kept),
        ("install", "notice") => again::<table::RetiredNotice>(kept),
        ("install", "skipped") => again::<table::SkippedRun>(kept),
        ("install", "secrets") => again::<table::CopiedSecrets>(kept),
        ("install", "leftovers") => again::<table::LeftoversRecord>(kept),
        ("install", "hello") | ("job", "order") => again::<Evidence>(kept),
        ("install" | "job" | "grant", "refused") => again::<table::Refused>(kept),
        ("forgetting", _) => again::<table::Forgetting>(kept),
        ("gone", _) => again::<table::GoneInstalls>(kept),
        ("open", _) => again::<table::OpenWorkflow>(kept),
        ("due", _) => again::<table::Due>(kept),
        ("token", _) => again::<table::TaskToken>(kept),
        ("job", "state") => again::<Job>(kept),
        ("job", "log") => again::<table::LogRecord>(kept),
        ("job", "sending") => again::<table::Sending>(kept),
        ("grant", "grant") => again::<table::BurntGrant>(kept),
        ("sender", "unknown") => again::<table::UnknownReports>(kept),
        ("artifact", "build") => again::<MadeBy>(kept),
        ("artifact", "use") => again::<UsedBy>(kept),
        ("workflow", "state" | "graph") | ("text", "state") | ("name", "prefix") => return None,
        other => panic!("no type is known for rows like {other:?}"),
    })
}

/// Returns every value in `value` with its path; an empty list or map is one.
fn leaves(value: &Value, path: &str, found: &mut BTreeMap<String, Value>) {
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            fields.iter().for_each(|(name, value)| leaves(value, &format!("{path}.{name}"), found));
        }
        Value::Array(items) if !items.is_empty() => {
            items.iter().enumerate().for_each(|(at, value)| leaves(value, &format!("{path}.{at}"), found));
        }
        _ => {
            found.insert(path.to_owned(), value.clone());
        }
    }
}

/// Returns the paths of what `now` lacks of `before`, or has with another value.
fn lost(before: &Value, now: &Value) -> Vec<String> {
    let mut all = [BTreeMap::new(), BTreeMap::new()];
    leaves(before, "", &mut all[0]);
    leaves(now, "", &mut all[1]);
    let [before, now] = all;
    let says_something = |value: &Value| !(value.is_null() || *value == json!([]) || *value == json!({}));
    let kept = before.into_iter().filter(|(path, value)| says_something(value) && now.get(path) != Some(value));
    kept.map(|(path, _)| path).filter(|path| !DROPPED.iter().any(|(dropped, _)| dropped == path)).collect()
}

fn rows() -> Vec<Kept> {
    serde_json::from_str(ROWS).unwrap()
}

async fn store_of(rows: &[Kept]) -> Memory {
    let memory = Memory::default();
    for row in rows {
        let _ = memory.commit(vec![row.write()]).await.unwrap();
    }
    memory
}

#[test]
fn each_row_is_read_as_its_type_and_nothing_of_it_is_lost() {
    let rows = rows();
    let kinds: BTreeSet<_> = rows.iter().map(|row| row.kind()).collect();

    assert!(kinds.len() >= 30, "only {} kinds of rows are kept: {kinds:?}", kinds.len());
    for kept in &rows {
        let Some((key, written)) = read_and_written(kept) else { continue };
        let lost = lost(&kept.body, &written);

        assert!(lost.is_empty(), "{} {}: {lost:?}", kept.pk, kept.sk);
        assert_eq!(key, kept.key());
    }
}

#[tokio::test]
async fn a_workflow_of_two_rows_is_read_and_written_as_the_same_two() {
    let rows = rows();
    let store = store_of(&rows).await;
    let mut read = 0;
    for state in rows.iter().filter(|row| row.kind() == ("workflow", "state")) {
        let id: WorkflowId = state.pk.trim_start_matches("workflow#").parse().unwrap();
        let workflow = table::workflow(&store, &id).await.unwrap().value;
        read += workflow.nodes.len();
        let writes =
            [table::graph_write(&workflow).unwrap(), Some(table::put_workflow(&workflow, Expect::Any).unwrap())];
        for write in writes.into_iter().flatten() {
            let Write::Put { key, body, .. } = write else { panic!("{write:?}") };
            let before = rows.iter().find(|row| row.key() == key).unwrap_or_else(|| panic!("{key:?} has another name"));
            let lost = lost(&before.body, &serde_json::from_str(&body).unwrap());
            assert!(lost.is_empty(), "{key:?}: {lost:?}");
        }
    }
    assert!(read > 0, "no workflow with nodes is kept");
}

#[tokio::test]
async fn a_deploy_in_the_middle_continues_and_ends() {
    let tenant: Tenant = serde_json::from_str(TENANT).unwrap();
    let mut world = World::new();
    for row in &tenant.rows {
        let _ = world.memory.commit(vec![row.write()]).await.unwrap();
    }
    for version in &tenant.versions {
        let bytes = canonical::to_vec(version).unwrap();
        world.memory.versions.lock().unwrap().insert(Digest::of(&bytes), bytes);
    }
    let secs = tenant.now.saturating_sub(world.now().as_millis()) / 1000;
    world.memory.advance_secs(secs);
    world.memory.started.lock().unwrap().push((WorkflowKind::DeployComponents, tenant.workflow.clone()));
    let mut runner = Runner::new(&world.tenant, "globex", queue_url("globex"), 20);
    for kept in tenant.rows.iter().filter(|row| row.kind() == ("app", "build")) {
        let build: Build = serde_json::from_value(kept.body.clone()).unwrap();
        runner
            .blobs
            .extend(world.registry.push(&format!("{:?}", build.source)).blobs.into_iter().map(|blob| blob.digest));
    }
    world.runners.insert("globex".into(), runner);
    world.run().await;
    let running = world.workflow(&tenant.workflow).await.active_jobs().next().unwrap().clone();

    let outputs = [("name".to_owned(), json!("storage-new"))].into();
    let outcome = Outcome::Succeeded { outputs, sensitive: Default::default(), artifact: None };
    let event = AttemptEvent::Finished { outcome, log: "done\n".into(), policies: Vec::new() };
    let (now, fence) = (world.now(), Fence { dispatch: 1, receive: 1 });
    let report = world.runners["globex"].says(&running, fence, 9, event, now);
    world.post(Mail::Report(report, now));
    world.settle().await;

    assert_eq!(world.node_states(&tenant.workflow).await, ["info succeeded", "storage succeeded"]);
    assert_eq!(world.workflow(&tenant.workflow).await.state.as_str(), "succeeded");
    assert!(world.open().is_empty() && world.dead.is_empty());
    assert_eq!(world.runners["globex"].started, ["info"]);
    let next = world.deploy(&DeployComponentsRequest { all: true, ..Default::default() }, "after").await.unwrap();
    world.settle().await;
    assert_eq!(world.workflow(&next).await.state.as_str(), "succeeded");
}
