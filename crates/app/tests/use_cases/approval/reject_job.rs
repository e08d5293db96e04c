//! Rejecting a plan: the job ends, has changed nothing, and its workflow ends.

use freehold_app::Kind;
use freehold_protocol::Digest;
use freehold_protocol::api::RejectJobRequest;
use freehold_protocol::approval::Side;

use super::approve_job::waiting;
use crate::support::member;
use crate::support::walk::At;

#[tokio::test]
async fn a_rejected_plan_ends_the_job_with_who_and_why_and_nothing_is_changed() {
    let (mut world, workflow, job) = waiting(&[Side::Vendor]).await;
    let request = |reason: &str| RejectJobRequest { plan: Digest::of(b"plan"), reason: reason.into() };

    let empty = world.reject_job().reject(&job, &request(" "), member()).await.unwrap_err();
    world.reject_job().reject(&job, &request("it deletes the data"), member()).await.unwrap();
    world.memory.advance_secs(60);
    world.sweeper().sweep().await.unwrap();
    world.run().await;

    let rejected = world.job(&job).await;
    assert_eq!(empty.kind, Kind::Invalid);
    assert!(rejected.reason().unwrap().contains("ana (vendor) rejected the plan: it deletes the data"));
    assert!(rejected.changed_nothing());
    assert_eq!(world.machines[&workflow].at, At::Ended("failed"));
}
