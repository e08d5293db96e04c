//! Requests with an idempotency key: what a request is about, and whether its answer is kept.

use freehold_app::AppError;
use freehold_app::idempotency::{Begun, Request, Subject};
use freehold_protocol::InstallId;
use serde::Deserialize;

use super::routes::Operation;
use super::{Api, Call};

impl Api {
    /// Performs `operation`, or returns the answer to the request if it was performed before. The request was sent to
    /// `path`, and `id` is the id that API Gateway gave to it. A request without an idempotency key is performed.
    ///
    /// # Errors
    /// The errors of [`IdempotentRequests::begin`](freehold_app::idempotency::IdempotentRequests::begin) and of the
    /// operation.
    pub(super) async fn perform_once(
        &self,
        operation: Operation,
        mut call: Call,
        (path, id): (&str, &str),
    ) -> Result<String, AppError> {
        let mut claimed = None;
        if !call.cause.is_empty() && operation.leaves_row() {
            let (key, body, keeps_answer) = (call.cause.as_str(), call.body.as_str(), operation.keeps_answer());
            let (subject, principal) = (call.subject(operation)?, call.principal().into_owned());
            let request = Request { subject, path, key, body, caller: &principal, id, keeps_answer };
            let attempt = match self.requests.begin(&request).await? {
                Begun::Before(answer) => return Ok(answer),
                Begun::Now(attempt) => attempt,
            };
            call.cause.clone_from(&attempt.cause);
            claimed = Some(attempt);
        }
        let answer = self.operate(operation, &call).await;
        if let Some(attempt) = claimed {
            self.requests.end(attempt, &answer).await;
        }
        answer
    }
}

/// The part of the body that names a new install.
#[derive(Deserialize)]
struct NewInstall {
    install: InstallId,
}

impl Call {
    /// Returns the thing that the request is about: the first placeholder of its path that names one.
    fn subject(&self, operation: Operation) -> Result<Subject, AppError> {
        if matches!(operation, Operation::CreateInstall) {
            // The operation refuses any other body.
            let new = serde_json::from_str::<NewInstall>(&self.body).ok();
            return Ok(new.map_or(Subject::Tenant, |new| Subject::NewInstall(new.install)));
        }
        Ok(match self.path.first().map(|(name, _)| name.as_str()) {
            Some("app") => Subject::App(self.app()?),
            Some("install") => Subject::Install(self.install()?),
            Some("job") => Subject::Job(self.job()?),
            Some("run") => Subject::Run(self.run()?),
            Some("workflow") => Subject::Workflow(self.workflow()?),
            Some(_) | None => Subject::Tenant,
        })
    }
}

impl Operation {
    /// Returns whether a repeated request gets the first answer. The address for an upload is valid for minutes only,
    /// and a prune returns the present state of the artifacts. To perform these two again changes nothing more. The
    /// answer to an invitation has its code, which is stored nowhere: another code replaces it.
    const fn keeps_answer(self) -> bool {
        !matches!(self, Self::UploadSource | Self::PruneArtifacts | Self::InviteMember)
    }

    /// Returns whether the request leaves a row. Everybody who has signed in may accept an invitation, and somebody who
    /// is not a member writes nothing. To accept it again changes nothing more.
    const fn leaves_row(self) -> bool {
        !matches!(self, Self::AcceptInvitation)
    }
}

#[cfg(test)]
mod tests {
    use freehold_app::idempotency::PERFORMING_SECS;

    use super::super::routes::ROUTES;
    use super::*;

    /// Returns the subject of a request to this route, with a value for each placeholder of its path.
    fn subject(operation: Operation, path: &str, body: &str) -> Subject {
        let values = path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
        let value = |name: &str| match name {
            "workflow" => "wf_0123456789abcdef0123".to_owned(),
            "job" => "job_0123456789abcdef0123".to_owned(),
            "run" => "run_0123456789abcdef0123".to_owned(),
            "artifact" | "version" | "terms" => format!("sha256:{}", "0".repeat(64)),
            _ => "globex".to_owned(),
        };
        let path = values.map(|name| (name.to_owned(), value(name))).collect();
        Call { path, body: body.to_owned(), ..Call::default() }.subject(operation).unwrap()
    }

    #[test]
    fn a_request_is_about_the_thing_whose_path_it_is_sent_to() {
        let install: InstallId = "globex".parse().unwrap();
        for route in ROUTES.iter().filter(|route| route.method == "POST") {
            let found = subject(route.operation, route.path, "{}");

            let named = match route.path.split('/').nth(2).unwrap_or_default() {
                "apps" => matches!(found, Subject::App(_)),
                "installs" if route.path.contains("{install}") => found == Subject::Install(install.clone()),
                "workflows" => matches!(found, Subject::Workflow(_)),
                "jobs" => matches!(found, Subject::Job(_)),
                "runs" => matches!(found, Subject::Run(_)),
                _ => found == Subject::Tenant,
            };
            assert!(named, "{}: {found:?}", route.path);
        }
    }

    #[test]
    fn the_install_that_a_request_creates_is_named_by_its_body() {
        let created = subject(Operation::CreateInstall, "/v1/installs", r#"{ "install": "globex", "app": "demo" }"#);

        assert_eq!(created, Subject::NewInstall("globex".parse().unwrap()));
    }

    #[test]
    fn every_answer_is_kept_but_those_that_soon_are_out_of_date() {
        let dropped = ROUTES.iter().filter(|route| !route.operation.keeps_answer());

        let paths: Vec<&str> = dropped.map(|route| route.path).collect();
        assert_eq!(paths, ["/v1/apps/{app}/sources", "/v1/apps/{app}/artifacts/prune", "/v1/members"]);
    }

    #[test]
    fn a_request_without_an_answer_is_performed_again_when_its_function_must_have_ended() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../infra/tenant.yaml");
        let template = std::fs::read_to_string(path).unwrap();
        let (_, function) = template.split_once("\n  Api:\n").unwrap();
        let (_, timeout) = function.split_once("\n      Timeout: ").unwrap();
        let secs: u64 = timeout.lines().next().unwrap().parse().unwrap();

        assert_eq!(PERFORMING_SECS, secs + 1);
    }
}
