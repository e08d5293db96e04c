//! Sends the reports in the spool to the queue, oldest first.

use std::time::Duration;

use tokio::time::Instant;
use tracing::{error, info, warn};

use super::Spool;
use crate::backoff::Backoff;
use crate::process::watchdog::Beat;
use crate::wire::inbox::{InboxError, Outbox, Sent};

/// The longest pause between two signs of progress ([`Beat::alive`]) while there are no reports to send.
const IDLE: Duration = Duration::from_secs(60);
/// The pause between the first report and its request. Reports that follow at once go in the same request. The first
/// program of a job starts meanwhile: to make a request takes longer than to start a program, on the same thread.
const GATHER: Duration = Duration::from_millis(5);

/// Sends the reports in `spool`. Never returns.
pub async fn run(spool: &Spool, outbox: &dyn Outbox, beat: &Beat) {
    let mut backoff = Backoff::new(Duration::from_millis(200), Duration::from_secs(30));
    let mut failing_since: Option<Instant> = None;
    loop {
        beat.alive();
        let batch = spool.batch();
        if batch.is_empty() {
            let _ = tokio::time::timeout(IDLE, spool.added.notified()).await;
            tokio::time::sleep(GATHER).await;
            continue;
        }
        let (at, bodies): (Vec<u64>, Vec<String>) = batch.into_iter().unzip();
        let progress = match outbox.send(&bodies).await {
            Ok(sent) => {
                spool.answered(None);
                settle(spool, &at, sent)
            }
            Err(error) => {
                spool.answered(matches!(error, InboxError::Denied(_)).then(|| error.to_string()));
                if failing_since.is_none() {
                    warn!("Cannot send reports yet: {error}");
                }
                hint(&error, failing_since);
                false
            }
        };
        if progress {
            if let Some(since) = failing_since.take() {
                info!(waited_secs = since.elapsed().as_secs(), "The reports queue accepts reports again");
            }
            backoff.succeeded();
        } else {
            failing_since.get_or_insert_with(Instant::now);
            tokio::time::sleep(backoff.failed()).await;
        }
    }
}

/// Removes the reports that need no retry. Returns whether there were any.
fn settle(spool: &Spool, at: &[u64], sent: Vec<Sent>) -> bool {
    let mut progress = false;
    for (at, sent) in at.iter().zip(sent) {
        match sent {
            Sent::Taken => spool.remove_sent(*at),
            Sent::Never(reason) => {
                error!("Dropped a report that the queue will never accept: {reason}");
                spool.remove_refused(*at);
            }
            Sent::Later => continue,
        }
        progress = true;
    }
    progress
}

fn hint(error: &InboxError, failing_since: Option<Instant>) {
    // A policy that allows the call does not help against a policy that denies it, such as the policy of revoked
    // sessions.
    let is_denied = matches!(error, InboxError::Denied(why) if !why.contains("explicit deny"));
    if is_denied && failing_since.is_none() {
        warn!(
            "Allow `sqs:SendMessage` on the reports queue for this runner's role, in the policies of the role and of \
             the queue"
        );
    }
}
