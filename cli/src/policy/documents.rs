//! The documents on which `freehold policy test` evaluates policies: a recorded plan, Kubernetes objects, or an image.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use clap::Args;
use freehold_policy::input::{self, About, Operation};
use freehold_protocol::{AccountId, ComponentName, InstallId};
use serde_json::{Deserializer, Value, json};

use crate::error::{Error, Result};
use crate::file;

const PLAN: &str = "pass what `terraform show -json plan.bin` prints";
const OBJECTS: &str = "pass JSON, such as `kubectl create --dry-run=client -o json -f FILE` prints";
const INPUT: &str = "pass a JSON object, which becomes `input`";

/// The options that name documents.
#[derive(Debug, Args)]
pub(super) struct From {
    /// A plan of Terraform, as `terraform show -json` prints it; policies read it as `input.plan`. May be given several
    /// times.
    #[arg(long, value_name = "FILE")]
    plan: Vec<PathBuf>,
    /// Kubernetes objects in JSON, one after another or in a list; policies read each one in a document of its own, as `input.review`.
    #[arg(long, value_name = "FILE")]
    objects: Vec<PathBuf>,
    /// An image by name, with its tag; policies read them as `input.image` and `input.tag`.
    #[arg(long, value_name = "IMAGE")]
    image: Vec<String>,
    /// A whole document in JSON, which policies read as `input` without a change.
    #[arg(long, value_name = "FILE")]
    input: Vec<PathBuf>,
    /// The customer's AWS account, for policies that compare accounts; they read it as `input.freehold.account`.
    #[arg(long, value_name = "ID", default_value = "222222222222")]
    account: AccountId,
    /// Name of the install; policies read it as `input.freehold.install`.
    #[arg(long, value_name = "NAME", default_value = "example")]
    install: InstallId,
    /// The mode of the job; policies read it as `input.freehold.mode`.
    #[arg(long, value_name = "MODE", default_value = "provision", value_parser = ["provision", "maintenance", "deprovision", "break_glass"])]
    mode: String,
    /// Whether the plan is for a removal; policies read this as `input.freehold.removal`.
    #[arg(long)]
    removal: bool,
}

/// The documents.
#[derive(Debug, Default)]
pub(super) struct Documents {
    pub(super) all: Vec<Value>,
    kinds: BTreeSet<&'static str>,
}

impl Documents {
    /// Returns the types of policies that a runner evaluates on such documents; empty for all types.
    pub(super) fn kinds(&self) -> BTreeSet<&'static str> {
        self.kinds.clone()
    }

    pub(super) fn read(from: &From, component: Option<&ComponentName>) -> Result<Self> {
        let about = About {
            tenant: "example".into(),
            install: from.install.to_string(),
            account: from.account.to_string(),
            component: component.map(ToString::to_string).unwrap_or_default(),
            mode: from.mode.clone(),
            is_removal: from.removal,
            maintenance_creates: true,
            ..About::default()
        };
        let mut found = Self::default();
        for path in &from.plan {
            let plan = json_of(path, PLAN)?;
            if plan.get("format_version").is_none() && plan.get("resource_changes").is_none() {
                return Err(Error::invalid(format!("`{}` is not a plan of Terraform in JSON", path.display())).or(PLAN));
            }
            found.add(input::plan(plan, &about), &["terraform_module", "sandbox", "pulumi"]);
        }
        for path in &from.objects {
            for object in objects(path)? {
                let review = input::review(Operation::Create, Some(&object), None, &about);
                found.add(review, &["helm_chart", "kubernetes_manifest", "kubernetes_cluster"]);
            }
        }
        for image in &from.image {
            found.add(image_of(image, &about), &["container_image", "docker_build"]);
        }
        for path in &from.input {
            found.all.push(json_of(path, INPUT)?);
        }
        if !from.input.is_empty() {
            found.kinds.clear();
        }
        Ok(found)
    }

    fn add(&mut self, document: Value, kinds: &[&'static str]) {
        self.all.push(document);
        self.kinds.extend(kinds);
    }
}

fn json_of(path: &Path, way_out: &str) -> Result<Value> {
    serde_json::from_slice(&file::read(path, way_out)?).map_err(|error| not_json(path, &error, way_out))
}

fn not_json(path: &Path, error: &serde_json::Error, way_out: &str) -> Error {
    Error::invalid(format!("`{}` is not JSON: {error}", path.display())).or(way_out)
}

fn objects(path: &Path) -> Result<Vec<Value>> {
    let text = file::read(path, OBJECTS)?;
    let mut found = Vec::new();
    for value in Deserializer::from_slice(&text).into_iter::<Value>() {
        let value = value.map_err(|error| not_json(path, &error, OBJECTS))?;
        match value {
            Value::Array(items) => found.extend(items),
            Value::Object(mut list) if list.get("kind").and_then(Value::as_str) == Some("List") => {
                found.extend(list.remove("items").and_then(|items| items.as_array().cloned()).unwrap_or_default());
            }
            object if object.get("kind").is_some_and(Value::is_string) => found.push(object),
            _ => return Err(Error::invalid(format!("`{}` has a value without `kind`", path.display())).or(OBJECTS)),
        }
    }
    Ok(found)
}

fn image_of(reference: &str, about: &About) -> Value {
    let (rest, digest) = reference.split_once('@').unwrap_or((reference, ""));
    let (name, tag) = match rest.rsplit_once(':') {
        Some((name, tag)) if !tag.contains('/') => (name, tag),
        Some(_) | None => (rest, ""),
    };
    let metadata = json!({ "image": name, "tag": tag, "digest": digest });
    input::image(name, tag, digest, metadata, about)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_is_taken_apart() {
        let of = |text: &str| image_of(text, &About::default());

        assert_eq!((of("nginx:1").get("image"), of("nginx:1").get("tag")), (Some(&json!("nginx")), Some(&json!("1"))));
        assert_eq!(of("localhost:5000/a")["image"], "localhost:5000/a");
        assert_eq!(of("a.example/b@sha256:00")["digest"], "sha256:00");
    }

    #[test]
    fn objects_are_read_one_by_one_and_from_lists() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("objects.json");
        std::fs::write(&path, r#"{"kind":"Pod"} {"kind":"List","items":[{"kind":"Service"}]} [{"kind":"Job"}]"#)
            .unwrap();

        let found = objects(&path).unwrap();

        assert_eq!(found, [json!({ "kind": "Pod" }), json!({ "kind": "Service" }), json!({ "kind": "Job" })]);
    }
}
