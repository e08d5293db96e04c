//! Reads the AWS operation and the caller from a request.

use crate::http::Message;

/// An AWS operation, written `service.Action` as in an IAM policy: `dynamodb.PutItem`, `states.StartExecution`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Operation {
    pub service: String,
    pub action: String,
    /// How the service words its errors.
    pub protocol: Protocol,
}

/// The forms in which services are asked and answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// JSON with the operation in the header `X-Amz-Target`.
    Json,
    /// A form with `Action=`; XML comes back.
    Query,
    S3,
    /// JSON with the operation in method and path, as Lambda.
    Rest,
    /// The `/v2` API of a container registry.
    Registry,
    /// An HTTP API, and whatever else.
    Http,
}

impl std::fmt::Display for Operation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.service, self.action)
    }
}

/// Returns the operation that `request` asks for.
pub(crate) fn operation(request: &Message) -> Operation {
    let (path, query) = split_target(&request.start[1]);
    let scope = credential(request);
    let service = scope.as_deref().and_then(|scope| scope.split('/').nth(3)).unwrap_or_default();
    if let Some(target) = request.header("x-amz-target") {
        let (prefix, action) = target.rsplit_once('.').unwrap_or(("", target));
        return of(json_service(service, prefix), action, Protocol::Json);
    }
    if path.starts_with("/v2/") {
        return of("registry", registry_action(&request.start[0], path), Protocol::Registry);
    }
    let form = String::from_utf8_lossy(&request.body);
    let is_form = request.header("content-type").is_some_and(|t| t.starts_with("application/x-www-form-urlencoded"));
    let named = if is_form { value(&form, "Action") } else { value(query, "Action") };
    if let Some(action) = named {
        return of(if service.is_empty() { "query" } else { service }, action, Protocol::Query);
    }
    match service {
        "s3" => of("s3", &s3_action(request, path, query), Protocol::S3),
        "lambda" => of("lambda", lambda_action(&request.start[0], path), Protocol::Rest),
        "execute-api" | "" => of("api", &format!("{}{path}", request.start[0]), Protocol::Http),
        other => of(other, &format!("{}{path}", request.start[0]), Protocol::Rest),
    }
}

/// Returns the access key that signed `request`; nothing when it is not signed.
pub(crate) fn access_key(request: &Message) -> Option<String> {
    credential(request).and_then(|scope| scope.split('/').next().map(str::to_owned))
}

/// Returns `access key/date/region/service/aws4_request`, from the header or a pre-signed URL.
fn credential(request: &Message) -> Option<String> {
    if let Some(header) = request.header("authorization").filter(|h| h.starts_with("AWS4-")) {
        let (_, rest) = header.split_once("Credential=")?;
        return rest.split([',', ' ']).next().map(str::to_owned);
    }
    let (_, query) = split_target(&request.start[1]);
    value(query, "X-Amz-Credential").map(|text| text.replace("%2F", "/").replace("%2f", "/"))
}

fn of(service: &str, action: &str, protocol: Protocol) -> Operation {
    Operation { service: service.to_owned(), action: action.to_owned(), protocol }
}

fn json_service<'a>(service: &'a str, prefix: &'a str) -> &'a str {
    if !service.is_empty() {
        return service;
    }
    match prefix.split('_').next().unwrap_or(prefix) {
        "DynamoDB" => "dynamodb",
        "AmazonSQS" => "sqs",
        "AWSStepFunctions" => "states",
        "TrentService" => "kms",
        "AmazonEC2ContainerRegistry" => "ecr",
        other => other,
    }
}

fn split_target(target: &str) -> (&str, &str) {
    let target = target.strip_prefix("http://").map_or(target, |rest| rest.find('/').map_or("/", |at| &rest[at..]));
    target.split_once('?').unwrap_or((target, ""))
}

fn value<'a>(form: &'a str, name: &str) -> Option<&'a str> {
    form.split('&').find_map(|pair| match pair.split_once('=') {
        Some((key, value)) if key == name => Some(value),
        None if pair == name => Some(""),
        Some(_) | None => None,
    })
}

fn registry_action(method: &str, path: &str) -> &'static str {
    if path.contains("/blobs/uploads/") {
        return match method {
            "POST" => "StartUpload",
            "PATCH" => "UploadPart",
            "PUT" => "FinishUpload",
            _ => "OtherUpload",
        };
    }
    match (path.contains("/manifests/"), path.contains("/blobs/"), method) {
        (true, _, "GET") => "GetManifest",
        (true, _, "HEAD") => "HeadManifest",
        (true, _, "PUT") => "PutManifest",
        (true, _, _) => "OtherManifest",
        (_, true, "GET") => "GetBlob",
        (_, true, "HEAD") => "HeadBlob",
        (_, true, _) => "OtherBlob",
        (false, false, _) => "Ping",
    }
}

fn lambda_action(method: &str, path: &str) -> &'static str {
    match (method, path.ends_with("/invocations")) {
        ("POST", true) => "Invoke",
        _ => "Other",
    }
}

fn s3_action(request: &Message, path: &str, query: &str) -> String {
    let method = request.start[0].as_str();
    let host = request.header("host").unwrap_or_default();
    let in_path = host.starts_with("127.") || host.starts_with("localhost");
    let path = path.trim_start_matches('/');
    let key = if in_path { path.split_once('/').map_or("", |(_, key)| key) } else { path };
    let has = |name| value(query, name).is_some();
    let plain = match (key.is_empty(), method) {
        (false, "GET") => "GetObject",
        (false, "HEAD") => "HeadObject",
        (false, "PUT") if has("partNumber") => "UploadPart",
        (false, "PUT") if request.header("x-amz-copy-source").is_some() => "CopyObject",
        (false, "PUT") => "PutObject",
        (false, "DELETE") if has("uploadId") => "AbortMultipartUpload",
        (false, "DELETE") => "DeleteObject",
        (false, "POST") if has("uploads") => "CreateMultipartUpload",
        (false, "POST") => "CompleteMultipartUpload",
        (true, "POST") if has("delete") => "DeleteObjects",
        (true, "GET") if in_path && path.is_empty() => "ListBuckets",
        (true, "GET") if has("list-type") => "ListObjectsV2",
        (true, "HEAD") => "HeadBucket",
        (true, "PUT") if query.is_empty() => "CreateBucket",
        (true, "DELETE") if query.is_empty() => "DeleteBucket",
        (true | false, _) => "",
    };
    if plain.is_empty() { format!("{method}?{query}") } else { plain.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proxy::testing::request;

    fn signed(service: &str) -> String {
        format!(
            "Authorization: AWS4-HMAC-SHA256 Credential=ASIA1/20260101/eu-west-1/{service}/aws4_request, \
             SignedHeaders=host, Signature=0\r\n"
        )
    }

    #[test]
    fn operations_of_every_protocol_are_recognized() {
        let form = "Content-Type: application/x-www-form-urlencoded; charset=utf-8\r\n";
        let cases = [
            (
                "POST / HTTP/1.1",
                signed("dynamodb") + "X-Amz-Target: DynamoDB_20120810.PutItem\r\n",
                "",
                "dynamodb.PutItem",
            ),
            ("POST / HTTP/1.1", "X-Amz-Target: AmazonSQS.SendMessage\r\n".to_owned(), "", "sqs.SendMessage"),
            (
                "POST / HTTP/1.1",
                signed("states") + "X-Amz-Target: AWSStepFunctions.SendTaskSuccess\r\n",
                "",
                "states.SendTaskSuccess",
            ),
            ("POST / HTTP/1.1", signed("sts") + form, "Version=1&Action=AssumeRole", "sts.AssumeRole"),
            ("POST /2015-03-31/functions/f/invocations HTTP/1.1", signed("lambda"), "{}", "lambda.Invoke"),
            ("PUT /bucket/key HTTP/1.1", signed("s3"), "x", "s3.PutObject"),
            ("GET /bucket?list-type=2&prefix=a HTTP/1.1", signed("s3"), "", "s3.ListObjectsV2"),
            (
                "GET /bucket/key?X-Amz-Credential=A%2F2026%2Feu%2Fs3%2Faws4_request HTTP/1.1",
                String::new(),
                "",
                "s3.GetObject",
            ),
            ("GET /v2/fh-acme/blobs/sha256:00 HTTP/1.1", String::new(), "", "registry.GetBlob"),
            ("POST /v1/installs HTTP/1.1", signed("execute-api"), "{}", "api.POST/v1/installs"),
        ];
        for (line, headers, body, wanted) in cases {
            let found = operation(&request(line, &headers, body));

            assert_eq!(found.to_string(), wanted, "{line}");
        }
    }

    #[test]
    fn the_caller_is_the_signing_key() {
        assert_eq!(access_key(&request("GET / HTTP/1.1", &signed("s3"), "")).as_deref(), Some("ASIA1"));
        assert_eq!(access_key(&request("GET / HTTP/1.1", "", "")), None);
    }
}
