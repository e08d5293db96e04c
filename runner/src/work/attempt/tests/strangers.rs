//! What the runner finds when it looks at whom the app's roles trust: before a job, and after every end of an attempt.

use freehold_protocol::order::RemovePart;

use super::*;
use crate::identity::trusts::AppRole;

const ROLE: &str = "arn:aws:iam::222222222222:role/freehold/acme--globex-prod/api";
const STRANGER: &str =
    r#"{"Statement":{"Effect":"Allow","Principal":{"AWS":"111111111111"},"Action":"sts:AssumeRole"}}"#;

/// Gives the app one role.
fn trust_by(world: &World, arn: &str, trust: &str) {
    *world.roles.0.lock().unwrap() = Some(vec![AppRole { arn: arn.to_owned(), trust: trust.to_owned() }]);
}

/// Returns what the audit says of strangers.
fn written(world: &World) -> String {
    let text = std::fs::read_to_string(world.state.path().join("audit.jsonl")).unwrap();
    let records = text.lines().map(|line| Envelope::parse(line.as_bytes()).unwrap().peek::<AuditRecord>().unwrap());
    let found = records.filter_map(|record| match record.event {
        AuditEvent::Strangers { roles, .. } => Some(roles),
        _ => None,
    });
    found.flatten().map(|(role, strangers)| format!("{role} trusts {}\n", strangers.join(", "))).collect()
}

#[tokio::test(start_paused = true)]
async fn a_job_after_which_a_role_trusts_a_stranger_has_failed_and_is_written_down() {
    let world = World::new(Play::Succeed);
    let trust = r#"{"Statement":{"Effect":"Allow","Principal":{"AWS":"111111111111"},"Action":"sts:AssumeRole"}}"#;
    let arn = "arn:aws:iam::222222222222:role/freehold/acme--globex-prod/api".to_owned();
    trust_by(&world, &arn, trust);
    world.queue.send(sealed(&order(1, 7)));

    world.until_deleted().await;

    assert_eq!(world.sent(), ["1.1 started", "1.1 failed (partial)"]);
    let Some(ReportBody::Attempt(last)) = world.reports().pop() else { panic!() };
    let AttemptEvent::Finished { outcome: Outcome::Failed { reason, .. }, log, .. } = last.event else { panic!() };
    assert!(reason.contains(&format!("role `{arn}` trusts `111111111111`")) && reason.contains("is done"), "{reason}");
    assert!(log.contains(&arn), "{log}");
    assert!(written(&world).contains(&format!("{arn} trusts 111111111111")));
}

/// Returns the roles that the report of the end names, after a job in an account with these roles.
async fn reported(roles: Option<Vec<AppRole>>) -> Option<Vec<String>> {
    let world = World::new(Play::Succeed);
    *world.roles.0.lock().unwrap() = roles;
    world.queue.send(sealed(&order(1, 7)));
    world.until_deleted().await;
    let Some(ReportBody::Attempt(last)) = world.reports().pop() else { panic!() };
    let AttemptEvent::Finished { roles_trusting_strangers, .. } = last.event else { panic!() };
    roles_trusting_strangers.map(|roles| roles.iter().map(ToString::to_string).collect())
}

/// The control plane notifies people of these roles.
#[tokio::test(start_paused = true)]
async fn the_report_of_the_end_names_the_roles_that_trust_a_stranger_if_they_could_be_checked() {
    let role = |arn: &str, trust: &str| AppRole { arn: arn.to_owned(), trust: trust.to_owned() };
    let other = "arn:aws:iam::222222222222:role/acme--globex-prod--db";
    let own = STRANGER.replace("111111111111", "222222222222");

    let found = reported(Some(vec![role(ROLE, STRANGER), role(other, STRANGER)])).await;
    assert_eq!(found.unwrap(), ["acme--globex-prod--db", "api"]);
    assert_eq!(reported(Some(vec![role(ROLE, &own)])).await.unwrap(), [""; 0]);
    assert_eq!(reported(None).await, None);
}

#[tokio::test(start_paused = true)]
async fn a_removal_is_looked_after_as_the_work_that_it_undoes() {
    let world = World::new(Play::Succeed);
    let trust = r#"{"Statement":{"Effect":"Allow","Principal":"*","Action":"sts:AssumeRole"}}"#;
    let arn = "arn:aws:iam::222222222222:role/freehold/acme--globex-prod/left".to_owned();
    trust_by(&world, &arn, trust);
    let mut removal = order(1, 7);
    removal.work =
        Work::Remove(RemovePart { what: Box::new(removal.work), destroy_data: false, removes_policies: false });
    world.queue.send(sealed(&removal));

    world.until_deleted().await;

    assert_eq!(world.sent(), ["1.1 started", "1.1 failed (partial)"]);
}

#[tokio::test(start_paused = true)]
async fn a_job_whose_roles_cannot_be_listed_has_not_succeeded() {
    let world = World::new(Play::Succeed);
    *world.roles.0.lock().unwrap() = None;
    world.queue.send(sealed(&order(1, 7)));

    world.until_deleted().await;

    assert_eq!(world.sent(), ["1.1 started", "1.1 failed (partial)"]);
}

/// The names of the issuers of all accounts in a region have one form, so the form alone shows nothing.
#[tokio::test(start_paused = true)]
async fn a_role_that_trusts_the_cluster_of_another_account_fails_the_job_and_one_of_this_account_does_not() {
    let trusting = |id: &str| {
        let provider = format!("arn:aws:iam::222222222222:oidc-provider/oidc.eks.eu-west-1.amazonaws.com/id/{id}");
        serde_json::json!({ "Statement": {
            "Effect": "Allow", "Principal": { "Federated": provider }, "Action": "sts:AssumeRoleWithWebIdentity",
        } })
    };
    let ends = async |id: &str| {
        let world = World::new(Play::Succeed);
        trust_by(&world, ROLE, &trusting(id).to_string());
        world.queue.send(sealed(&order(1, 7)));
        world.until_deleted().await;
        world.sent()
    };

    assert_eq!(ends("OWN").await, ["1.1 started", "1.1 succeeded"]);
    assert_eq!(ends("THEIRS").await, ["1.1 started", "1.1 failed (partial)"]);
}

/// The vendor's code that makes a plan runs with the mode's rights.
#[tokio::test(start_paused = true)]
async fn a_plan_that_waits_is_looked_after() {
    let world = World::new(Play::Plan);
    trust_by(&world, ROLE, STRANGER);
    world.queue.send(sealed(&order(1, 7)));

    world.until_deleted().await;

    assert_eq!(world.sent(), ["1.1 started", "1.1 failed (partial)"]);
    assert!(written(&world).contains("111111111111"));
}

#[tokio::test(start_paused = true)]
async fn an_attempt_that_lost_its_lease_is_looked_after() {
    let world = World::new(Play::Wait);
    world.queue.send(sealed(&order(1, 7)));
    world.until("the start", |world| world.begun() == 1).await;
    trust_by(&world, ROLE, STRANGER);

    world.agent.in_flight.stop_all(StopReason::LeaseLost);
    world.until("the record", |world| written(world).contains("111111111111")).await;

    assert_eq!(world.sent(), ["1.1 started"], "another attempt may be running");
}

#[tokio::test(start_paused = true)]
async fn an_attempt_that_is_left_to_the_next_runner_is_looked_after() {
    let world = World::new(Play::Wait);
    world.queue.send(sealed(&order(1, 7)));
    world.until("the start", |world| world.begun() == 1).await;
    trust_by(&world, ROLE, STRANGER);

    world.agent.in_flight.stop_all(StopReason::Draining);
    world.until("the record", |world| written(world).contains("111111111111")).await;

    assert_eq!(world.sent(), ["1.1 started"]);
}

/// An earlier attempt may have ended with its machine, and this job may be the one that removes the trust.
#[tokio::test(start_paused = true)]
async fn what_is_found_before_a_job_is_written_down_and_fails_nothing() {
    let world = World::new(Play::Minute);
    trust_by(&world, ROLE, STRANGER);
    world.queue.send(sealed(&order(1, 7)));

    world.until("the record", |world| world.begun() == 1 && written(world).contains("111111111111")).await;
    *world.roles.0.lock().unwrap() = Some(Vec::new());
    world.until_deleted().await;

    assert_eq!(world.sent(), ["1.1 started", "1.1 succeeded"]);
}
