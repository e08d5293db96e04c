//! Shared code of the measurements: processes seen from outside, a real runner on a fast queue, rows of the result.

pub mod process;
pub mod runner;

use serde_json::{Value, json};

/// Prints one measured row; `tests/bench/run` makes a table of them.
pub fn row(name: &str, value: f64, unit: &str) {
    println!("{}", json!({"name": name, "value": value, "unit": unit}));
}

/// Prints why a row has no value.
pub fn skipped(name: &str, reason: &str) {
    println!("{}", json!({"name": name, "skipped": reason}));
}

/// Returns the value below which the share `quantile` of `values` lies; not a number when there are none.
pub fn quantile(values: &[f64], quantile: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "an index"
    )]
    let at = (sorted.len() as f64 * quantile) as usize;
    sorted.get(at.min(sorted.len().saturating_sub(1))).copied().unwrap_or(f64::NAN)
}

/// Returns the middle value.
pub fn median(values: &[f64]) -> f64 {
    quantile(values, 0.5)
}

/// Returns an HTTP API event (payload format 2.0) for `GET path`.
pub fn http_event(path: &str) -> Value {
    json!({
        "version": "2.0", "routeKey": "$default", "rawPath": path, "rawQueryString": "",
        "headers": {"accept": "*/*", "host": "api.execute-api.eu-west-1.amazonaws.com", "x-forwarded-proto": "https"},
        "requestContext": {
            "accountId": "111111111111", "apiId": "api", "domainName": "api.execute-api.eu-west-1.amazonaws.com",
            "authorizer": {"iam": {"accessKey": "AKIA", "accountId": "111111111111", "callerId": "AIDA",
                "userArn": "arn:aws:iam::111111111111:user/someone", "userId": "AIDA"}},
            "http": {"method": "GET", "path": path, "protocol": "HTTP/1.1", "sourceIp": "192.0.2.1", "userAgent": "bench"},
            "requestId": "id", "routeKey": "$default", "stage": "$default",
            "time": "01/Jan/2026:00:00:00 +0000", "timeEpoch": 1_767_225_600_000_u64,
        },
        "isBase64Encoded": false,
    })
}
