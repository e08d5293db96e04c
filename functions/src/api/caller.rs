//! The caller of a request: the IAM principal that the API's authorizer has authenticated.

use freehold_app::new_workflow::Asked;
use freehold_app::{AppError, Kind};
use freehold_protocol::order::AskedBy;

use super::Call;
use super::routes::Operation;

impl Call {
    /// Returns the caller who requests the work.
    ///
    /// # Errors
    /// Internal without an authenticated caller, or when the caller is not an IAM principal that can call an API.
    pub fn asked_by(&self) -> Result<AskedBy, AppError> {
        let Some(arn) = &self.caller else {
            return Err(AppError::internal(
                "the request names no caller, and work starts only for a known caller; the routes of the API must have \
                 the authorization type AWS_IAM, as in the tenant's stack",
            ));
        };
        let arn = arn.parse().map_err(|error| AppError::internal(format!("the caller of the request: {error}")))?;
        Ok(AskedBy::Caller { arn })
    }

    /// Returns the ARN of the caller without the name of the role's session, because many tools draw another name for
    /// each session; empty without an authenticated caller.
    pub(super) fn principal(&self) -> &str {
        let arn = self.caller.as_deref().unwrap_or_default();
        let is_session = arn.splitn(6, ':').nth(5).is_some_and(|resource| resource.starts_with("assumed-role/"));
        if is_session { arn.rsplit_once('/').map_or(arn, |(role, _)| role) } else { arn }
    }

    /// Returns who requests work (`by`), and the cause of the work, which holds the idempotency key of this HTTP
    /// request.
    pub const fn asked<'a>(&'a self, by: &'a AskedBy) -> Asked<'a> {
        Asked { by, cause: self.cause.as_str(), step: None }
    }
}

impl Operation {
    /// Refuses a request that no IAM authorizer has authenticated, whichever route led to the function.
    ///
    /// # Errors
    /// Unauthorized, unless the operation itself verifies a signature.
    pub(super) fn check_caller(self, caller: Option<&str>) -> Result<(), AppError> {
        if caller.is_some() || self.is_open() {
            return Ok(());
        }
        Err(AppError::new(
            Kind::Unauthorized,
            "the request names no caller; the routes of the API must have the authorization type AWS_IAM, as in the \
             tenant's stack, except the route for calls of webhooks",
        ))
    }
}

#[cfg(test)]
mod tests {
    use aws_lambda_events::event::apigw::ApiGatewayV2httpRequest;
    use serde_json::{Value, json};

    use super::super::caller_of;
    use super::*;

    /// Returns the call of an HTTP API event (payload format 2.0) with this `authorizer`.
    fn call(authorizer: &Value) -> Call {
        let event = json!({
            "version": "2.0", "routeKey": "$default", "rawPath": "/v1/installs/globex/deploys", "rawQueryString": "",
            "headers": {}, "isBase64Encoded": false,
            "requestContext": {
                "accountId": "111111111111", "apiId": "api", "stage": "$default", "requestId": "id",
                "authorizer": authorizer,
                "http": { "method": "POST", "path": "/v1/installs/globex/deploys", "protocol": "HTTP/1.1",
                    "sourceIp": "192.0.2.1", "userAgent": "test" },
                "time": "01/Jan/2026:00:00:00 +0000", "timeEpoch": 1_767_225_600_000_u64,
            },
        });
        let request: ApiGatewayV2httpRequest = serde_json::from_value(event).unwrap();
        Call { cause: "deploy-1".to_owned(), caller: caller_of(&request.request_context), ..Call::default() }
    }

    fn iam(arn: &str) -> Value {
        json!({ "iam": { "accessKey": "ASIA", "accountId": "111111111111", "callerId": "AROA:ana",
            "cognitoIdentity": null, "principalOrgId": null, "userArn": arn, "userId": "AROA:ana" } })
    }

    #[test]
    fn the_caller_is_the_principal_of_the_iam_authorizer() {
        let call = call(&iam("arn:aws:sts::111111111111:assumed-role/deployer/ana"));

        let by = call.asked_by().unwrap();

        assert_eq!(by.to_string(), "arn:aws:sts::111111111111:assumed-role/deployer/ana");
        assert_eq!((call.asked(&by).by, call.asked(&by).cause), (&by, "deploy-1"));
    }

    #[test]
    fn two_sessions_of_a_role_are_one_principal() {
        let of = |arn: &str| call(&iam(arn)).principal().to_owned();

        let role = "arn:aws:sts::111111111111:assumed-role/deployer";
        assert_eq!([of(&format!("{role}/ana")), of(&format!("{role}/ben"))], [role, role]);
        let user = "arn:aws:iam::111111111111:user/team/ana";
        assert_eq!([of(user), call(&Value::Null).principal().to_owned()], [user, ""]);
    }

    #[test]
    fn without_an_authenticated_caller_no_work_is_asked_for() {
        for authorizer in [Value::Null, json!({}), json!({ "jwt": { "claims": { "sub": "ana" }, "scopes": [] } })] {
            let error = call(&authorizer).asked_by().unwrap_err();

            assert_eq!(error.kind, Kind::Internal);
            assert!(error.message.contains("AWS_IAM"), "{error}");
        }
    }

    #[test]
    fn only_calls_of_webhooks_come_without_a_caller() {
        for route in super::super::routes::ROUTES {
            let refused = route.operation.check_caller(None).err().map(|error| error.kind);

            let is_open = route.path == "/v1/webhooks/{webhook}/calls";
            assert_eq!(refused, (!is_open).then_some(Kind::Unauthorized), "{}", route.path);
            assert!(route.operation.check_caller(Some("arn:aws:iam::111111111111:user/ana")).is_ok());
        }
    }

    #[test]
    fn a_caller_that_is_not_a_principal_is_refused_and_not_repeated_raw() {
        for arn in ["", "ana", "arn:aws:iam::111111111111:user/ana\nschedule", "arn:evil:iam::111111111111:user/ana"] {
            let error = call(&iam(arn)).asked_by().unwrap_err();

            assert!(error.message.contains("is not the ARN of a caller") && !error.message.contains('\n'), "{error}");
        }
    }
}
