//! Checks the connections that the later jobs need: to the install's registry, and to the hosts that the app names.

use std::time::Duration;

use freehold_oci::{RegistryError, Version, client};
use freehold_protocol::Digest;
use freehold_protocol::preflight::{CheckInstall, Finding};
use tokio::task::JoinSet;

use super::finding::{Answer, fail, pass, unchecked, warn, way_to};
use crate::job::Job;
use crate::registry::ecr_repository;

/// The time limit for the response of a host.
const HOST: Duration = Duration::from_secs(4);
/// The time limit for the response of the registry.
const REGISTRY: Duration = Duration::from_secs(10);

/// The fix for a registry that refuses the runner.
const FIX: &str = "allow `ecr:GetAuthorizationToken` and `ecr:BatchGetImage` for the runner's role";

/// Checks the install's registry: logs in as jobs do, under the runner's own role, and asks for an artifact that does
/// not exist.
pub(super) async fn registry(job: &Job) -> Vec<Finding> {
    const CHECK: &str = "install registry";
    let name = &job.config.repository;
    if name.is_empty() {
        let fix = "write the install stack's `RepositoryName` into the key `repository`";
        return vec![fail(CHECK, "the runner's config names no repository", fix)];
    }
    let sdk = crate::aws::sdk_config(&job.config.region, None).await;
    let login = aws_sdk_ecr::Client::new(&sdk).get_authorization_token().send().await;
    match Answer::of(&login) {
        Answer::Allowed => {}
        answer => return vec![answer.needed(CHECK, "", "Amazon ECR", FIX)],
    }
    let ask = async {
        let repository = ecr_repository(&sdk, name).await?;
        repository.manifest_digest(&Version::Digest(Digest::of(b"freehold preflight"))).await
    };
    vec![match tokio::time::timeout(REGISTRY, ask).await {
        Ok(Ok(_)) => pass(CHECK, format!("`{name}` answers")),
        Ok(Err(error)) => refused(CHECK, &error),
        Err(_) => fail(CHECK, format!("no answer within {} s", REGISTRY.as_secs()), way_to("Amazon ECR")),
    }]
}

fn refused(check: &str, error: &RegistryError) -> Finding {
    let text = crate::aws::explain(error);
    match error {
        RegistryError::Denied { .. } | RegistryError::Login(_) => fail(check, text, FIX),
        RegistryError::Transport { .. } | RegistryError::Stalled { .. } => fail(check, text, way_to("Amazon ECR")),
        RegistryError::Address(_)
        | RegistryError::Reference(_)
        | RegistryError::Platform(_)
        | RegistryError::TokenHost { .. }
        | RegistryError::Expired { .. }
        | RegistryError::NotFound { .. }
        | RegistryError::Status { .. }
        | RegistryError::WrongDigest { .. }
        | RegistryError::WrongSize { .. }
        | RegistryError::Short { .. }
        | RegistryError::BadAnswer { .. }
        | RegistryError::TagTaken { .. }
        | RegistryError::Local(_)
        | RegistryError::Client(_) => unchecked(check, text, ""),
    }
}

/// Sends an HTTPS request to every host, through the proxy if there is one. The check passes with any response. A host
/// that does not respond is only a warning, because the install may not need it, or the app itself may create it.
pub(super) async fn hosts(work: &CheckInstall) -> Vec<Finding> {
    let client = match client() {
        Ok(client) => client,
        Err(error) => return vec![unchecked("network", crate::aws::explain(&error), "")],
    };
    let mut asked = JoinSet::new();
    for host in &work.hosts {
        asked.spawn(ask(client.clone(), host.clone()));
    }
    let mut found = asked.join_all().await;
    found.sort_by(|a, b| a.check.cmp(&b.check));
    found
}

async fn ask(client: reqwest::Client, host: String) -> Finding {
    let check = format!("network {host}");
    match client.head(format!("https://{host}/")).timeout(HOST).send().await {
        Ok(_) => pass(&check, "answers"),
        Err(error) => {
            let fix = "if jobs need this host, let the runner reach it, also through the proxy that `HTTPS_PROXY` \
                       names; Terraform can also take providers from a mirror that the file in `TF_CLI_CONFIG_FILE` \
                       names";
            warn(&check, crate::aws::explain(&error.without_url()), fix)
        }
    }
}

#[cfg(test)]
mod tests {
    use freehold_protocol::preflight::Verdict;

    use super::*;

    #[tokio::test]
    async fn a_host_that_refuses_is_a_warning_with_the_way_out() {
        let found = ask(client().unwrap(), "127.0.0.1:1".to_owned()).await;

        assert_eq!((found.state, found.check), (Verdict::Warn, "network 127.0.0.1:1".to_owned()));
        assert!(found.fix.contains("HTTPS_PROXY"), "{}", found.fix);
    }

    #[test]
    fn a_registry_that_denies_or_is_silent_fails_and_a_strange_one_warns() {
        let denied =
            RegistryError::Denied { host: "ecr".into(), repository: "fh-acme/globex".into(), detail: "no".to_owned() };
        let silent = RegistryError::Stalled { host: "ecr".into(), what: "manifest".into(), secs: 9 };
        let strange = RegistryError::BadAnswer { host: "ecr".into(), what: "manifest".into(), detail: "?".into() };

        let [denied, silent, strange] = [denied, silent, strange].map(|error| refused("install registry", &error));

        assert!(denied.state == Verdict::Fail && denied.fix.contains("ecr:BatchGetImage"), "{denied:?}");
        assert!(silent.state == Verdict::Fail && silent.fix.contains("port 443"), "{silent:?}");
        assert_eq!(strange.state, Verdict::Warn);
    }
}
