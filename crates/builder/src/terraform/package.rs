//! Fetches the packages of providers from the vendor's mirror or from their registries, and checks them against the
//! lock file.

use std::path::Path;

use freehold_oci::client;
use freehold_protocol::terraform::ProviderPackage;
use freehold_runner::job::Job;
use freehold_runner::job::failure::Failure;
use freehold_runner::kinds::terraform_module::provider_zip::{self, MAX_PACKED};
use reqwest::{Client, Url};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::lock::{LOCK, Locked};
use crate::download;

/// The maximum size of a document of a registry, in bytes.
const MAX_DOCUMENT: u64 = 4 * 1024 * 1024;

/// The origin of provider packages: the vendor's mirror, or the registries of the providers.
pub(super) struct Registries {
    http: Client,
    /// The mirror, which replaces all registries (Terraform documentation, "Provider Network Mirror Protocol").
    mirror: Option<Url>,
}

/// A mirror's response: the packages of one version of a provider.
#[derive(Deserialize)]
struct Mirrored {
    archives: std::collections::BTreeMap<String, Archive>,
}

#[derive(Deserialize)]
struct Archive {
    url: String,
}

/// A host's description of its services (Terraform documentation, "Remote Service Discovery").
#[derive(Deserialize)]
struct Services {
    #[serde(rename = "providers.v1")]
    providers: String,
}

/// A registry's response about one package (Terraform documentation, "Provider Registry Protocol").
#[derive(Deserialize)]
struct Registered {
    download_url: String,
}

impl Registries {
    /// Returns the mirror that the build runner's config names, or else the registries.
    pub(super) fn of(job: &Job) -> Result<Self, Failure> {
        let mirror = job.config.provider_mirror.as_deref().map(download::base).transpose()?;
        Ok(Self { http: client()?, mirror })
    }

    /// Fetches a package into a new file at `path`. If the module's `own` lock file pins the provider, the package must
    /// have one of its hashes. Terraform does not check this: when it cannot compare a new hash with the locked hashes,
    /// it adds the new hash. Returns `None` when Terraform did not lock the provider for this platform, because the
    /// module does not need the package then.
    pub(super) async fn fetch(
        &self,
        provider: &Locked,
        own: &[Locked],
        platform: &str,
        path: &Path,
    ) -> Result<Option<ProviderPackage>, Failure> {
        let name = format!("{}@{}", provider.address, provider.version);
        let Some(url) = self.find(provider, platform).await? else { return Ok(None) };
        let digest = download::file(&self.http, &url, path, MAX_PACKED).await?;
        let zip = path.to_owned();
        let unusable = |error: &dyn std::error::Error| {
            Failure::because(&format!("provider `{name}` for `{platform}`, from `{url}`"), error)
        };
        let hash = tokio::task::spawn_blocking(move || provider_zip::hash(&zip)).await;
        let hash = hash.map_err(|error| unusable(&error))?.map_err(|error| unusable(&error))?;
        let zip_hash = format!("zh:{}", digest.hex());
        let has_either = |locked: &Locked| locked.hashes.contains(&hash) || locked.hashes.contains(&zip_hash);
        if own.iter().any(|own| own.pins(provider) && !has_either(own)) {
            return Err(Failure::new(format!(
                "provider `{name}` for `{platform}` has hash `{hash}` and its zip `{zip_hash}`, and `{LOCK}` of the \
                 module has neither; the provider is not used; if it is the right provider, run `terraform providers \
                 lock -platform={platform}` in the module, and keep the file that it writes"
            )));
        }
        let (address, version) = (provider.address.clone(), provider.version.clone());
        let package = ProviderPackage { address, version, platform: platform.to_owned(), digest };
        Ok(provider.hashes.contains(&hash).then_some(package))
    }

    /// Returns the address of a package, if it exists.
    async fn find(&self, provider: &Locked, platform: &str) -> Result<Option<Url>, Failure> {
        let Locked { address, version, .. } = provider;
        let Some(mirror) = &self.mirror else { return self.find_in_registry(provider, platform).await };
        let url = join(mirror, &format!("{address}/{version}.json"))?;
        let found: Option<Mirrored> = self.document(&url).await?;
        let archive = found.and_then(|mut found| found.archives.remove(platform));
        archive.map(|archive| join(&url, &archive.url)).transpose()
    }

    async fn find_in_registry(&self, provider: &Locked, platform: &str) -> Result<Option<Url>, Failure> {
        let Locked { address, version, .. } = provider;
        let invalid = || Failure::new(format!("`{address}` in `{LOCK}` for `{platform}` is not a provider's address"));
        let (host, name) = address.split_once('/').ok_or_else(invalid)?;
        let (system, machine) = platform.split_once('_').ok_or_else(invalid)?;
        let path = format!("{name}/{version}/download/{system}/{machine}");
        self.find_registered(&download::base(&format!("https://{host}/"))?, &path).await
    }

    /// Returns the address of the package at `path` in the registry at `base`, if it exists.
    async fn find_registered(&self, base: &Url, path: &str) -> Result<Option<Url>, Failure> {
        let discovery = join(base, ".well-known/terraform.json")?;
        let services: Option<Services> = self.document(&discovery).await?;
        let services = services.ok_or_else(|| Failure::new(format!("`{base}` is not a registry of providers")))?;
        let url = join(&join(&discovery, &services.providers)?, path)?;
        let found: Option<Registered> = self.document(&url).await?;
        found.map(|found| join(&url, &found.download_url)).transpose()
    }

    async fn document<T: DeserializeOwned>(&self, url: &Url) -> Result<Option<T>, Failure> {
        let text = download::text_if_found(&self.http, url, MAX_DOCUMENT).await?;
        let parsed = text.map(|text| serde_json::from_str(&text)).transpose();
        parsed.map_err(|error| {
            Failure::because(&format!("`{url}` does not return the response of a registry of providers"), &error)
        })
    }
}

fn join(base: &Url, path: &str) -> Result<Url, Failure> {
    let url = base.join(path).map_err(|error| Failure::because(&format!("`{path}` after `{base}`"), &error))?;
    download::checked(url).map_err(|why| Failure::new(format!("address `{path}` from `{base}` {why}")))
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead as _, BufReader, Write as _};
    use std::net::TcpListener;

    use super::*;

    /// Serves documents by their path; everything else is not found.
    fn serve(documents: &'static [(&'static str, &'static str)]) -> Url {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let base = format!("http://{}/", listener.local_addr().unwrap());
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let mut head = BufReader::new(stream.try_clone().unwrap()).lines().map_while(Result::ok);
                let line = head.next().unwrap_or_default();
                head.take_while(|line| !line.is_empty()).for_each(drop);
                let path = line.split(' ').nth(1).unwrap_or_default().to_owned();
                let found = documents.iter().find(|(name, _)| *name == path);
                let (status, body) = found.map_or(("404 Not Found", ""), |(_, body)| ("200 OK", *body));
                let length = body.len();
                let _ =
                    write!(stream, "HTTP/1.1 {status}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}");
            }
        });
        base.parse().unwrap()
    }

    #[tokio::test]
    async fn a_registry_names_where_its_packages_are() {
        let base = serve(&[
            ("/.well-known/terraform.json", r#"{"providers.v1": "/v1/providers/", "modules.v1": "/v1/modules/"}"#),
            (
                "/v1/providers/acme/note/1.0.0/download/linux/amd64",
                r#"{"download_url": "https://files.example/note.zip", "shasum": "x"}"#,
            ),
        ]);
        let registries = Registries { http: client().unwrap(), mirror: None };

        let found = registries.find_registered(&base, "acme/note/1.0.0/download/linux/amd64").await.unwrap();
        let absent = registries.find_registered(&base, "acme/note/1.0.0/download/linux/arm64").await.unwrap();

        assert_eq!(found.unwrap().as_str(), "https://files.example/note.zip");
        assert_eq!(absent, None);
    }

    #[tokio::test]
    async fn a_package_is_not_fetched_without_tls_and_a_strange_answer_is_named() {
        let base = serve(&[
            ("/.well-known/terraform.json", r#"{"providers.v1": "/v1/"}"#),
            ("/v1/plain", r#"{"download_url": "http://files.example/note.zip"}"#),
            ("/v1/strange", "<html>"),
        ]);
        let registries = Registries { http: client().unwrap(), mirror: None };
        let ask = async |path: &str| match registries.find_registered(&base, path).await {
            Err(Failure::Failed { reason, .. }) => reason,
            other => panic!("{other:?}"),
        };

        assert!(ask("plain").await.contains("is not reached over HTTPS"));
        assert!(ask("strange").await.contains("does not return the response of a registry of providers"));
    }
}
