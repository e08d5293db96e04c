//! The labels of components, actions, runbooks and installs: how tables show them, and the option `--label`, which
//! filters by labels, or sets labels of an install.

use std::collections::BTreeMap;
use std::str::FromStr;

/// A label that `--label` requires: a key with any value, or with one value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Label {
    key: String,
    value: Option<String>,
}

impl FromStr for Label {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (key, value) = text.split_once('=').map_or((text, None), |(key, value)| (key, Some(value.to_owned())));
        if key.is_empty() {
            return Err(format!("`{text}` is not a label; write `KEY` or `KEY=VALUE`"));
        }
        Ok(Self { key: key.to_owned(), value })
    }
}

/// Parses a label to set: `KEY=VALUE`.
pub(crate) fn key_and_value(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err(format!("`{text}` is not a label with a value; write `KEY=VALUE`, such as `env=production`")),
    }
}

/// Returns whether a part or an install with `labels` has all the labels in `wanted`.
pub(crate) fn has_labels(labels: &BTreeMap<String, String>, wanted: &[Label]) -> bool {
    let is_there = |one: &Label| {
        let found = labels.get(&one.key);
        found.is_some_and(|found| one.value.as_ref().is_none_or(|value| value == found))
    };
    wanted.iter().all(is_there)
}

/// Returns labels as the text of a cell, such as `service=ecs, type=report`.
pub(crate) fn labels_text(labels: &BTreeMap<String, String>) -> String {
    labels.iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels() -> BTreeMap<String, String> {
        let pairs = [("service", "ecs"), ("type", "report"), ("note", "")];
        pairs.map(|(key, value)| (key.to_owned(), value.to_owned())).into()
    }

    #[test]
    fn a_part_has_to_have_all_the_labels_that_are_asked_for() {
        for (wanted, fits) in [
            (vec![], true),
            (vec!["service"], true),
            (vec!["service=ecs", "type"], true),
            (vec!["note="], true),
            (vec!["service=lambda"], false),
            (vec!["service=ecs", "owner"], false),
            (vec!["Service"], false),
        ] {
            let labels_wanted: Vec<Label> = wanted.iter().map(|text| text.parse().unwrap()).collect();

            assert_eq!(has_labels(&labels(), &labels_wanted), fits, "{wanted:?}");
        }
    }

    #[test]
    fn a_label_without_a_key_is_refused() {
        for text in ["", "=x"] {
            let refused = text.parse::<Label>().unwrap_err();

            assert_eq!(refused, format!("`{text}` is not a label; write `KEY` or `KEY=VALUE`"));
        }
    }

    #[test]
    fn a_label_to_set_has_a_value_which_may_be_empty() {
        let pair = |key: &str, value: &str| Ok((key.to_owned(), value.to_owned()));

        assert_eq!(key_and_value("env=a=b"), pair("env", "a=b"));
        assert_eq!(key_and_value("env="), pair("env", ""));
        for text in ["env", "", "=x"] {
            let refused = key_and_value(text).unwrap_err();

            assert!(refused.starts_with(&format!("`{text}` is not a label with a value; write")), "{refused}");
        }
    }

    #[test]
    fn a_cell_has_all_labels() {
        assert_eq!(labels_text(&labels()), "note=, service=ecs, type=report");
    }
}
