//! Reads the events of a stack during a change: they are shown as progress, and give the reasons of a failure.

use std::collections::{BTreeMap, BTreeSet};

use aws_sdk_cloudformation::Client;
use aws_sdk_cloudformation::error::ProvideErrorMetadata;
use aws_sdk_cloudformation::types::StackEvent;

use super::Stack;
use crate::error::{Error, Kind, Result, ResultExt};
use crate::progress::Progress;

/// The way out of a failure for which CloudFormation gave no reason.
pub(super) const SEE_EVENTS: &str = "see the stack's events in the CloudFormation console";

/// The events of a stack that were already read, and the reasons of failures in them.
#[derive(Debug)]
pub(super) struct Events {
    stack: String,
    seen: BTreeSet<String>,
    states: BTreeMap<String, String>,
    failures: Vec<String>,
}

impl Events {
    /// Starts to follow the stack `id`. Events before this call are ignored.
    pub(super) async fn from_now(client: &Client, id: &str) -> Result<Self> {
        let mut events =
            Self { stack: id.to_owned(), seen: BTreeSet::new(), states: BTreeMap::new(), failures: Vec::new() };
        events.unseen(client).await?;
        Ok(events)
    }

    /// Shows the events since the last call.
    pub(super) async fn show_new(&mut self, client: &Client, progress: &Progress) -> Result<()> {
        for event in self.unseen(client).await? {
            let (Some(resource), Some(status)) = (event.logical_resource_id(), event.resource_status()) else {
                continue;
            };
            if event.physical_resource_id() == Some(self.stack.as_str()) {
                continue;
            }
            let status = status.as_str();
            self.states.insert(resource.to_owned(), status.to_owned());
            let reason = event.resource_status_reason().unwrap_or_default();
            if status.ends_with("_FAILED") && !is_consequence(reason) {
                let line = failed_resource(resource, event.resource_type().unwrap_or_default(), reason);
                progress.say(&format!("  {status}  {line}"));
                self.failures.push(line);
            }
            let done = self.states.values().filter(|state| !state.ends_with("_IN_PROGRESS")).count();
            progress.now(format!("{done} of {} resources done, {status} {resource}", self.states.len()));
        }
        Ok(())
    }

    /// Returns an error with the first reasons of the failure.
    pub(super) fn failure(&self, what: String, stack: &Stack) -> Error {
        let what = format!("{what} ({})", stack.status.as_str());
        let mut reasons: Vec<&str> = self.failures.iter().map(String::as_str).take(3).collect();
        if reasons.is_empty() {
            if stack.reason.is_empty() {
                let unknown = Error::failed(format!("{what}: CloudFormation gave no reason"));
                return unknown.or(SEE_EVENTS);
            }
            reasons.push(&stack.reason);
        }
        let more = self.failures.len().saturating_sub(reasons.len());
        let more = if more > 0 { format!("; and {more} more") } else { String::new() };
        Error::quoting(Kind::Failed, format!("{what}: {}{more}", reasons.join("; ")))
    }

    /// Returns the events that were not read before, oldest first.
    async fn unseen(&mut self, client: &Client) -> Result<Vec<StackEvent>> {
        let mut fresh = Vec::new();
        let mut token = None;
        loop {
            let page = client.describe_stack_events().stack_name(&self.stack).set_next_token(token).send().await;
            let page = match page {
                Err(error) if error.message().is_some_and(|m| m.contains("does not exist")) => break,
                page => page.doing("read the stack's events")?,
            };
            let count = page.stack_events().len();
            let new =
                page.stack_events().iter().filter(|e| self.seen.insert(e.event_id().unwrap_or_default().to_owned()));
            let before = fresh.len();
            fresh.extend(new.cloned());
            token = page.next_token().map(str::to_owned);
            // The newest events come first. When a page contains a known event, all older events are known too.
            if token.is_none() || fresh.len() - before < count {
                break;
            }
        }
        fresh.reverse();
        Ok(fresh)
    }
}

/// Returns the line about a resource that failed. CloudFormation may leave out the type and the reason.
fn failed_resource(resource: &str, kind: &str, reason: &str) -> String {
    let of_type = if kind.is_empty() { String::new() } else { format!(" ({kind})") };
    let reason = if reason.trim().is_empty() { "CloudFormation gave no reason" } else { reason };
    format!("{resource}{of_type}: {}", reason.replace('\n', " "))
}

/// Returns whether an event is only the result of an earlier failure. The first failure cancels all other operations of
/// the stack.
fn is_consequence(reason: &str) -> bool {
    reason.contains("cancelled") || reason.contains("Cancelled")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failed(failures: &[&str], reason: &str) -> Error {
        let events = Events {
            stack: String::new(),
            seen: BTreeSet::new(),
            states: BTreeMap::new(),
            failures: failures.iter().map(|line| (*line).to_owned()).collect(),
        };
        let described = aws_sdk_cloudformation::types::Stack::builder()
            .stack_name("freehold-acme--globex")
            .stack_status("ROLLBACK_COMPLETE".into())
            .stack_status_reason(reason)
            .build();
        let what = "stack `freehold-acme--globex` could not be created".to_owned();
        events.failure(what, &Stack::of(&described))
    }

    #[test]
    fn a_failure_without_any_reason_says_so_and_where_to_look_for_it() {
        insta::assert_snapshot!(failed(&[], ""), @"stack `freehold-acme--globex` could not be created (ROLLBACK_COMPLETE): CloudFormation gave no reason; see the stack's events in the CloudFormation console");
    }

    #[test]
    fn the_reasons_of_resources_come_before_the_reason_of_the_stack() {
        let reason = "The following resource(s) failed; see them";
        assert!(failed(&[], reason).to_string().ends_with(": The following resource(s) failed; see them"));
        let failures = failed(&["Bucket: exists", "B", "C", "D", "E"], "x");
        assert!(failures.to_string().ends_with(": Bucket: exists; B; C; and 2 more"));
        assert_eq!(failures.way_out(), None, "a reason is not a way out");
    }

    #[test]
    fn a_resource_that_failed_has_no_empty_reason_or_type() {
        assert_eq!(failed_resource("Bucket", "AWS::S3::Bucket", "it\nexists"), "Bucket (AWS::S3::Bucket): it exists");
        assert_eq!(
            failed_resource("Bucket", "AWS::S3::Bucket", " "),
            "Bucket (AWS::S3::Bucket): CloudFormation gave no reason"
        );
        assert_eq!(failed_resource("Bucket", "", ""), "Bucket: CloudFormation gave no reason");
    }

    #[test]
    fn a_cancelled_resource_is_not_the_reason_of_a_failure() {
        assert!(is_consequence("Resource creation cancelled"));
        assert!(!is_consequence("Bucket already exists"));
    }
}
