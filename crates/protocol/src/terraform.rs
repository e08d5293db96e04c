//! What a Terraform module brings along: its providers, as layers of its artifact.

use serde::{Deserialize, Serialize};

use crate::Digest;

/// Media type of the config of a module that brings its providers: a [`ModuleConfig`] as JSON.
pub const MODULE_CONFIG: &str = "application/vnd.freehold.terraform.module.config.v1+json";
/// Media type of a provider's layer: its package as a registry has it, a zip.
pub const PROVIDER_LAYER: &str = "application/vnd.freehold.terraform.provider.v1+zip";
/// The registries that Terraform and OpenTofu ask by default.
pub const REGISTRIES: [&str; 2] = ["registry.opentofu.org", "registry.terraform.io"];
/// The hosts from which public registries let their files be fetched.
pub const REGISTRY_FILES: [&str; 5] = [
    "releases.hashicorp.com",
    "github.com",
    "codeload.github.com",
    "objects.githubusercontent.com",
    "release-assets.githubusercontent.com",
];
/// The platforms of runners, as Terraform writes them.
pub const PLATFORMS: [&str; 2] = ["linux_amd64", "linux_arm64"];

/// Variables that no module may set for Terraform: they name other providers than its lock file pins, or programs and settings
/// of programs that `terraform init` runs, such as Git's.
const REFUSED: [&str; 17] = [
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
    "TF_PLUGIN_CACHE_DIR",
    "TF_PLUGIN_CACHE_MAY_BREAK_DEPENDENCY_LOCK_FILE",
    "TF_REATTACH_PROVIDERS",
    "XDG_CONFIG_DIRS",
    "XDG_CONFIG_HOME",
];
/// What begins the names of further ones: of the loader of programs, and of Git.
const REFUSED_PREFIXES: [&str; 2] = ["GIT_", "LD_"];

/// What a vendor does about a refused variable.
pub const REFUSED_VARIABLE_HELP: &str = "remove it from `env_vars`; a module gets values by `vars`, and the customer sets a mirror of providers on the runner's \
     machine";

/// Returns whether an app must not set the environment variable `name` for Terraform.
pub fn is_refused_variable(name: &str) -> bool {
    REFUSED.contains(&name) || REFUSED_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}

/// Returns what is wrong with the environment variable `name`, which [`is_refused_variable`] refuses.
pub fn refused_variable(name: &str) -> String {
    format!(
        "environment variable `{name}` may make Terraform take other providers than the module pins, or run other programs, so \
         it is refused"
    )
}

/// Returns the platform of the program that calls this.
pub const fn own_platform() -> &'static str {
    if cfg!(target_arch = "aarch64") { "linux_arm64" } else { "linux_amd64" }
}

/// Where the providers of a module come from when it is applied.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ProviderSource {
    /// From the artifact, into which the build packed them.
    #[default]
    Packed,
    /// From their registries.
    Registry,
}

impl ProviderSource {
    pub(crate) fn is_packed(&self) -> bool {
        *self == Self::Packed
    }
}

/// What the artifact of a module holds beside the module.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModuleConfig {
    /// The platforms for which every provider of the module is here.
    pub platforms: Vec<String>,
    /// Sorted by address and platform.
    pub providers: Vec<ProviderPackage>,
}

/// The package of one provider for one platform.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProviderPackage {
    /// `host/namespace/type`.
    pub address: String,
    pub version: String,
    pub platform: String,
    /// The digest of its layer. Lock files have the same one as `zh:`.
    pub digest: Digest,
}

impl ProviderPackage {
    /// Returns where a file system mirror has the unpacked package, relative to its root (Terraform CLI documentation, "Explicit
    /// Installation Method Configuration"). Returns `None` when a part of the path is not a plain name.
    pub fn mirror_path(&self) -> Option<String> {
        let parts: Vec<&str> = self.address.split('/').chain([self.version.as_str(), self.platform.as_str()]).collect();
        (parts.len() == 5 && parts.iter().all(|part| is_plain_name(part))).then(|| parts.join("/"))
    }

    /// Returns how messages and statements name it.
    pub fn name(&self) -> String {
        format!("{}@{}", self.address, self.version)
    }

    /// Returns its URI in a statement of provenance.
    pub fn uri(&self) -> String {
        format!("terraform-provider:{}?platform={}", self.name(), self.platform)
    }
}

/// Returns whether `part` can be the name of one file. A host may have a port.
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
