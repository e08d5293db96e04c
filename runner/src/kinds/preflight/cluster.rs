//! Checks what each mode may do in a cluster that exists before the deploy.

use aws_credential_types::provider::SharedCredentialsProvider;
use freehold_protocol::order::Mode;
use freehold_protocol::preflight::{CheckInstall, ExistingCluster, Finding};

use super::finding::{pass, unchecked, warn};
use crate::identity::mode::session_in;
use crate::job::Job;
use crate::kinds::templates::Templates;
use crate::kubernetes::{Api, ClusterError, apis_of};

/// The modes in which jobs deploy or remove components.
const MODES: [Mode; 3] = [Mode::Provision, Mode::Maintenance, Mode::Deprovision];
/// The API groups and resources that represent the objects of a component: its configuration, and a program that runs.
const RESOURCES: [(&str, &str); 3] = [("", "configmaps"), ("", "secrets"), ("apps", "deployments")];

/// Asks each existing cluster, under each mode that is switched on, what the mode may do in the namespaces of components.
/// The findings are warnings at most, because the sandbox may give the modes their access.
pub(super) async fn access(job: &Job, work: &CheckInstall) -> Vec<Finding> {
    let mut found = Vec::new();
    for cluster in &work.clusters {
        found.extend(in_cluster(job, cluster).await);
    }
    found
}

async fn in_cluster(job: &Job, cluster: &ExistingCluster) -> Vec<Finding> {
    let templates = Templates::of(job);
    // A name that depends on the outputs of other parts belongs to a cluster that does not exist yet.
    let Ok(name) = templates.text("cluster", &cluster.name) else { return Vec::new() };
    let known = |text: &String| templates.text("namespace", text).ok().filter(|name| !name.is_empty());
    let namespaces: Vec<String> = cluster.namespaces.iter().filter_map(known).collect();
    let (modes, mut found) = sessions(job, &name).await;
    let apis = apis_of(job, &name, modes.iter().map(|(_, session)| session.clone()).collect()).await;
    let apis = match apis {
        Ok(Some(apis)) => apis,
        Ok(None) => return Vec::new(),
        Err(error) => return vec![unchecked(&format!("cluster {name}"), error.to_string(), "")],
    };

    for ((mode, _), api) in modes.iter().zip(&apis) {
        let refused = list_refused(api, *mode, &namespaces).await;
        found.push(judge(&name, *mode, &role(job, *mode), &namespaces, refused));
    }
    found
}

/// Returns credentials of each mode that is switched on, and a warning for each mode whose credentials could not be
/// fetched.
async fn sessions(job: &Job, cluster: &str) -> (Vec<(Mode, SharedCredentialsProvider)>, Vec<Finding>) {
    let own = crate::aws::sdk_config(&job.config.region, None).await;
    let (mut sessions, mut found) = (Vec::new(), Vec::new());
    for mode in MODES {
        match session_in(job, mode, &own).await {
            Ok(session) => sessions.extend(session.map(|session| (mode, session))),
            Err(why) => found.push(unchecked(&check_name(cluster, mode), why, "")),
        }
    }
    (sessions, found)
}

/// Returns what the cluster refuses to the mode, such as "patch `secrets` in `shop`".
async fn list_refused(api: &Api, mode: Mode, namespaces: &[String]) -> Result<Vec<String>, ClusterError> {
    let verb = verb_of(mode);
    let mut refused = Vec::new();
    for namespace in namespaces {
        for (group, resource) in RESOURCES {
            if !api.may(verb, group, resource, namespace).await? {
                refused.push(format!("{verb} `{resource}` in `{namespace}`"));
            }
        }
    }
    if namespaces.is_empty() && !api.may("get", "", "namespaces", "").await? {
        refused.push("get `namespaces`".to_owned());
    }
    Ok(refused)
}

/// Returns the verb of the requests that the mode must be allowed to make for the objects of components.
fn verb_of(mode: Mode) -> &'static str {
    match mode {
        Mode::Deprovision => "delete",
        Mode::Provision | Mode::Maintenance | Mode::BreakGlass => "patch",
    }
}

fn judge(
    cluster: &str,
    mode: Mode,
    role: &str,
    namespaces: &[String],
    refused: Result<Vec<String>, ClusterError>,
) -> Finding {
    let (check, verb) = (check_name(cluster, mode), verb_of(mode));
    match refused {
        Ok(refused) if refused.is_empty() && namespaces.is_empty() => pass(&check, "the cluster lets the mode in"),
        Ok(refused) if refused.is_empty() => {
            let namespaces = namespaces.join(", ");
            pass(&check, format!("may {verb} `configmaps`, `secrets` and `deployments` in {namespaces}"))
        }
        Ok(refused) => warn(
            &check,
            format!("the cluster does not allow the mode to {}", refused.join(", ")),
            format!(
                "if the sandbox does not do this, associate an access policy for these namespaces with the access entry of \
                 {role} (`aws eks associate-access-policy`), or bind a role of the cluster to its groups"
            ),
        ),
        Err(ClusterError::Unauthorized { .. }) => warn(
            &check,
            "the cluster does not know the role of the mode",
            format!("if the sandbox does not do this, make an access entry for {role} (`aws eks create-access-entry`)"),
        ),
        Err(error) => unchecked(&check, error.to_string(), ""),
    }
}

fn check_name(cluster: &str, mode: Mode) -> String {
    format!("cluster {cluster}, mode {}", mode.as_str())
}

fn role(job: &Job, mode: Mode) -> String {
    let arn = job.config.modes.role(mode);
    arn.map_or_else(|| format!("the role of mode `{}`", mode.as_str()), |arn| format!("role `{arn}`"))
}

#[cfg(test)]
mod tests {
    use freehold_protocol::preflight::Verdict;

    use super::*;

    fn judged(refused: Result<Vec<String>, ClusterError>) -> Finding {
        judge("one", Mode::Maintenance, "role `arn`", &["shop".to_owned()], refused)
    }

    #[test]
    fn a_finding_names_the_cluster_the_mode_what_is_refused_and_the_way_out() {
        let allowed = judged(Ok(Vec::new()));
        let partly = judged(Ok(vec!["patch `secrets` in `shop`".to_owned()]));
        let stranger = judged(Err(ClusterError::Unauthorized { cluster: "one".to_owned() }));

        for finding in [&allowed, &partly, &stranger] {
            assert_eq!(finding.check, "cluster one, mode maintenance");
        }
        assert_eq!(allowed.state, Verdict::Pass);
        assert!(
            partly.detail.ends_with("to patch `secrets` in `shop`") && partly.fix.contains("associate-access-policy")
        );
        assert!(stranger.state == Verdict::Warn && stranger.fix.contains("an access entry for role `arn`"));
    }
}
