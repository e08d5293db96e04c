//! Providers of Terraform modules. A module's artifact contains each of its providers as a layer.

use serde::{Deserialize, Serialize};

use crate::Digest;

/// Media type of the artifact's config when the artifact contains the module's providers: a [`ModuleConfig`] as JSON.
pub const MODULE_CONFIG: &str = "application/vnd.freehold.terraform.module.config.v1+json";
/// Media type of a provider's layer: the unchanged zip file from a registry.
pub const PROVIDER_LAYER: &str = "application/vnd.freehold.terraform.provider.v1+zip";
/// The default provider registries of OpenTofu and Terraform.
pub const REGISTRIES: [&str; 2] = ["registry.opentofu.org", "registry.terraform.io"];
/// The hosts from which packages of the public registries are downloaded.
pub const REGISTRY_FILES: [&str; 5] = [
    "releases.hashicorp.com",
    "github.com",
    "codeload.github.com",
    "objects.githubusercontent.com",
    "release-assets.githubusercontent.com",
];
/// The platforms of runners, in Terraform's notation.
pub const PLATFORMS: [&str; 2] = ["linux_amd64", "linux_arm64"];

/// Environment variables that an app must not set for Terraform. They could select other providers than the lock file
/// pins, change the programs that `terraform init` runs, such as Git, and their settings, or name files that it writes.
/// The config of AWS may name a program that gives credentials (`credential_process`), and the one of OpenTofu's
/// encryption a program that gives keys.
const REFUSED: [&str; 24] = [
    "AWS_CONFIG_FILE",
    "AWS_DEFAULT_PROFILE",
    "AWS_PROFILE",
    "AWS_SHARED_CONFIG_FILE",
    "AWS_SHARED_CREDENTIALS_FILE",
    "BASH_ENV",
    "ENV",
    "GCONV_PATH",
    "GLIBC_TUNABLES",
    "HGRCPATH",
    "HOME",
    "OPENTOFU_CONFIG",
    "PATH",
    "SHELLOPTS",
    "SSH_ASKPASS",
    "TERRAFORM_CONFIG",
    "TF_CLI_CONFIG_FILE",
    "TF_ENCRYPTION",
    "TF_LOG_PATH",
    "TF_PLUGIN_CACHE_DIR",
    "TF_PLUGIN_CACHE_MAY_BREAK_DEPENDENCY_LOCK_FILE",
    "TF_REATTACH_PROVIDERS",
    "XDG_CONFIG_DIRS",
    "XDG_CONFIG_HOME",
];
/// Prefixes of further forbidden variables: those of Git and of the dynamic loader.
const REFUSED_PREFIXES: [&str; 2] = ["GIT_", "LD_"];

/// The instruction for a vendor whose app sets a refused variable.
pub const REFUSED_VARIABLE_HELP: &str = "remove it from `env_vars`; pass values to the module with `vars`; the customer configures a mirror of providers on the \
     runner's machine";

/// Returns whether an app must not set the environment variable `name` for Terraform.
pub fn is_refused_variable(name: &str) -> bool {
    REFUSED.contains(&name) || REFUSED_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}

/// Returns the error message for the environment variable `name`, which [`is_refused_variable`] refuses.
pub fn refused_variable(name: &str) -> String {
    format!(
        "environment variable `{name}` may make Terraform take other providers than the module pins, run other programs, \
         or write other files, so it is refused"
    )
}

/// Returns the platform for which this program was compiled.
pub const fn own_platform() -> &'static str {
    if cfg!(target_arch = "aarch64") { "linux_arm64" } else { "linux_amd64" }
}

/// The source of a module's providers when a runner applies the module.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ProviderSource {
    /// The artifact, into which the build packed the providers.
    #[default]
    Packed,
    /// The registries of the providers.
    Registry,
}

impl ProviderSource {
    pub(crate) fn is_packed(&self) -> bool {
        *self == Self::Packed
    }
}

/// The list of the providers in a module's artifact.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModuleConfig {
    /// The platforms for which the artifact contains every provider of the module.
    pub platforms: Vec<String>,
    /// The packages, sorted by address and platform.
    pub providers: Vec<ProviderPackage>,
}

/// The package of one provider for one platform.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProviderPackage {
    /// The provider's address, `host/namespace/type`.
    pub address: String,
    pub version: String,
    pub platform: String,
    /// The digest of the package's layer. Lock files contain the same digest with the prefix `zh:`.
    pub digest: Digest,
}

impl ProviderPackage {
    /// Returns the path of the unpacked package, relative to the root of a file system mirror (Terraform CLI
    /// documentation, "Explicit Installation Method Configuration"). Returns `None` when a part of the path is not a
    /// plain name.
    pub fn mirror_path(&self) -> Option<String> {
        let parts: Vec<&str> = self.address.split('/').chain([self.version.as_str(), self.platform.as_str()]).collect();
        (parts.len() == 5 && parts.iter().all(|part| is_plain_name(part))).then(|| parts.join("/"))
    }

    /// Returns the name of the package in messages and statements.
    pub fn name(&self) -> String {
        format!("{}@{}", self.address, self.version)
    }

    /// Returns the URI of the package in a provenance statement.
    pub fn uri(&self) -> String {
        format!("terraform-provider:{}?platform={}", self.name(), self.platform)
    }
}

/// Returns whether `part` is safe as the name of one file. A `:` is permitted, because a host may have a port.
fn is_plain_name(part: &str) -> bool {
    let known = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_' | b'+' | b':');
    !part.is_empty() && !part.starts_with('.') && part.bytes().all(known)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mirror_has_a_path_for_plain_names_only() {
        let package = |address: &str, version: &str| ProviderPackage {
            address: address.into(),
            version: version.into(),
            platform: "linux_amd64".into(),
            digest: Digest::of(b"zip"),
        };

        let path = package("registry.example:8443/acme/note", "1.2.0-rc.1").mirror_path();

        assert_eq!(path.as_deref(), Some("registry.example:8443/acme/note/1.2.0-rc.1/linux_amd64"));
        for (address, version) in [
            ("acme/note", "1.0.0"),
            ("a/b/c/d", "1.0.0"),
            ("registry.example/../note", "1.0.0"),
            ("/acme/note", "1.0.0"),
            ("registry.example/acme/note", ".."),
            ("registry.example/acme/note", "1/2"),
        ] {
            assert_eq!(package(address, version).mirror_path(), None, "{address} {version}");
        }
    }
}
