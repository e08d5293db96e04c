//! Faults of reports on their way to the control plane.

use std::time::Duration;

use anyhow::ensure;

use super::calls::{self, Work};
use super::cell::{Begun, Cell};
use super::class::{Point, Tried, declare};
use super::table::ends_right;
use crate::harness::wait::{SOON, until};

declare! {
    7 "reports arrive out of order" out_of_order [];
    8 "a report is lost, or its acknowledgement" lost_reports [];
    34 "the control plane is down for long" control_plane_down [];
}

/// All reports of a run wait in the queue, and come out in another order, some of them twice.
async fn out_of_order(cell: &mut Cell, mut point: Point) -> anyhow::Result<Tried> {
    let begun = act_unheard(cell).await?;
    let mut reports = cell.queues.take_all("reports").await?;
    ensure!(reports.len() > 1, "there are only {} reports", reports.len());
    let as_sent = reports.clone();
    let again = point.rng.usize(0..reports.len());
    reports.push(as_sent[again].clone());
    while reports.starts_with(&as_sent) {
        point.rng.shuffle(&mut reports);
    }
    for report in &reports {
        cell.queues.send("reports", report).await?;
    }
    cell.queues.enable("reports", true).await?;
    cell.succeeds(&begun).await?;
    cell.queues.empty("reports").await?;
    cell.succeeds(&begun).await?;
    Ok(Tried::Passed)
}

/// The runner's message is lost, or only the queue's answer, up to three times in a row, from each of its messages on.
async fn lost_reports(cell: &mut Cell, point: Point) -> anyhow::Result<Tried> {
    const FAULTS: [&str; 4] = ["drop-request", "drop-answer", "error", "truncate"];
    let messages = cell.calls(&point, Work::Note, calls::REPORTS).await?;
    let [fault, more, skip] = point.among([FAULTS.len(), 3, messages]);
    cell.fail(calls::REPORTS, FAULTS[fault], &format!("skip={skip} times={}", more + 1))?;
    let begun = cell.act("note").await?;
    ends_right(cell, &begun).await
}

/// No function reads a queue and every call of every function fails, for up to half a minute, while the runner works.
async fn control_plane_down(cell: &mut Cell, point: Point) -> anyhow::Result<Tried> {
    let secs = point.of(&[5, 10, 15, 20, 25, 30]);
    cell.effects().hold(true);
    let begun = cell.act("note").await?;
    cell.wrote(&begun, "begin", 0).await?;
    cell.queues.enable_all(false).await?;
    cell.on_functions("* 1 error")?;
    cell.effects().hold(false);
    cell.wrote(&begun, "end", 0).await?;
    tokio::time::sleep(Duration::from_secs(secs)).await;
    let waiting = cell.queues.length("reports").await?;
    let running = !cell.workflow(&begun.workflow).await?.state.is_terminal();
    cell.calm();
    cell.queues.enable_all(true).await?;
    cell.succeeds(&begun).await?;
    Ok(Tried::when(waiting > 0 && running))
}

/// Runs `note` while nobody reads the reports; returns when all of them are in the queue.
async fn act_unheard(cell: &mut Cell) -> anyhow::Result<Begun> {
    // What the runner said before is not of this run.
    cell.queues.empty("reports").await?;
    cell.queues.enable("reports", false).await?;
    let begun = cell.act("note").await?;
    cell.wrote(&begun, "end", 0).await?;
    // The order goes when the report of the end is in the spool.
    cell.queues.empty(&format!("{}.fifo", cell.install.name)).await?;
    // Another fault may have replaced the machine; the spool of the old one is nobody's.
    let spool = cell.runner.state_directory()?.join("spool");
    let sent = || async {
        let waiting = std::fs::read_dir(&spool)?.flatten().filter(|entry| entry.path().is_file()).count();
        Ok((waiting == 0).then_some(()))
    };
    until("the runner has sent its reports", SOON, sent).await?;
    Ok(begun)
}
