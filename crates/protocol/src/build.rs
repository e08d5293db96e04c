//! The input and the result of a build: sources, recipes and packages.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::ErrorKind;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::limits::MAX_APP_VERSION_BYTES;
use crate::packed_text::{UnpackError, pack, unpack};
use crate::{ComponentName, Digest, canonical};

/// The longest manifest that an order carries without compression, in bytes.
const MAX_PLAIN_MANIFEST: usize = 32 * 1024;

/// The settings of a build, in addition to its source.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Recipe {
    /// A Dockerfile in the source's directory.
    Dockerfile {
        /// The path of the Dockerfile, relative to the source's directory.
        dockerfile: String,
        /// The values of the Dockerfile's `ARG` instructions, by name.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        args: BTreeMap<String, String>,
        /// The stage to build; empty for the last stage.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        target: String,
        /// The hosts that the steps may connect to: `host`, `host:port`, or `*.host` for all names below a host.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        hosts: Vec<String>,
    },
    /// The text of a Kubernetes manifest, which is a template.
    Manifest { text: String },
    /// A manifest's text, gzipped and in base64: the form of a long manifest in an order.
    PackedManifest { gzip: String },
    /// A directory from which Kustomize makes a manifest, and the settings that the config has for it.
    Kustomization {
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        options: BTreeMap<String, Value>,
    },
    /// An image that at least one of these signers has signed. With an empty list, every image is refused.
    SignedImage { signers: Vec<Signer> },
    /// A Terraform module without its providers, which the runner downloads from their registries.
    ModuleAlone,
}

impl Recipe {
    /// Returns the recipe in the form for an order: a long manifest is packed.
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

    /// Returns the recipe in the form of the app version. The id of the build is derived from this form.
    ///
    /// # Errors
    /// When a packed manifest cannot be unpacked, or is longer than an app version may be.
    pub fn unpacked(&self) -> Result<Cow<'_, Self>, UnpackError> {
        let Self::PackedManifest { gzip } = self else { return Ok(Cow::Borrowed(self)) };
        let bytes = unpack(gzip, MAX_APP_VERSION_BYTES)?;
        let text = String::from_utf8(bytes).map_err(|error| std::io::Error::new(ErrorKind::InvalidData, error))?;
        Ok(Cow::Owned(Self::Manifest { text }))
    }
}

/// A party whose signature of an image is accepted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "by", rename_all = "snake_case")]
pub enum Signer {
    /// The holder of the private key that belongs to a public key.
    Key {
        /// The public key in PEM form.
        public_key: String,
    },
    /// A signer without a lasting key: an OpenID Connect issuer confirmed the identity at the time of signing.
    Keyless {
        issuer: String,
        #[serde(default, skip_serializing_if = "String::is_empty")]
        subject: String,
        /// A regular expression for the subject, used instead of `subject`.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        subject_regexp: String,
    },
}

/// The kind of artifact that a build makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Package {
    /// An image, copied without a change.
    Image,
    /// A Terraform module: one tarred layer of [`MODULE_LAYER`], and one of
    /// [`PROVIDER_LAYER`](crate::terraform::PROVIDER_LAYER) for each package of a provider.
    TerraformModule,
    /// A CloudFormation template: one layer of [`TEMPLATE_LAYER`], the template's bytes.
    CloudformationTemplate,
    /// A Helm chart with its dependencies, as Helm itself stores it: a config of [`CHART_CONFIG`], `Chart.yaml` as
    /// JSON, and one layer of [`CHART_LAYER`].
    HelmChart,
    /// An image built from a Dockerfile.
    DockerImage,
    /// Kubernetes objects: one layer of [`MANIFEST_LAYER`], the template's text, or of [`KUSTOMIZATION_LAYER`].
    KubernetesManifest,
    /// The directory that steps of an action run in: one tarred layer of [`STEP_LAYER`].
    StepDirectory,
    /// A Pulumi program: one tarred layer of [`PROGRAM_LAYER`].
    PulumiProgram,
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
            Self::StepDirectory => "the directory of a step",
            Self::PulumiProgram => "a Pulumi program",
        }
    }
}

/// Media type of a module layer: a gzipped tar whose entries are sorted and have zero times and owners.
pub const MODULE_LAYER: &str = "application/vnd.freehold.terraform.module.v1.tar+gzip";
/// Media type of a template layer.
pub const TEMPLATE_LAYER: &str = "application/vnd.freehold.cloudformation.template.v1";
/// Artifact type of a module (OCI image manifest 1.1, `artifactType`).
pub const MODULE_ARTIFACT: &str = "application/vnd.freehold.terraform.module.v1";
/// Artifact type of a template.
pub const TEMPLATE_ARTIFACT: &str = "application/vnd.freehold.cloudformation.template.v1+artifact";
/// Media type of a chart's config (Helm, "Use OCI-based registries").
pub const CHART_CONFIG: &str = "application/vnd.cncf.helm.config.v1+json";
/// Media type of a chart's layer: a gzipped tar with one directory, which is named after the chart.
pub const CHART_LAYER: &str = "application/vnd.cncf.helm.chart.content.v1.tar+gzip";
/// Media type of a manifest's layer: YAML text that is a template.
pub const MANIFEST_LAYER: &str = "application/vnd.freehold.kubernetes.manifest.v1+yaml";
/// Artifact type of a manifest.
pub const MANIFEST_ARTIFACT: &str = "application/vnd.freehold.kubernetes.manifest.v1";
/// Media type of a kustomization's layer: a tar like a module's, with the directory as `kustomization/`, and
/// `options.json` with the settings of the config.
pub const KUSTOMIZATION_LAYER: &str = "application/vnd.freehold.kubernetes.kustomization.v1.tar+gzip";
/// Artifact type of a kustomization.
pub const KUSTOMIZATION_ARTIFACT: &str = "application/vnd.freehold.kubernetes.kustomization.v1";

/// Media type of the layer of a step's directory: a tar like a module's.
pub const STEP_LAYER: &str = "application/vnd.freehold.action.step.v1.tar+gzip";
/// Artifact type of a step's directory.
pub const STEP_ARTIFACT: &str = "application/vnd.freehold.action.step.v1";
/// Media type of the layer of a Pulumi program: a tar like a module's.
pub const PROGRAM_LAYER: &str = "application/vnd.freehold.pulumi.program.v1.tar+gzip";
/// Artifact type of a Pulumi program.
pub const PROGRAM_ARTIFACT: &str = "application/vnd.freehold.pulumi.program.v1";

/// Everything that determines a build of an app version: of a component, the sandbox, or the directory of steps.
#[derive(Debug, Clone, PartialEq)]
pub struct BuildInput {
    /// The name under which the artifact is built, granted and shown.
    pub name: ComponentName,
    pub package: Package,
    pub source: Source,
    /// The settings of the build, in addition to the source.
    pub recipe: Option<Recipe>,
}

impl BuildInput {
    /// Returns a digest that changes exactly when the input changes. The name is not part of the digest.
    ///
    /// # Errors
    /// As [`canonical::digest`].
    pub fn digest(&self) -> Result<Digest, serde_json::Error> {
        match &self.recipe {
            Some(recipe) => canonical::digest(&(self.source.pinned(), self.package, recipe)),
            None => canonical::digest(&(self.source.pinned(), self.package)),
        }
    }
}

/// The place from which a build gets its input.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "from", rename_all = "snake_case")]
pub enum Source {
    /// A directory of the vendor's machine, packed when the app is synced: the object `sources/<hex>.tar.gz` of the
    /// tenant bucket.
    Directory { digest: Digest },
    /// A git repository at a commit (40 hex digits). `directory` is a path in the repository; empty for its root.
    Git {
        url: String,
        commit: String,
        #[serde(default)]
        directory: String,
        /// The branch or tag that named the commit when the app was synced; empty when the config names the commit.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        branch: String,
    },
    /// An image in any OCI registry: `host/name:tag` or `host/name@sha256:...`.
    Image { reference: String },
    /// An image in a private ECR registry of the vendor. The build runner assumes the role to read it.
    EcrImage { reference: String, region: String, role_arn: String },
    /// A chart of a Helm chart repository. An empty version means the newest version at the time of the build.
    Chart { repo_url: String, chart: String, version: String },
    /// The app version itself, which contains everything that the build needs, such as the text of a manifest.
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

    /// Returns the source without the name of its branch or tag, which does not influence the build: the commit does.
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
