//! Follows the events of a stack: writes new events to the job's log, and collects the first failures for the reason of
//! the job's failure.

use std::collections::BTreeSet;

use aws_sdk_cloudformation::Client;
use aws_sdk_cloudformation::types::StackEvent;

use crate::job::Job;
use crate::job::bucket::explain;
use crate::job::failure::Failure;

/// The maximum number of failures in a reason. Later failures are mostly consequences of the first ones.
const FAILURES: usize = 3;
/// The maximum number of pages that are read in search of the last known event.
const PAGES: usize = 50;

/// A follower of the events of a stack since a point in time.
#[derive(Debug, Default)]
pub(super) struct Events {
    seen: BTreeSet<String>,
    failures: Vec<String>,
}

impl Events {
    /// Returns a follower of the events that occur from now on.
    pub(super) async fn from_now(client: &Client, name: &str) -> Result<Self, Failure> {
        let answer = client.describe_stack_events().stack_name(name).send().await;
        let answer = answer.map_err(|error| {
            Failure::new(format!("could not read the events of stack `{name}`: {}", explain(&error)))
        })?;
        let seen = answer.stack_events().iter().filter_map(|event| event.event_id().map(str::to_owned)).collect();
        Ok(Self { seen, failures: Vec::new() })
    }

    /// Writes new events to the log. It ignores errors, because events are only information for people.
    pub(super) async fn follow(&mut self, job: &Job, client: &Client, name: &str) {
        let mut new = Vec::new();
        let mut token = None;
        for _ in 0..PAGES {
            let Ok(page) = client.describe_stack_events().stack_name(name).set_next_token(token).send().await else {
                break;
            };
            let all = page.stack_events().len();
            let unseen = page.stack_events().iter().filter(|event| self.is_new(event));
            let before = new.len();
            new.extend(unseen.cloned());
            token = page.next_token().map(str::to_owned);
            // The newest event comes first, so all events after a known event are known too.
            if token.is_none() || new.len() - before < all {
                break;
            }
        }
        for event in new.iter().rev() {
            self.note(job, event);
        }
    }

    fn is_new(&self, event: &StackEvent) -> bool {
        event.event_id().is_some_and(|id| !self.seen.contains(id))
    }

    fn note(&mut self, job: &Job, event: &StackEvent) {
        self.seen.extend(event.event_id().map(str::to_owned));
        let resource = event.logical_resource_id().unwrap_or_default();
        let kind = event.resource_type().unwrap_or_default();
        let status = event.resource_status().map_or("", |status| status.as_str());
        let reason = event.resource_status_reason().unwrap_or_default();
        let line = format!("{status} {kind} {resource} {reason}");
        job.log.line(line.trim_end());
        let cancelled = reason.contains("cancelled") || reason.contains("following resource(s) failed");
        if status.ends_with("_FAILED") && !cancelled && self.failures.len() < FAILURES {
            self.failures.push(format!("`{resource}` ({kind}): {reason}"));
        }
    }

    /// Returns the first failures as a text that begins with a colon and can end a sentence. It is empty without
    /// failures.
    pub(super) fn reason(&self) -> String {
        if self.failures.is_empty() { String::new() } else { format!(": {}", self.failures.join("; ")) }
    }
}
