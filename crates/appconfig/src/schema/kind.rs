//! The kinds of files that have a JSON Schema: their names, titles and places.

use std::fmt;
use std::str::FromStr;

use freehold_template::nearest;

use crate::kinds::{COMPONENT_TYPES, DIRECTORIES, Kind, ROOT};

/// A kind of file that has a JSON Schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SchemaKind(pub(super) Shape);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    /// A file of this kind. For components: a component of any type.
    File(Kind),
    /// A component of this type.
    Component(&'static str),
}

/// The error for a word that does not name a kind of file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no schema `{word}`; {help}")]
pub struct UnknownSchema {
    word: String,
    help: String,
}

/// Further names of kinds, besides their own names and the names of their directories: the words in first-line comments
/// of configs, and similar words.
const ALIASES: [(&str, &str); 13] = [
    ("helm", "helm_chart"),
    ("terraform", "terraform_module"),
    ("manifest", "kubernetes_manifest"),
    ("kubernetes", "kubernetes_manifest"),
    ("docker", "docker_build"),
    ("image", "container_image"),
    (OLD_IMAGE, "container_image"),
    ("cloudformation", "cloudformation_stack"),
    ("group", "input_group"),
    ("policy", "policies"),
    ("permission", "role"),
    ("permission_policy", "named_policy"),
    ("trigger", "triggers"),
];

/// An older name of the component type `container_image`, which is still accepted.
pub(super) const OLD_IMAGE: &str = "external_image";

/// Returns all kinds: first the files, in the order of the reference, then the components by type.
pub fn schema_kinds() -> impl Iterator<Item = SchemaKind> {
    let mut kinds: Vec<Kind> = Vec::new();
    for (_, kind) in ROOT.into_iter().chain(DIRECTORIES) {
        if !kinds.contains(&kind) {
            kinds.push(kind);
        }
    }
    let types = COMPONENT_TYPES.iter().copied().filter(|word| *word != OLD_IMAGE);
    kinds.into_iter().map(Shape::File).chain(types.map(Shape::Component)).map(SchemaKind)
}

impl SchemaKind {
    /// Returns the name of this kind, such as `metadata` or `helm_chart`.
    pub const fn name(self) -> &'static str {
        match self.0 {
            Shape::Component(word) => word,
            Shape::File(kind) => match kind {
                Kind::Metadata => "metadata",
                Kind::Inputs => "inputs",
                Kind::Input => "input",
                Kind::InputGroup => "input_group",
                Kind::Secrets => "secrets",
                Kind::Secret => "secret",
                Kind::Permissions => "permissions",
                Kind::Role => "role",
                Kind::NamedPolicy => "named_policy",
                Kind::BreakGlass => "break_glass",
                Kind::OperationRoles => "operation_roles",
                Kind::KubernetesContexts => "kubernetes_contexts",
                Kind::Sandbox => "sandbox",
                Kind::Runner => "runner",
                Kind::Stack => "stack",
                Kind::Policies => "policies",
                Kind::Installer => "installer",
                Kind::Branch => "branch",
                Kind::Triggers => "triggers",
                Kind::InstallsSource => "installs_source",
                Kind::Component => "component",
                Kind::Action => "action",
                Kind::Install => "install",
                Kind::Runbook => "runbook",
            },
        }
    }

    /// Returns a title for files of this kind, for people.
    pub fn title(self) -> String {
        match self.0 {
            Shape::Component(word) => format!("A component of type `{word}`"),
            Shape::File(kind) => about(kind).0.to_owned(),
        }
    }

    /// Returns glob patterns for the files of this kind in an app's directory. The result is empty for a component of
    /// one type, because only the content of a file shows the type.
    pub fn files(self) -> Vec<String> {
        let Shape::File(kind) = self.0 else { return Vec::new() };
        let root = ROOT.iter().filter(|(_, of)| *of == kind).map(|(name, _)| (*name).to_owned());
        let directories = DIRECTORIES.iter().filter(|(_, of)| *of == kind).map(|(name, _)| format!("{name}/**/*.toml"));
        root.chain(directories).collect()
    }
}

/// Returns the title of a kind of file, and one or two sentences about it.
pub(super) const fn about(kind: Kind) -> (&'static str, &'static str) {
    match kind {
        Kind::Metadata => ("The metadata of the app", "Every app has this file."),
        Kind::Inputs => {
            ("Inputs and their groups", "Values that the vendor or the customer gives for each install, in groups.")
        }
        Kind::Input => {
            ("One input", "The keys of one `[[input]]`, or whole tables of groups and inputs as in `inputs.toml`.")
        }
        Kind::InputGroup => (
            "One group of inputs",
            "The keys of one `[[group]]`, or whole tables of groups and inputs as in `inputs.toml`.",
        ),
        Kind::Secrets => (
            "Secrets",
            "Values that the customer sets in their own account; they never leave it, and the vendor never sees them.",
        ),
        Kind::Secret => ("One secret", "The keys of one `[[secret]]`; or several secrets as in `secrets.toml`."),
        Kind::Permissions => (
            "The roles of an install",
            "The roles of the modes `provision`, `maintenance` and `deprovision`, and roles for single operations.",
        ),
        Kind::Role => ("One role", "The keys of one `[[roles]]`; or several roles as in `permissions.toml`."),
        Kind::NamedPolicy => (
            "A policy of several roles",
            "A policy document that each role with its name under `named_policies` has. Without such a role, it has no \
             effect.",
        ),
        Kind::BreakGlass => (
            "Roles for emergencies",
            "Roles that an install has only after the customer has switched them on; a single role may be written \
             without `[[role]]`.",
        ),
        Kind::OperationRoles => ("Which operation runs with which role", "Rules that choose the roles of operations."),
        Kind::KubernetesContexts => (
            "Clusters of components",
            "The same list as in `metadata.toml`; a single cluster may be written without `[[kubernetes_context]]`.",
        ),
        Kind::Sandbox => ("The sandbox", "The infrastructure that is created before any component."),
        Kind::Runner => ("The runner", "The program in the customer's account that deploys the app."),
        Kind::Stack => ("The install stack", "The stack that the customer deploys to begin an install."),
        Kind::Policies => (
            "Policies",
            "Checks of plans, manifests and images before they are applied; a single policy may be written without \
             `[[policy]]`.",
        ),
        Kind::Installer => ("The installer page", "Texts of a page of another tool. They are not checked."),
        Kind::Branch => (
            "A branch of the app",
            "The runbooks that run after deploys. The other keys describe how installs follow a branch of a \
             repository; use channels and the vendor's CI for this.",
        ),
        Kind::Triggers => {
            ("Triggers", "Triggers in a file of their own, as other tools have them. They are not checked.")
        }
        Kind::InstallsSource => {
            ("Where installs are described", "The repository from which other tools read the files of `installs/`.")
        }
        Kind::Component => (
            "A component of any type",
            "One part of the app: an image, a Terraform module, a \
            CloudFormation stack, a chart, manifests or a program that runs to its end.",
        ),
        Kind::Action => ("An action", "Scripts that the runner executes, by hand or at events."),
        Kind::Install => (
            "An install",
            "One app in one customer's account, with its answers to the inputs. Not part of an app version: `freehold \
             install sync DIR` creates and changes such installs.",
        ),
        Kind::Runbook => ("A runbook", "Steps that run in order, on request or after a deploy."),
    }
}

impl fmt::Display for SchemaKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for SchemaKind {
    type Err = UnknownSchema;

    /// Parses the name of a kind, the name of its directory, or the word in a first-line comment such as `# helm` or `#
    /// docker-build`.
    fn from_str(text: &str) -> Result<Self, UnknownSchema> {
        let word = text.trim().replace('-', "_");
        let named = |word: &str| schema_kinds().find(|kind| kind.name() == word);
        let directory = || DIRECTORIES.iter().find(|(name, _)| *name == word).map(|(_, kind)| Self(Shape::File(*kind)));
        let alias = || ALIASES.iter().find(|(alias, _)| *alias == word).and_then(|(_, name)| named(name));
        named(&word).or_else(directory).or_else(alias).ok_or_else(|| {
            let names: Vec<&str> = schema_kinds().map(Self::name).collect();
            let help = match nearest(&word, names.iter().copied()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("the schemas are {}", names.join(", ")),
            };
            UnknownSchema { word: text.chars().take(80).collect(), help }
        })
    }
}
