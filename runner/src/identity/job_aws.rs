//! The access of a job's programs to AWS: the credentials of its mode, the runner's proxy for IAM, and the endpoints of
//! the account's clusters.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use async_trait::async_trait;
use aws_credential_types::provider::SharedCredentialsProvider;
use freehold_egress::{AccountHosts, Scope};
use freehold_iam_proxy::{ClusterOwner, Endpoint, Install, Proxy, Upstream, dns_suffix};
use freehold_protocol::{Arn, names};
use tokio::net::TcpListener;

use crate::config::{Config, Role, SandboxKind};
use crate::identity::credentials_endpoint::CredentialsEndpoint;
use crate::job::Job;
use crate::sandbox::{Serve, Service};

/// The address of the IAM proxy inside a box.
const IAM: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 51_680);

/// The access of one job's programs to AWS.
#[derive(Debug)]
pub struct JobAws {
    credentials: CredentialsEndpoint,
    /// The IAM proxy. A job without a box uses IAM directly, because any program on the machine could use a proxy on
    /// its loopback to act as the job.
    iam: Option<Arc<Proxy>>,
    region: String,
}

impl JobAws {
    /// Returns the access to AWS for `job`.
    ///
    /// # Errors
    /// The errors of [`CredentialsEndpoint::of`], and an endpoint in the machine's environment that is not a URL.
    pub async fn of(job: &Job) -> io::Result<Self> {
        let credentials = CredentialsEndpoint::of(job).await?;
        let boxed = job.config.sandbox == SandboxKind::Bubblewrap;
        let given = job.order.tags().into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
        let iam = match install(&job.config, given).filter(|_| boxed) {
            Some(install) => {
                let upstream = upstream(&job.config.region, job.credentials.clone())?;
                Some(Arc::new(Proxy::new(install, upstream, Arc::clone(&job.iam))))
            }
            None => None,
        };
        Ok(Self { credentials, iam, region: job.config.region.clone() })
    }

    /// Returns the services to run inside the box of each program of the job.
    pub fn services(&self) -> Vec<Service> {
        let iam = self.iam.iter().map(|proxy| {
            let serve = Arc::new(Served(Arc::clone(proxy)));
            Service { at: IAM, name: None, serve }
        });
        self.credentials.services().into_iter().chain(iam).collect()
    }

    /// Returns the hosts of the account that the job's programs may reach although no contract names them: the
    /// endpoints of its clusters. A module may make a cluster and then change it, so its endpoint is not known in
    /// advance.
    pub fn account_hosts(&self) -> Option<Arc<dyn AccountHosts>> {
        let proxy = Arc::clone(self.iam.as_ref()?);
        Some(Arc::new(ClusterEndpoints { proxy, region: self.region.clone() }))
    }

    /// Returns the environment variables by which a program finds these services.
    pub fn environment(&self) -> BTreeMap<String, String> {
        let iam = self.iam.iter().map(|_| ("AWS_ENDPOINT_URL_IAM".to_owned(), format!("http://{IAM}")));
        self.credentials.environment().into_iter().chain(iam).collect()
    }

    /// Records how the job used IAM.
    pub async fn finish(&self) {
        if let Some(proxy) = &self.iam
            && let Err(error) = proxy.finish().await
        {
            tracing::warn!("Cannot record how a job used IAM: {error}");
        }
    }
}

/// The endpoints of the account's EKS clusters in the install's region.
#[derive(Debug)]
struct ClusterEndpoints {
    proxy: Arc<Proxy>,
    region: String,
}

#[async_trait]
impl AccountHosts for ClusterEndpoints {
    async fn find(&self, name: &str) -> Result<Option<Scope>, String> {
        if !may_be_cluster(name, &self.region) {
            return Ok(None);
        }
        Ok(self.proxy.owner_of_cluster_at(name).await?.map(|owner| match owner {
            ClusterOwner::Install => Scope::Private,
            // The job cannot reach a private endpoint of somebody else's cluster. A cluster with a public endpoint
            // itself decides who may use it, by credentials and by address.
            ClusterOwner::Other => Scope::Public,
        }))
    }
}

/// Returns whether a host can be the endpoint of an EKS cluster in the region (EKS user guide, "Cluster API server
/// endpoint": with only IPv4, and with both versions of IP).
fn may_be_cluster(name: &str, region: &str) -> bool {
    let below = |suffix: String| name.strip_suffix(&suffix).is_some_and(|rest| !rest.is_empty());
    below(format!(".{region}.eks.{}", dns_suffix(region))) || below(format!(".{region}.api.aws"))
}

#[derive(Debug)]
struct Served(Arc<Proxy>);

#[async_trait]
impl Serve for Served {
    async fn serve(&self, listener: TcpListener) {
        freehold_iam_proxy::serve(listener, Arc::clone(&self.0)).await;
    }
}

/// Returns the install that the IAM proxy serves; `None` for builds, and for an install without any role. `given_tags` are
/// the tags that the job's programs set on everything that they make.
fn install(config: &Config, given_tags: BTreeMap<String, String>) -> Option<Install> {
    if config.role == Role::Build {
        return None;
    }
    let roles: Vec<&str> = config.modes.all().chain(config.roles.values().map(String::as_str)).collect();
    let Arn { partition, account, .. } = Arn::parse(roles.first()?)?;
    let (tenant, install) = (&config.tenant, &config.install);
    let boundary = names::install_part(tenant, install, "boundary");
    let tag = |key: &str, value: &str| (key.to_owned(), value.to_owned());
    let name = |arn: &&str| names::name_of_arn(arn).to_owned();
    Some(Install {
        partition: partition.to_owned(),
        account: account.to_owned(),
        region: config.region.clone(),
        path: names::app_path(tenant, install),
        prefix: names::app_prefix(tenant, install),
        boundary: config
            .boundary
            .clone()
            .unwrap_or_else(|| format!("arn:{partition}:iam::{account}:policy/{boundary}")),
        tags: BTreeMap::from([tag(names::TENANT_TAG, tenant.as_str()), tag(names::INSTALL_TAG, install.as_str())]),
        given_tags,
        stack_roles: roles.iter().map(name).chain([config.needed_role()]).collect(),
    })
}

/// Returns the real AWS services, at the same endpoints that the runner's own clients use.
///
/// # Errors
/// When the region, or an endpoint in the machine's environment, is not valid in a URL.
pub fn upstream(region: &str, credentials: SharedCredentialsProvider) -> io::Result<Upstream> {
    let iam = Endpoint::iam(region).map_err(invalid)?;
    Ok(Upstream {
        http: crate::aws::request_client().map_err(invalid)?,
        iam: at_own_endpoint("AWS_ENDPOINT_URL_IAM", iam)?,
        eks: eks(region)?,
        credentials,
    })
}

/// Returns the endpoint of EKS in a region, the same that the runner's own clients use.
///
/// # Errors
/// When the region, or an endpoint in the machine's environment, is not valid in a URL.
pub fn eks(region: &str) -> io::Result<Endpoint> {
    at_own_endpoint("AWS_ENDPOINT_URL_EKS", Endpoint::eks(region).map_err(invalid)?)
}

/// Returns `endpoint` with the URL that the runner's environment sets for this service or for all of AWS, if there is
/// one.
fn at_own_endpoint(variable: &str, endpoint: Endpoint) -> io::Result<Endpoint> {
    match std::env::var(variable).or_else(|_| std::env::var("AWS_ENDPOINT_URL")) {
        Ok(url) => Ok(Endpoint { url: url.parse().map_err(invalid)?, ..endpoint }),
        Err(_) => Ok(endpoint),
    }
}

fn invalid(error: impl std::fmt::Display) -> io::Error {
    io::Error::other(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::config;

    fn toml(roles: &str) -> Config {
        let config = config("/state", Role::Install);
        let roles = toml_edit::de::from_str(roles).unwrap();
        Config { modes: roles, ..config }
    }

    #[test]
    fn the_roles_of_the_stack_say_which_account_it_is() {
        let config = toml("provision = 'arn:aws-cn:iam::222222222222:role/fh-acme--globex-prod--provision'");

        let install = install(&config, BTreeMap::new()).unwrap();

        assert_eq!((install.partition.as_str(), install.account.as_str()), ("aws-cn", "222222222222"));
        assert_eq!(install.path, "/freehold/acme--globex-prod/");
        assert_eq!(install.boundary, "arn:aws-cn:iam::222222222222:policy/fh-acme--globex-prod--boundary");
        let roles: Vec<&String> = install.stack_roles.iter().collect();
        assert_eq!(roles, ["fh-acme--globex-prod--provision", "fh-acme--globex-prod--runner"]);
    }

    #[test]
    fn the_proxy_knows_the_owners_by_the_tag_of_the_protocol() {
        assert_eq!(freehold_iam_proxy::OWNER_TAG, names::OWNER_TAG);
    }

    #[test]
    fn only_names_of_clusters_of_the_region_are_looked_up() {
        let may_be = |name: &str| may_be_cluster(name, "eu-west-1");

        assert!(may_be("0A1B.gr7.eu-west-1.eks.amazonaws.com") && may_be("0a1b.yl4.eu-west-1.api.aws"));
        for other in [
            "0A1B.gr7.us-east-1.eks.amazonaws.com",
            ".eu-west-1.eks.amazonaws.com",
            "eks.eu-west-1.amazonaws.com",
            "0a1b.gr7.eu-west-1.eks.amazonaws.com.vendor.example",
        ] {
            assert!(!may_be(other), "{other}");
        }
        assert!(may_be_cluster("0a1b.gr7.cn-north-1.eks.amazonaws.com.cn", "cn-north-1"));
    }

    #[test]
    fn the_boundary_of_the_customers_company_is_the_one_that_roles_get() {
        let own = Some("arn:aws:iam::222222222222:policy/company".to_owned());
        let config = toml("provision = 'arn:aws:iam::222222222222:role/fh-acme--globex-prod--provision'");

        let install = install(&Config { boundary: own.clone(), ..config }, BTreeMap::new()).unwrap();

        assert_eq!(Some(install.boundary), own);
    }

    #[test]
    fn an_install_without_roles_has_no_iam() {
        assert!(install(&toml(""), BTreeMap::new()).is_none());
    }
}
