//! Checks the syntax of texts in other languages that components bring: manifests, values of charts, variables of modules.

use crate::check::syntax::{self, Wrong};
use crate::read::document::Node;
use crate::read::files::Files;
use crate::read::yaml;
use crate::report::draft::Draft;
use crate::state::file::Checked;

/// The language of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Language {
    Yaml,
    Hcl,
}

impl Language {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Yaml => "YAML",
            Self::Hcl => "HCL",
        }
    }

    fn check(self, text: &str) -> Result<(), Wrong> {
        match self {
            Self::Yaml => syntax::yaml(text),
            Self::Hcl => syntax::hcl(text),
        }
    }
}

/// Reports a text that is not in `language`. `what` names it, such as "manifest". A text with templates is checked with
/// words in place of the templates. The result is not certain, so a mistake is only a warning.
pub(crate) fn mistake(files: &Files, checked: &Checked, node: &Node, what: &str, language: Language) -> Option<Draft> {
    let text = checked.content(node)?;
    let wrong = language.check(text).err()?;
    let message = |wrong: &Wrong| format!("the {what} is not {}: {}", language.as_str(), wrong.message);
    if !text.contains("{{") {
        return Some(Draft::error(checked.place_in(files, node, wrong.offset), message(&wrong)));
    }
    let wrong = language.check(&without_references(text)?).err()?;
    Some(Draft::warning(checked.place_in(files, node, wrong.offset), message(&wrong)))
}

/// Reports the first object of a manifest that has no `apiVersion` or no `kind`: the runner refuses it.
pub(crate) fn incomplete_object(files: &Files, checked: &Checked, node: &Node) -> Option<Draft> {
    let text = checked.content(node)?;
    let filled = if text.contains("{{") { without_references(text)? } else { text.to_owned() };
    let (start, key) = documents(&filled).into_iter().find_map(|(start, document)| {
        let (first, key) = missing_key(&yaml::parse(document).ok()?)?;
        Some((start + first, key))
    })?;
    let (place, message) = (checked.place_in(files, node, start), format!("the object has no `{key}`"));
    // A reference on a line of its own may bring the key.
    let is_certain = !text.contains("{{");
    let draft = if is_certain { Draft::error(place, message) } else { Draft::warning(place, message) };
    Some(draft.help(format!("add `{key}: ...`; every object of a manifest has `apiVersion` and `kind`")))
}

/// Returns the documents of a YAML text, each with its position in bytes.
pub(super) fn documents(text: &str) -> Vec<(usize, &str)> {
    let (mut at, mut start) = (0, 0);
    let mut documents = Vec::new();
    for line in text.split_inclusive('\n').chain(["---"]) {
        if line.starts_with("---") {
            documents.extend(text.get(start..at).map(|document| (start, document)));
            start = at + line.len();
        }
        at += line.len();
    }
    documents
}

/// Returns the key that `object`, or the first incomplete object in a list of objects, does not have, and the place of
/// that object. The runner deploys the items of a list, so the list itself needs no `apiVersion`.
fn missing_key(object: &Node) -> Option<(usize, &'static str)> {
    let first = object.entries().first()?.key_span.start;
    let is_list = value(object, "kind").and_then(Node::as_text).is_some_and(|kind| kind.ends_with("List"));
    if let Some(items) = value(object, "items").filter(|_| is_list) {
        return items.items().iter().find_map(missing_key);
    }
    let key = ["apiVersion", "kind"].into_iter().find(|key| value(object, key).is_none())?;
    Some((first, key))
}

/// Returns the value of a key of a table. The value may come from the table of a merge key (`<<`).
pub(super) fn value<'n>(table: &'n Node, key: &str) -> Option<&'n Node> {
    let merged = || {
        let merged = table.get("<<")?;
        value(merged, key).or_else(|| merged.items().iter().find_map(|one| value(one, key)))
    };
    table.get(key).or_else(merged)
}

/// Returns a text of the same length in which words replace references such as `{{ .nuon.install.id }}`. A reference on
/// a line of its own may be any text, so a comment takes its place. Returns `None` for a text with other templates.
fn without_references(text: &str) -> Option<String> {
    let mut result = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let mut filled = String::with_capacity(line.len());
        let (mut rest, mut is_alone) = (line, true);
        while let Some((before, after)) = rest.split_once("{{") {
            let (inside, next) = after.split_once("}}")?;
            let is_reference = inside.trim().starts_with('.') && !inside.trim().contains(char::is_whitespace);
            if !is_reference || inside.contains('|') {
                return None;
            }
            is_alone &= before.trim().is_empty();
            filled.push_str(before);
            filled.extend(std::iter::repeat_n('x', inside.len() + 4));
            rest = next;
        }
        is_alone &= rest.len() < line.len() && rest.trim().is_empty();
        filled.push_str(rest);
        if is_alone {
            filled = filled.replacen('x', "#", 1);
        }
        result.push_str(&filled);
    }
    Some(result)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_stand_in_the_places_of_references() {
        let filled = |text: &str| without_references(text);

        assert_eq!(filled("a: {{ .b }}-c\n").as_deref(), Some("a: xxxxxxxx-c\n"));
        assert_eq!(filled("a: 1\n  {{.b}}\nc: é{{.d}}").as_deref(), Some("a: 1\n  #xxxxx\nc: éxxxxxx"));
        for other in ["{{ if .a }}b{{ end }}", "{{ .a | toYaml }}", "{{ toJson .a }}", "{{ .a", "{{- .a }}"] {
            assert_eq!(filled(other), None, "{other}");
        }
    }
}
