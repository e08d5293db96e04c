//! Connects programs in a box to private Git repositories, by services that add the credentials outside of the box, and
//! by the settings with which Git finds these services.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use freehold_protocol::source::SourceCredential;
use freehold_runner::config::SandboxKind;
use freehold_runner::job::Job;
use freehold_runner::job::failure::Failure;
use freehold_runner::sandbox::Service;

use super::https::{HttpsSource, HttpsSources};
use super::obstacle::Obstacle;
use super::route::Repository;
use super::ssh::{SshSource, SshSources};
use super::{Stored, load_stored};

/// The addresses of the services inside a box. The service for HTTPS sources serves HTTP. The service for SSH sources
/// serves Git's own protocol, at the usual port of that protocol.
const HTTPS: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 3129);
const SSH: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 9418);

/// The private repositories that the programs of one job may read.
#[derive(Debug, Default)]
pub(crate) struct GitAccess {
    https: Vec<HttpsSource>,
    ssh: Vec<SshSource>,
    /// Pairs: the beginning of a URL, and the text with which Git replaces it.
    rewrites: Vec<(String, String)>,
    obstacle: Obstacle,
}

impl GitAccess {
    /// Returns access to the repositories at `urls` for which a credential is stored. Every other URL stays as it is.
    pub(crate) async fn to(job: &Job, urls: impl IntoIterator<Item = String>) -> Result<Self, Failure> {
        let mut access = Self::default();
        for url in urls {
            let Some(repository) = Repository::of_url(&url) else { continue };
            let Some(found) = load_stored(job, &repository.address).await? else { continue };
            if job.config.sandbox == SandboxKind::None {
                return Err(Failure::new(format!(
                    "`{}` is private, and without a box every program of a job could use its credential; set `sandbox = \
                     \"bubblewrap\"` in this runner's config",
                    repository.address
                )));
            }
            job.log.line(&format!("reading `{}` with the credential of `{}`", repository.address, found.address));
            access.add(job, &url, &repository, found).await?;
        }
        Ok(access)
    }

    async fn add(&mut self, job: &Job, url: &str, repository: &Repository, found: Stored) -> Result<(), Failure> {
        let Stored { address, credential } = found;
        let base = match credential {
            SourceCredential::GitToken { user, token, inside } => {
                if !self.https.iter().any(|known| known.address == address) {
                    let source = HttpsSource::open(job, &address, (user, token), inside, &self.obstacle).await?;
                    self.https.push(source);
                }
                format!("http://{HTTPS}")
            }
            SourceCredential::SshKey { user, private_key, host_keys, inside } => {
                if !self.ssh.iter().any(|known| known.address == address) {
                    let keys = (private_key, host_keys);
                    self.ssh.push(SshSource::open(job, &address, user, keys, inside, &self.obstacle).await?);
                }
                format!("git://{SSH}")
            }
            // INVARIANT: the address has a scheme of Git, and `load_stored` refuses a credential that does not fit the
            // scheme. So a registry login never arrives here.
            SourceCredential::RegistryLogin { .. } => return Ok(()),
        };
        self.rewrites.push((url.to_owned(), format!("{base}{}", repository.as_path())));
        // This also rewrites other repositories below the same address, such as modules that a fetched module calls.
        let below = format!("{address}/");
        if let Some(all) = Repository::of_url(&format!("{below}x")).filter(|_| address != repository.address) {
            let path = all.as_path();
            self.rewrites.push((below, format!("{base}{}", path.strip_suffix('x').unwrap_or(&path))));
        }
        self.rewrites.sort();
        self.rewrites.dedup();
        Ok(())
    }

    /// Returns whether any credential is used.
    pub(crate) fn is_empty(&self) -> bool {
        self.rewrites.is_empty()
    }

    /// Returns the services to run inside the box of each program.
    pub(crate) fn services(&self) -> Vec<Service> {
        let https = (!self.https.is_empty()).then(|| Service {
            at: HTTPS,
            name: None,
            serve: Arc::new(HttpsSources::new(self.https.clone(), self.obstacle.clone())),
        });
        let ssh = (!self.ssh.is_empty()).then(|| Service {
            at: SSH,
            name: None,
            serve: Arc::new(SshSources::new(self.ssh.clone(), self.obstacle.clone())),
        });
        https.into_iter().chain(ssh).collect()
    }

    /// Returns the environment variables that make Git connect to the services (git-config(1), "GIT_CONFIG_COUNT" and
    /// "url.<base>.insteadOf").
    pub(crate) fn environment(&self) -> Vec<(String, String)> {
        let rewrites = whole_names(&self.rewrites);
        let settings = rewrites.iter().enumerate().flat_map(|(number, (from, to))| {
            [
                (format!("GIT_CONFIG_KEY_{number}"), format!("url.{to}.insteadOf")),
                (format!("GIT_CONFIG_VALUE_{number}"), from.clone()),
            ]
        });
        let count = ("GIT_CONFIG_COUNT".to_owned(), rewrites.len().to_string());
        settings.chain((!self.is_empty()).then_some(count)).collect()
    }

    /// Returns why a repository could not be read, if a service recorded a reason.
    pub(crate) fn obstacle(&self) -> Option<String> {
        self.obstacle.first()
    }
}

/// Returns `rewrites` with more rewrites, so that each of `rewrites` applies to whole names only. Git compares the
/// beginnings of URLs, so the rewrite of `acme/net` would also apply to `acme/network`. Git uses the longest beginning
/// that matches. So there is one more rewrite for each character that can follow in a name, such as for `acme/netw`. It
/// gives the URL that results without the rewrite of `acme/net`.
fn whole_names(rewrites: &[(String, String)]) -> Vec<(String, String)> {
    let mut whole = rewrites.to_vec();
    for (from, to) in rewrites.iter().filter(|(from, _)| !from.ends_with('/')) {
        // A repository has the same name with and without `.git`.
        if !from.ends_with(".git") {
            whole.push((format!("{from}.git"), format!("{to}.git")));
        }
        let longer = ('a'..='z').chain('A'..='Z').chain('0'..='9').chain("-_.~+%".chars());
        whole.extend(longer.map(|character| {
            let longer = format!("{from}{character}");
            let becomes = below(rewrites, &longer);
            (longer, becomes)
        }));
    }
    whole
}

/// Returns `url` after the rewrite that ends with `/` and has the longest matching beginning.
fn below(rewrites: &[(String, String)], url: &str) -> String {
    let all = rewrites.iter().filter(|(from, _)| from.ends_with('/'));
    let matching = all.filter_map(|(from, to)| Some((from.len(), to, url.strip_prefix(from.as_str())?)));
    matching.max_by_key(|(length, ..)| *length).map_or_else(|| url.to_owned(), |(_, to, rest)| format!("{to}{rest}"))
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    /// Returns the URL that Git asks instead of `url`.
    fn asked(access: &GitAccess, url: &str) -> String {
        let mut git = Command::new("git");
        git.args(["ls-remote", "--get-url", url]).envs(access.environment()).env("GIT_CONFIG_NOSYSTEM", "1");
        git.env("GIT_CONFIG_GLOBAL", "/dev/null");
        String::from_utf8(git.output().unwrap().stdout).unwrap().trim().to_owned()
    }

    #[test]
    fn a_repository_whose_name_begins_with_that_of_a_private_one_is_asked_as_before() {
        let pair = |from: &str, to: &str| (from.to_owned(), format!("http://inside/{to}"));
        let one = |rewrites| GitAccess { rewrites, ..GitAccess::default() };
        let alone = one(vec![pair("https://h/acme/net", "h/acme/net")]);
        let among = one(vec![pair("https://h/acme/net", "h/acme/net"), pair("https://h/acme/", "h/acme/")]);

        for same in ["net", "net.git", "net/"] {
            assert_eq!(asked(&alone, &format!("https://h/acme/{same}")), format!("http://inside/h/acme/{same}"));
        }
        for other in ["network", "net-2", "net.x", "net2.git"] {
            let url = format!("https://h/acme/{other}");
            assert_eq!(asked(&alone, &url), url);
            assert_eq!(asked(&among, &url), format!("http://inside/h/acme/{other}"));
        }
    }
}
