//! Handles a stop of the job while CloudFormation changes the stack. CloudFormation can cancel only an update. Every
//! other change continues without the job.

use std::time::Duration;

use aws_sdk_cloudformation::Client;
use freehold_protocol::order::Order;

use super::ownership;
use super::stack::{State, describe};
use crate::job::bucket::explain;
use crate::job::failure::Failure;
use crate::job::{Job, StopReason};
use crate::kinds::result::Done;

/// The time limit for the calls after a stop.
const CALLS: Duration = Duration::from_secs(15);

/// Handles a change of the stack that still runs after the job was cancelled or timed out, and returns `done`. If the job was
/// cancelled and the change is an update, cancels the update. Otherwise logs that the change continues. The next deploy waits
/// for its end.
pub(super) async fn halt_if_cancelled(
    job: &Job,
    client: &Client,
    name: &str,
    done: Result<Done, Failure>,
) -> Result<Done, Failure> {
    let Err(Failure::Stopped { reason, .. }) = &done else { return done };
    let cancels = match reason {
        StopReason::Cancelled => true,
        StopReason::TimedOut => false,
        // Another attempt continues with the stack, or the runner no longer has permissions.
        StopReason::LeaseLost | StopReason::Draining | StopReason::SwitchedOff => return done,
    };
    let sentence = tokio::time::timeout(CALLS, halt(&job.order, client, name, cancels)).await;
    let sentence = sentence.unwrap_or_else(|_| Some(unknown(name, "CloudFormation did not answer in time")));
    match sentence {
        None => done,
        Some(sentence) => {
            job.log.line(&sentence);
            done.map_err(Failure::after_change)
        }
    }
}

/// Cancels a running update when `cancels` is true. Returns a sentence about the change that is running, or `None` when
/// no change is running.
async fn halt(order: &Order, client: &Client, name: &str, cancels: bool) -> Option<String> {
    let stack = match describe(client, name).await {
        Ok(stack) => stack?,
        Err(Failure::Failed { reason, .. }) => return Some(unknown(name, &reason)),
        Err(Failure::Stopped { .. } | Failure::Waits(_) | Failure::NotApproved { .. }) => return None,
    };
    if stack.state() != State::Working || ownership::check(order, name, &stack).is_err() {
        return None;
    }
    let status = &stack.status;
    if status != "UPDATE_IN_PROGRESS" || !cancels {
        return Some(format!(
            "stack `{name}` is {status}; CloudFormation finishes that change, and the next deploy waits for its end"
        ));
    }
    Some(match client.cancel_update_stack().stack_name(name).send().await {
        Ok(_) => format!("cancelled the update of stack `{name}`; CloudFormation rolls it back"),
        Err(error) => format!(
            "could not cancel the update of stack `{name}`: {}; CloudFormation finishes it, and the next deploy waits \
             for its end",
            explain(&error)
        ),
    })
}

fn unknown(name: &str, why: &str) -> String {
    format!("the job was stopped, and it is not known whether stack `{name}` is still changing: {why}")
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;
    use crate::kinds::cloudformation_stack::fake;
    use crate::testing::order;

    /// Serves a stack in `status` with these tags. Returns a client, and the actions that it asked for.
    async fn cloudformation(status: &'static str, owner: &'static str) -> (Client, Arc<Mutex<Vec<String>>>) {
        let asked = Arc::new(Mutex::new(Vec::new()));
        let actions = Arc::clone(&asked);
        let client = fake::serve(move |action| {
            actions.lock().unwrap().push(action.to_owned());
            let result = stack(status, owner);
            ("200 OK", format!("<{action}Response><{action}Result>{result}</{action}Result></{action}Response>"))
        });
        (client.await, asked)
    }

    fn stack(status: &str, owner: &str) -> String {
        let tag = |key: &str, value: &str| format!("<member><Key>{key}</Key><Value>{value}</Value></member>");
        let tags = [("freehold:tenant", "acme"), ("freehold:install", "globex-prod"), ("freehold:owner", owner)];
        let tags: String = tags.iter().map(|(key, value)| tag(key, value)).collect();
        format!(
            "<Stacks><member><StackName>s</StackName><CreationTime>2026-01-01T00:00:00Z</CreationTime>\
             <StackStatus>{status}</StackStatus><Tags>{tags}</Tags></member></Stacks>"
        )
    }

    const OURS: &str = "acme--globex-prod";

    #[tokio::test]
    async fn a_cancelled_update_is_cancelled_in_cloudformation() {
        let (client, asked) = cloudformation("UPDATE_IN_PROGRESS", OURS).await;

        let note = halt(&order(1, 1), &client, "s", true).await;

        assert_eq!(note.as_deref(), Some("cancelled the update of stack `s`; CloudFormation rolls it back"));
        assert_eq!(*asked.lock().unwrap(), ["DescribeStacks", "CancelUpdateStack"]);
    }

    #[tokio::test]
    async fn a_change_that_cannot_be_cancelled_is_said_to_be_finished() {
        for (status, cancels) in [
            ("CREATE_IN_PROGRESS", true),
            ("DELETE_IN_PROGRESS", true),
            ("UPDATE_COMPLETE_CLEANUP_IN_PROGRESS", true),
            ("UPDATE_IN_PROGRESS", false),
        ] {
            let (client, asked) = cloudformation(status, OURS).await;

            let note = halt(&order(1, 1), &client, "s", cancels).await.unwrap();

            assert!(note.starts_with(&format!("stack `s` is {status}; CloudFormation finishes that change")), "{note}");
            assert_eq!(*asked.lock().unwrap(), ["DescribeStacks"]);
        }
    }

    #[tokio::test]
    async fn a_stack_that_is_not_being_changed_or_is_not_ours_is_left_alone() {
        for (status, owner) in [("UPDATE_COMPLETE", OURS), ("UPDATE_IN_PROGRESS", "acme--other")] {
            let (client, asked) = cloudformation(status, owner).await;

            assert_eq!(halt(&order(1, 1), &client, "s", true).await, None, "{status}");
            assert_eq!(*asked.lock().unwrap(), ["DescribeStacks"]);
        }
    }
}
