//! The caller of a request: the principal that it is to the policies, and who asks for work.

use std::borrow::Cow;

use freehold_app::AppError;
use freehold_app::access::{Access, Who, who_of_caller};
use freehold_app::new_workflow::Asked;
use freehold_protocol::order::{AskedBy, CallerArn};

use super::Call;
use super::entrance::{Caller, unauthorized};
use super::routes::Operation;

impl Call {
    /// Returns the principal that the caller is to the policies.
    ///
    /// # Errors
    /// Internal without an authenticated caller.
    pub(super) fn who(&self) -> Result<Who, AppError> {
        match &self.caller {
            // An ARN that is not one of a caller is in no row and no policy.
            Some(Caller::Iam { arn }) => {
                Ok(arn.parse::<CallerArn>().map_or_else(|_| Who::Iam { arn: arn.clone() }, |arn| who_of_caller(&arn)))
            }
            Some(Caller::Person { subject }) => Ok(Who::Person { subject: subject.to_string() }),
            Some(Caller::Pipeline { subject }) => Ok(Who::Pipeline { subject: subject.to_string() }),
            None => Err(no_caller()),
        }
    }

    /// Returns what the caller of a permitted request may do.
    ///
    /// # Errors
    /// Internal for an operation that needs no permission.
    pub(super) fn permitted(&self) -> Result<&Access, AppError> {
        self.access.as_ref().ok_or_else(no_caller)
    }

    /// Returns the caller who requests the work.
    ///
    /// # Errors
    /// Internal without an authenticated caller, or when the caller is not an IAM principal that can call an API.
    pub fn asked_by(&self) -> Result<AskedBy, AppError> {
        match (&self.caller, &self.access) {
            (Some(Caller::Iam { arn }), _) => {
                let arn =
                    arn.parse().map_err(|error| AppError::internal(format!("the caller of the request: {error}")))?;
                Ok(AskedBy::Caller { arn })
            }
            (Some(Caller::Person { .. } | Caller::Pipeline { .. }), Some(access)) => {
                access.asked_by()?.ok_or_else(no_caller)
            }
            (Some(Caller::Person { .. } | Caller::Pipeline { .. }), None) | (None, _) => Err(no_caller()),
        }
    }

    /// Returns the name of the caller to which an idempotency key belongs: the ARN of an IAM principal without the name
    /// of the role's session, because many tools draw another name for each session; `person:` or `pipeline:` and the
    /// subject of a token; empty without an authenticated caller.
    pub(super) fn principal(&self) -> Cow<'_, str> {
        let arn = match &self.caller {
            Some(Caller::Iam { arn }) => arn.as_str(),
            Some(Caller::Person { subject }) => return Cow::Owned(format!("person:{subject}")),
            Some(Caller::Pipeline { subject }) => return Cow::Owned(format!("pipeline:{subject}")),
            None => return Cow::Borrowed(""),
        };
        let is_session = arn.splitn(6, ':').nth(5).is_some_and(|resource| resource.starts_with("assumed-role/"));
        Cow::Borrowed(if is_session { arn.rsplit_once('/').map_or(arn, |(role, _)| role) } else { arn })
    }

    /// Returns who requests work (`by`), and the cause of the work, which holds the idempotency key of this HTTP
    /// request.
    pub const fn asked<'a>(&'a self, by: &'a AskedBy) -> Asked<'a> {
        Asked { by, cause: self.cause.as_str(), step: None }
    }
}

fn no_caller() -> AppError {
    AppError::internal(
        "the request names no caller, and work starts only for a known caller; the routes of the API must have the \
         authorizers that they have in the tenant's stack",
    )
}

impl Operation {
    /// Refuses a request that no authorizer has authenticated, whichever route led to the function, and a call of a
    /// webhook that came with a token.
    ///
    /// # Errors
    /// Unauthorized, unless the operation itself verifies a signature.
    pub(super) fn check_caller(self, caller: Option<&Caller>) -> Result<(), AppError> {
        match caller {
            Some(Caller::Person { .. } | Caller::Pipeline { .. }) if self.is_open() => {
                Err(unauthorized("a webhook is called at its path under `/v1`, with a signature and without a token"))
            }
            None if !self.is_open() => Err(unauthorized(
                "the request names no caller; the routes of the API must have the authorizers that they have in the \
                 tenant's stack, except the route for calls of webhooks",
            )),
            Some(_) | None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use freehold_app::Kind;

    use super::*;

    fn call(arn: &str) -> Call {
        let caller = Some(Caller::Iam { arn: arn.to_owned() });
        Call { cause: "deploy-1".to_owned(), caller, ..Call::default() }
    }

    #[test]
    fn the_caller_is_the_principal_of_the_iam_authorizer() {
        let call = call("arn:aws:sts::111111111111:assumed-role/deployer/ana");

        let by = call.asked_by().unwrap();

        assert_eq!(by.to_string(), "arn:aws:sts::111111111111:assumed-role/deployer/ana");
        assert_eq!((call.asked(&by).by, call.asked(&by).cause), (&by, "deploy-1"));
        assert_eq!(call.who().unwrap().to_string(), "iam:arn:aws:iam::111111111111:role/deployer");
    }

    #[test]
    fn two_sessions_of_a_role_are_one_principal() {
        let of = |arn: &str| call(arn).principal().into_owned();

        let role = "arn:aws:sts::111111111111:assumed-role/deployer";
        assert_eq!([of(&format!("{role}/ana")), of(&format!("{role}/ben"))], [role, role]);
        let user = "arn:aws:iam::111111111111:user/team/ana";
        assert_eq!([of(user), Call::default().principal().into_owned()], [user, ""]);
    }

    #[test]
    fn without_an_authenticated_caller_no_work_is_asked_for() {
        let error = Call::default().asked_by().unwrap_err();

        assert_eq!(error.kind, Kind::Internal);
        assert!(error.message.contains("authorizers"), "{error}");
    }

    #[test]
    fn only_calls_of_webhooks_come_without_a_caller_and_they_have_no_token() {
        let iam = Caller::Iam { arn: "arn:aws:iam::111111111111:user/ana".to_owned() };
        let person = Caller::Person { subject: "ana".parse().unwrap() };
        for route in super::super::routes::ROUTES {
            let refused = |caller: Option<&Caller>| route.operation.check_caller(caller).err().map(|error| error.kind);

            let is_open = route.path == "/v1/webhooks/{webhook}/calls";
            assert_eq!(refused(None), (!is_open).then_some(Kind::Unauthorized), "{}", route.path);
            assert_eq!(refused(Some(&person)), is_open.then_some(Kind::Unauthorized), "{}", route.path);
            assert_eq!(refused(Some(&iam)), None, "{}", route.path);
        }
    }

    #[test]
    fn a_caller_that_is_not_a_principal_is_refused_and_not_repeated_raw() {
        for arn in ["", "ana", "arn:aws:iam::111111111111:user/ana\nschedule", "arn:evil:iam::111111111111:user/ana"] {
            let error = call(arn).asked_by().unwrap_err();

            assert!(error.message.contains("is not the ARN of a caller") && !error.message.contains('\n'), "{error}");
        }
    }
}
