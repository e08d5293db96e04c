//! The error answers of AWS services that are busy or broken, in each service's own format.

use super::faults::Fault;
use super::operation::{Operation, Protocol};
use crate::http::Message;

const REQUEST_ID: &str = "00000000-0000-4000-8000-000000000000";

/// Returns the whole answer of `operation`'s service to a request that meets `fault`.
pub(crate) fn refusal(operation: &Operation, fault: Fault, request: &Message) -> Vec<u8> {
    match operation.protocol {
        Protocol::Json => json(operation, fault, request),
        Protocol::Query => query(fault),
        Protocol::S3 => s3(fault),
        Protocol::Rest => rest(fault),
        Protocol::Registry => registry(fault),
        Protocol::Http => http(fault),
    }
}

fn json(operation: &Operation, fault: Fault, request: &Message) -> Vec<u8> {
    let conflict = fault == Fault::Conflict;
    let (status, code) = match (operation.service.as_str(), fault) {
        (_, Fault::Error) => {
            (500, if operation.service == "dynamodb" { "InternalServerError" } else { "InternalFailure" })
        }
        ("dynamodb", _) if conflict && operation.action == "TransactWriteItems" => {
            (400, "TransactionCanceledException")
        }
        ("dynamodb", _) if conflict => (400, "TransactionConflictException"),
        ("dynamodb", _) => (400, "ProvisionedThroughputExceededException"),
        ("sqs", _) => (400, "RequestThrottled"),
        (_, _) => (400, "ThrottlingException"),
    };
    let prefix = match operation.service.as_str() {
        "dynamodb" => "com.amazonaws.dynamodb.v20120810#",
        "sqs" => "com.amazonaws.sqs#",
        _ => "",
    };
    let mut body = serde_json::json!({"__type": format!("{prefix}{code}"), "message": "Rate exceeded"});
    if code == "TransactionCanceledException" {
        let asked: serde_json::Value = serde_json::from_slice(&request.body).unwrap_or_default();
        let count = asked["TransactItems"].as_array().map_or(1, Vec::len);
        let reasons = vec![
            serde_json::json!({"Code": "TransactionConflict", "Message": "Transaction is ongoing for the item"});
            count
        ];
        body["CancellationReasons"] = reasons.into();
        body["Message"] =
            "Transaction cancelled, please refer cancellation reasons for specific reasons [TransactionConflict]"
                .into();
    }
    answer(status, "application/x-amz-json-1.0", &[("x-amzn-errortype", code)], &body.to_string())
}

fn query(fault: Fault) -> Vec<u8> {
    let (status, kind, code) = match fault {
        Fault::Error => (500, "Receiver", "InternalFailure"),
        _ => (400, "Sender", "Throttling"),
    };
    let body = format!(
        "<ErrorResponse><Error><Type>{kind}</Type><Code>{code}</Code><Message>Rate exceeded</Message></Error>\
         <RequestId>{REQUEST_ID}</RequestId></ErrorResponse>"
    );
    answer(status, "text/xml", &[], &body)
}

fn s3(fault: Fault) -> Vec<u8> {
    let (status, code) = match fault {
        Fault::Error => (500, "InternalError"),
        _ => (503, "SlowDown"),
    };
    let body = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Error><Code>{code}</Code><Message>Please reduce your request \
         rate.</Message><RequestId>{REQUEST_ID}</RequestId></Error>"
    );
    answer(status, "application/xml", &[], &body)
}

fn rest(fault: Fault) -> Vec<u8> {
    let (status, code) = match fault {
        Fault::Error => (500, "ServiceException"),
        _ => (429, "TooManyRequestsException"),
    };
    answer(status, "application/json", &[("x-amzn-errortype", code)], r#"{"Type":"User","message":"Rate Exceeded."}"#)
}

fn registry(fault: Fault) -> Vec<u8> {
    let (status, code) = match fault {
        Fault::Error => (500, "UNKNOWN"),
        _ => (429, "TOOMANYREQUESTS"),
    };
    let body = serde_json::json!({"errors": [{"code": code, "message": "Rate exceeded"}]});
    answer(status, "application/json", &[], &body.to_string())
}

fn http(fault: Fault) -> Vec<u8> {
    match fault {
        Fault::Error => answer(500, "application/json", &[], r#"{"message":"Internal Server Error"}"#),
        _ => answer(429, "application/json", &[], r#"{"message":"Too Many Requests"}"#),
    }
}

/// Returns an HTTP answer; the connection stays open.
pub(crate) fn answer(status: u16, content_type: &str, headers: &[(&str, &str)], body: &str) -> Vec<u8> {
    let more: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let length = body.len();
    format!(
        "HTTP/1.1 {status} Injected\r\ncontent-type: {content_type}\r\ncontent-length: {length}\r\n\
         x-amzn-requestid: {REQUEST_ID}\r\n{more}\r\n{body}"
    )
    .into_bytes()
}
