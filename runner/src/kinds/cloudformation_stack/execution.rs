//! Starts the execution of a change set once, also when the answer to a call is lost.

use aws_sdk_cloudformation::Client;
use aws_sdk_cloudformation::types::ExecutionStatus;

use crate::aws::explain;

/// Starts the execution of the change set `set`, which this attempt has made. A call whose answer was lost is sent again by
/// the client, and finds the set executed.
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
    use aws_sdk_cloudformation::config::{BehaviorVersion, Credentials, Region};
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    /// Starts a change set at a service that refuses it with `code`, and describes it with this status.
    async fn started(code: &'static str, status: &'static str) -> Result<(), String> {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let (mut request, mut have) = (vec![0; 16 * 1024], 0);
                let mut text = String::new();
                while !text.contains("Version=") {
                    have += stream.read(&mut request[have..]).await.unwrap();
                    text = String::from_utf8_lossy(&request[..have]).into_owned();
                }
                let (line, body) = if text.contains("Action=ExecuteChangeSet") {
                    let error = format!("<Error><Type>Sender</Type><Code>{code}</Code><Message>no</Message></Error>");
                    ("400 Bad Request", format!("<ErrorResponse>{error}</ErrorResponse>"))
                } else {
                    let of = "DescribeChangeSet";
                    let result = format!("<ExecutionStatus>{status}</ExecutionStatus>");
                    ("200 OK", format!("<{of}Response><{of}Result>{result}</{of}Result></{of}Response>"))
                };
                let head = format!("HTTP/1.1 {line}\r\nconnection: close\r\ncontent-type: text/xml\r\ncontent-length:");
                let _ = stream.write_all(format!("{head} {}\r\n\r\n{body}", body.len()).as_bytes()).await;
            }
        });
        let config = aws_sdk_cloudformation::Config::builder()
            .behavior_version(BehaviorVersion::latest())
            .region(Region::new("eu-west-1"))
            .endpoint_url(endpoint)
            .http_client(aws_smithy_http_client::Builder::new().build_http())
            .credentials_provider(Credentials::new("a", "b", None, None, "test"));
        start(&Client::from_conf(config.build()), "acme--globex--queue", "fh-job-1", "token".into()).await
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
