//! What the OpenAPI document says of the whole API: what it is, where it is, and how requests prove who sends them.

use serde_json::{Value, json};

/// The scheme of IAM principals.
const SIGV4: &str = "sigv4";
/// The scheme of people who are signed in.
const PERSON: &str = "person";
/// The scheme of pipelines.
const PIPELINE: &str = "pipeline";
/// The scheme of calls of webhooks.
const WEBHOOK: &str = "webhook";
const DESCRIPTION: &str = "\
The API of one tenant. A request comes from one of three kinds of callers. A principal of the tenant's account that \
may `execute-api:Invoke` signs it with AWS Signature Version 4 (service `execute-api`). A person who is signed in \
sends the access token as a bearer token, to the path with the prefix `/people`. A pipeline sends its OIDC token as a \
bearer token, to the path with the prefix `/pipelines`. The policies of the tenant decide whether the caller may do \
it. Only a call of a webhook has none of these, and a signature of its own. Every other POST has an `idempotency-key`. \
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

/// Returns where the API is: for each kind of caller, the address before `/v1`.
pub(super) fn servers() -> Value {
    let variables = json!({
        "api": { "default": "abc", "description": "The id of the API in API Gateway." },
        "region": { "default": "eu-west-1", "description": "The region of the tenant." },
    });
    let addresses = [
        ("", "The output `ApiUrl` of the tenant's stack; `freehold tenant deploy` prints it. For IAM principals."),
        ("/people", "The same for people who are signed in."),
        ("/pipelines", "The same for pipelines, if the tenant has an issuer of their tokens."),
    ];
    let servers = addresses.map(|(prefix, description)| {
        let url = format!("https://{{api}}.execute-api.{{region}}.amazonaws.com{prefix}");
        json!({ "url": url, "description": description, "variables": variables })
    });
    json!(servers)
}

/// Returns the ways to prove who sends a request, by name.
pub(super) fn security_schemes() -> Value {
    json!({
        SIGV4: {
            "type": "apiKey", "in": "header", "name": "Authorization",
            "description": "AWS Signature Version 4 for the service `execute-api`, as in `curl --aws-sigv4`.",
            "x-amazon-apigateway-authtype": "awsSigv4",
        },
        PERSON: {
            "type": "http", "scheme": "bearer", "bearerFormat": "JWT",
            "description": "The access token of the tenant's issuer for people (the output `PeopleIssuer` of the \
                            stack), with the prefix `/people` before the path.",
        },
        PIPELINE: {
            "type": "http", "scheme": "bearer", "bearerFormat": "JWT",
            "description": "A token of the tenant's issuer for pipelines, such as that of a CI job, with the prefix \
                            `/pipelines` before the path.",
        },
        WEBHOOK: {
            "type": "apiKey", "in": "header", "name": freehold_protocol::webhook::SIGNATURE,
            "description": "A signature by the private key of the webhook, as Standard Webhooks describes (scheme `v1a`).",
        },
    })
}

/// Returns how most requests prove who sends them: in one of these ways.
pub(super) fn security() -> Value {
    json!([{ SIGV4: [] }, { PERSON: [] }, { PIPELINE: [] }])
}

/// Returns how a call of a webhook is signed.
pub(super) fn security_of_calls() -> Value {
    json!([{ WEBHOOK: [] }])
}

/// Returns how a request proves who sends it that only a person may send.
pub(super) fn security_of_people() -> Value {
    json!([{ PERSON: [] }])
}
