//! Parses `Chart.yaml` and the files beside it, which describe a chart and its dependencies.

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

use super::yaml;

/// The content of `Chart.yaml`, with the keys and the order that Helm uses (Helm, "The Chart.yaml File").
#[derive(Debug, Clone, PartialEq, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Metadata {
    pub(super) name: String,
    #[serde(default, deserialize_with = "text", skip_serializing_if = "String::is_empty")]
    home: String,
    #[serde(default, deserialize_with = "list", skip_serializing_if = "Vec::is_empty")]
    sources: Vec<String>,
    pub(super) version: String,
    #[serde(default, deserialize_with = "text", skip_serializing_if = "String::is_empty")]
    pub(super) description: String,
    #[serde(default, deserialize_with = "list", skip_serializing_if = "Vec::is_empty")]
    keywords: Vec<String>,
    #[serde(default, deserialize_with = "list", skip_serializing_if = "Vec::is_empty")]
    maintainers: Vec<Maintainer>,
    #[serde(default, deserialize_with = "text", skip_serializing_if = "String::is_empty")]
    icon: String,
    #[serde(default, deserialize_with = "text", skip_serializing_if = "String::is_empty")]
    api_version: String,
    #[serde(default, deserialize_with = "text", skip_serializing_if = "String::is_empty")]
    condition: String,
    #[serde(default, deserialize_with = "text", skip_serializing_if = "String::is_empty")]
    tags: String,
    #[serde(default, deserialize_with = "text", skip_serializing_if = "String::is_empty")]
    app_version: String,
    #[serde(default, deserialize_with = "list", skip_serializing_if = "std::ops::Not::not")]
    deprecated: bool,
    #[serde(default, deserialize_with = "texts", skip_serializing_if = "BTreeMap::is_empty")]
    annotations: BTreeMap<String, String>,
    #[serde(default, deserialize_with = "text", skip_serializing_if = "String::is_empty")]
    kube_version: String,
    #[serde(default, deserialize_with = "list", skip_serializing_if = "Vec::is_empty")]
    pub(super) dependencies: Vec<Dependency>,
    #[serde(default, rename = "type", deserialize_with = "text", skip_serializing_if = "String::is_empty")]
    kind: String,
}

#[derive(Debug, Clone, PartialEq, Default, Deserialize, Serialize)]
struct Maintainer {
    #[serde(default, deserialize_with = "text", skip_serializing_if = "String::is_empty")]
    name: String,
    #[serde(default, deserialize_with = "text", skip_serializing_if = "String::is_empty")]
    email: String,
    #[serde(default, deserialize_with = "text", skip_serializing_if = "String::is_empty")]
    url: String,
}

/// A chart that another chart depends on.
#[derive(Debug, Clone, PartialEq, Default, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct Dependency {
    pub(super) name: String,
    #[serde(default, deserialize_with = "text", skip_serializing_if = "String::is_empty")]
    pub(super) version: String,
    /// The address of the repository. Helm writes this key even when it is empty.
    #[serde(default, deserialize_with = "text")]
    pub(super) repository: String,
    #[serde(default, deserialize_with = "text", skip_serializing_if = "String::is_empty")]
    condition: String,
    #[serde(default, deserialize_with = "list", skip_serializing_if = "Vec::is_empty")]
    tags: Vec<String>,
    #[serde(default, deserialize_with = "list", skip_serializing_if = "std::ops::Not::not")]
    enabled: bool,
    #[serde(default, deserialize_with = "list", skip_serializing_if = "Vec::is_empty")]
    import_values: Vec<Value>,
    #[serde(default, deserialize_with = "text", skip_serializing_if = "String::is_empty")]
    alias: String,
}

/// A file that lists dependencies: `requirements.yaml` of an older chart, `requirements.lock` or `Chart.lock`.
#[derive(Debug, Deserialize)]
struct Requirements {
    #[serde(default, deserialize_with = "list")]
    dependencies: Vec<Dependency>,
}

/// Parses `Chart.yaml`.
pub(super) fn metadata(text: &str) -> Result<Metadata, String> {
    let read: Metadata = typed("Chart.yaml", text)?;
    if read.name.is_empty() || read.name.contains(['/', '\\']) || read.name.starts_with('.') {
        return Err(format!(
            "`Chart.yaml` calls the chart `{}`, which is not a valid directory name; write lower-case letters, digits \
             and dashes",
            read.name
        ));
    }
    if super::versions::version(&read.version).is_none() {
        return Err(format!("`Chart.yaml` has version `{}`; expected a version such as `1.2.3`", read.version));
    }
    Ok(read)
}

/// Parses `requirements.yaml`, `requirements.lock` or `Chart.lock`.
pub(super) fn dependencies(file: &str, text: &str) -> Result<Vec<Dependency>, String> {
    if text.trim().is_empty() {
        return Ok(Vec::new());
    }
    typed::<Requirements>(file, text).map(|read| read.dependencies)
}

fn typed<T: serde::de::DeserializeOwned>(file: &str, text: &str) -> Result<T, String> {
    let unusable = |detail: String| format!("`{file}` cannot be used: {detail}");
    let value = yaml::read(text).map_err(unusable)?;
    serde_json::from_value(value).map_err(|error| unusable(error.to_string()))
}

/// Deserializes a text. A key without a value gives an empty text; a boolean gives `true` or `false`.
fn text<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    Ok(match Value::deserialize(from)? {
        Value::Null => String::new(),
        Value::String(text) => text,
        other => other.to_string(),
    })
}

fn texts<'de, D: Deserializer<'de>>(from: D) -> Result<BTreeMap<String, String>, D::Error> {
    let map = Option::<BTreeMap<String, Value>>::deserialize(from)?.unwrap_or_default();
    let text = |value: Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    Ok(map.into_iter().map(|(key, value)| (key, text(value))).collect())
}

fn list<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(from: D) -> Result<T, D::Error> {
    Option::<T>::deserialize(from).map(Option::unwrap_or_default)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_config_says_what_chart_yaml_says() {
        let text = "apiVersion: v2\nname: web\nversion: 1.10.0\nappVersion: 1.10\nhome:\ndependencies:\n\
                    - name: db\n  version: 8.x\n  repository: https://charts.example.com\n  import-values: [data]\n";

        let read = metadata(text).unwrap();

        assert_eq!(
            serde_json::to_string(&read).unwrap(),
            r#"{"name":"web","version":"1.10.0","apiVersion":"v2","appVersion":"1.10","dependencies":[{"name":"db","version":"8.x","repository":"https://charts.example.com","import-values":["data"]}]}"#
        );
    }

    #[test]
    fn a_chart_without_a_name_or_version_is_refused() {
        for (text, message) in [
            ("name: web\n", "missing field `version`"),
            ("name: ../web\nversion: 1.0.0\n", "not a valid directory name"),
            ("name: web\nversion: latest\n", "expected a version such as"),
            ("- name: web\n", "cannot be used"),
        ] {
            assert!(metadata(text).unwrap_err().contains(message), "{text}");
        }
    }
}
