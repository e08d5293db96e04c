//! What reports and the end of a gate's job store about a component, also if they come at the same moment.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use freehold_app::health::report_check::ReportCheck;
use freehold_app::table;
use freehold_protocol::api::CheckResult::Passed;

use super::report_check::{pass, passing, request, storage, waiting};
use crate::support::interleaving::Interleaved;
use crate::support::walk::At;
use crate::support::{globex, member};

#[tokio::test]
async fn of_reports_of_two_checks_at_the_same_moment_none_is_lost() {
    let (start, workflow, _) = waiting().await;
    let mut acts = 0;
    for at in 0.. {
        let mut world = start.copy();
        let called = Arc::new(AtomicBool::new(false));
        let store = Arc::new(Interleaved::new(world.memory.clone(), at, passing(&world, &["load"], &called)));

        let report = ReportCheck { store, ..world.report_check() };
        let check = "ci".parse().unwrap();
        report.report(&globex(), (&storage(), &check), &request(Passed), member()).await.unwrap();
        if !called.load(Ordering::Relaxed) {
            break;
        }
        let stored = table::reported_checks(&*world.memory, &globex()).await.unwrap();
        pass(&mut world, 10).await;

        assert_eq!(stored.len(), 2, "before call {at}");
        assert_eq!(world.machines[&workflow].at, At::Ended("succeeded"), "before call {at}");
        acts += 1;
    }
    assert!(acts > 5, "only {acts} calls");
}
