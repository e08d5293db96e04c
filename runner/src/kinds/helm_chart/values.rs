//! Writes the values of a release into files: first the values files in order, then the single values. The paths of
//! single values have the syntax of `helm --set`.

use freehold_protocol::order::InstallChart;
use serde_json::{Map, Value};

use crate::job::Job;
use crate::job::failure::Failure;
use crate::kinds::templates::Templates;
use crate::kubernetes::documents;
use crate::workspace::{self, Kind};

/// The maximum number of names in the path of a value. Each name is a level of the values, and a deep value is written
/// level by level.
const MOST_NAMES: usize = 64;

/// Writes all values into the workspace and returns Helm's options for these files, in order. No value is in an
/// argument, because every user of the machine can read arguments.
pub(super) async fn write(job: &Job, work: &InstallChart, templates: &Templates) -> Result<Vec<String>, Failure> {
    let mut options = Vec::new();
    for (index, text) in work.values_files.iter().enumerate() {
        let text = templates.text(&format!("values file {}", index + 1), text)?;
        check(&text)
            .map_err(|why| Failure::new(format!("component `{}`, values file {}: {why}", work.component, index + 1)))?;
        options.push(put(job, &format!("values-{index:02}.yaml"), text).await?);
    }
    let mut values = Map::new();
    for (path, value) in &work.values {
        let value = templates.value(&format!("value `{path}`"), value)?;
        set(&mut values, path, typed(value))
            .map_err(|why| Failure::new(format!("component `{}`, value `{path}`: {why}", work.component)))?;
    }
    if !values.is_empty() {
        // JSON is also valid YAML.
        options.push(put(job, "values.json", Value::Object(values).to_string()).await?);
    }
    Ok(options)
}

async fn put(job: &Job, name: &str, text: String) -> Result<String, Failure> {
    workspace::write(&job.workspace, name, text, Kind::Document).await?;
    Ok(format!("--values={name}"))
}

/// Checks that a values file is empty or one map.
fn check(text: &str) -> Result<(), String> {
    let documents = documents(text).map_err(|why| format!("it is not YAML: {why}"))?;
    match documents.as_slice() {
        [] | [Value::Null | Value::Object(_)] => Ok(()),
        [_] => Err("it is not a map of values".to_owned()),
        _ => Err("it has more than one document".to_owned()),
    }
}

/// Sets the value at a path such as `image.tag`. In a path, `\.` is a dot that belongs to a name.
fn set(map: &mut Map<String, Value>, path: &str, value: Value) -> Result<(), String> {
    let names = names(path);
    if names.iter().any(String::is_empty) {
        return Err("a name in the path is empty".to_owned());
    }
    if names.iter().any(|name| name.contains(['[', ']'])) {
        return Err("one element of a list cannot be set; write the whole list into a values file".to_owned());
    }
    if names.len() > MOST_NAMES {
        return Err(format!("the path has {} names; the limit is {MOST_NAMES}", names.len()));
    }
    let Some((last, above)) = names.split_last() else { return Ok(()) };
    let mut at = map;
    for name in above {
        let next = at.entry(name.clone()).or_insert_with(|| Value::Object(Map::new()));
        at = next
            .as_object_mut()
            .ok_or_else(|| format!("`{name}` has a value already, so nothing can be set below it"))?;
    }
    at.insert(last.clone(), value);
    Ok(())
}

fn names(path: &str) -> Vec<String> {
    let mut names = vec![String::new()];
    let mut characters = path.chars();
    while let Some(character) = characters.next() {
        let last = names.last_mut();
        match (character, last) {
            ('\\', Some(last)) => last.extend(characters.next()),
            ('.', _) => names.push(String::new()),
            (other, Some(last)) => last.push(other),
            (_, None) => {}
        }
    }
    names
}

/// Converts a text by the rules of `helm --set` (Helm 3, `strvals`): the text of a boolean, of null or of an integer
/// becomes that value.
fn typed(value: Value) -> Value {
    let Value::String(text) = value else { return value };
    match text.to_ascii_lowercase().as_str() {
        "true" => Value::Bool(true),
        "false" => Value::Bool(false),
        "null" => Value::Null,
        "0" => Value::from(0),
        // A number with a leading zero stays a text.
        _ if text.starts_with('0') => Value::String(text),
        _ => text.parse::<i64>().map_or(Value::String(text), Value::from),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_are_set_by_path_with_the_types_of_helm() {
        let mut map = Map::new();

        for (path, value) in [
            ("image.tag", "1.20"),
            ("image.pull", "true"),
            ("port", "443"),
            ("code", "007"),
            ("annotations.example\\.com/a", "x"),
            ("none", "null"),
        ] {
            set(&mut map, path, typed(json!(value))).unwrap();
        }

        assert_eq!(
            Value::Object(map),
            json!({ "image": { "tag": "1.20", "pull": true }, "port": 443, "code": "007",
                "annotations": { "example.com/a": "x" }, "none": null })
        );
    }

    #[test]
    fn paths_that_cannot_be_set_are_refused() {
        let mut map = json!({ "a": 1 }).as_object().unwrap().clone();

        assert!(set(&mut map, "a.b", json!(1)).unwrap_err().contains("`a` has a value already"));
        assert!(set(&mut map, "list[0]", json!(1)).unwrap_err().contains("values file"));
        assert!(set(&mut map, "a..b", json!(1)).unwrap_err().contains("empty"));
    }

    /// A value of 100,000 levels would end the runner: whoever writes or drops it does so level by level.
    #[test]
    fn a_path_that_is_too_deep_is_refused() {
        let path = vec!["x"; 100_000].join(".");

        let refused = set(&mut Map::new(), &path, json!(1));

        assert_eq!(refused, Err("the path has 100000 names; the limit is 64".to_owned()));
    }

    #[test]
    fn a_values_file_is_one_map() {
        assert_eq!(check("a: 1\n"), Ok(()));
        assert_eq!(check("# nothing\n"), Ok(()));
        assert!(check("- a\n").unwrap_err().contains("not a map"));
        assert!(check("a: [\n").unwrap_err().starts_with("it is not YAML: line "));
        assert!(check("a: 1\n---\nb: 1\n").unwrap_err().contains("more than one"));
    }
}
