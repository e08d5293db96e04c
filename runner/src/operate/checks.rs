//! Checks for `doctor`. Each check examines one thing that a runner needs, and changes nothing. It returns a text about
//! the thing that works, or the problem and how to fix it.

use aws_config::SdkConfig;
use aws_sdk_sqs::error::ProvideErrorMetadata;
use freehold_aws_errors::{Meaning, is_region_off};

use crate::aws;

/// Calls the orders queue with an invalid receipt handle, which needs the permission but changes nothing. Receiving a
/// message instead would use up one of the receives of its order.
pub(crate) async fn orders(sdk: &SdkConfig, url: &str) -> Result<String, String> {
    let client = aws_sdk_sqs::Client::new(sdk);
    let call = client.change_message_visibility().queue_url(url).receipt_handle("doctor").visibility_timeout(0);
    judge(call.send().await, "the queue's policy must name this runner's role")
}

/// Sends an empty batch. SQS checks the permission before it refuses the empty batch.
pub(crate) async fn reports(sdk: &SdkConfig, url: &str) -> Result<String, String> {
    let client = aws_sdk_sqs::Client::new(sdk);
    let call = client.send_message_batch().queue_url(url).set_entries(Some(Vec::new()));
    judge(
        call.send().await,
        "allow `sqs:SendMessage` on the queue for this runner's role, in the policies of the role and of the queue",
    )
}

fn judge<T, E, R>(answer: Result<T, aws_sdk_sqs::error::SdkError<E, R>>, way_out: &str) -> Result<String, String>
where
    E: ProvideErrorMetadata + std::error::Error + 'static,
    R: std::fmt::Debug,
{
    let Err(error) = answer else {
        return Ok("reachable and allowed".into());
    };
    // The service checked the permission, and then refused the contents of the call. A response without a code comes
    // from a proxy, and not from the service.
    let refuses_the_call = error.as_service_error().is_some()
        && error.code().is_some_and(|code| {
            matches!(Meaning::of(Some(code)), Meaning::Invalid | Meaning::Unknown) && !is_region_off(code)
        });
    if refuses_the_call {
        return Ok("reachable and allowed".into());
    }
    Err(format!("{}; {way_out}", aws::explain(&error)))
}

pub(crate) async fn registry(sdk: &SdkConfig) -> Result<String, String> {
    let answer = aws_sdk_ecr::Client::new(sdk).get_authorization_token().send().await;
    let answer = answer.map_err(|error| format!("{}; allow `ecr:GetAuthorizationToken`", aws::explain(&error)))?;
    let data = answer.authorization_data.unwrap_or_default();
    let endpoint = data.first().and_then(|data| data.proxy_endpoint.clone());
    endpoint.ok_or_else(|| "the registry did not give its address".to_owned())
}

/// Lists one audit record, as the runner does at its start. The runner's role may list only certain prefixes.
pub(crate) async fn bucket(sdk: &SdkConfig, name: &str) -> Result<String, String> {
    let call = aws_sdk_s3::Client::new(sdk).list_objects_v2().bucket(name).prefix("audit/").max_keys(1);
    call.send().await.map(|_| name.to_owned()).map_err(|error| {
        let way_out = "the bucket must exist, and the runner's role needs `s3:ListBucket` on its prefix `audit/`";
        format!("{}; {way_out}", aws::explain(&error))
    })
}

#[cfg(test)]
mod tests {
    use aws_sdk_sqs::error::{ErrorMetadata, SdkError};
    use aws_sdk_sqs::operation::change_message_visibility::ChangeMessageVisibilityError;

    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;
    use crate::testing::sdk_at;

    fn judged(code: &str) -> Result<String, String> {
        let error =
            ChangeMessageVisibilityError::generic(ErrorMetadata::builder().code(code).message("said so").build());
        judge::<(), _, ()>(Err(SdkError::service_error(error, ())), "the way out")
    }

    #[test]
    fn credentials_that_have_expired_do_not_count_as_allowed() {
        for code in ["ExpiredToken", "InvalidClientTokenId", "AccessDenied", "QueueDoesNotExist"] {
            assert_eq!(judged(code), Err(format!("said so ({code}); the way out")));
        }
        for code in ["ReceiptHandleIsInvalid", "InvalidParameterValue", "AWS.SimpleQueueService.EmptyBatchRequest"] {
            assert_eq!(judged(code), Ok("reachable and allowed".to_owned()), "{code}");
        }
    }

    #[test]
    fn an_answer_that_does_not_judge_the_permission_does_not_count_as_allowed() {
        for code in ["ServiceUnavailable", "RequestThrottled", "OptInRequired", "AuthFailure", "RequestExpired"] {
            assert!(judged(code).is_err(), "{code}");
        }
        let of_a_proxy = ChangeMessageVisibilityError::generic(ErrorMetadata::builder().message("Blocked").build());
        let answer = judge::<(), _, ()>(Err(SdkError::service_error(of_a_proxy, ())), "the way out");
        assert!(answer.is_err(), "{answer:?}");
    }

    /// Serves S3 for a caller who may list the objects below `audit/` and nothing else, not even the bucket itself.
    async fn s3_of_a_runner() -> SdkConfig {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let (mut request, mut byte) = (Vec::new(), [0]);
                while !request.ends_with(b"\r\n\r\n") && stream.read(&mut byte).await.is_ok_and(|read| read == 1) {
                    request.push(byte[0]);
                }
                let request = String::from_utf8_lossy(&request).into_owned();
                let lists = request.starts_with("GET /fh-bucket") && request.contains("prefix=audit%2F");
                let (status, body) = match lists {
                    true => (200, "<ListBucketResult><Name>fh-bucket</Name></ListBucketResult>"),
                    false => (403, "<Error><Code>AccessDenied</Code><Message>no</Message></Error>"),
                };
                let head =
                    format!("HTTP/1.1 {status} X\r\nconnection: close\r\ncontent-length: {}\r\n\r\n", body.len());
                let body = if request.starts_with("HEAD ") { "" } else { body };
                let _ = stream.write_all(format!("{head}{body}").as_bytes()).await;
            }
        });
        sdk_at(endpoint)
    }

    #[tokio::test]
    async fn the_bucket_is_well_for_a_role_that_may_list_the_audit_records_alone() {
        let sdk = s3_of_a_runner().await;

        let well = bucket(&sdk, "fh-bucket").await;
        let other = bucket(&sdk, "fh-other").await.unwrap_err();

        assert_eq!(well, Ok("fh-bucket".to_owned()));
        assert!(
            other.contains("(AccessDenied)") && other.contains("`s3:ListBucket` on its prefix `audit/`"),
            "{other}"
        );
    }
}
