//! Supervises a running job: reports its log, enforces its time limit, and ends it when it must stop.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use freehold_protocol::limits::MAX_OUTPUTS_BYTES;
use freehold_protocol::order::Redelivery;
use freehold_protocol::report::{AttemptEvent, Outcome};
use serde_json::Value;
use tokio::task::JoinError;
use tokio::time::{Instant, MissedTickBehavior};
use tokio_util::task::AbortOnDropHandle;
use tracing::warn;

use crate::aws;
use crate::job::{Execute, Job, STOP_GRACE, StopReason};
use crate::record::log::JobLog;
use crate::wire::report::{AttemptReporter, shortened};
use crate::work::in_flight::HeldOrder;

/// The time after which the start of a job is reported. The first program of a job starts within this time.
const START_REPORT_AFTER: Duration = Duration::from_millis(5);
/// The interval at which new log lines are reported.
const LOG_EVERY: Duration = Duration::from_secs(2);
/// The interval at which progress is reported while a job has no new log lines.
const PROGRESS_EVERY: Duration = Duration::from_secs(60);
/// A job that ignores the stop signal is killed this long before its lease ends.
const LAST_MOMENT: Duration = Duration::from_secs(1);

/// The limits of one attempt.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    pub time: Duration,
    /// Whether `time` ends when the order expires, because this is earlier than the end of the order's time limit.
    pub ends_by_expiry: bool,
    pub redelivery: Redelivery,
}

/// How a supervised job ended.
#[derive(Debug, Clone, PartialEq)]
pub enum Ended {
    /// The job ended with this outcome, which the caller must report.
    Finished(Outcome),
    /// Another attempt may be running already, so this attempt reports nothing.
    LeaseLost,
    /// The job is left to the next runner, which resumes it.
    LeftToNext,
}

/// Runs `job` within `limits` and returns how it ended.
pub async fn run(
    kinds: Arc<dyn Execute>,
    job: Job,
    held: &HeldOrder,
    reporter: &AttemptReporter,
    limits: Limits,
) -> Ended {
    let log = job.log.clone();
    let mut work = AbortOnDropHandle::new(tokio::spawn(async move { kinds.execute(&job).await }));
    let outcome = match report_start(&mut work, reporter).await {
        Some(outcome) => outcome,
        None => watch(&mut work, &log, held, reporter, limits).await,
    };
    // The processes of the job must have ended before its outcome is recorded.
    drop(work);
    conclude(held.signal.reason(), outcome, limits, &log)
}

/// Reports that the job has started, and returns its outcome if it has ended already. To sign, store and send the report
/// takes longer than to start a program, so the first program of the job does not wait for it.
async fn report_start(work: &mut AbortOnDropHandle<Outcome>, reporter: &AttemptReporter) -> Option<Outcome> {
    let ended = tokio::time::timeout(START_REPORT_AFTER, work).await.ok();
    if let Err(error) = reporter.start() {
        // The next report shows the attempt to the control plane.
        warn!("{}", aws::explain(&error));
    }
    ended.map(|ended| ended.unwrap_or_else(|error| broke_off(&error)))
}

/// Reports the log of the running job, stops the job when it must stop, and returns its outcome.
async fn watch(
    work: &mut AbortOnDropHandle<Outcome>,
    log: &JobLog,
    held: &HeldOrder,
    reporter: &AttemptReporter,
    limits: Limits,
) -> Outcome {
    let deadline = Instant::now() + limits.time;
    let mut last_report = Instant::now();
    let mut ticks = tokio::time::interval_at(Instant::now() + LOG_EVERY, LOG_EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut asked_to_stop: Option<Instant> = None;
    let mut warned = false;
    loop {
        let dropped_at = asked_to_stop.map(|since| last_moment(held, since));
        tokio::select! {
            biased;
            ended = &mut *work => return ended.unwrap_or_else(|error| broke_off(&error)),
            reason = held.signal.stopped(), if asked_to_stop.is_none() => {
                log.line(sentence(reason, limits));
                asked_to_stop = Some(Instant::now());
            }
            () = until(dropped_at) => {
                warn!(job.id = %held.order.job, "Dropped job `{}`: it did not stop when it was asked to", held.order.job);
                let reason = "the job did not stop when it was asked to, and was killed".to_owned();
                return Outcome::Failed { reason, partial: true };
            }
            () = tokio::time::sleep_until(deadline), if asked_to_stop.is_none() => held.stop(StopReason::TimedOut),
            _ = ticks.tick() => {
                if !log.has_pending() && last_report.elapsed() < PROGRESS_EVERY {
                    continue;
                }
                last_report = Instant::now();
                if let Err(error) = reporter.event(AttemptEvent::Progress { log: log.take_chunk() })
                    && !std::mem::replace(&mut warned, true)
                {
                    warn!("Cannot report progress: {}", aws::explain(&error));
                }
            }
        }
    }
}

/// Returns the time at which a job that was asked to stop is dropped. If its lease could not be renewed, this time is
/// before the end of the lease.
fn last_moment(held: &HeldOrder, since: Instant) -> Instant {
    let polite = since + STOP_GRACE;
    match held.signal.reason() {
        Some(StopReason::LeaseLost) => {
            let ends = held.lease.ends();
            polite.min(ends.checked_sub(LAST_MOMENT).unwrap_or(ends))
        }
        _ => polite,
    }
}

async fn until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}

const fn sentence(reason: StopReason, limits: Limits) -> &'static str {
    match reason {
        StopReason::Cancelled => "[freehold: stopping, because the job was cancelled]",
        StopReason::LeaseLost => "[freehold: stopping, because the lease could not be renewed]",
        StopReason::TimedOut if limits.ends_by_expiry => "[freehold: stopping, because the order expired]",
        StopReason::TimedOut => "[freehold: stopping, because the job reached its time limit]",
        StopReason::Draining => "[freehold: stopping, because the runner shuts down]",
        StopReason::SwitchedOff => "[freehold: stopping, because the customer has switched the runner off]",
    }
}

fn broke_off(error: &JoinError) -> Outcome {
    let reason = if error.is_panic() {
        "the runner has a fault: its own code panicked while it did this job"
    } else {
        "the job was aborted"
    };
    Outcome::Failed { reason: reason.to_owned(), partial: true }
}

/// Returns how the attempt ended. `outcome` is the job's own, and `stopped` is the reason why the job had to stop, if
/// there is one.
fn conclude(stopped: Option<StopReason>, outcome: Outcome, limits: Limits, log: &JobLog) -> Ended {
    let outcome = presentable(outcome, log);
    let succeeded = matches!(outcome, Outcome::Succeeded { .. });
    match (stopped, limits.redelivery) {
        (Some(StopReason::LeaseLost), _) => Ended::LeaseLost,
        (None, _) => Ended::Finished(outcome),
        (Some(_), _) if succeeded => Ended::Finished(outcome),
        (Some(StopReason::Cancelled), _) => Ended::Finished(Outcome::Cancelled),
        (Some(StopReason::TimedOut), _) => {
            let seconds = limits.time.as_secs();
            let reason = if limits.ends_by_expiry {
                format!("stopped after {seconds} s, because the order expired")
            } else {
                format!("stopped after {seconds} s, which is the time limit of the order")
            };
            Ended::Finished(Outcome::Failed { reason, partial: true })
        }
        (Some(StopReason::Draining | StopReason::SwitchedOff), Redelivery::Resume) => Ended::LeftToNext,
        (Some(StopReason::Draining), Redelivery::Interrupted) => {
            let reason = "the runner shut down before the job ended".to_owned();
            Ended::Finished(Outcome::Interrupted { reason })
        }
        (Some(StopReason::SwitchedOff), Redelivery::Interrupted) => {
            let reason = "the customer switched the runner off before the job ended".to_owned();
            Ended::Finished(Outcome::Interrupted { reason })
        }
    }
}

/// Returns `outcome` without secrets, and with texts short enough for a report.
fn presentable(outcome: Outcome, log: &JobLog) -> Outcome {
    let text = |text: String| shortened(log.redacted(&text));
    match outcome {
        Outcome::Succeeded { outputs, sensitive, artifact } => {
            let outputs: BTreeMap<String, Value> =
                outputs.into_iter().map(|(name, value)| (log.redacted(&name), redacted(value, log))).collect();
            let names = sensitive.iter().map(|(name, digest)| name.len() + digest.as_str().len()).sum::<usize>();
            let size = serde_json::to_vec(&outputs).map_or(usize::MAX, |bytes| bytes.len() + names);
            if size > MAX_OUTPUTS_BYTES {
                let reason = format!(
                    "the work is done, but its outputs have {size} bytes and at most {MAX_OUTPUTS_BYTES} can be reported; \
                     make them fewer or smaller"
                );
                return Outcome::Failed { reason, partial: true };
            }
            Outcome::Succeeded { outputs, sensitive, artifact }
        }
        Outcome::Failed { reason, partial } => Outcome::Failed { reason: text(reason), partial },
        Outcome::Blocked { block, reason } => Outcome::Blocked { block, reason: text(reason) },
        Outcome::Interrupted { reason } => Outcome::Interrupted { reason: text(reason) },
        Outcome::Cancelled => Outcome::Cancelled,
        Outcome::NeedsApproval { plan } => Outcome::NeedsApproval { plan },
    }
}

fn redacted(value: Value, log: &JobLog) -> Value {
    match value {
        Value::String(text) => Value::String(log.redacted(&text)),
        Value::Array(items) => Value::Array(items.into_iter().map(|item| redacted(item, log)).collect()),
        Value::Object(map) => {
            Value::Object(map.into_iter().map(|(key, item)| (log.redacted(&key), redacted(item, log))).collect())
        }
        Value::Number(number) => {
            let text = number.to_string();
            let shown = log.redacted(&text);
            if shown == text { Value::Number(number) } else { Value::String(shown) }
        }
        Value::Null | Value::Bool(_) => value,
    }
}

/// Returns the name of an outcome in logs and audit records.
pub const fn outcome_name(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::Succeeded { .. } => "succeeded",
        Outcome::Failed { partial: false, .. } => "failed",
        Outcome::Failed { partial: true, .. } => "failed (partial)",
        Outcome::Blocked { .. } => "blocked",
        Outcome::Interrupted { .. } => "interrupted",
        Outcome::Cancelled => "cancelled",
        Outcome::NeedsApproval { .. } => "needs approval",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const LIMITS: Limits =
        Limits { time: Duration::from_secs(60), ends_by_expiry: false, redelivery: Redelivery::Resume };

    fn failed() -> Outcome {
        Outcome::Failed { reason: "exit 1".into(), partial: true }
    }

    fn succeeded(outputs: Value) -> Outcome {
        Outcome::Succeeded {
            outputs: serde_json::from_value(outputs).unwrap(),
            sensitive: Default::default(),
            artifact: None,
        }
    }

    #[test]
    fn the_end_of_a_stopped_job_depends_on_the_reason() {
        let log = JobLog::default();
        let action = Limits { redelivery: Redelivery::Interrupted, ..LIMITS };
        let concluded = |stopped, outcome, limits| conclude(stopped, outcome, limits, &log);

        assert_eq!(concluded(None, failed(), LIMITS), Ended::Finished(failed()));
        assert_eq!(concluded(Some(StopReason::LeaseLost), succeeded(json!({})), LIMITS), Ended::LeaseLost);
        assert_eq!(concluded(Some(StopReason::Cancelled), failed(), LIMITS), Ended::Finished(Outcome::Cancelled));
        assert_eq!(
            concluded(Some(StopReason::Cancelled), succeeded(json!({})), LIMITS),
            Ended::Finished(succeeded(json!({})))
        );
        assert_eq!(concluded(Some(StopReason::Draining), failed(), LIMITS), Ended::LeftToNext);
        assert!(matches!(
            concluded(Some(StopReason::Draining), failed(), action),
            Ended::Finished(Outcome::Interrupted { .. })
        ));
        assert!(matches!(
            concluded(Some(StopReason::TimedOut), Outcome::Cancelled, LIMITS),
            Ended::Finished(Outcome::Failed { partial: true, .. })
        ));
    }

    #[test]
    fn a_job_that_was_stopped_names_its_time_limit_or_the_end_of_its_order() {
        let stopped = |limits| conclude(Some(StopReason::TimedOut), failed(), limits, &JobLog::default());
        let ended = |reason: &str| Ended::Finished(Outcome::Failed { reason: reason.into(), partial: true });

        assert_eq!(stopped(LIMITS), ended("stopped after 60 s, which is the time limit of the order"));
        assert_eq!(
            stopped(Limits { ends_by_expiry: true, ..LIMITS }),
            ended("stopped after 60 s, because the order expired")
        );
    }

    #[test]
    fn secrets_and_oversized_outputs_do_not_leave() {
        let log = JobLog::default();
        log.add_secret("hunter22");
        log.add_secret("90210123");

        let redacted = presentable(
            succeeded(json!({"url": {"list": ["x:hunter22@y"], "hunter22": 1}, "a-hunter22": 90_210_123, "n": 9021})),
            &log,
        );
        let large = presentable(succeeded(json!({"text": "x".repeat(MAX_OUTPUTS_BYTES)})), &log);

        assert_eq!(
            redacted,
            succeeded(
                json!({"url": {"list": ["x:[redacted]@y"], "[redacted]": 1}, "a-[redacted]": "[redacted]", "n": 9021})
            )
        );
        assert!(matches!(large, Outcome::Failed { partial: true, .. }));
    }
}
