//! Idempotency keys: the same request gets the first answer, another body and another caller are refused, and of two
//! requests at once one is performed.

use std::sync::{Arc, Mutex};

use freehold_app::idempotency::{Attempt, Begun, IdempotentRequests, Request, Subject};
use freehold_app::ports::Row;
use freehold_app::testing::Fault;
use freehold_app::{AppError, Kind};
use freehold_protocol::api::{DeployComponentsRequest, ForgetInstallRequest, TeardownInstallRequest};
use freehold_protocol::limits::{KEPT_ANSWER_SECS, MAX_KEPT_REQUEST_BYTES};
use freehold_protocol::sealing::{SealedValue, SealingKey};
use freehold_protocol::{JobId, WorkflowId};

use crate::support::doubles::{Meanwhile, Racing};
use crate::support::walk::At;
use crate::support::{World, app, globex, member};

const CALLER: &str = "arn:aws:sts::111111111111:assumed-role/deployer";

fn requests(world: &World) -> IdempotentRequests {
    IdempotentRequests { store: world.memory.clone(), clock: world.memory.clone() }
}

/// Returns the try `id` of a request about the app `demo`.
fn of_app<'a>(id: &'a str, body: &'a str) -> Request<'a> {
    let (path, key) = ("/v1/apps/demo/releases", "monday");
    Request { subject: Subject::App("demo".parse().unwrap()), path, key, body, caller: CALLER, id, keeps_answer: true }
}

/// Returns a request about `subject` with an empty object as its body.
fn about(subject: Subject, id: &str) -> Request<'_> {
    Request { subject, path: "/v1/path", key: "monday", body: "{}", caller: CALLER, id, keeps_answer: true }
}

/// Begins a request that has to be performed.
async fn attempt(world: &World, request: &Request<'_>) -> Attempt {
    match requests(world).begin(request).await.unwrap() {
        Begun::Now(attempt) => attempt,
        Begun::Before(answer) => panic!("answered with {answer}"),
    }
}

/// Performs a request with this answer.
async fn perform(world: &World, request: &Request<'_>, answer: Result<&str, AppError>) {
    let attempt = attempt(world, request).await;
    requests(world).end(attempt, &answer.map(str::to_owned)).await;
}

/// Returns the answer that the request had before; `None` if it has to be performed.
async fn before(world: &World, request: &Request<'_>) -> Option<String> {
    match requests(world).begin(request).await.unwrap() {
        Begun::Before(answer) => Some(answer),
        Begun::Now(_) => None,
    }
}

async fn refused(world: &World, request: &Request<'_>) -> (Kind, String) {
    let error = requests(world).begin(request).await.unwrap_err();
    (error.kind, error.message)
}

fn rows(world: &World) -> Vec<Row> {
    world.memory.rows().into_iter().filter(|row| row.key.sk.starts_with("request#")).collect()
}

#[tokio::test]
async fn a_repeated_request_gets_the_first_answer_for_a_day() {
    let world = World::new();
    perform(&world, &of_app("1", "{}"), Ok("first")).await;

    world.memory.advance_secs(KEPT_ANSWER_SECS - 1);
    let last = before(&world, &of_app("2", "{}")).await;
    world.memory.advance_secs(1);
    let later = before(&world, &of_app("3", "{}")).await;

    assert_eq!((last.as_deref(), later), (Some("first"), None));
}

#[tokio::test]
async fn a_key_with_another_body_is_refused_and_counts_for_each_path_alone() {
    let world = World::new();
    perform(&world, &of_app("1", r#"{ "name": "2026.11" }"#), Ok("first")).await;

    let other = refused(&world, &of_app("2", r#"{ "name": "2026.12" }"#)).await;
    let spaced = before(&world, &of_app("3", r#"{"name":"2026.11"}"#)).await;
    let path = before(&world, &Request { path: "/v1/apps/demo/builds", ..of_app("4", "{}") }).await;
    let key = before(&world, &Request { key: "tuesday", ..of_app("5", "{}") }).await;

    assert_eq!(other, (Kind::Conflict, "idempotency key was used for another request; use a new key".to_owned()));
    assert_eq!((spaced.as_deref(), path, key), (Some("first"), None, None));
}

#[tokio::test]
async fn a_key_of_another_caller_is_refused() {
    let world = World::new();
    perform(&world, &of_app("1", "{}"), Ok("first")).await;

    let other = "arn:aws:iam::111111111111:user/ben";
    let (kind, message) = refused(&world, &Request { caller: other, ..of_app("2", "{}") }).await;

    assert_eq!(kind, Kind::Conflict);
    assert_eq!(message, format!("idempotency key was used by another caller, `{CALLER}`; use a new key"));
}

#[tokio::test]
async fn a_value_that_was_sealed_again_is_the_same_body_and_is_stored_again() {
    let world = World::new();
    let key = || SealingKey::from_bytes([7; 32]);
    let sealed = |byte: u8| SealedValue::new(key(), [byte; 32], vec![byte; 40]);
    let body = |byte: u8| format!(r#"{{"inputs":{{"key":"{}"}}}}"#, sealed(byte));
    perform(&world, &of_app("1", &body(1)), Ok("first")).await;

    let same = before(&world, &of_app("2", &body(1))).await;
    let other = refused(&world, &of_app("3", &body(1).replace("key", "token"))).await;
    perform(&world, &of_app("4", &body(2)), Ok("second")).await;
    let corrected = before(&world, &of_app("5", &body(2))).await;

    assert_eq!((same.as_deref(), other.0), (Some("first"), Kind::Conflict));
    assert_eq!(corrected.as_deref(), Some("second"));
}

#[tokio::test]
async fn a_refused_correction_leaves_the_first_answer() {
    let world = World::new();
    let key = || SealingKey::from_bytes([7; 32]);
    let body =
        |byte: u8| format!(r#"{{"inputs":{{"key":"{}"}}}}"#, SealedValue::new(key(), [byte; 32], vec![byte; 40]));
    perform(&world, &of_app("1", &body(1)), Ok("first")).await;
    let row = rows(&world).remove(0).body;

    perform(&world, &of_app("2", &body(2)), Err(AppError::conflict("install `globex` is busy"))).await;
    let restored = rows(&world).remove(0).body;
    let first = before(&world, &of_app("3", &body(1))).await;
    let corrected = before(&world, &of_app("4", &body(2))).await;

    assert_eq!((restored, first.as_deref(), corrected), (row, Some("first"), None));
}

#[tokio::test]
async fn of_two_requests_at_once_one_is_performed_and_the_other_is_answered_afterwards() {
    let world = World::new();
    let first = attempt(&world, &of_app("1", "{}")).await;

    let second = requests(&world).begin(&of_app("2", "{}")).await.unwrap_err();
    let other = refused(&world, &of_app("3", r#"{ "name": "x" }"#)).await;
    requests(&world).end(first, &Ok("first".to_owned())).await;
    let again = before(&world, &of_app("2", "{}")).await;

    assert_eq!(second.message, "a request with idempotency key `monday` is being performed; try again");
    assert_eq!((second.kind, second.soon, other.0), (Kind::Transient, true, Kind::Conflict));
    assert_eq!(again.as_deref(), Some("first"));
}

#[tokio::test]
async fn two_requests_that_claim_a_key_at_the_same_moment_are_told_apart() {
    let world = World::new();
    let other = requests(&world);
    let meanwhile: Meanwhile = Box::pin(async move {
        let begun = other.begin(&of_app("2", "{}")).await.unwrap();
        assert!(matches!(begun, Begun::Now(_)));
    });
    let store = Racing { memory: Arc::clone(&world.memory), meanwhile: Mutex::new(Some(meanwhile)) };

    let late = IdempotentRequests { store: Arc::new(store), clock: world.memory.clone() };
    let error = late.begin(&of_app("1", "{}")).await.unwrap_err();

    assert_eq!((error.kind, error.soon), (Kind::Transient, true));
    assert_eq!(rows(&world).len(), 1);
}

#[tokio::test]
async fn a_request_whose_function_was_stopped_is_performed_again() {
    let world = World::new();
    let stopped = attempt(&world, &of_app("1", "{}")).await;

    world.memory.advance_secs(15);
    let meanwhile = refused(&world, &of_app("2", "{}")).await;
    world.memory.advance_secs(1);
    let second = attempt(&world, &of_app("3", "{}")).await;
    // The answer of the first function would come too late.
    requests(&world).end(stopped, &Ok("first".to_owned())).await;
    requests(&world).end(second, &Ok("second".to_owned())).await;

    assert_eq!(meanwhile.0, Kind::Transient);
    assert_eq!(before(&world, &of_app("4", "{}")).await.as_deref(), Some("second"));
}

#[tokio::test]
async fn a_refusal_frees_the_key_and_every_other_error_keeps_it_for_the_body() {
    let world = World::new();
    perform(&world, &of_app("1", r#"{ "name": "" }"#), Err(AppError::invalid("wrong name"))).await;
    let freed = rows(&world).is_empty();

    let lost = AppError::new(Kind::Transient, "table did not answer; try again");
    perform(&world, &of_app("2", "{}"), Err(lost)).await;
    let other = refused(&world, &of_app("3", r#"{ "name": "x" }"#)).await;
    // The first try may have had an effect, so that the second one is refused.
    perform(&world, &of_app("4", "{}"), Err(AppError::conflict("install `globex` is busy"))).await;
    let another = refused(&world, &of_app("5", r#"{ "name": "x" }"#)).await;
    perform(&world, &of_app("6", "{}"), Ok("first")).await;

    assert!(freed);
    assert_eq!([other.0, another.0], [Kind::Conflict; 2]);
    assert_eq!(before(&world, &of_app("7", "{}")).await.as_deref(), Some("first"));
}

#[tokio::test]
async fn a_refusal_after_a_change_keeps_the_key_for_the_body() {
    let world = World::new();
    let refusal = AppError::not_found("install `globex` does not exist").after_change();
    perform(&world, &of_app("1", "{}"), Err(refusal)).await;

    let other = refused(&world, &of_app("2", r#"{ "name": "x" }"#)).await;

    assert_eq!(other.0, Kind::Conflict);
    assert_eq!(before(&world, &of_app("3", "{}")).await, None);
}

#[tokio::test]
async fn without_its_answer_a_request_is_performed_again_and_its_key_is_for_its_body_alone() {
    let world = World::new();
    let (fits, long) = ("x".repeat(MAX_KEPT_REQUEST_BYTES - 1024), "x".repeat(MAX_KEPT_REQUEST_BYTES));
    let upload = |id| Request { keeps_answer: false, path: "/v1/apps/demo/sources", ..of_app(id, "{}") };
    perform(&world, &upload("1"), Ok("https://bucket.invalid/first")).await;

    let again = before(&world, &upload("2")).await;
    perform(&world, &Request { key: "fits", ..of_app("3", "{}") }, Ok(&fits)).await;
    let short = before(&world, &Request { key: "fits", ..of_app("4", "{}") }).await;
    perform(&world, &Request { key: "long", ..of_app("5", "{}") }, Ok(&long)).await;
    let other = refused(&world, &Request { key: "long", ..of_app("6", "[]") }).await;
    let dropped = before(&world, &Request { key: "long", ..of_app("7", "{}") }).await;

    assert_eq!((again, short, dropped), (None, Some(fits), None));
    assert_eq!(other.0, Kind::Conflict);
}

#[tokio::test]
async fn an_answer_is_kept_if_its_row_fits_into_the_table() {
    let world = World::new();
    // In the row, each quotation mark has a backslash before it.
    let quotes = "\"".repeat(MAX_KEPT_REQUEST_BYTES - 1024);
    perform(&world, &of_app("1", "{}"), Ok(&quotes)).await;

    let row = rows(&world).remove(0);

    assert!(row.body.len() <= MAX_KEPT_REQUEST_BYTES, "{}", row.body.len());
    assert_eq!(before(&world, &of_app("2", "{}")).await, None);
    assert_eq!(refused(&world, &of_app("3", "[]")).await.0, Kind::Conflict);
}

#[tokio::test]
async fn an_answer_that_cannot_be_stored_is_found_by_performing_the_request_again() {
    let world = World::new();
    let attempt = attempt(&world, &of_app("1", "{}")).await;
    world.memory.faults.set(|what| (what == "commit").then_some(Fault::Before));
    requests(&world).end(attempt, &Ok("first".to_owned())).await;
    world.memory.faults.set(|_| None);

    let at_once = refused(&world, &of_app("2", "{}")).await;
    world.memory.advance_secs(16);
    let later = before(&world, &of_app("3", "{}")).await;

    assert_eq!((at_once.0, later), (Kind::Transient, None));
}

/// Starts a deploy of everything by the try `id` of a request with a key.
async fn deploy(world: &World, id: &str) -> WorkflowId {
    let path = "/v1/installs/globex/deploys";
    let request = Request { path, body: r#"{ "all": true }"#, ..about(Subject::Install(globex()), id) };
    let attempt = match requests(world).begin(&request).await.unwrap() {
        Begun::Before(answer) => return answer.parse().unwrap(),
        Begun::Now(attempt) => attempt,
    };
    let all = DeployComponentsRequest { all: true, ..Default::default() };
    let started = world.deploy(&all, &attempt.cause).await.unwrap();
    requests(world).end(attempt, &Ok(started.to_string())).await;
    started
}

#[tokio::test]
async fn a_key_starts_another_workflow_in_another_install_of_the_same_name() {
    let mut world = World::with_install().await;
    let first = deploy(&world, "1").await;
    world.settle().await;
    let again = deploy(&world, "2").await;
    world.teardown(&TeardownInstallRequest::default(), "teardown-1").await.unwrap();
    world.settle().await;
    world.memory.advance_secs(2 * 3600);
    world.forget_install().forget(&globex(), &ForgetInstallRequest::default()).await.unwrap();
    world.forgotten().await;
    world.forget_orders();
    world.create().await;
    world.run().await;
    world.hello("globex");
    world.settle().await;

    let second = deploy(&world, "3").await;
    world.settle().await;

    assert_eq!(again, first);
    assert_ne!(second, first, "Step Functions takes no name twice");
    assert_eq!(world.machines[&second].at, At::Ended("succeeded"));
}

#[tokio::test]
async fn a_key_starts_another_workflow_at_another_path() {
    let mut world = World::with_install().await;
    let deployed = deploy(&world, "1").await;
    world.settle().await;

    let path = "/v1/installs/globex/teardowns";
    let teardown = attempt(&world, &Request { path, ..about(Subject::Install(globex()), "2") }).await;
    let removed = world.teardown(&TeardownInstallRequest::default(), &teardown.cause).await.unwrap();

    assert_ne!(removed, deployed);
}

#[tokio::test]
async fn the_answers_about_a_deleted_install_do_not_count_for_the_next_one() {
    let mut world = World::with_app().await;
    let create = |id| Request { path: "/v1/installs", ..about(Subject::NewInstall(globex()), id) };
    let delete = |id| Request { path: "/v1/installs/globex/delete", ..about(Subject::Install(globex()), id) };
    let creation = attempt(&world, &create("1")).await;
    world.create().await;
    requests(&world).end(creation, &Ok("created".to_owned())).await;
    let created = before(&world, &create("2")).await;
    let deletion = attempt(&world, &delete("3")).await;
    world.delete_install().delete(&globex(), member()).await.unwrap();
    requests(&world).end(deletion, &Ok("deleted".to_owned())).await;

    let deleted = before(&world, &delete("4")).await;
    let creation = attempt(&world, &create("5")).await;
    world.create().await;
    requests(&world).end(creation, &Ok("created again".to_owned())).await;
    let again = before(&world, &create("6")).await;
    let next = before(&world, &delete("7")).await;

    assert_eq!((created.as_deref(), deleted.as_deref()), (Some("created"), Some("deleted")));
    assert_eq!((again.as_deref(), next), (Some("created again"), None));
}

#[tokio::test]
async fn no_row_is_written_for_an_install_that_is_missing_or_being_forgotten() {
    let world = World::with_install().await;
    world.memory.advance_secs(2 * 3600);
    let gone = ForgetInstallRequest { customer_gone: true };
    world.forget_install().forget(&globex(), &gone).await.unwrap();

    for subject in
        [Subject::Install(globex()), Subject::NewInstall(globex()), Subject::Install("initech".parse().unwrap())]
    {
        perform(&world, &about(subject, "1"), Ok("done")).await;
    }

    assert!(rows(&world).is_empty());
}

#[tokio::test]
async fn the_keys_of_a_forgotten_install_are_removed_with_it() {
    let mut world = World::with_runbook(&app::with_runbook()).await;
    let run = world.run_runbook("fix", "runbook-1").await.unwrap();
    world.settle().await;
    let workflow = world.provisioning("globex").await;
    let job = JobId::derive(&workflow, &world.workflow(&workflow).await.nodes[0].name);
    for subject in [Subject::Install(globex()), Subject::Workflow(workflow), Subject::Job(job), Subject::Run(run.id)] {
        perform(&world, &about(subject, "1"), Ok("done")).await;
    }
    let stored = rows(&world).len();

    world.memory.advance_secs(2 * 3600);
    world.forget_install().forget(&globex(), &ForgetInstallRequest { customer_gone: true }).await.unwrap();
    world.forgotten().await;

    assert_eq!((stored, rows(&world)), (4, Vec::new()));
}
