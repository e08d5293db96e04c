//! Reads a resource before a job changes it. A job may change only resources that jobs of the install made.

use crate::answer::Answer;
use crate::conceal::{has_tag, name, tags};
use crate::install::{Install, SHOWN_BOUNDARY};
use crate::query::Query;
use crate::refusal::Refusal;
use crate::upstream::Upstream;
use crate::xml::Element;

/// The result of reading a resource.
#[derive(Debug)]
pub(crate) enum Lookup<T> {
    /// The resource belongs to the install.
    Own(T),
    /// The response of IAM for the job: the resource does not exist or cannot be read.
    Answered(Answer),
}

/// The properties of a role of the install.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OwnRole {
    /// Whether the module itself set the boundary of the role.
    pub(crate) shows_boundary: bool,
}

/// Reads a role and checks that it belongs to the install.
pub(crate) async fn role(name: &str, install: &Install, upstream: &Upstream) -> Result<Lookup<OwnRole>, Refusal> {
    let answer = upstream.iam(&Query::new("GetRole", &[("RoleName", name)])).await?;
    if !answer.is_success() {
        return Ok(Lookup::Answered(answer));
    }
    let tree = answer.tree();
    let role = tree.as_ref().and_then(|tree| tree.child("GetRoleResult")?.child("Role"));
    let bounded = |role: &Element| {
        role.child("PermissionsBoundary").and_then(|boundary| boundary.value("PermissionsBoundaryArn")).as_ref()
            == Some(&install.boundary)
    };
    match role.filter(|role| is_own(role, install)) {
        Some(role) if bounded(role) => Ok(Lookup::Own(OwnRole { shows_boundary: has_tag(role, SHOWN_BOUNDARY) })),
        Some(_) => Err(Refusal::Denied(format!(
            "role `{name}` does not carry the install's boundary `{}`; ask the customer to put it back on the role",
            install.boundary
        ))),
        None => Err(not_own("role", name)),
    }
}

/// Reads an instance profile and checks that it belongs to the install.
pub(crate) async fn profile(name: &str, install: &Install, upstream: &Upstream) -> Result<Lookup<()>, Refusal> {
    let answer = upstream.iam(&Query::new("GetInstanceProfile", &[("InstanceProfileName", name)])).await?;
    if !answer.is_success() {
        return Ok(Lookup::Answered(answer));
    }
    let tree = answer.tree();
    let profile = tree.as_ref().and_then(|tree| tree.child("GetInstanceProfileResult")?.child("InstanceProfile"));
    let own = profile.is_some_and(|profile| is_own(profile, install));
    if own { Ok(Lookup::Own(())) } else { Err(not_own("instance profile", name)) }
}

/// Reads an identity provider and checks, by its tags, that it belongs to the install. An identity provider has no
/// path.
pub(crate) async fn provider(arn: &str, install: &Install, upstream: &Upstream) -> Result<Lookup<()>, Refusal> {
    let query = Query::new("GetOpenIDConnectProvider", &[("OpenIDConnectProviderArn", arn)]);
    let answer = upstream.iam(&query).await?;
    if !answer.is_success() {
        return Ok(Lookup::Answered(answer));
    }
    let tree = answer.tree();
    let provider = tree.as_ref().and_then(|tree| tree.child("GetOpenIDConnectProviderResult"));
    let own = provider.is_some_and(|provider| {
        let known: Vec<(String, String)> = tags(provider).collect();
        install.tags.iter().all(|(key, value)| known.iter().any(|(known, own)| known == key && own == value))
    });
    if own { Ok(Lookup::Own(())) } else { Err(not_own("identity provider", arn)) }
}

/// Checks, by the ARN of a policy, that the policy belongs to the install.
pub(crate) fn policy(arn: &str, install: &Install) -> Result<(), Refusal> {
    if install.owns_policy(arn) { Ok(()) } else { Err(not_own("policy", arn)) }
}

fn is_own(resource: &Element, install: &Install) -> bool {
    resource.value("Path").is_some_and(|path| install.shown_path(&name(resource), &path).is_some())
}

fn not_own(kind: &str, name: &str) -> Refusal {
    Refusal::Denied(format!(
        "{kind} `{name}` was not made by a job of this install, so no job of this install may change it; use one that \
         a job of this install made"
    ))
}
