//! Fuzzes templates: parses them, collects their references, writes them, and renders them within limits.

use freehold_template::{Limits, Template, function_names};
use serde_json::{Value, json};

use crate::mutate::mutate;
use crate::seeds::{TEMPLATE_WORDS, TEMPLATES};
use crate::{Draw, Target};

const LIMITS: Limits = Limits { max_steps: 2_000, max_output_bytes: 16 * 1024 };

/// Broken templates over one tree.
#[derive(Debug)]
pub struct Templates {
    tree: Value,
    tokens: Vec<&'static str>,
}

impl Default for Templates {
    fn default() -> Self {
        let tokens = function_names().chain(TEMPLATE_WORDS.iter().copied()).collect();
        Self { tree: tree(), tokens }
    }
}

fn tree() -> Value {
    json!({ "nuon": {
        "install": { "id": "acme", "name": "Ä \"b\" <c>\n" },
        "inputs": { "inputs": { "a": "x", "n": 3, "f": -1.5e300, "on": true, "off": false, "none": null, "empty": "" } },
        "components": { "web-1": { "outputs": { "list": [1, "two", [3], { "k": null }], "big": 9_223_372_036_854_775_807u64 } } },
        "json": "{\"a\": [1, 2]}", "base64": "aGk=", "long": "ab,".repeat(300),
    }})
}

impl Target for Templates {
    type Input = String;

    fn input(&self, draw: &mut Draw) -> String {
        let mut text = draw.pick(TEMPLATES).as_bytes().to_vec();
        if draw.one_in(3) {
            text.extend_from_slice(draw.pick(TEMPLATES).as_bytes());
        }
        mutate(draw, &mut text, 4, &self.tokens, TEMPLATES);
        String::from_utf8_lossy(&text).into_owned()
    }

    fn feed(&self, text: &String) -> bool {
        let template = match Template::parse(text) {
            Ok(template) => template,
            Err(error) => {
                assert!(error.offset <= text.len() && error.line >= 1 && error.column >= 1, "{error:?}");
                return false;
            }
        };
        for found in template.uses() {
            assert!(!found.path.is_empty() && found.offset < text.len(), "{found:?}");
        }
        assert_eq!(Template::parse(&template.to_string()).as_ref(), Ok(&template), "{template}");
        match template.render(&self.tree, &LIMITS) {
            Ok(out) => {
                assert!(out.len() <= LIMITS.max_output_bytes);
                true
            }
            Err(error) => {
                assert!(error.offset <= text.len() && error.line >= 1 && error.column >= 1, "{error:?}");
                false
            }
        }
    }
}
