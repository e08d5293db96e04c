//! Starts the execution of a change set once, even when the response to a call is lost.

use aws_sdk_cloudformation::Client;
use aws_sdk_cloudformation::types::ExecutionStatus;

use crate::aws::explain;

/// Starts the execution of the change set `set`, which this attempt has made. When the response to the call is lost,
/// the client sends the call again, and the second call finds the set executed.
///
/// # Errors
/// The reason why the set is not executed.
pub(super) async fn start(client: &Client, stack: &str, set: &str, token: String) -> Result<(), String> {
    let call = client.execute_change_set().stack_name(stack).change_set_name(set).client_request_token(token);
    let Err(error) = call.send().await else { return Ok(()) };
    let is_past = error.as_service_error().is_some_and(|error| error.is_invalid_change_set_status_exception());
    if is_past && is_executed(client, stack, set).await? { Ok(()) } else { Err(explain(&error)) }
}

async fn is_executed(client: &Client, stack: &str, set: &str) -> Result<bool, String> {
    let found = client.describe_change_set().stack_name(stack).change_set_name(set).send().await;
    let status = found.map_err(|error| explain(&error))?.execution_status;
    Ok(matches!(
        status,
        Some(ExecutionStatus::ExecuteInProgress | ExecutionStatus::ExecuteComplete | ExecutionStatus::ExecuteFailed)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::cloudformation_stack::fake;

    /// Starts a change set at a service that refuses it with `code`, and describes it with this status.
    async fn started(code: &'static str, status: &'static str) -> Result<(), String> {
        let client = fake::serve(move |action| {
            if action == "ExecuteChangeSet" {
                let error = format!("<Error><Type>Sender</Type><Code>{code}</Code><Message>no</Message></Error>");
                return ("400 Bad Request", format!("<ErrorResponse>{error}</ErrorResponse>"));
            }
            let result = format!("<ExecutionStatus>{status}</ExecutionStatus>");
            ("200 OK", format!("<{action}Response><{action}Result>{result}</{action}Result></{action}Response>"))
        });
        start(&client.await, "acme--globex--queue", "fh-job-1", "token".into()).await
    }

    #[tokio::test]
    async fn a_set_that_a_lost_call_has_executed_is_executed() {
        for status in ["EXECUTE_IN_PROGRESS", "EXECUTE_COMPLETE", "EXECUTE_FAILED"] {
            assert_eq!(started("InvalidChangeSetStatus", status).await, Ok(()), "{status}");
        }
        for (code, status) in [
            ("InvalidChangeSetStatus", "AVAILABLE"),
            ("InvalidChangeSetStatus", "OBSOLETE"),
            ("InvalidChangeSetStatus", "UNAVAILABLE"),
            ("AccessDenied", "EXECUTE_COMPLETE"),
        ] {
            let refused = started(code, status).await.unwrap_err();
            assert!(refused.contains(code), "{code} {status}: {refused}");
        }
    }
}
