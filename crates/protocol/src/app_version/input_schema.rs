//! The JSON Schema of an app's inputs, for forms, editors and other programs.

use serde_json::{Map, Value, json};

use super::{Input, InputGroup, InputKind};

/// Returns the schema (JSON Schema 2020-12) of the final values of `inputs`. JSON Schema has no keywords for the type,
/// the group, the sensitivity and the source of an input: they are in `x-freehold-type`, `x-freehold-group`,
/// `x-freehold-sensitive` and `x-freehold-source`. The source is `customer` for an input that the customer answers in
/// the install stack, and `vendor` otherwise. An input that forms leave out has `x-freehold-internal`. The groups
/// are in `x-freehold-groups` of the schema itself, in the order in which forms show them.
pub fn inputs_schema(inputs: &[Input], groups: &[InputGroup]) -> Value {
    let properties: Map<String, Value> = inputs.iter().map(|input| (input.name.clone(), input.schema())).collect();
    let required: Vec<&str> = inputs
        .iter()
        .filter(|input| input.required && input.usable_default().is_none())
        .map(|input| input.name.as_str())
        .collect();
    let mut schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    });
    if let Some(object) = schema.as_object_mut().filter(|_| !groups.is_empty()) {
        object.insert("x-freehold-groups".into(), groups.iter().map(InputGroup::heading).collect());
    }
    schema.sort_all_objects();
    schema
}

impl InputGroup {
    /// Returns the name of the group, and its title and description if it has them.
    fn heading(&self) -> Value {
        let texts = [("title", &self.display_name), ("description", &self.description)];
        let texts = texts.into_iter().filter(|(_, text)| !text.is_empty());
        let all = [("name", &self.name)].into_iter().chain(texts);
        Value::Object(all.map(|(key, text)| (key.to_owned(), Value::from(text.as_str()))).collect())
    }
}

impl Input {
    /// Returns the schema of the input's value.
    pub fn schema(&self) -> Value {
        let mut schema = self.type_schema();
        for (key, text) in [("title", &self.display_name), ("description", &self.description)] {
            if !text.is_empty() {
                schema.insert(key.into(), text.as_str().into());
            }
        }
        // The schema omits a default that does not fit the type, and the default of a sensitive input.
        let default = self.usable_default().filter(|_| !self.sensitive).and_then(|default| self.accept(default).ok());
        schema.extend(default.map(|default| ("default".to_owned(), default)));
        schema.insert("x-freehold-type".into(), self.kind.as_str().into());
        schema.insert("x-freehold-source".into(), if self.customer { "customer" } else { "vendor" }.into());
        if !self.group.is_empty() {
            schema.insert("x-freehold-group".into(), self.group.as_str().into());
        }
        if self.internal {
            schema.insert("x-freehold-internal".into(), true.into());
        }
        if self.sensitive {
            schema.insert("x-freehold-sensitive".into(), true.into());
            schema.insert("writeOnly".into(), true.into());
        }
        Value::Object(schema)
    }

    fn type_schema(&self) -> Map<String, Value> {
        let text = |media_type: Option<&str>| {
            let mut schema = Map::from_iter([("type".to_owned(), Value::from("string"))]);
            schema.extend(media_type.map(|media_type| ("contentMediaType".to_owned(), media_type.into())));
            if self.required {
                schema.insert("minLength".into(), 1.into());
            }
            schema
        };
        // The value of an optional input may be an empty text, also when its type is not text.
        let scalar = |word: &str| {
            let schema = json!({ "type": word });
            let key_and_value = if self.required {
                ("type".to_owned(), Value::from(word))
            } else {
                ("anyOf".to_owned(), json!([schema, { "const": "" }]))
            };
            Map::from_iter([key_and_value])
        };
        match self.kind {
            InputKind::String => text(None),
            // RFC 9512, "YAML Media Type". HCL has no registered media type.
            InputKind::Yaml => text(Some("application/yaml")),
            InputKind::Hcl => text(Some("application/hcl")),
            InputKind::Number => scalar("number"),
            InputKind::Bool => scalar("boolean"),
            InputKind::List => Map::from_iter([("type".to_owned(), Value::from("array"))]),
            InputKind::Json => Map::new(),
        }
    }
}
