//! The input documents of policies.

use serde_json::{Value, json};

/// The job that a document belongs to. Every document contains the job as `input.freehold`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct About {
    pub tenant: String,
    pub install: String,
    /// The customer's AWS account.
    pub account: String,
    pub region: String,
    /// The component, or `sandbox`.
    pub component: String,
    /// The kind of the component.
    pub kind: String,
    /// The mode under which the job runs.
    pub mode: String,
    /// Whether the job removes the component.
    pub is_removal: bool,
    /// Whether the customer lets mode `maintenance` create something.
    pub maintenance_creates: bool,
    /// The components that the customer lets mode `maintenance` change; empty for all.
    pub maintenance_components: Vec<String>,
}

impl About {
    fn json(&self) -> Value {
        let Self { tenant, install, account, region, component, kind, mode, is_removal, .. } = self;
        json!({ "tenant": tenant, "install": install, "account": account, "region": region,
            "component": component, "kind": kind, "mode": mode, "removal": is_removal,
            "maintenance": { "creates": self.maintenance_creates, "components": self.maintenance_components } })
    }
}

/// Returns the document about a plan: `input.plan` is the JSON form of Terraform's plan, or a list of changes in that form.
pub fn plan(plan: Value, about: &About) -> Value {
    json!({ "plan": plan, "freehold": about.json() })
}

/// Returns the document about one Kubernetes object: `input.review` has the form of the request of an AdmissionReview
/// (Kubernetes API reference, `admission.k8s.io/v1`). `old` is the object in the cluster, if there is one.
pub fn review(operation: Operation, object: Option<&Value>, old: Option<&Value>, about: &About) -> Value {
    let shown = object.or(old).unwrap_or(&Value::Null);
    let text = |path: &str| shown.pointer(path).and_then(Value::as_str).unwrap_or_default();
    let (group, version) = match text("/apiVersion").split_once('/') {
        Some((group, version)) => (group, version),
        None => ("", text("/apiVersion")),
    };
    json!({ "review": {
        "kind": { "group": group, "version": version, "kind": text("/kind") },
        "operation": operation.as_str(),
        "name": text("/metadata/name"),
        "namespace": text("/metadata/namespace"),
        "object": object,
        "oldObject": old,
    }, "freehold": about.json() })
}

/// Returns the document about an image.
pub fn image(image: &str, tag: &str, digest: &str, metadata: Value, about: &About) -> Value {
    json!({ "image": image, "tag": tag, "digest": digest, "metadata": metadata, "freehold": about.json() })
}

/// The operation on an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    Create,
    Update,
    Delete,
}

impl Operation {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Create => "CREATE",
            Self::Update => "UPDATE",
            Self::Delete => "DELETE",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_review_names_the_kind_of_its_object() {
        let object =
            json!({ "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": "web", "namespace": "a" } });

        let review = review(Operation::Create, Some(&object), None, &About::default());

        assert_eq!(review["review"]["kind"], json!({ "group": "apps", "version": "v1", "kind": "Deployment" }));
        assert_eq!(review["review"]["namespace"], "a");
        assert_eq!(review["review"]["object"], object);
        assert_eq!(review["review"]["oldObject"], Value::Null);
    }
}
