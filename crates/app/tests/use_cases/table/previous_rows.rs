//! Rows of the table as files: what this version writes (`golden/rows.json`), and what the version before wrote
//! (`golden/previous`). Each row is read as its type and written again, and a tenant in the middle of a deploy
//! continues. `tests/compatibility` finds the types, fields and variants that no row has.

use std::collections::{BTreeMap, BTreeSet};

use freehold_app::messages::{DispatchMessage, GrantMessage};
use freehold_app::ports::{Expect, Key, Row, Store, Write};
use freehold_app::table::evidence::{Evidence, MadeBy, UsedBy};
use freehold_app::table::{self, Record, parse};
use freehold_app::testing::Memory;
use freehold_domain::build::Build;
use freehold_domain::install::Install;
use freehold_domain::install::follows::Channel;
use freehold_domain::reports::shards::{ReportShard, ReportShards};
use freehold_domain::runbook::Run;
use freehold_domain::webhook::Webhook;
use freehold_domain::workflow::WorkflowKind;
use freehold_domain::{Job, Workflow};
use freehold_protocol::api::DeployComponentsRequest;
use freehold_protocol::report::{AttemptEvent, Fence, Outcome};
use freehold_protocol::{Digest, WorkflowId, canonical};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::support::World;
use crate::support::doubles::queue_url;
use crate::support::runner::Runner;
use crate::support::walk::Mail;

/// Rows that together have each field and each variant of all types.
const NOW: &str = include_str!("../../../golden/rows.json");
/// The same of the version before, and rows as the tests at commit d19711f5 wrote them.
const BEFORE: &str = include_str!("../../../golden/previous/rows.json");
/// The messages of the internal queues, by their type.
const MESSAGES: [(&str, bool); 2] = [
    (include_str!("../../../golden/messages.json"), true),
    (include_str!("../../../golden/previous/messages.json"), false),
];
/// All rows of a tenant whose install `globex` deploys `storage`: the job runs, and `info` waits for it.
const TENANT: &str = include_str!("../../../golden/previous/tenant.json");

/// Fields of rows that the version before wrote and that are not written any more, with the reason.
const DROPPED: [(&str, &str); 0] = [];

#[derive(Deserialize)]
struct Kept {
    /// The type of the row; empty in the rows of the tenant.
    #[serde(default, rename = "type")]
    of: String,
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
}

#[derive(Deserialize)]
struct Tenant {
    workflow: WorkflowId,
    now: u64,
    rows: Vec<Kept>,
    versions: Vec<Value>,
}

/// Reads a row as its type, and writes it again.
type ReadAndWrite = fn(&Kept) -> (Key, Value);

/// The types of rows. The tests of their modules read those that only their modules know, and a workflow has two rows.
const TYPES: [(&str, ReadAndWrite); 53] = [
    ("AppRecord", again::<table::AppRecord>),
    ("BudgetRecord", again::<table::BudgetRecord>),
    ("Build", again::<Build>),
    ("BurntGrant", again::<table::BurntGrant>),
    ("ChangeTimesRecord", again::<table::ChangeTimesRecord>),
    ("Channel", again::<Channel>),
    ("CheckRecord", again::<table::CheckRecord>),
    ("Contact", again::<table::Contact>),
    ("ContractRecord", again::<table::ContractRecord>),
    ("CopiedSecrets", again::<table::CopiedSecrets>),
    ("DeployedRecord", again::<table::DeployedRecord>),
    ("Due", again::<table::Due>),
    ("Evidence", again::<Evidence>),
    ("Follower", again::<table::Follower>),
    ("Forgetting", again::<table::Forgetting>),
    ("GoneInstalls", again::<table::GoneInstalls>),
    ("HealthRecord", again::<table::HealthRecord>),
    ("Install", again::<Install>),
    ("InstallEntry", again::<table::InstallEntry>),
    ("InstallSender", again::<table::InstallSender>),
    ("Job", again::<Job>),
    ("KnownSender", again::<table::KnownSender>),
    ("LeftoversRecord", again::<table::LeftoversRecord>),
    ("LicenceRecord", again::<table::LicenceRecord>),
    ("LogRecord", again::<table::LogRecord>),
    ("MadeBy", again::<MadeBy>),
    ("NextSweep", again::<table::NextSweep>),
    ("NotFollowed", again::<table::NotFollowed>),
    ("OpenRun", again::<table::OpenRun>),
    ("OpenWorkflow", again::<table::OpenWorkflow>),
    ("QueueTurn", again::<table::QueueTurn>),
    ("RanRecord", again::<table::RanRecord>),
    ("Refused", again::<table::Refused>),
    ("ReleaseRecord", again::<table::ReleaseRecord>),
    ("ReportShard", again::<ReportShard>),
    ("ReportShards", again::<ReportShards>),
    ("RetiredNotice", again::<table::RetiredNotice>),
    ("RoleRunsRecord", again::<table::RoleRunsRecord>),
    ("RoleSwitchesRecord", again::<table::RoleSwitchesRecord>),
    ("Run", again::<Run>),
    ("RunEntry", again::<table::RunEntry>),
    ("Sending", again::<table::Sending>),
    ("SkippedRun", again::<table::SkippedRun>),
    ("StrangerTrustsRecord", again::<table::StrangerTrustsRecord>),
    ("TaskToken", again::<table::TaskToken>),
    ("TermsRecord", again::<table::TermsRecord>),
    ("Unbelievable", again::<table::Unbelievable>),
    ("UnknownReports", again::<table::UnknownReports>),
    ("UsedBy", again::<UsedBy>),
    ("VersionEntry", again::<table::VersionEntry>),
    ("VersionRecord", again::<table::VersionRecord>),
    ("Webhook", again::<Webhook>),
    ("WorkflowEntry", again::<table::WorkflowEntry>),
];

/// The rows that are not in [`TYPES`].
const OTHERS: [&str; 11] = [
    "GraphRow",
    "Invitation",
    "KeyedRequest",
    "KnownPrincipal",
    "LastChange",
    "Member",
    "PoliciesRecord",
    "ReservedKey",
    "SharedText",
    "StateRow",
    "prefix",
];

fn again<T: Record>(kept: &Kept) -> (Key, Value) {
    let row = Row { key: kept.key(), rev: 1, body: kept.body.to_string() };
    let record = parse::<T>(&row).unwrap_or_else(|error| panic!("{error}: {:?}", error.source)).value;
    (record.key(), serde_json::to_value(&record).unwrap())
}

/// Returns the row as this version reads and writes it; `None` for a row that is not in [`TYPES`].
fn read_and_written(kept: &Kept) -> Option<(Key, Value)> {
    let known = TYPES.iter().find(|(name, _)| *name == kept.of);
    assert!(known.is_some() || OTHERS.contains(&kept.of.as_str()), "no type of rows is called `{}`", kept.of);
    known.map(|(_, read_and_write)| read_and_write(kept))
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

fn rows(text: &str) -> Vec<Kept> {
    serde_json::from_str(text).unwrap()
}

async fn store_of(rows: &[Kept]) -> Memory {
    let memory = Memory::default();
    for row in rows {
        let _ = memory.commit(vec![row.write()]).await.unwrap();
    }
    memory
}

/// Returns the workflows among `rows`, and the rows that this version writes for each of them.
async fn workflows(rows: &[Kept]) -> Vec<(Workflow, Vec<(Key, Value)>)> {
    let store = store_of(rows).await;
    let mut found = Vec::new();
    for state in rows.iter().filter(|row| row.of == "StateRow") {
        let id: WorkflowId = state.pk.trim_start_matches("workflow#").parse().unwrap();
        let workflow = table::workflow(&store, &id).await.unwrap().value;
        let writes =
            [table::graph_write(&workflow).unwrap(), Some(table::put_workflow(&workflow, Expect::Any).unwrap())];
        let written = writes.into_iter().flatten().map(|write| {
            let Write::Put { key, body, .. } = write else { panic!("{write:?}") };
            (key, serde_json::from_str::<Value>(&body).unwrap())
        });
        found.push((workflow, written.collect()));
    }
    found
}

#[test]
fn each_row_is_read_as_its_type_and_nothing_of_it_is_lost() {
    let rows = rows(BEFORE);
    let types: BTreeSet<_> = rows.iter().map(|row| &row.of).collect();

    assert!(types.len() >= 53, "only rows of {} types are kept: {types:?}", types.len());
    for kept in &rows {
        let Some((key, written)) = read_and_written(kept) else { continue };
        let lost = lost(&kept.body, &written);

        assert!(lost.is_empty(), "{} {}: {lost:?}", kept.pk, kept.sk);
        assert_eq!(key, kept.key());
    }
}

#[test]
fn each_row_of_this_version_is_written_as_it_was_read() {
    for kept in rows(NOW) {
        let Some(written) = read_and_written(&kept) else { continue };

        assert_eq!(written, (kept.key(), kept.body));
    }
}

#[test]
fn each_message_of_an_internal_queue_is_read_and_nothing_of_it_is_lost() {
    fn check<T: Serialize + DeserializeOwned>(name: &str) {
        for (text, is_now) in MESSAGES {
            let all: BTreeMap<String, Vec<Value>> = serde_json::from_str(text).unwrap();

            assert!(all[name].len() >= 2, "{name}");
            for before in &all[name] {
                let message: T = serde_json::from_value(before.clone()).unwrap();
                let written = serde_json::to_value(message).unwrap();
                let lost = lost(before, &written);
                assert!(lost.is_empty() && (!is_now || written == *before), "{name}: {lost:?}");
            }
        }
    }
    check::<DispatchMessage>("DispatchMessage");
    check::<GrantMessage>("GrantMessage");
}

#[tokio::test]
async fn a_workflow_of_two_rows_is_read_and_written_as_the_same_two() {
    for (text, is_now) in [(BEFORE, false), (NOW, true)] {
        let rows = rows(text);
        let found = workflows(&rows).await;

        assert!(found.iter().any(|(workflow, _)| workflow.nodes.len() > 10), "no workflow with nodes is kept");
        for (key, written) in found.into_iter().flat_map(|(_, written)| written) {
            let before = rows.iter().find(|row| row.key() == key).unwrap_or_else(|| panic!("{key:?} has another name"));
            let lost = lost(&before.body, &written);
            assert!(lost.is_empty(), "{key:?}: {lost:?}");
            assert!(!is_now || written == before.body, "{key:?}: {written}");
        }
    }
}

#[tokio::test]
async fn what_only_a_later_version_knows_stays_in_a_row_that_is_written_again() {
    let later = Digest::of(b"nodes with a field of a later version");
    let mut rows = rows(NOW);
    for kept in &mut rows {
        match kept.of.as_str() {
            "Install" | "Job" | "Run" | "StateRow" => kept.body["of_a_later_version"] = json!({ "x": 1 }),
            "GraphRow" => {
                kept.body["nodes"][0]["target"]["of_a_later_version"] = json!(true);
                kept.sk = format!("graph#{}", later.hex());
            }
            _ => {}
        }
        if kept.body.get("graph").is_some() {
            kept.body["graph"] = json!(later);
        }
    }

    let found = workflows(&rows).await;

    let states = found.iter().filter_map(|(_, written)| written.last());
    for (key, written) in rows.iter().filter_map(read_and_written).chain(states.cloned()) {
        let before = rows.iter().find(|row| row.key() == key).unwrap();
        assert_eq!(written.get("of_a_later_version"), before.body.get("of_a_later_version"), "{key:?}");
        assert_eq!(written.get("graph"), before.body.get("graph"), "{key:?}");
    }
    assert!(found.iter().any(|(workflow, _)| workflow.graph_of_other_version.is_some()));
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
    for kept in tenant.rows.iter().filter(|row| row.pk.starts_with("app#") && row.sk.starts_with("build#")) {
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
    let event = AttemptEvent::finished(outcome, "done\n");
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
