//! Checks that an OpenID issuer belongs to an EKS cluster of the account. The form of the URL does not show that: the
//! clusters of all accounts in the region have issuers of the same form.

use std::collections::BTreeSet;

use serde::Deserialize;
use tokio::sync::Mutex;

use crate::answer::Answer;
use crate::refusal::Refusal;
use crate::upstream::Upstream;

/// The maximum number of pages of clusters to read. An account has at most 100 clusters unless AWS raised this quota.
const PAGES: usize = 20;

/// The known issuers of clusters of the account. They are cached, because the issuer of a cluster does not change.
#[derive(Debug, Default)]
pub(crate) struct Clusters {
    known: Mutex<BTreeSet<String>>,
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

#[derive(Deserialize)]
struct Cluster {
    identity: Option<Identity>,
}

#[derive(Deserialize)]
struct Identity {
    oidc: Option<Oidc>,
}

#[derive(Deserialize)]
struct Oidc {
    issuer: Option<String>,
}

impl Clusters {
    /// Checks that `issuer`, a URL without `https://`, is the issuer of a cluster of the account.
    pub(crate) async fn check(&self, issuer: &str, upstream: &Upstream) -> Result<(), Refusal> {
        let mut known = self.known.lock().await;
        if !known.contains(issuer) {
            known.append(&mut issuers(upstream).await?);
        }
        if known.contains(issuer) {
            return Ok(());
        }
        Err(Refusal::Denied(format!(
            "`{issuer}` is not the issuer of an EKS cluster of this account and region, so its identities are from \
             outside of the account; use the issuer of a cluster of this account and region"
        )))
    }
}

async fn issuers(upstream: &Upstream) -> Result<BTreeSet<String>, Refusal> {
    let mut found = BTreeSet::new();
    let mut token = None::<String>;
    for _ in 0..PAGES {
        let query = token.map(|token| {
            let mut form = url::form_urlencoded::Serializer::new(String::from("?"));
            form.append_pair("nextToken", &token).finish()
        });
        let page: Page = read(&upstream.eks(&format!("/clusters{}", query.unwrap_or_default())).await?)?;
        for name in page.clusters.iter().filter(|name| is_name(name)) {
            let answer = upstream.eks(&format!("/clusters/{name}")).await?;
            // The cluster was deleted after it was listed.
            if answer.status == 404 {
                continue;
            }
            let issuer = read::<Described>(&answer)?.cluster.identity.and_then(|identity| identity.oidc?.issuer);
            found.extend(issuer.and_then(|url| url.strip_prefix("https://").map(str::to_owned)));
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
            "the runner could not check which clusters the account has, because EKS answered {}; allow \
             `eks:ListClusters` and `eks:DescribeCluster` to this mode's role",
            answer.status
        )));
    }
    let unreadable = |error| Refusal::Unavailable(format!("the answer of EKS cannot be read: {error}"));
    serde_json::from_slice(&answer.body).map_err(unreadable)
}
