//! Reads the sources of components, and the settings that only some component types have.

use std::collections::BTreeSet;

use freehold_protocol::app_version::{ComponentSpec, Kustomize};
use freehold_protocol::order::{Package, Source};

use super::builder::{Builder, Subject};
use crate::build::data_files::{self, Language};
use crate::build::values::{mistakes_in_variables, not_a_version, refused_variables, scalars, texts, values};
use crate::read::addresses::naming;
use crate::read::archive;
use crate::read::document::{Entry, Node};
use crate::read::paths::join;
use crate::state::file::Checked;
use crate::state::source::{Held, provider_source};

/// The prefix of the names of an install's stacks, as a template. By default, the name of a stack is this prefix and
/// the name of its component.
const STACK_NAME: &str = "{{ .nuon.install_stack.outputs.prefix }}";
/// The default namespace of a Helm release, as a template.
const NAMESPACE: &str = "{{ .nuon.install.id }}";

const REPOS: [&str; 2] = ["public_repo", "connected_repo"];

impl Builder<'_> {
    /// Returns the source that a component names, a directory or a repository. `what` names its content for messages,
    /// such as "module".
    fn code(&mut self, subject: Subject<'_>, keys: &[&str], what: &str) -> Option<Source> {
        let Subject { checked, .. } = subject;
        let entry = self.sources.one_of(checked, &checked.root, keys, &subject.owner(), what)?;
        self.source(subject, entry)
    }

    fn source(&mut self, subject: Subject<'_>, entry: &Entry) -> Option<Source> {
        let Subject { checked, .. } = subject;
        let owner = subject.owner();
        match entry.key.as_str() {
            "source" => self.sources.directory(self.files, checked, &entry.value, entry.value.as_text()?, &owner),
            "helm_repo" => {
                let text = |key: &str| entry.value.text(key).unwrap_or_default().to_owned();
                self.sources.elsewhere.insert((owner, text("repo_url")));
                Some(Source::Chart { repo_url: text("repo_url"), chart: text("chart"), version: text("version") })
            }
            _ => self.sources.repo(self.files, checked, entry, &owner),
        }
    }

    pub(super) fn terraform(&mut self, subject: Subject<'_>) -> Option<(Source, ComponentSpec)> {
        self.sources.drafts.extend(refused_variables(subject.checked));
        self.sources.drafts.extend(not_a_version(subject.checked));
        self.sources.drafts.extend(mistakes_in_variables(self.files, subject.checked));
        let source = self.code(subject, &["source", "public_repo", "connected_repo"], "module")?;
        let Subject { checked, .. } = subject;
        let spec = ComponentSpec::TerraformModule {
            terraform_version: text(checked, "terraform_version"),
            vars: values(checked.root.get("vars")),
            env_vars: scalars(checked.root.get("env_vars")),
            var_files: contents(checked, "var_file", &["contents"]),
            providers: provider_source(&checked.root),
        };
        Some((source, spec))
    }

    pub(super) fn helm(&mut self, subject: Subject<'_>) -> Option<(Source, ComponentSpec)> {
        let Subject { checked, .. } = subject;
        for node in checked.root.tables("values_file") {
            self.values_file(checked, node);
        }
        let source = self.code(subject, &["public_repo", "connected_repo", "helm_repo", "source"], "chart")?;
        let spec = ComponentSpec::HelmChart {
            chart_name: text(checked, "chart_name"),
            namespace: checked.root.text("namespace").unwrap_or(NAMESPACE).to_owned(),
            storage_driver: text(checked, "storage_driver"),
            take_ownership: checked.root.flag("take_ownership"),
            values: values(checked.root.get("values")),
            values_files: contents(checked, "values_file", &["contents", "path", "source"]),
        };
        Some((source, spec))
    }

    fn values_file(&mut self, checked: &Checked, node: &Node) {
        let keys = ["contents", "path", "source"];
        let entry = self.sources.one_of_at(checked, node, checked.place(node), &keys, "a `values_file`", "text");
        let Some(entry) = entry else { return };
        let mistake = data_files::mistake(self.files, checked, &entry.value, "text of values", Language::Yaml);
        self.sources.drafts.extend(mistake);
        if entry.key == "contents" {
            return;
        }
        if let Some(word) = entry.value.as_text().filter(|word| naming(word).is_none()) {
            let message = format!("`{word}` is read as a text, not as a path");
            self.sources.error(checked.place(&entry.value), message, &format!("write `./{word}`"));
        }
    }

    pub(super) fn manifest(&mut self, subject: Subject<'_>) -> Option<(Source, ComponentSpec)> {
        let Subject { checked, .. } = subject;
        let root = &checked.root;
        let namespace = text(checked, "namespace");
        let entry = self.sources.one_of(checked, root, &["manifest", "kustomize"], &subject.owner(), "manifest")?;
        if entry.key == "kustomize" {
            let (source, place) = self.kustomization(subject, &entry.value)?;
            let options = entry.value.entries().iter().filter(|entry| !REPOS.contains(&entry.key.as_str()));
            let options = options.filter(|entry| entry.key != "directory" && entry.key != place.key);
            let options = options.map(|entry| (entry.key.clone(), entry.value.to_json())).collect();
            let kustomize = Some(Kustomize { options });
            return Some((source, ComponentSpec::KubernetesManifest { namespace, manifest: String::new(), kustomize }));
        }
        for entry in REPOS.iter().filter_map(|key| root.entry(key)) {
            let message = format!("`{}` is not used with `manifest`", entry.key);
            let help = "add `[kustomize]` instead of `manifest`, or remove the repository";
            self.sources.error(checked.key_place(entry), message, help);
        }
        let mistake = data_files::mistake(self.files, checked, &entry.value, "manifest", Language::Yaml)
            .or_else(|| data_files::incomplete_object(self.files, checked, &entry.value));
        self.sources.drafts.extend(mistake);
        let manifest = checked.content(&entry.value).unwrap_or_default().to_owned();
        Some((Source::Version, ComponentSpec::KubernetesManifest { namespace, manifest, kustomize: None }))
    }

    /// Returns the source of a kustomization, and the entry that names the source: a directory, or a repository whose
    /// table is beside or inside of the table `[kustomize]`. The key `path` counts only if no other key names a source.
    fn kustomization<'n>(&mut self, subject: Subject<'n>, node: &'n Node) -> Option<(Source, &'n Entry)> {
        let Subject { checked, .. } = subject;
        let inside = [REPOS.as_slice(), &["directory"]].concat();
        let entry = if inside.iter().any(|key| node.entry(key).is_some()) {
            self.sources.one_of(checked, node, &inside, "the kustomization", "directory")?
        } else if REPOS.iter().any(|key| checked.root.entry(key).is_some()) {
            self.sources.one_of(checked, &checked.root, &REPOS, &subject.owner(), "kustomization")?
        } else {
            let keys = ["path", "directory", "public_repo", "connected_repo"];
            self.sources.one_of_at(checked, node, checked.place(node), &keys, "the kustomization", "directory")?
        };
        let source = match entry.key.as_str() {
            "directory" | "path" => {
                self.sources.directory(self.files, checked, &entry.value, entry.value.as_text()?, &subject.owner())?
            }
            _ => self.source(subject, entry)?,
        };
        Some((source, entry))
    }

    pub(super) fn docker(&mut self, subject: Subject<'_>) -> Option<(Source, ComponentSpec)> {
        let source = self.code(subject, &["source", "public_repo", "connected_repo"], "build's files")?;
        let Subject { checked, .. } = subject;
        for key in ["env_vars", "build_args"] {
            self.without_templates(checked, key);
        }
        let spec = ComponentSpec::DockerBuild {
            dockerfile: text(checked, "dockerfile"),
            env_vars: scalars(checked.root.get("env_vars")),
            build_args: scalars(checked.root.get("build_args")),
            target: text(checked, "target"),
            hosts: texts(checked.root.get("hosts")),
        };
        Some((source, spec))
    }

    /// Reports the values under `key` that are templates.
    fn without_templates(&mut self, checked: &Checked, key: &str) {
        let entries = checked.root.get(key).map(Node::entries).unwrap_or_default();
        for entry in entries.iter().filter(|entry| entry.value.as_text().is_some_and(|text| text.contains("{{"))) {
            self.sources.error(
                checked.place(&entry.value),
                format!("an image is built when no install is known, so `{}` cannot be a template", entry.key),
                "write the value itself, or set it where the image is run",
            );
        }
    }

    pub(super) fn pulumi(&mut self, subject: Subject<'_>) -> Option<(Source, ComponentSpec)> {
        let source = self.code(subject, &["public_repo", "connected_repo", "source"], "program")?;
        let Subject { checked, .. } = subject;
        let spec = ComponentSpec::Pulumi {
            runtime: text(checked, "runtime"),
            pulumi_version: text(checked, "pulumi_version"),
            config: values(checked.root.get("config")),
            env_vars: scalars(checked.root.get("env_vars")),
        };
        Some((source, spec))
    }

    pub(super) fn stack(&mut self, subject: Subject<'_>) -> Option<(Source, ComponentSpec)> {
        let Subject { checked, name } = subject;
        let owner = subject.owner();
        let entry = self.sources.one_of(checked, &checked.root, &["template", "source"], &owner, "template")?;
        let word = entry.value.as_text()?;
        let place = checked.place(&entry.value);
        let path = self.sources.inside(self.files, checked, &entry.value, word)?;
        let tree = self.files.tree();
        let found = if tree.is_dir(&path) {
            let names = ["template.yaml", "template.yml", "template.json"];
            names.map(|name| join(&path, name)).into_iter().find(|path| tree.is_file(path))
        } else {
            Some(path)
        };
        let Some(path) = found else {
            let help = "name the template `template.yaml` or `template.json`";
            self.sources.error(place, format!("directory `{word}` contains no template"), help);
            return None;
        };
        let name_inside = if path.ends_with(".json") { "template.json" } else { "template.yaml" };
        let packed = archive::file(tree, &path, name_inside);
        let held = Held { owner: owner.clone(), place, word: word.to_owned(), path, paths: BTreeSet::new() };
        let source = self.sources.packed(self.files, held, packed)?;
        let root = &checked.root;
        let mut capabilities = texts(root.get("capabilities"));
        capabilities.sort();
        capabilities.dedup();
        let stack_name = root.text("stack_name").map_or_else(|| format!("{STACK_NAME}{name}"), str::to_owned);
        if let Some(entry) = root.entry("stack_name").filter(|_| !is_under_the_prefix(&stack_name)) {
            let message = format!("stack `{stack_name}` of {owner} could be a stack that the install did not create");
            let help =
                format!("the runner deploys only stacks of the install: write `{STACK_NAME}` and a name after it");
            self.sources.error(checked.place(&entry.value), message, &help);
        }
        let spec = ComponentSpec::CloudformationStack {
            stack_name,
            parameters: scalars(root.get("parameters")),
            capabilities,
        };
        Some((source, spec))
    }
}

/// Returns whether the stack's name is the prefix of the install's stacks and at least one more character. White space
/// is ignored, and `.freehold.` is equal to `.nuon.`.
fn is_under_the_prefix(stack_name: &str) -> bool {
    let plain = |text: &str| text.split_whitespace().collect::<String>().replace("{{.freehold.", "{{.nuon.");
    plain(stack_name).strip_prefix(&plain(STACK_NAME)).is_some_and(|own| !own.is_empty())
}

/// Returns the source and the spec of a component of type `job`. The source is its image, or the app version when a
/// template names the image.
pub(super) fn job(checked: &Checked) -> (Source, ComponentSpec) {
    let root = &checked.root;
    let spec = ComponentSpec::Job {
        image_url: text(checked, "image_url"),
        tag: text(checked, "tag"),
        cmd: texts(root.get("cmd")),
        args: texts(root.get("args")),
        env_vars: scalars(root.get("env_vars")),
    };
    let source = match spec.package() {
        Package::Image => Source::Image { reference: reference(&text(checked, "image_url"), &text(checked, "tag")) },
        _ => Source::Version,
    };
    (source, spec)
}

/// Returns the reference of an image, `host/name:tag` or `host/name@digest`.
pub(super) fn reference(url: &str, tag: &str) -> String {
    if url.contains('@') { url.to_owned() } else { format!("{url}:{tag}") }
}

fn text(checked: &Checked, key: &str) -> String {
    checked.root.text(key).unwrap_or_default().to_owned()
}

/// Returns the texts of the tables under `key`, in order. Each table holds its text under one of the keys `names`.
fn contents(checked: &Checked, key: &str, names: &[&str]) -> Vec<String> {
    let nodes = checked.root.tables(key).iter().filter_map(|node| names.iter().find_map(|name| node.get(name)));
    nodes.filter_map(|node| checked.content(node)).map(str::to_owned).collect()
}
