//! The components of an app: `components/`.

use std::collections::BTreeSet;
use std::path::Path;

use freehold_protocol::app_version::{Component, ComponentSpec};
use freehold_protocol::order::Source;
use freehold_protocol::{ComponentName, Digest};

use crate::actions::scalars;
use crate::archive::{self, Archive};
use crate::build::{App, Purpose};
use crate::diagnostic::Draft;
use crate::document::{Entry, Node};
use crate::files::{Files, Place, normal, reason};
use crate::kinds::{Kind, MAX_COMPONENT_SECS};
use crate::links::{Edge, Index, references};
use crate::spec::seconds;
use crate::validate::Checked;
use crate::{LocalSource, UnresolvedGit};

/// The name of a stack whose component gives none; a template.
const STACK_NAME: &str = "{{ .nuon.install.id }}-";

/// What `components/` makes of a version.
#[derive(Debug, Default)]
pub(crate) struct Built {
    pub(crate) components: Vec<Component>,
    pub(crate) sources: Vec<LocalSource>,
    pub(crate) unresolved: Vec<UnresolvedGit>,
}

/// Whether `text` is a git commit.
pub(crate) fn is_commit(text: &str) -> bool {
    text.len() == 40 && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}

/// Builds every component that can be deployed; says why others cannot.
pub(crate) fn build(app: &mut App, index: &Index, edges: &[Edge]) -> Built {
    let mut builder = Builder { files: &app.files, purpose: app.purpose, drafts: Vec::new(), built: Built::default() };
    let mut seen = BTreeSet::new();
    for checked in app.checked.iter().filter(|checked| checked.kind == Kind::Component) {
        if let Some(name) = builder.name(checked)
            && seen.insert(name.clone())
        {
            builder.component(checked, name, index, edges);
        }
    }
    let Builder { drafts, built, .. } = builder;
    app.drafts.extend(drafts);
    built
}

struct Builder<'a> {
    files: &'a Files,
    purpose: Purpose,
    drafts: Vec<Draft>,
    built: Built,
}

impl Builder<'_> {
    fn error(&mut self, place: Place, message: impl Into<String>, help: &str) {
        self.drafts.push(Draft::error(place, message).help(help));
    }

    fn name(&mut self, checked: &Checked) -> Option<ComponentName> {
        match checked.root.text("name")?.parse() {
            Ok(name) => Some(name),
            Err(error) => {
                self.drafts.push(Draft::error(checked.place_of(&checked.root, "name"), format!("{error}")));
                None
            }
        }
    }

    fn component(&mut self, checked: &Checked, name: ComponentName, index: &Index, edges: &[Edge]) {
        let root = &checked.root;
        if let Some(word) = root.text("var_name").filter(|word| *word != name.as_str()) {
            let place = checked.place_of(root, "var_name");
            let message = format!("`var_name` `{word}` is not used yet; templates name the component `{name}`");
            let draft = Draft::new(self.purpose.unsupported(), place, message);
            self.drafts
                .push(draft.help(format!("remove `var_name`, and write `.nuon.components.{name}` in templates")));
        }
        let built = match root.text("type") {
            Some("container_image" | "external_image") => {
                self.image(checked, &name).map(|source| (source, ComponentSpec::ContainerImage))
            }
            Some("terraform_module") => self.module(checked, &name).map(|source| (source, terraform(checked))),
            Some("cloudformation_stack") => self.stack(checked, &name).map(|source| (source, stack(checked, &name))),
            Some(kind @ ("helm_chart" | "kubernetes_manifest" | "docker_build" | "job" | "pulumi")) => {
                let message = format!("component kind `{kind}` cannot be deployed yet");
                let place = checked.place_of(root, "type");
                let draft = Draft::new(self.purpose.unsupported(), place, message);
                self.drafts.push(draft.expected("`terraform_module`, `cloudformation_stack` or `container_image`"));
                None
            }
            Some(_) | None => None,
        };
        let Some((source, spec)) = built else { return };
        let dependencies = edges.iter().filter(|edge| edge.from == name.as_str());
        self.built.components.push(Component {
            dependencies: dependencies.filter_map(|edge| edge.to.parse().ok()).collect(),
            references: references(checked, index),
            deploy_timeout_secs: root.text("deploy_timeout").and_then(seconds).unwrap_or(MAX_COMPONENT_SECS),
            source,
            spec,
            name,
        });
    }

    /// Returns the one of `keys` that the component has; says when it has none or more.
    fn one_of<'n>(&mut self, checked: &'n Checked, keys: &[&str], what: &str) -> Option<&'n Entry> {
        let root = &checked.root;
        let given: Vec<&Entry> = keys.iter().filter_map(|key| root.entry(key)).collect();
        let choice = keys.iter().map(|key| format!("`{key}`")).collect::<Vec<_>>().join(", ");
        match given.as_slice() {
            [one] => return Some(one),
            [] => {
                let name = root.text("name").unwrap_or_default();
                let message = format!("component `{name}` does not say where its {what} comes from");
                self.error(checked.place_of(root, "type"), message, &format!("add one of {choice}"));
            }
            [first, second, ..] => {
                let draft = Draft::error(checked.key_place(second), format!("the {what} comes from two places"));
                let draft = draft.related(checked.key_place(first), "the other one");
                self.drafts.push(draft.help(format!("keep one of {choice}")));
            }
        }
        None
    }

    fn image(&mut self, checked: &Checked, name: &ComponentName) -> Option<Source> {
        let entry = self.one_of(checked, &["public", "aws_ecr", "gcp_gar", "oci_layout"], "image")?;
        match entry.key.as_str() {
            "oci_layout" => {
                let node = entry.value.get("path")?;
                let word = node.as_text()?;
                let path = self.files.named(checked.file, word).map(|path| self.files.locate(&path));
                if path.is_some_and(|path| path.join("index.json").is_file()) {
                    return self.directory(checked, node, word, name);
                }
                // A layout is often made just before a sync, so a config without it can still be checked.
                let message = format!("`{word}` is not an OCI image layout: there is no `index.json` in it");
                let draft = Draft::new(self.purpose.unsupported(), checked.place(node), message);
                self.drafts.push(draft.help("make one, as with `skopeo copy docker://IMAGE oci:DIRECTORY`"));
                None
            }
            "gcp_gar" => {
                let place = checked.key_place(entry);
                let draft = Draft::new(self.purpose.unsupported(), place, "images from `gcp_gar` cannot be copied yet");
                self.drafts.push(draft.expected("`public`, `aws_ecr` or `oci_layout`"));
                None
            }
            _ => {
                let url = entry.value.text("image_url")?;
                let tag = entry.value.text("tag")?;
                if url.contains("{{") || tag.contains("{{") {
                    let place = checked.place(&entry.value);
                    self.error(
                        place,
                        "an image is copied at build time, when no install is known",
                        "write the image and its tag without templates",
                    );
                    return None;
                }
                let reference = if url.contains('@') { url.to_owned() } else { format!("{url}:{tag}") };
                Some(Source::Image { reference })
            }
        }
    }

    fn module(&mut self, checked: &Checked, name: &ComponentName) -> Option<Source> {
        let entry = self.one_of(checked, &["source", "public_repo", "connected_repo"], "module")?;
        if entry.key == "source" {
            return self.directory(checked, &entry.value, entry.value.as_text()?, name);
        }
        let repo = entry.value.get("repo")?;
        let word = repo.as_text()?;
        let directory = entry.value.text("directory").unwrap_or_default();
        if word == "." || word.starts_with("./") || word.starts_with("../") {
            return self.directory(checked, repo, &format!("{word}/{directory}"), name);
        }
        let Some(url) = git_url(word) else {
            let draft = Draft::error(checked.place(repo), format!("`{word}` is not a repository"));
            self.drafts.push(draft.expected("`owner/name`, an `https://` or `ssh://` address, or `./path`"));
            return None;
        };
        let branch = entry.value.text("branch").unwrap_or("HEAD").to_owned();
        if !is_commit(&branch) {
            self.built.unresolved.push(UnresolvedGit {
                component: name.clone(),
                url: url.clone(),
                branch: branch.clone(),
            });
        }
        let Some(directory) = normal(directory) else {
            let place = checked.place_of(&entry.value, "directory");
            self.error(place, format!("`{directory}` leaves the repository"), "name a directory inside of it");
            return None;
        };
        Some(Source::Git { url, commit: branch, directory })
    }

    fn stack(&mut self, checked: &Checked, name: &ComponentName) -> Option<Source> {
        let entry = self.one_of(checked, &["template", "source"], "template")?;
        let word = entry.value.as_text()?;
        let place = checked.place(&entry.value);
        let Some(path) = self.files.named(checked.file, word) else {
            self.error(
                place,
                format!("`{word}` is outside of the app's directory"),
                "move it into the app's directory",
            );
            return None;
        };
        let path = self.files.locate(&path);
        let found = if path.is_dir() {
            ["template.yaml", "template.yml", "template.json"]
                .map(|file| path.join(file))
                .into_iter()
                .find(|p| p.is_file())
        } else {
            Some(path)
        };
        let Some(path) = found else {
            self.error(
                place,
                format!("`{word}` holds no template"),
                "name the template `template.yaml` or `template.json`",
            );
            return None;
        };
        let json = path.extension().is_some_and(|extension| extension == "json");
        let packed = archive::file(&path, if json { "template.json" } else { "template.yaml" });
        self.packed(checked, &entry.value, name, &path, packed)
    }

    fn directory(&mut self, checked: &Checked, node: &Node, word: &str, name: &ComponentName) -> Option<Source> {
        let Some(path) = self.files.named(checked.file, word) else {
            let message = format!("`{word}` is outside of the app's directory");
            self.error(checked.place(node), message, "move it into the app's directory");
            return None;
        };
        let path = self.files.locate(&path);
        let packed = archive::directory(&path);
        self.packed(checked, node, name, &path, packed)
    }

    fn packed(
        &mut self,
        checked: &Checked,
        node: &Node,
        name: &ComponentName,
        path: &Path,
        packed: std::io::Result<Archive>,
    ) -> Option<Source> {
        match packed {
            Ok(Archive { digest, bytes }) => {
                let source: Digest = digest.clone();
                self.built.sources.push(LocalSource {
                    component: name.clone(),
                    path: path.to_owned(),
                    digest,
                    archive: bytes,
                });
                Some(Source::Directory { digest: source })
            }
            Err(error) => {
                let message =
                    format!("the source `{}` cannot be read: {}", node.as_text().unwrap_or_default(), reason(&error));
                let help = "create it, or correct the path: beside this file, or from the app's directory";
                self.error(checked.place(node), message, help);
                None
            }
        }
    }
}

fn terraform(checked: &Checked) -> ComponentSpec {
    let root = &checked.root;
    let vars = root.get("vars").map(Node::entries).unwrap_or_default();
    let files = root.tables("var_file").iter().filter_map(|file| file.get("contents"));
    ComponentSpec::TerraformModule {
        terraform_version: root.text("terraform_version").unwrap_or_default().to_owned(),
        vars: vars.iter().map(|entry| (entry.key.clone(), entry.value.to_json())).collect(),
        env_vars: scalars(root.get("env_vars")),
        var_files: files.filter_map(|node| checked.content(node)).map(str::to_owned).collect(),
    }
}

fn stack(checked: &Checked, name: &ComponentName) -> ComponentSpec {
    let root = &checked.root;
    let capabilities = root.get("capabilities").map(Node::items).unwrap_or_default();
    let mut capabilities: Vec<String> = capabilities.iter().filter_map(Node::as_text).map(str::to_owned).collect();
    capabilities.sort();
    capabilities.dedup();
    ComponentSpec::CloudformationStack {
        stack_name: root.text("stack_name").map_or_else(|| format!("{STACK_NAME}{name}"), str::to_owned),
        parameters: scalars(root.get("parameters")),
        capabilities,
    }
}

/// Returns the address of a repository that a config names; `owner/name` is one on GitHub, as in the public format.
fn git_url(repo: &str) -> Option<String> {
    if ["https://", "ssh://", "http://", "file://"].iter().any(|scheme| repo.starts_with(scheme))
        || repo.starts_with("git@")
    {
        return Some(repo.to_owned());
    }
    let (owner, name) = repo.split_once('/')?;
    let plain = |part: &str| {
        !part.is_empty()
            && !part.starts_with('-')
            && part.chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c))
    };
    (plain(owner) && plain(name)).then(|| format!("https://github.com/{owner}/{name}"))
}
