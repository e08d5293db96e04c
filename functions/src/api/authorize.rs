//! The decision about a request: its action and the thing that it is about. It comes before the operation is performed,
//! and before the answer of an earlier try is returned.

use freehold_app::AppError;
use freehold_app::access::{About, Access, Act, Permits};
use freehold_protocol::api::{CreateInstallRequest, TestAccessRequest};

use super::routes::Operation;
use super::{Api, Call};

impl Api {
    /// Returns what the caller may do if the request is permitted; `None` for an operation that needs no permission.
    ///
    /// # Errors
    /// The errors of [`Authorize::authorize`](freehold_app::access::Authorize::authorize), or Invalid for a body that
    /// names no new install.
    pub(super) async fn access(&self, operation: Operation, call: &Call) -> Result<Option<Access>, AppError> {
        // A call of a webhook is signed by its key, and the code of an invitation is the proof.
        if matches!(operation, Operation::CallWebhook | Operation::AcceptInvitation) {
            return Ok(None);
        }
        let (action, run) = (operation.action(), call.runs(operation)?);
        let permits = if call.tests_oneself(operation)? { Permits::Oneself } else { operation.permits() };
        let act = Act { action: &action, run: &run, permits };
        let about = call.about(operation)?;
        Ok(Some(self.authorize.authorize(call.who()?, &act, &about).await?))
    }
}

impl Operation {
    /// Returns the name of the operation's action in the policies.
    pub fn action(self) -> String {
        let mut action = String::new();
        for letter in format!("{self:?}").chars() {
            if letter.is_ascii_uppercase() && !action.is_empty() {
                action.push('_');
            }
            action.push(letter.to_ascii_lowercase());
        }
        action
    }

    const fn permits(self) -> Permits {
        if matches!(self, Self::ShowCaller) {
            Permits::Everybody
        } else if matches!(self, Self::ListApps | Self::ListInstalls) {
            Permits::ByItem
        } else {
            Permits::ByPolicies
        }
    }
}

impl Call {
    /// Returns the thing that the policies decide about: the first placeholder of the path that names one.
    pub(super) fn about(&self, operation: Operation) -> Result<About, AppError> {
        if matches!(operation, Operation::CreateInstall) {
            let CreateInstallRequest { install, app, labels, .. } = self.json()?;
            return Ok(About::NewInstall { install, app, labels });
        }
        Ok(match self.path.first().map(|(name, _)| name.as_str()) {
            Some("app") => About::App(self.app()?),
            Some("install") => About::Install(self.install()?),
            Some("job") => About::Job(self.job()?),
            Some("run") => About::Run(self.run()?),
            Some("workflow") => About::Workflow(self.workflow()?),
            Some(_) | None => About::Tenant,
        })
    }

    /// Returns whether the request asks what the policies permit the caller itself. The operation refuses a body that
    /// cannot be read.
    fn tests_oneself(&self, operation: Operation) -> Result<bool, AppError> {
        if !matches!(operation, Operation::TestAccess) {
            return Ok(false);
        }
        let caller = self.who()?.to_string();
        Ok(self.json::<TestAccessRequest>().is_ok_and(|test| test.member.is_none() && test.who == Some(caller)))
    }

    /// Returns the name of the action or the runbook that the request would run; empty for another request.
    fn runs(&self, operation: Operation) -> Result<String, AppError> {
        if matches!(operation, Operation::RunAction) {
            Ok(self.action()?.to_string())
        } else if matches!(operation, Operation::RunRunbook) {
            Ok(self.runbook()?.to_string())
        } else {
            Ok(String::new())
        }
    }
}

#[cfg(test)]
mod tests {
    use freehold_app::access::{UNDECIDED, actions};

    use super::super::routes::ROUTES;

    #[test]
    fn every_operation_is_an_action_of_the_policies_or_needs_no_decision() {
        let mut operations: Vec<String> = ROUTES.iter().map(|route| route.operation.action()).collect();
        operations.sort_unstable();
        let mut decided: Vec<&str> = actions().iter().map(|action| action.name).chain(UNDECIDED).collect();
        decided.sort_unstable();

        assert_eq!(operations, decided);
    }

    #[test]
    fn every_action_is_about_what_the_path_of_its_route_names() {
        for route in ROUTES {
            let name = route.operation.action();
            let Some(action) = actions().iter().find(|action| action.name == name) else { continue };
            let named = match route.path.split('/').nth(2).unwrap_or_default() {
                "apps" if route.path.contains("{app}") => "app",
                "installs" if route.path.contains("{install}") || name == "create_install" => "install",
                "workflows" | "jobs" | "runs" => "install",
                _ => "tenant",
            };

            assert_eq!(action.about.as_str(), named, "{name}");
        }
    }
}
