//! Components: the settings of each kind, and the references in their templates.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::verification::Verification;
use crate::build::{BuildInput, Package, Recipe, Source};
use crate::flag::is_false;
use crate::terraform::ProviderSource;
use crate::{ActionName, CheckName, ComponentName, Digest};

/// One component of an app version.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Component {
    pub name: ComponentName,
    /// Another name for the component in templates; empty when there is none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub var_name: String,
    /// The components that must be deployed first, sorted: those that the config declares, and those that templates
    /// read.
    #[serde(default)]
    pub dependencies: BTreeSet<ComponentName>,
    /// The values that the component's templates refer to, sorted.
    #[serde(default)]
    pub references: BTreeSet<Reference>,
    /// The time limit of one deploy, in seconds.
    pub deploy_timeout_secs: u32,
    /// The time limit of one build, in seconds. When absent, the default for the kind of component applies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub build_timeout_secs: Option<u32>,
    pub source: Source,
    pub spec: ComponentSpec,
    #[serde(default, skip_serializing_if = "ComponentSettings::is_default")]
    pub settings: ComponentSettings,
}

impl Component {
    /// Returns the input of the component's build. A chart without a version in the config is built once, with the newest
    /// version at that time; it is not updated until the config names another version.
    pub fn build_input(&self) -> BuildInput {
        let (package, recipe) = (self.spec.package(), self.spec.recipe());
        BuildInput { name: self.name.clone(), package, source: self.source.clone(), recipe }
    }

    /// Returns the digest of the input of the component's build.
    ///
    /// # Errors
    /// As [`BuildInput::digest`].
    pub fn source_digest(&self) -> Result<Digest, serde_json::Error> {
        self.build_input().digest()
    }

    /// Returns the outputs of the sandbox that the component's templates read. An empty name means all outputs.
    pub fn sandbox_reads(&self) -> BTreeSet<String> {
        let sandbox = self.references.iter().filter_map(|reference| match reference {
            Reference::Sandbox(output) => Some(output.clone()),
            Reference::Input(_)
            | Reference::Component(_)
            | Reference::Action(_)
            | Reference::Secret(_)
            | Reference::InstallStack(_)
            | Reference::Licence => None,
        });
        sandbox.collect()
    }
}

/// The settings that components of every kind have.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ComponentSettings {
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// The role for each operation. The names of roles are templates.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub operation_roles: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub kubernetes_context: String,
    /// Whether a new install has the component. Present only when an install may leave the component out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub toggle: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_auto_retries: Option<u32>,
    #[serde(default, skip_serializing_if = "is_false")]
    pub skip_noops: bool,
    #[serde(default, skip_serializing_if = "is_false")]
    pub auto_approve_on_policies_passing: bool,
    /// The cron expression of drift checks; empty for no checks.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub drift_schedule: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub health: Option<ComponentHealth>,
}

impl ComponentSettings {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// The conditions under which a component counts as healthy.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ComponentHealth {
    /// Whether the health checks of the component are disabled.
    #[serde(default, skip_serializing_if = "is_false")]
    pub disabled: bool,
    #[serde(default)]
    pub block_deploy: bool,
    pub stabilization_window_secs: u32,
    /// The schedule of health checks without a deploy: five cron fields in UTC; empty for none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub schedule: String,
    /// The names of external checks that have to pass after a deploy.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub required_checks: Vec<String>,
    /// The probes, unchanged from the config.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub probes: Vec<Value>,
}

impl ComponentHealth {
    /// Returns the names of the required checks. A name that nobody could report is left out: a version from before the checks
    /// had an effect may have any text.
    pub fn checks(&self) -> BTreeSet<CheckName> {
        self.required_checks.iter().filter_map(|name| name.parse().ok()).collect()
    }
}

/// A value that a template refers to.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "to", content = "name", rename_all = "snake_case")]
pub enum Reference {
    /// `.nuon.inputs.inputs.<name>` or `.nuon.install.inputs.<name>`.
    Input(String),
    /// `.nuon.components.<name>.outputs`.
    Component(ComponentName),
    /// `.nuon.actions.workflows.<name>.outputs`.
    Action(ActionName),
    /// `.nuon.secrets.<name>`, which only the runner resolves.
    Secret(String),
    /// `.nuon.sandbox.outputs.<name>` or `.nuon.install.sandbox.outputs.<name>`. An empty name means all outputs.
    Sandbox(String),
    /// `.nuon.install_stack.outputs.<name>`. An empty name means all outputs.
    InstallStack(String),
    /// `.nuon.install.licence`, the signed licence of the install.
    Licence,
}

/// The settings of one kind of component. String values are templates.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum ComponentSpec {
    ContainerImage {
        /// The signatures that the image must have. The build checks them.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        verification: Option<Verification>,
    },
    TerraformModule {
        terraform_version: String,
        #[serde(default)]
        vars: BTreeMap<String, Value>,
        #[serde(default)]
        env_vars: BTreeMap<String, String>,
        #[serde(default)]
        var_files: Vec<String>,
        #[serde(default, skip_serializing_if = "ProviderSource::is_packed")]
        providers: ProviderSource,
    },
    CloudformationStack {
        stack_name: String,
        #[serde(default)]
        parameters: BTreeMap<String, String>,
        #[serde(default)]
        capabilities: Vec<String>,
    },
    HelmChart {
        /// The name of the Helm release.
        chart_name: String,
        #[serde(default, skip_serializing_if = "String::is_empty")]
        namespace: String,
        #[serde(default, skip_serializing_if = "String::is_empty")]
        storage_driver: String,
        #[serde(default, skip_serializing_if = "is_false")]
        take_ownership: bool,
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        values: BTreeMap<String, Value>,
        /// The contents of values files, in order. A later file overrides an earlier one.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        values_files: Vec<String>,
    },
    KubernetesManifest {
        namespace: String,
        /// The text of the manifest; empty when Kustomize makes the manifest.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        manifest: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        kustomize: Option<Kustomize>,
    },
    DockerBuild {
        /// The path of the Dockerfile, relative to the source's directory.
        dockerfile: String,
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        env_vars: BTreeMap<String, String>,
        /// The values of the Dockerfile's `ARG` instructions, by name.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        build_args: BTreeMap<String, String>,
        /// The stage of the Dockerfile to build; empty for the last stage.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        target: String,
        /// The hosts that the steps of the Dockerfile may connect to.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        hosts: Vec<String>,
    },
    Job {
        /// The image without its tag. When neither this nor `tag` is a template, the build copies the image.
        image_url: String,
        tag: String,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        cmd: Vec<String>,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        args: Vec<String>,
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        env_vars: BTreeMap<String, String>,
    },
    Pulumi {
        /// The language runtime: `go`, `nodejs` or `python`.
        runtime: String,
        #[serde(default, skip_serializing_if = "String::is_empty")]
        pulumi_version: String,
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        config: BTreeMap<String, Value>,
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        env_vars: BTreeMap<String, String>,
    },
}

/// The settings for a source from which Kustomize makes a manifest.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Kustomize {
    /// The settings of the config, such as patches.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub options: BTreeMap<String, Value>,
}

impl ComponentSpec {
    /// Returns the word that configs use for the kind.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::ContainerImage { .. } => "container_image",
            Self::TerraformModule { .. } => "terraform_module",
            Self::CloudformationStack { .. } => "cloudformation_stack",
            Self::HelmChart { .. } => "helm_chart",
            Self::KubernetesManifest { .. } => "kubernetes_manifest",
            Self::DockerBuild { .. } => "docker_build",
            Self::Job { .. } => "job",
            Self::Pulumi { .. } => "pulumi",
        }
    }

    /// Returns the kind of artifact that a build of the component makes.
    pub fn package(&self) -> Package {
        match self {
            Self::ContainerImage { .. } => Package::Image,
            Self::TerraformModule { .. } => Package::TerraformModule,
            Self::CloudformationStack { .. } => Package::CloudformationTemplate,
            Self::HelmChart { .. } => Package::HelmChart,
            Self::KubernetesManifest { .. } => Package::KubernetesManifest,
            Self::DockerBuild { .. } => Package::DockerImage,
            Self::Job { image_url, tag, .. } if is_template(image_url) || is_template(tag) => {
                Package::KubernetesManifest
            }
            Self::Job { .. } => Package::Image,
            Self::Pulumi { .. } => Package::PulumiProgram,
        }
    }

    /// Returns the settings of the component's build in addition to its source, if there are any.
    pub fn recipe(&self) -> Option<Recipe> {
        match self {
            Self::DockerBuild { dockerfile, env_vars, build_args, target, hosts } => {
                let mut args = env_vars.clone();
                args.extend(build_args.clone());
                let (dockerfile, target, hosts) = (dockerfile.clone(), target.clone(), hosts.clone());
                Some(Recipe::Dockerfile { dockerfile, args, target, hosts })
            }
            Self::KubernetesManifest { kustomize: Some(kustomize), .. } => {
                Some(Recipe::Kustomization { options: kustomize.options.clone() })
            }
            Self::KubernetesManifest { manifest, kustomize: None, .. } => {
                Some(Recipe::Manifest { text: manifest.clone() })
            }
            Self::ContainerImage { verification } => verification.as_ref().and_then(Verification::recipe),
            Self::TerraformModule { providers: ProviderSource::Registry, .. } => Some(Recipe::ModuleAlone),
            Self::TerraformModule { providers: ProviderSource::Packed, .. }
            | Self::CloudformationStack { .. }
            | Self::HelmChart { .. }
            | Self::Pulumi { .. } => None,
            // The manifest is the job's settings as JSON, which is YAML too. So the signed statement about the build
            // contains them.
            Self::Job { .. } if self.package() == Package::KubernetesManifest => {
                serde_json::to_string(self).ok().map(|text| Recipe::Manifest { text })
            }
            Self::Job { .. } => None,
        }
    }

    /// Returns whether the runner downloads Terraform providers from their registries.
    pub const fn fetches_providers(&self) -> bool {
        matches!(self, Self::TerraformModule { providers: ProviderSource::Registry, .. })
    }
}

/// Returns whether `text` has an expression that is evaluated at a deploy.
fn is_template(text: &str) -> bool {
    text.contains("{{")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::canonical;

    fn digest(spec: Value, source: Source) -> Digest {
        let component = Component {
            name: "api".parse().unwrap(),
            var_name: String::new(),
            dependencies: BTreeSet::new(),
            references: BTreeSet::new(),
            deploy_timeout_secs: 60,
            build_timeout_secs: None,
            source,
            spec: serde_json::from_value(spec).unwrap(),
            settings: ComponentSettings::default(),
        };
        component.source_digest().unwrap()
    }

    #[test]
    fn what_a_build_follows_beside_its_source_changes_what_it_is() {
        let manifest = |text: &str, namespace: &str| {
            let spec = json!({ "kind": "kubernetes_manifest", "manifest": text, "namespace": namespace });
            digest(spec, Source::Version)
        };
        let docker = |spec: Value| {
            let mut all = json!({ "kind": "docker_build", "dockerfile": "Dockerfile" });
            all.as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
            digest(all, Source::Directory { digest: Digest::of(b"files") })
        };
        let module = |spec: Value| {
            let mut all = json!({ "kind": "terraform_module", "terraform_version": "1.11.3" });
            all.as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
            digest(all, Source::Directory { digest: Digest::of(b"files") })
        };
        let image = |verification: Value| {
            let spec = json!({ "kind": "container_image", "verification": verification });
            digest(spec, Source::Image { reference: "example/api:1".into() })
        };
        let signed_by = |key: &str| json!({ "require_signature": true, "authorities": [{ "public_key": key }] });

        assert_eq!(manifest("kind: A", "one"), manifest("kind: A", "two"));
        assert_ne!(manifest("kind: A", "one"), manifest("kind: B", "one"));
        assert_ne!(docker(json!({})), docker(json!({ "target": "debug" })));
        assert_eq!(docker(json!({ "build_args": { "A": "1" } })), docker(json!({ "env_vars": { "A": "1" } })));
        assert_ne!(image(json!({ "require_signature": true })), image(json!({ "require_signature": false })));
        assert_ne!(image(signed_by("ONE")), image(signed_by("TWO")));
        assert_eq!(module(json!({})), module(json!({ "providers": "packed", "vars": { "a": 1 } })));
        assert_ne!(module(json!({})), module(json!({ "providers": "registry" })));
    }

    #[test]
    fn a_job_is_built_from_its_image_or_from_its_settings() {
        let spec =
            |image_url: &str, cmd: &str| json!({ "kind": "job", "image_url": image_url, "tag": "1", "cmd": [cmd] });
        let package = |spec: Value| serde_json::from_value::<ComponentSpec>(spec).unwrap().package();
        let named = |cmd: &str| digest(spec("{{ .nuon.components.web.outputs.image }}", cmd), Source::Version);

        assert_eq!(package(spec("example/api", "a")), Package::Image);
        assert_eq!(package(spec("{{ .nuon.components.web.outputs.image }}", "a")), Package::KubernetesManifest);
        assert_ne!(named("a"), named("b"));
    }

    #[test]
    fn a_source_that_needs_nothing_beside_has_the_digest_that_it_always_had() {
        let source = Source::Image { reference: "example/api:1".into() };

        let found = digest(json!({ "kind": "container_image" }), source.clone());

        assert_eq!(found, canonical::digest(&(source, Package::Image)).unwrap());
        assert_eq!(found.as_str(), "sha256:01e7f1668fbbaf019177291ac44c578571ef07103d9196220cfaa3d784f0930a");
    }
}
