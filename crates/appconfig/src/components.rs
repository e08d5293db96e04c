//! The components of an app: `components/`.

use std::collections::BTreeSet;

use freehold_protocol::ComponentName;
use freehold_protocol::app_version::{Component, ComponentSettings, ComponentSpec};
use freehold_protocol::order::Source;

use crate::actions::scalars;
use crate::archive;
use crate::build::App;
use crate::diagnostic::Draft;
use crate::document::Node;
use crate::files::Files;
use crate::kinds::{Kind, MAX_COMPONENT_SECS};
use crate::links::{Edge, Index, references};
use crate::sources::Sources;
use crate::spec::seconds;
use crate::tree::join;
use crate::validate::Checked;

/// The name of a stack whose component gives none; a template.
const STACK_NAME: &str = "{{ .nuon.install.id }}-";

/// Builds every component that can be deployed; says why others cannot.
pub(crate) fn build(app: &App, index: &Index, edges: &[Edge], sources: &mut Sources) -> Vec<Component> {
    let mut builder = Builder { files: &app.files, sources, built: Vec::new() };
    let mut seen = BTreeSet::new();
    for checked in app.checked.iter().filter(|checked| checked.kind == Kind::Component) {
        if let Some(name) = builder.name(checked)
            && seen.insert(name.clone())
        {
            builder.component(checked, name, index, edges);
        }
    }
    let mut built = builder.built;
    built.sort_by(|a, b| a.name.cmp(&b.name));
    built
}

struct Builder<'a> {
    files: &'a Files,
    sources: &'a mut Sources,
    built: Vec<Component>,
}

fn owner(name: &ComponentName) -> String {
    format!("component `{name}`")
}

impl Builder<'_> {
    fn name(&mut self, checked: &Checked) -> Option<ComponentName> {
        match checked.root.text("name")?.parse() {
            Ok(name) => Some(name),
            Err(error) => {
                self.sources.drafts.push(Draft::error(checked.place_of(&checked.root, "name"), format!("{error}")));
                None
            }
        }
    }

    fn component(&mut self, checked: &Checked, name: ComponentName, index: &Index, edges: &[Edge]) {
        let root = &checked.root;
        if let Some(word) = root.text("var_name").filter(|word| *word != name.as_str()) {
            let place = checked.place_of(root, "var_name");
            let message = format!("`var_name` `{word}` is not used yet; templates name the component `{name}`");
            let draft = Draft::new(self.sources.unsupported, place, message);
            self.sources
                .drafts
                .push(draft.help(format!("remove `var_name`, and write `.nuon.components.{name}` in templates")));
        }
        let built = match root.text("type") {
            Some("container_image" | "external_image") => {
                self.image(checked, &name).map(|source| (source, ComponentSpec::ContainerImage { verification: None }))
            }
            Some("terraform_module") => self.module(checked, &name).map(|source| (source, terraform(checked))),
            Some("cloudformation_stack") => self.stack(checked, &name).map(|source| (source, stack(checked, &name))),
            Some(kind @ ("helm_chart" | "kubernetes_manifest" | "docker_build" | "job" | "pulumi")) => {
                let message = format!("component kind `{kind}` cannot be deployed yet");
                let place = checked.place_of(root, "type");
                let draft = Draft::new(self.sources.unsupported, place, message);
                self.sources
                    .drafts
                    .push(draft.expected("`terraform_module`, `cloudformation_stack` or `container_image`"));
                None
            }
            Some(_) | None => None,
        };
        let Some((source, spec)) = built else { return };
        let dependencies = edges.iter().filter(|edge| edge.from == name.as_str());
        self.built.push(Component {
            dependencies: dependencies.filter_map(|edge| edge.to.parse().ok()).collect(),
            references: references(checked, index),
            deploy_timeout_secs: root.text("deploy_timeout").and_then(seconds).unwrap_or(MAX_COMPONENT_SECS),
            source,
            spec,
            name,
            var_name: String::new(),
            build_timeout_secs: None,
            settings: ComponentSettings::default(),
        });
    }

    fn image(&mut self, checked: &Checked, name: &ComponentName) -> Option<Source> {
        let entry = self.sources.one_of(
            checked,
            &checked.root,
            &["public", "aws_ecr", "gcp_gar", "oci_layout"],
            &owner(name),
            "image",
        )?;
        match entry.key.as_str() {
            "oci_layout" => {
                let node = entry.value.get("path")?;
                let word = node.as_text()?;
                let path = self.files.named(checked.file, word);
                if path.is_some_and(|path| self.files.tree().is_file(&join(&path, "index.json"))) {
                    return self.sources.directory(self.files, checked, node, word, &owner(name));
                }
                // A layout is often made just before a sync, so a config without it can still be checked.
                let message = format!("`{word}` is not an OCI image layout: there is no `index.json` in it");
                let draft = Draft::new(self.sources.unsupported, checked.place(node), message);
                self.sources.drafts.push(draft.help("make one, as with `skopeo copy docker://IMAGE oci:DIRECTORY`"));
                None
            }
            "gcp_gar" => {
                let place = checked.key_place(entry);
                let draft = Draft::new(self.sources.unsupported, place, "images from `gcp_gar` cannot be copied yet");
                self.sources.drafts.push(draft.expected("`public`, `aws_ecr` or `oci_layout`"));
                None
            }
            _ => {
                let url = entry.value.text("image_url")?;
                let tag = entry.value.text("tag")?;
                if url.contains("{{") || tag.contains("{{") {
                    let place = checked.place(&entry.value);
                    self.sources.error(
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
        let entry = self.sources.one_of(
            checked,
            &checked.root,
            &["source", "public_repo", "connected_repo"],
            &owner(name),
            "module",
        )?;
        if entry.key == "source" {
            return self.sources.directory(self.files, checked, &entry.value, entry.value.as_text()?, &owner(name));
        }
        self.sources.repo(self.files, checked, entry, &owner(name))
    }

    fn stack(&mut self, checked: &Checked, name: &ComponentName) -> Option<Source> {
        let entry = self.sources.one_of(checked, &checked.root, &["template", "source"], &owner(name), "template")?;
        let word = entry.value.as_text()?;
        let place = checked.place(&entry.value);
        let Some(path) = self.files.named(checked.file, word) else {
            self.sources.error(
                place,
                format!("`{word}` is outside of the app's directory"),
                "move it into the app's directory",
            );
            return None;
        };
        let tree = self.files.tree();
        let found = if tree.is_dir(&path) {
            ["template.yaml", "template.yml", "template.json"]
                .map(|file| join(&path, file))
                .into_iter()
                .find(|path| tree.is_file(path))
        } else {
            Some(path)
        };
        let Some(path) = found else {
            self.sources.error(
                place,
                format!("`{word}` holds no template"),
                "name the template `template.yaml` or `template.json`",
            );
            return None;
        };
        let name_inside = if path.ends_with(".json") { "template.json" } else { "template.yaml" };
        let packed = archive::file(tree, &path, name_inside);
        self.sources.packed(checked, &entry.value, &owner(name), &self.files.locate(&path), packed)
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
