//! Checks that an OpenID issuer or an endpoint belongs to an EKS cluster of the account. The name alone does not
//! show that: the issuers and endpoints of all accounts in the region have names of the same form.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use tokio::sync::Mutex;
use url::Url;

use crate::answer::Answer;
use crate::refusal::Refusal;
use crate::upstream::Upstream;

/// The maximum number of pages of clusters to read. An account has at most 100 clusters in a region unless AWS raised
/// this quota.
const PAGES: usize = 20;

/// The known clusters of the account. They are cached, because the issuer and the endpoint of a cluster do not change.
#[derive(Debug, Default)]
pub(crate) struct Clusters {
    known: Mutex<Vec<Cluster>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Page {
    clusters: Vec<String>,
    next_token: Option<String>,
}

#[derive(Deserialize)]
struct Described {
    cluster: Cluster,
}

/// A cluster as EKS describes it.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Cluster {
    #[serde(default)]
    pub(crate) tags: BTreeMap<String, String>,
    /// Missing while the cluster is being created.
    endpoint: Option<String>,
    identity: Option<Identity>,
}

#[derive(Debug, Clone, Deserialize)]
struct Identity {
    oidc: Option<Oidc>,
}

#[derive(Debug, Clone, Deserialize)]
struct Oidc {
    issuer: Option<String>,
}

impl Cluster {
    /// Returns the issuer of the cluster, a URL without `https://`; `None` while the cluster has none.
    fn issuer(&self) -> Option<&str> {
        self.identity.as_ref()?.oidc.as_ref()?.issuer.as_deref()?.strip_prefix("https://")
    }

    /// Returns whether the host `name` is the endpoint of the cluster.
    fn is_at(&self, name: &str) -> bool {
        let own = self.endpoint.as_ref().and_then(|endpoint| Url::parse(endpoint).ok());
        own.as_ref().and_then(Url::host_str) == Some(name)
    }
}

impl Clusters {
    /// Checks that `issuer`, a URL without `https://`, is the issuer of a cluster of the account.
    pub(crate) async fn check(&self, issuer: &str, upstream: &Upstream) -> Result<(), Refusal> {
        if self.find(upstream, |cluster| cluster.issuer() == Some(issuer)).await?.is_some() {
            return Ok(());
        }
        Err(Refusal::Denied(format!(
            "`{issuer}` is not the issuer of an EKS cluster of this account and region, so its identities are from \
             outside of the account; use the issuer of a cluster of this account and region"
        )))
    }

    /// Returns the cluster of the account whose endpoint is the host `name`, if there is one.
    pub(crate) async fn at(&self, name: &str, upstream: &Upstream) -> Result<Option<Cluster>, Refusal> {
        self.find(upstream, |cluster| cluster.is_at(name)).await
    }

    /// Returns the first cluster that `wanted` accepts. If `wanted` accepts none of the known clusters, lists the
    /// clusters again.
    async fn find(&self, upstream: &Upstream, wanted: impl Fn(&Cluster) -> bool) -> Result<Option<Cluster>, Refusal> {
        let mut known = self.known.lock().await;
        if !known.iter().any(&wanted) {
            *known = all(upstream).await?;
        }
        Ok(known.iter().find(|cluster| wanted(cluster)).cloned())
    }
}

/// Returns the OpenID issuers, without `https://`, of all EKS clusters of the account in the region.
///
/// # Errors
/// When EKS does not list the clusters; the text says how to fix the problem.
pub async fn cluster_issuers(upstream: &Upstream) -> Result<BTreeSet<String>, String> {
    let clusters = all(upstream).await.map_err(|refusal| refusal.to_string())?;
    Ok(clusters.iter().filter_map(|cluster| cluster.issuer().map(str::to_owned)).collect())
}

async fn all(upstream: &Upstream) -> Result<Vec<Cluster>, Refusal> {
    let mut found = Vec::new();
    let mut token = None::<String>;
    for _ in 0..PAGES {
        let query = token.map(|token| {
            let mut form = url::form_urlencoded::Serializer::for_suffix(String::from("?"), 1);
            form.append_pair("nextToken", &token).finish()
        });
        let page: Page = read(&upstream.eks(&format!("/clusters{}", query.unwrap_or_default())).await?)?;
        for name in page.clusters.iter().filter(|name| is_name(name)) {
            let answer = upstream.eks(&format!("/clusters/{name}")).await?;
            // The cluster was deleted after it was listed.
            if answer.status == 404 {
                continue;
            }
            found.push(read::<Described>(&answer)?.cluster);
        }
        token = page.next_token.filter(|token| !token.is_empty());
        if token.is_none() {
            break;
        }
    }
    Ok(found)
}

fn is_name(name: &str) -> bool {
    name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
}

fn read<'a, T: Deserialize<'a>>(answer: &'a Answer) -> Result<T, Refusal> {
    if !answer.is_success() {
        return Err(Refusal::Denied(format!(
            "the runner could not check which clusters the account has, because EKS returned {}; allow \
             `eks:ListClusters` and `eks:DescribeCluster` to this mode's role",
            answer.status
        )));
    }
    let unreadable = |error| Refusal::Unavailable(format!("the response of EKS cannot be read: {error}"));
    serde_json::from_slice(&answer.body).map_err(unreadable)
}
