//! The way of a request into the API. An IAM principal calls a plain path, a person a path under `/people`, and a
//! pipeline one under `/pipelines`. API Gateway verifies signatures and tokens; here it is checked that the authorizer
//! is the one of the path.

use std::collections::HashMap;

use aws_lambda_events::event::apigw::ApiGatewayV2httpRequest;
use freehold_app::{AppError, Kind};
use freehold_protocol::TokenSubject;

/// The prefix of the paths that people call, and of those that pipelines call.
const PEOPLE: &str = "/people";
const PIPELINES: &str = "/pipelines";

/// The issuers of the tokens of people and of pipelines; empty without one.
#[derive(Debug, Clone, Default)]
pub struct Issuers {
    pub people: String,
    pub pipelines: String,
}

/// Who calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Caller {
    /// An IAM principal, with the ARN as the authorizer wrote it.
    Iam {
        arn: String,
    },
    Person {
        subject: TokenSubject,
    },
    Pipeline {
        subject: TokenSubject,
    },
}

/// The way of a request into the API.
pub(super) struct Entrance {
    /// `None` when no authorizer has authenticated the request.
    pub(super) caller: Option<Caller>,
    /// The path without the prefix of people or pipelines.
    pub(super) path: String,
}

impl Issuers {
    /// Returns the caller of a request and the path of its route.
    ///
    /// # Errors
    /// Unauthorized when the request was authenticated by another authorizer than that of its path, and for a token of
    /// another issuer, of another use or without a subject.
    pub(super) fn entrance(&self, request: &ApiGatewayV2httpRequest) -> Result<Entrance, AppError> {
        let path = request.raw_path.as_deref().unwrap_or_default();
        let authorizer = request.request_context.authorizer.as_ref();
        let iam = authorizer.and_then(|authorizer| authorizer.iam.as_ref());
        let claims = authorizer.and_then(|authorizer| authorizer.jwt.as_ref()).map(|token| &token.claims);
        let (people, pipelines) = (under(path, PEOPLE), under(path, PIPELINES));
        let (caller, path) = match (people, pipelines, iam, claims) {
            (None, None, Some(iam), None) => (iam.user_arn.clone().map(|arn| Caller::Iam { arn }), path),
            (None, None, None, None) => (None, path),
            (Some(path), None, None, Some(claims)) => {
                (Some(Caller::Person { subject: subject(claims, &self.people)? }), path)
            }
            (None, Some(path), None, Some(claims)) => {
                (Some(Caller::Pipeline { subject: subject(claims, &self.pipelines)? }), path)
            }
            _ => {
                return Err(unauthorized(
                    "the request was not authenticated as its path needs it: sign requests to `/v1` with AWS \
                     credentials, and send a token to `/people/v1` or `/pipelines/v1`",
                ));
            }
        };
        Ok(Entrance { caller, path: path.to_owned() })
    }
}

/// Returns the rest of a path under a prefix.
fn under<'a>(path: &'a str, prefix: &str) -> Option<&'a str> {
    path.strip_prefix(prefix).filter(|rest| rest.starts_with('/'))
}

/// Returns the subject of an access token of this issuer.
fn subject(claims: &HashMap<String, String>, issuer: &str) -> Result<TokenSubject, AppError> {
    let claim = |name: &str| claims.get(name).map(String::as_str).unwrap_or_default();
    if issuer.is_empty() || claim("iss") != issuer {
        return Err(unauthorized(
            "the token was issued by an issuer that the tenant does not trust here; sign in again",
        ));
    }
    // Amazon Cognito and Keycloak name the use of their tokens, and only an ID token has the hash of an access token
    // (OpenID Connect Core 1.0, section 3.1.3.6). A token that says who has signed in does not permit calls.
    let is_id_token = claim("typ").eq_ignore_ascii_case("id") || claims.contains_key("at_hash");
    if is_id_token || !matches!(claim("token_use"), "" | "access") {
        return Err(unauthorized("the token is not an access token; send the access token"));
    }
    claim("sub").parse().map_err(|_| unauthorized("the token has no subject of 1 to 255 visible ASCII characters"))
}

pub(super) fn unauthorized(message: &str) -> AppError {
    AppError::new(Kind::Unauthorized, message)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const PEOPLE_ISSUER: &str = "https://people.example";
    const PIPELINE_ISSUER: &str = "https://ci.example";

    /// Returns the entrance of an HTTP API event (payload format 2.0) with this path and `authorizer`.
    fn entrance(path: &str, authorizer: &Value) -> Result<Entrance, AppError> {
        let event = json!({
            "version": "2.0", "routeKey": "$default", "rawPath": path, "rawQueryString": "",
            "headers": {}, "isBase64Encoded": false,
            "requestContext": {
                "accountId": "111111111111", "apiId": "api", "stage": "$default", "requestId": "id",
                "authorizer": authorizer,
                "http": { "method": "POST", "path": path, "protocol": "HTTP/1.1",
                    "sourceIp": "192.0.2.1", "userAgent": "test" },
                "time": "01/Jan/2026:00:00:00 +0000", "timeEpoch": 1_767_225_600_000_u64,
            },
        });
        let issuers = Issuers { people: PEOPLE_ISSUER.to_owned(), pipelines: PIPELINE_ISSUER.to_owned() };
        issuers.entrance(&serde_json::from_value(event).unwrap())
    }

    fn iam(arn: &str) -> Value {
        json!({ "iam": { "accessKey": "ASIA", "accountId": "111111111111", "callerId": "AROA:ana",
            "cognitoIdentity": null, "principalOrgId": null, "userArn": arn, "userId": "AROA:ana" } })
    }

    fn token(claims: &Value) -> Value {
        json!({ "jwt": { "claims": claims, "scopes": [] } })
    }

    fn ana() -> Value {
        json!({ "iss": PEOPLE_ISSUER, "sub": "ana", "token_use": "access" })
    }

    #[test]
    fn a_token_names_its_caller_under_the_path_of_its_authorizer() {
        let person = entrance("/people/v1/apps", &token(&ana())).unwrap();
        let claims = json!({ "iss": PIPELINE_ISSUER, "sub": "repo:acme/shop:ref:refs/heads/main" });
        let pipeline = entrance("/pipelines/v1/apps", &token(&claims)).unwrap();

        assert_eq!((person.path.as_str(), pipeline.path.as_str()), ("/v1/apps", "/v1/apps"));
        assert_eq!(person.caller, Some(Caller::Person { subject: "ana".parse().unwrap() }));
        let subject = "repo:acme/shop:ref:refs/heads/main".parse().unwrap();
        assert_eq!(pipeline.caller, Some(Caller::Pipeline { subject }));
    }

    #[test]
    fn an_authorizer_of_another_path_is_refused() {
        let both = json!({ "iam": iam("arn:aws:iam::111111111111:user/ana")["iam"], "jwt": token(&ana())["jwt"] });
        for (path, authorizer) in [
            ("/people/v1/apps", iam("arn:aws:iam::111111111111:user/ana")),
            ("/pipelines/v1/apps", iam("arn:aws:iam::111111111111:user/ana")),
            ("/v1/apps", token(&ana())),
            ("/peoples/v1/apps", token(&ana())),
            ("/%70eople/v1/apps", token(&ana())),
            ("/pipelines/v1/apps", token(&ana())),
            ("/people/v1/apps", both.clone()),
            ("/v1/apps", both),
            ("/people/v1/apps", Value::Null),
            ("/pipelines/v1/apps", json!({})),
        ] {
            let refused = entrance(path, &authorizer).err().map(|error| error.kind);

            assert_eq!(refused, Some(Kind::Unauthorized), "{path} {authorizer}");
        }
    }

    #[test]
    fn a_token_without_a_trusted_issuer_or_a_plain_subject_is_refused() {
        let with = |name: &str, value: Value| {
            let mut claims = ana();
            claims[name] = value;
            token(&claims)
        };
        for authorizer in [
            with("iss", json!("https://evil.example")),
            with("iss", json!("https://people.example/")),
            with("iss", json!("")),
            with("token_use", json!("id")),
            with("typ", json!("ID")),
            with("at_hash", json!("77QmUPtjPfzWtF2AnpK9RQ")),
            with("sub", json!("")),
            with("sub", json!("a b")),
            with("sub", json!("ana\nben")),
            with("sub", json!("\u{202e}ana")),
            with("sub", json!("a".repeat(256))),
            token(&json!({ "iss": PEOPLE_ISSUER })),
            token(&json!({ "sub": "ana" })),
            token(&json!({})),
        ] {
            let error = entrance("/people/v1/apps", &authorizer).err().unwrap();

            assert_eq!(error.kind, Kind::Unauthorized, "{authorizer}");
            assert!(!error.message.contains(char::is_control), "{error}");
        }
    }

    #[test]
    fn without_issuers_no_token_is_accepted() {
        for issuer in ["", PEOPLE_ISSUER] {
            let claims = HashMap::from([("iss".to_owned(), issuer.to_owned()), ("sub".to_owned(), "ana".to_owned())]);

            assert!(subject(&claims, "").is_err());
        }
    }
}
