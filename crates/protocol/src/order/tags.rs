//! The tags of the AWS resources and the labels of the Kubernetes objects that a job makes. Their values say to which
//! part of which install a resource belongs, for reports of costs and for searches.

use std::collections::BTreeMap;

use serde_json::Value;

use super::Order;
use crate::names::{self, APP_TAG, COMPONENT_TAG, INSTALL_TAG, OWNER_TAG, TENANT_TAG};
use crate::{AppName, Digest};

/// The key of the label with the install.
pub const INSTALL_LABEL: &str = "freehold.dev/install";
/// The key of the label with the app.
pub const APP_LABEL: &str = "freehold.dev/app";
/// The key of the label with the component.
pub const COMPONENT_LABEL: &str = "freehold.dev/component";
/// The keys of all labels.
pub const LABELS: [&str; 3] = [INSTALL_LABEL, APP_LABEL, COMPONENT_LABEL];
/// The maximum length of the value of a label (Kubernetes documentation, "Labels and Selectors").
const MAX_LABEL: usize = 63;
/// The length of the digest in a value that stands for a name.
const DIGEST: usize = 8;

impl Order {
    /// Returns the name of the app, from the tree of templates; `None` if the tree has none, as for builds.
    pub fn app(&self) -> Option<AppName> {
        self.context.pointer("/nuon/app/name").and_then(Value::as_str)?.parse().ok()
    }

    /// Returns the tags of everything that the job makes in AWS, by key. Conditions of IAM read the tag of the owner; the
    /// others are for people.
    pub fn tags(&self) -> BTreeMap<&'static str, String> {
        let tags = [
            (OWNER_TAG, Some(names::owner(&self.tenant, &self.install))),
            (TENANT_TAG, Some(self.tenant.to_string())),
            (APP_TAG, self.app().map(String::from)),
            (INSTALL_TAG, Some(self.install.to_string())),
            (COMPONENT_TAG, self.work.component().map(ToString::to_string)),
        ];
        tags.into_iter().filter_map(|(key, value)| Some((key, value?))).collect()
    }

    /// Returns the labels of every object that the job makes in a cluster, by key.
    pub fn labels(&self) -> BTreeMap<&'static str, String> {
        let component = self.work.component().map(|name| (COMPONENT_LABEL, label(name.as_str())));
        self.shared_labels().into_iter().chain(component).collect()
    }

    /// Returns the labels of an object that several components of the install share, such as a namespace.
    pub fn shared_labels(&self) -> BTreeMap<&'static str, String> {
        let app = self.app().map(|name| (APP_LABEL, label(name.as_str())));
        [(INSTALL_LABEL, label(self.install.as_str()))].into_iter().chain(app).collect()
    }
}

/// Returns a name as the value of a label. Such a value has at most 63 characters, and its last one is a letter or a digit.
/// The value for another name is the name's beginning with a digest, so that two names have two values.
fn label(name: &str) -> String {
    if name.len() <= MAX_LABEL && name.ends_with(|last: char| last.is_ascii_alphanumeric()) {
        return name.to_owned();
    }
    let start: String = name.chars().take(MAX_LABEL - DIGEST - 1).collect();
    let digest: String = Digest::of(name.as_bytes()).hex().chars().take(DIGEST).collect();
    format!("{start}-{digest}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(component: &str, context: &Value) -> Order {
        let order = include_str!("../../golden/order-sandbox.json");
        let mut order: Value = serde_json::from_str(order).unwrap();
        order["work"]["component"] = component.into();
        order["context"] = context.clone();
        serde_json::from_value(order).unwrap()
    }

    fn of_shop() -> Value {
        serde_json::json!({ "nuon": { "app": { "id": "shop", "name": "shop" } } })
    }

    #[test]
    fn tags_and_labels_name_the_install_and_the_component() {
        let order = order("sandbox", &of_shop());

        let tags: Vec<(&str, String)> = order.tags().into_iter().collect();
        let labels: Vec<(&str, String)> = order.labels().into_iter().collect();

        let expected = [
            ("freehold:app", "shop"),
            ("freehold:component", "sandbox"),
            ("freehold:install", "globex"),
            ("freehold:owner", "acme--globex"),
            ("freehold:tenant", "acme"),
        ];
        assert_eq!(tags, expected.map(|(key, value)| (key, value.to_owned())));
        let expected =
            [("freehold.dev/app", "shop"), ("freehold.dev/component", "sandbox"), ("freehold.dev/install", "globex")];
        assert_eq!(labels, expected.map(|(key, value)| (key, value.to_owned())));
        assert!(!order.shared_labels().contains_key(COMPONENT_LABEL));
    }

    #[test]
    fn an_order_without_the_name_of_an_app_has_no_tag_for_it() {
        for context in [serde_json::json!({}), serde_json::json!({ "nuon": { "app": { "name": "No App" } } })] {
            let order = order("web", &context);

            assert!(!order.tags().contains_key(APP_TAG) && !order.labels().contains_key(APP_LABEL), "{context}");
        }
    }

    #[test]
    fn every_component_has_a_legal_label_of_its_own() {
        let (longest, one_less) = ("a".repeat(64), "a".repeat(63));
        let names = ["web", "DB_Migrate_", "DB_Migrate-", longest.as_str(), one_less.as_str()];

        let labels: Vec<String> =
            names.iter().map(|name| order(name, &of_shop()).labels()[COMPONENT_LABEL].clone()).collect();

        assert_eq!(labels[0], "web");
        for (at, label) in labels.iter().enumerate() {
            assert!(label.len() <= 63 && label.ends_with(|last: char| last.is_ascii_alphanumeric()), "{label}");
            assert!(!labels[..at].contains(label), "{label}");
        }
    }
}
