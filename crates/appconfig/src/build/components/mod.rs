//! Builds the components of an app from the files in `components/`.

mod builder;
mod images;
mod settings;
mod specs;

use std::collections::{BTreeMap, BTreeSet};

use freehold_protocol::ComponentName;
use freehold_protocol::app_version::{Component, ComponentSpec};
use freehold_protocol::order::Source;

use crate::build::components::builder::{Builder, Subject};
use crate::build::sources::Sources;
use crate::check::links::{Edge, Index, references};
use crate::kinds::spec::seconds;
use crate::kinds::{Kind, MAX_COMPONENT_SECS};
use crate::report::draft::Draft;
use crate::state::app::App;
use crate::state::file::Checked;

/// Returns the app's components, sorted by name, without those whose name or source cannot be read.
pub(crate) fn build(app: &App, index: &Index, edges: &[Edge], sources: &mut Sources) -> Vec<Component> {
    let mut needs: BTreeMap<&str, BTreeSet<ComponentName>> = BTreeMap::new();
    for edge in edges {
        needs.entry(&edge.from).or_default().extend(edge.to.parse().ok());
    }
    let mut builder = Builder { files: &app.files, index, needs, sources };
    let mut built: Vec<Component> = app.of(Kind::Component).filter_map(|checked| builder.component(checked)).collect();
    built.sort_by(|a, b| a.name.cmp(&b.name));
    built.dedup_by(|a, b| a.name == b.name);
    built
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

    fn component(&mut self, checked: &Checked) -> Option<Component> {
        let root = &checked.root;
        let name = self.name(checked)?;
        let settings = settings::settings(checked, &mut self.sources.drafts);
        let (source, spec) = self.made_of(Subject { checked, name: &name })?;
        Some(Component {
            var_name: root.text("var_name").filter(|word| *word != name.as_str()).unwrap_or_default().to_owned(),
            dependencies: self.needs.get(name.as_str()).cloned().unwrap_or_default(),
            references: references(checked, self.index),
            deploy_timeout_secs: root.text("deploy_timeout").and_then(seconds).unwrap_or(MAX_COMPONENT_SECS),
            build_timeout_secs: root.text("build_timeout").and_then(seconds),
            source,
            spec,
            settings,
            name,
        })
    }

    fn made_of(&mut self, subject: Subject<'_>) -> Option<(Source, ComponentSpec)> {
        match subject.checked.root.text("type")? {
            "container_image" | "external_image" => self.image(subject),
            "terraform_module" => self.terraform(subject),
            "cloudformation_stack" => self.stack(subject),
            "helm_chart" => self.helm(subject),
            "kubernetes_manifest" => self.manifest(subject),
            "docker_build" => self.docker(subject),
            "job" => Some(specs::job(subject.checked)),
            "pulumi" => self.pulumi(subject),
            _ => None,
        }
    }
}
