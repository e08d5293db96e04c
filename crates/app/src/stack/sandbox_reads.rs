//! Finds, in the templates of each component, the sandbox outputs that the component requires.

use std::collections::{BTreeMap, BTreeSet};

use freehold_protocol::ComponentName;
use freehold_protocol::app_version::{AppVersion, Component};
use freehold_template::{Template, Use};
use serde_json::Value;

/// Returns the required sandbox outputs of each component. A component requires an output when a template reads the
/// output without a default or a condition. Components that read no outputs are left out.
pub(crate) fn required(version: &AppVersion) -> BTreeMap<ComponentName, BTreeSet<String>> {
    let readers = version.components.iter().filter(|component| !component.sandbox_reads().is_empty());
    readers.map(|component| (component.name.clone(), of_component(component))).collect()
}

fn of_component(component: &Component) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    // A component was read from JSON, so it can always be written as JSON.
    collect(&serde_json::to_value(&component.spec).unwrap_or_default(), &mut found);
    found
}

fn collect(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::String(text) if text.contains("{{") => {
            // A text that is not a valid template is refused later, when it is rendered.
            let uses = Template::parse(text).map(|template| template.uses()).unwrap_or_default();
            found.extend(uses.into_iter().filter_map(output));
        }
        Value::Array(items) => items.iter().for_each(|item| collect(item, found)),
        Value::Object(entries) => entries.values().for_each(|item| collect(item, found)),
        Value::String(_) | Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Returns the name of the sandbox output that `one` requires; `None` if it reads another value, or has a default or a
/// condition.
fn output(one: Use) -> Option<String> {
    let path: Vec<&str> = one.path.iter().map(String::as_str).collect();
    let name = match path.as_slice() {
        ["nuon" | "freehold", "sandbox", "outputs", name, ..]
        | ["nuon" | "freehold", "install", "sandbox", "outputs", name, ..] => *name,
        _ => return None,
    };
    (!one.guarded && name != "*").then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_output_with_a_default_or_under_a_condition_is_not_required() {
        let mut version = AppVersion::empty("demo".parse().unwrap());
        let vars = json!({
            "vpc": "{{ .nuon.sandbox.outputs.vpc.id }}",
            "both": ["{{ .nuon.install.sandbox.outputs.cluster.name }}", "{{ .nuon.inputs.inputs.size }}"],
            "zone": "{{ .nuon.sandbox.outputs.zone | default \"none\" }}",
        });
        let component = json!({
            "name": "api", "deploy_timeout_secs": 60, "source": { "from": "version" },
            "references": [{ "to": "sandbox", "name": "vpc" }],
            "spec": { "kind": "terraform_module", "terraform_version": "1.11.3", "vars": vars },
        });
        version.components = vec![serde_json::from_value(component).unwrap()];

        let found = required(&version);

        let expected: BTreeSet<String> = ["cluster".to_owned(), "vpc".to_owned()].into();
        assert_eq!(found, BTreeMap::from([("api".parse().unwrap(), expected)]));
    }
}
