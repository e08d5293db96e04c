//! Parses inputs and stack parameters from arguments.

use std::collections::BTreeMap;
use std::str::FromStr;

use serde_json::Value;

use crate::error::{Error, Result};

/// One input: `name=text`, `name:=JSON` or `name=@FILE`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Input {
    name: String,
    value: Value,
}

impl FromStr for Input {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, value) =
            text.split_once('=').ok_or("expected `name=text`, `name:=JSON` or `name=@FILE`, such as `replicas:=3`")?;
        let (name, value) = match (name.strip_suffix(':'), value.strip_prefix('@')) {
            (Some(name), _) => {
                let value = serde_json::from_str(value)
                    .map_err(|e| format!("the text after `:=` is not JSON ({e}); write `{name}={value}` for text"))?;
                (name, value)
            }
            (None, Some(path)) => {
                let text = std::fs::read_to_string(path).map_err(|e| format!("cannot read `{path}`: {e}"))?;
                (name, Value::String(text))
            }
            (None, None) => (name, Value::String(value.to_owned())),
        };
        if name.is_empty() {
            return Err("the name before the `=` is missing; write `name=value`".to_owned());
        }
        Ok(Self { name: name.to_owned(), value })
    }
}

/// Returns all inputs by name. Two values for the same name are an error.
pub(crate) fn by_name(inputs: &[Input]) -> Result<BTreeMap<String, Value>> {
    let mut all = BTreeMap::new();
    for input in inputs {
        if all.insert(input.name.clone(), input.value.clone()).is_some() {
            return Err(Error::invalid(format!("input `{}` is given twice; give it once", input.name)));
        }
    }
    Ok(all)
}

/// One stack parameter: `Name=value`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Parameter {
    pub(crate) name: String,
    pub(crate) value: String,
}

impl FromStr for Parameter {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once('=') {
            Some((name, value)) if !name.is_empty() => Ok(Self { name: name.to_owned(), value: value.to_owned() }),
            _ => Err("expected `Name=value`, such as `EnableDeprovision=true`".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn value(text: &str) -> Value {
        text.parse::<Input>().unwrap().value
    }

    #[test]
    fn an_input_is_text_unless_it_says_json() {
        assert_eq!(value("replicas=3"), json!("3"));
        assert_eq!(value("replicas:=3"), json!(3));
        assert_eq!(value("zones:=[\"a\",\"b\"]"), json!(["a", "b"]));
        assert_eq!(value("query=a=b"), json!("a=b"));
        assert_eq!(value("empty="), json!(""));
    }

    #[test]
    fn an_input_is_read_from_a_file() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "line 1\nline 2\n").unwrap();

        assert_eq!(value(&format!("script=@{}", file.path().display())), json!("line 1\nline 2\n"));
    }

    #[test]
    fn broken_inputs_say_what_was_expected() {
        let problem = |text: &str| text.parse::<Input>().unwrap_err();

        assert!(problem("replicas").contains("`replicas:=3`"));
        assert!(problem("replicas:=three").contains("`replicas=three`"));
        assert!(problem("=3").contains("name before"));
        assert!(problem("x=@/nowhere/at/all").contains("cannot read"));
    }

    #[test]
    fn one_name_has_one_value() {
        let inputs = ["a=1".parse().unwrap(), "a=2".parse().unwrap()];

        assert_eq!(by_name(&inputs).unwrap_err().to_string(), "input `a` is given twice; give it once");
    }
}
