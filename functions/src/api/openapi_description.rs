//! What the OpenAPI document says of the whole API: what it is, where it is, and how requests are signed.

use serde_json::{Value, json};

/// The scheme of all operations except calls of webhooks.
const SIGV4: &str = "sigv4";
/// The scheme of calls of webhooks.
const WEBHOOK: &str = "webhook";
const DESCRIPTION: &str = "\
The API of one tenant. A request is signed with AWS Signature Version 4 (service `execute-api`) by a principal of the \
tenant's account that may `execute-api:Invoke`, except a call of a webhook. Every other POST has an `idempotency-key`. \
A list with the parameter `after` comes in pages: `next` of a page is `after` of the request for the following page. \
The body of an error of the API is an `ErrorBody`; what API Gateway answers itself has only a `message`. docs/api.md \
shows the main requests with `curl`.";

/// Returns what the API is.
pub(super) fn info() -> Value {
    json!({
        "title": "Freehold tenant API",
        "version": env!("CARGO_PKG_VERSION"),
        "description": DESCRIPTION,
        "license": { "name": "Apache-2.0", "identifier": "Apache-2.0" },
    })
}

/// Returns where the API is.
pub(super) fn servers() -> Value {
    json!([{
        "url": "https://{api}.execute-api.{region}.amazonaws.com",
        "description": "The output `ApiUrl` of the tenant's stack; `freehold tenant deploy` prints it.",
        "variables": {
            "api": { "default": "abc", "description": "The id of the API in API Gateway." },
            "region": { "default": "eu-west-1", "description": "The region of the tenant." },
        },
    }])
}

/// Returns the ways to sign a request, by name.
pub(super) fn security_schemes() -> Value {
    json!({
        SIGV4: {
            "type": "apiKey", "in": "header", "name": "Authorization",
            "description": "AWS Signature Version 4 for the service `execute-api`, as in `curl --aws-sigv4`.",
            "x-amazon-apigateway-authtype": "awsSigv4",
        },
        WEBHOOK: {
            "type": "apiKey", "in": "header", "name": freehold_protocol::webhook::SIGNATURE,
            "description": "A signature by the private key of the webhook, as Standard Webhooks describes (scheme `v1a`).",
        },
    })
}

/// Returns how a request is signed: a call of a webhook (`is_call`), or any other.
pub(super) fn security(is_call: bool) -> Value {
    let scheme = if is_call { WEBHOOK } else { SIGV4 };
    json!([{ scheme: [] }])
}
