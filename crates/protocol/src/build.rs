//! What a build is made from and the form of its result: sources, recipes and packages.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::ErrorKind;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Digest;
use crate::limits::MAX_APP_VERSION_BYTES;
use crate::packed::{UnpackError, pack, unpack};

/// The longest manifest that an order carries as it is, in bytes.
const MAX_PLAIN_MANIFEST: usize = 32 * 1024;

/// The settings that a build follows in addition to its source.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Recipe {
    /// A Dockerfile of the source's directory.
    Dockerfile {
        /// Relative to the source's directory.
        dockerfile: String,
        /// Values of `ARG`.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        args: BTreeMap<String, String>,
        /// The stage to build; empty for the last stage.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        target: String,
        /// The hosts that its steps may reach: names, `*.` before one for all below it, `host:port`.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        hosts: Vec<String>,
    },
    /// The text of a manifest, a template.
    Manifest { text: String },
    /// The same, gzipped and in base64: how an order carries a long one.
    PackedManifest { gzip: String },
    /// A directory from which Kustomize makes a manifest, and the settings of the config.
    Kustomization {
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        options: BTreeMap<String, Value>,
    },
    /// An image that at least one of these signers signed. With an empty list, no image is accepted.
    SignedImage { signers: Vec<Signer> },
    /// A Terraform module without its providers, which a runner fetches.
    ModuleAlone,
}

impl Recipe {
    /// Returns the recipe as an order carries it.
    ///
    /// # Errors
    /// Never: writing to memory does not fail.
    pub fn packed(self) -> std::io::Result<Self> {
        let Self::Manifest { text } = &self else { return Ok(self) };
        if text.len() <= MAX_PLAIN_MANIFEST {
            return Ok(self);
        }
        Ok(Self::PackedManifest { gzip: pack(text.as_bytes())? })
    }

    /// Returns the recipe as the app version writes it; the name of the build is derived from this form.
    ///
    /// # Errors
    /// For a packed manifest that cannot be unpacked, or is longer than an app version may be.
    pub fn unpacked(&self) -> Result<Cow<'_, Self>, UnpackError> {
        let Self::PackedManifest { gzip } = self else { return Ok(Cow::Borrowed(self)) };
        let bytes = unpack(gzip, MAX_APP_VERSION_BYTES)?;
        let text = String::from_utf8(bytes).map_err(|error| std::io::Error::new(ErrorKind::InvalidData, error))?;
        Ok(Cow::Owned(Self::Manifest { text }))
    }
}

/// Who may have signed an image.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "by", rename_all = "snake_case")]
pub enum Signer {
    /// Whoever holds the private half of a key.
    Key {
        /// In PEM form.
        public_key: String,
    },
    /// Whoever an issuer vouched for when he signed.
    Keyless {
        issuer: String,
        #[serde(default, skip_serializing_if = "String::is_empty")]
        subject: String,
        /// A pattern, instead of the subject.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        subject_regexp: String,
    },
}

/// The kind of artifact that a build makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Package {
    /// An image copied as it is.
    Image,
    /// A Terraform module: one tarred layer of [`MODULE_LAYER`], and one of
    /// [`PROVIDER_LAYER`](crate::terraform::PROVIDER_LAYER) for each package of a provider.
    TerraformModule,
    /// A CloudFormation template: one layer of [`TEMPLATE_LAYER`], the template's bytes.
    CloudformationTemplate,
    /// A Helm chart with its dependencies, as Helm itself stores it: a config of [`CHART_CONFIG`], `Chart.yaml` as JSON,
    /// and one layer of [`CHART_LAYER`].
    HelmChart,
    /// An image made by a Dockerfile.
    DockerImage,
    /// Kubernetes objects: one layer of [`MANIFEST_LAYER`], the template's text, or of [`KUSTOMIZATION_LAYER`].
    KubernetesManifest,
}

impl Package {
    /// Returns a description for messages.
    pub const fn describe(self) -> &'static str {
        match self {
            Self::Image => "an image",
            Self::TerraformModule => "a Terraform module",
            Self::CloudformationTemplate => "a CloudFormation template",
            Self::HelmChart => "a Helm chart",
            Self::DockerImage => "an image of a Dockerfile",
            Self::KubernetesManifest => "a Kubernetes manifest",
        }
    }
}

/// Media type of a module layer: a gzipped tar with sorted entries, zero times and owners.
pub const MODULE_LAYER: &str = "application/vnd.freehold.terraform.module.v1.tar+gzip";
/// Media type of a template layer.
pub const TEMPLATE_LAYER: &str = "application/vnd.freehold.cloudformation.template.v1";
/// Artifact type of a module (OCI image manifest 1.1, `artifactType`).
pub const MODULE_ARTIFACT: &str = "application/vnd.freehold.terraform.module.v1";
/// Artifact type of a template.
pub const TEMPLATE_ARTIFACT: &str = "application/vnd.freehold.cloudformation.template.v1+artifact";
/// Media type of a chart's config (Helm, "Use OCI-based registries").
pub const CHART_CONFIG: &str = "application/vnd.cncf.helm.config.v1+json";
/// Media type of a chart's layer: a gzipped tar with the chart below its name.
pub const CHART_LAYER: &str = "application/vnd.cncf.helm.chart.content.v1.tar+gzip";
/// Media type of a manifest's layer: YAML, which is a template.
pub const MANIFEST_LAYER: &str = "application/vnd.freehold.kubernetes.manifest.v1+yaml";
/// Artifact type of a manifest.
pub const MANIFEST_ARTIFACT: &str = "application/vnd.freehold.kubernetes.manifest.v1";
/// Media type of a kustomization's layer, packed as a module is: `kustomization/` with the directory, and
/// `options.json` with the settings of the config.
pub const KUSTOMIZATION_LAYER: &str = "application/vnd.freehold.kubernetes.kustomization.v1.tar+gzip";
/// Artifact type of a kustomization.
pub const KUSTOMIZATION_ARTIFACT: &str = "application/vnd.freehold.kubernetes.kustomization.v1";

/// Where a build takes its input from.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "from", rename_all = "snake_case")]
pub enum Source {
    /// A directory of the vendor's machine, packed at sync: object `sources/<hex>.tar.gz` of the tenant bucket.
    Directory { digest: Digest },
    /// A git repository at a commit (40 hex digits); `directory` is where in it.
    Git {
        url: String,
        commit: String,
        #[serde(default)]
        directory: String,
        /// The branch or tag that was the commit's name at sync; empty when the config names the commit.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        branch: String,
    },
    /// An image in any OCI registry: `host/name:tag` or `host/name@sha256:...`.
    Image { reference: String },
    /// An image in a private ECR registry of the vendor, read with a role.
    EcrImage { reference: String, region: String, role_arn: String },
    /// A chart of a Helm chart repository; an empty version means the newest at build.
    Chart { repo_url: String, chart: String, version: String },
    /// Only the app version itself, which holds all of the content.
    Version,
}

impl Source {
    /// Returns a description for messages.
    pub const fn describe(&self) -> &'static str {
        match self {
            Self::Directory { .. } => "a directory",
            Self::Git { .. } => "a git repository",
            Self::Image { .. } => "an image",
            Self::EcrImage { .. } => "an image of a private registry",
            Self::Chart { .. } => "a chart repository",
            Self::Version => "the app version itself",
        }
    }

    /// Returns the source without the name of the branch or tag, so that the same commit always gives the same pinned
    /// source.
    #[must_use]
    pub fn pinned(&self) -> Self {
        match self.clone() {
            Self::Git { url, commit, directory, branch: _ } => {
                Self::Git { url, commit, directory, branch: String::new() }
            }
            other => other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest(bytes: usize) -> Recipe {
        Recipe::Manifest { text: "k".repeat(bytes) }
    }

    #[test]
    fn a_long_manifest_comes_back_as_it_was_and_a_short_one_is_not_packed() {
        let (long, short) = (manifest(MAX_PLAIN_MANIFEST + 1), manifest(MAX_PLAIN_MANIFEST));

        let packed = long.clone().packed().unwrap();

        assert!(matches!(&packed, Recipe::PackedManifest { gzip } if gzip.len() < 1000));
        assert_eq!(packed.unpacked().unwrap().into_owned(), long);
        assert_eq!(short.clone().packed().unwrap(), short);
        assert_eq!(*short.unpacked().unwrap(), short);
    }

    #[test]
    fn what_is_too_long_or_no_manifest_is_refused() {
        let bomb = manifest(MAX_APP_VERSION_BYTES + 1).packed().unwrap();
        let broken = |gzip: &str| Recipe::PackedManifest { gzip: gzip.into() };

        assert!(matches!(bomb.unpacked(), Err(UnpackError::TooLong(_))));
        assert!(matches!(broken("*").unpacked(), Err(UnpackError::Base64(_))));
        assert!(matches!(broken("AAAA").unpacked(), Err(UnpackError::Gzip(_))));
    }
}
