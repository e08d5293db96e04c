//! Handles a batch of SQS messages one by one. Only a message that fails returns to the queue.

use std::future::Future;

use aws_lambda_events::event::sqs::{BatchItemFailure, SqsBatchResponse, SqsEvent};
use freehold_app::AppError;

use crate::log_failure;

/// Handles every message of `event` with `take`. Returns the messages that SQS must deliver again. `what` describes a
/// failure in the log.
pub async fn each<F, T>(event: SqsEvent, what: &str, take: F) -> SqsBatchResponse
where
    F: Fn(String) -> T,
    T: Future<Output = Result<(), AppError>>,
{
    let mut answer = SqsBatchResponse::default();
    for record in event.records {
        let Err(error) = take(record.body.unwrap_or_default()).await else { continue };
        log_failure(what, &error);
        let mut failure = BatchItemFailure::default();
        failure.item_identifier = record.message_id.unwrap_or_default();
        answer.batch_item_failures.push(failure);
    }
    answer
}

/// Parses a message of an internal queue.
///
/// # Errors
/// Invalid. SQS redelivers the message, and finally moves it to the dead-letter queue.
pub fn parse<T: serde::de::DeserializeOwned>(body: &str) -> Result<T, AppError> {
    serde_json::from_str(body).map_err(|e| AppError::invalid(format!("message is not readable: {e}")))
}
