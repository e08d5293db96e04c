//! What belongs to an install, as values for templates: an app uses them for resources that the runner does not mark
//! itself, such as the pods of a chart, the nodes of a cluster, or the machines of an Auto Scaling group.

use freehold_protocol::order::Order;
use serde_json::{Value, json};

/// Adds `namespace`, `tags`, `labels` and `node_labels` to `.nuon.install` of `tree`, if the tree has an install.
pub fn add(tree: &mut Value, order: &Order) {
    let Some(install) = tree.pointer_mut("/nuon/install").and_then(Value::as_object_mut) else { return };
    let values = [
        ("namespace", json!(order.install)),
        ("tags", json!(order.tags())),
        ("labels", json!(order.labels())),
        ("node_labels", json!(order.shared_labels())),
    ];
    install.extend(values.map(|(name, value)| (name.to_owned(), value)));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::order;

    #[test]
    fn templates_read_what_belongs_to_the_install() {
        let context = json!({ "nuon": { "app": { "name": "shop" }, "install": { "id": "globex-prod" } } });
        let mut tree = context.clone();

        add(&mut tree, &Order { context, ..order(1, 7) });

        let labels = json!({ "freehold.dev/app": "shop", "freehold.dev/install": "globex-prod" });
        assert_eq!(
            tree["nuon"]["install"],
            json!({
                "id": "globex-prod",
                "namespace": "globex-prod",
                "tags": {
                    "freehold:app": "shop",
                    "freehold:install": "globex-prod",
                    "freehold:owner": "acme--globex-prod",
                    "freehold:tenant": "acme",
                },
                "labels": labels,
                "node_labels": labels,
            })
        );
    }

    #[test]
    fn a_tree_without_an_install_stays() {
        let mut tree = json!({ "nuon": {} });

        add(&mut tree, &order(1, 7));

        assert_eq!(tree, json!({ "nuon": {} }));
    }
}
