//! Reads the questions of an app from a template: the parameters for its inputs and secrets, their groups, and a secret
//! for each sensitive input.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::app_secrets;
use super::difference::finding;
use super::hole::Hole;
use super::secret_ids::{is_id, name_of_secret};
use crate::finding::Finding;
use crate::node::Node;

/// The pattern of a number that may be empty, as a quoted scalar.
const OPTIONAL_NUMBER: &str = r#""^([-+]?[0-9]*\\.?[0-9]+([eE][-+]?[0-9]+)?)?$""#;

/// The questions of an app, in the form that the renderer expects.
#[derive(Debug, Default)]
pub(super) struct Inputs {
    pub(super) groups: Vec<Value>,
    pub(super) parameters: Vec<Value>,
    pub(super) secrets: Vec<Value>,
    pub(super) app_secrets: Vec<Value>,
    /// The ids of the parameters that policies may refer to: those of inputs that are not sensitive.
    plain: Vec<String>,
    /// The defaults of those of these parameters that have a default.
    defaults: BTreeMap<String, String>,
}

impl Inputs {
    /// Returns the parameters of inputs that are not sensitive. The vendor sees their answers.
    pub(super) fn plain(&self) -> &[String] {
        &self.plain
    }

    /// Returns the default of a parameter that is not sensitive.
    pub(super) fn default_of(&self, name: &str) -> Option<&str> {
        self.defaults.get(name).map(String::as_str)
    }

    /// Returns the parameters whose answers are stored as secrets, without those that the stack generates.
    pub(super) fn secret_ids(&self) -> Vec<String> {
        let asked = self.app_secrets.iter().filter(|secret| secret.get("generated") != Some(&Value::Bool(true)));
        let ids = self.secrets.iter().chain(asked).filter_map(|secret| secret.get("id")?.as_str());
        ids.map(str::to_owned).collect()
    }

    /// Returns whether a policy may refer to this parameter.
    pub(super) fn is_plain(&self, name: &str) -> bool {
        self.plain.iter().any(|plain| plain == name)
    }
}

/// Reads the questions of a template. Reports a question that an app cannot ask.
pub(super) fn read(root: &Node, findings: &mut Vec<Finding>) -> Inputs {
    let mut inputs = Inputs { groups: groups(root), ..Inputs::default() };
    for (id, node) in root.get("Parameters").map(Node::entries).unwrap_or_default() {
        if !is_question(id) {
            continue;
        }
        let question = Question::of(node);
        if app_secrets::is_parameter(id) {
            findings.extend(app_secrets::wrong(root, id, node));
        } else if question.is_sensitive {
            match secret(root, id, question.default.is_some()) {
                Some(secret) => inputs.secrets.push(secret),
                None => {
                    findings.push(finding(
                        node.line,
                        id,
                        "no secret of this template stores the value of this \
                        parameter"
                            .to_owned(),
                    ));
                }
            }
        } else {
            inputs.plain.push(id.clone());
            inputs.defaults.extend(question.default.map(|default| (id.clone(), default.to_owned())));
        }
        let groups = inputs.groups.iter().filter(|group| asks(group, id)).count();
        if groups != 1 {
            findings.push(finding(
                node.line,
                id,
                format!(
                    "the parameter is in {groups} groups of parameters, and must be in \
                one"
                ),
            ));
        }
        inputs.parameters.push(question.rendered(id));
    }
    inputs.app_secrets = app_secrets::read(root);
    inputs
}

/// Returns whether a parameter is a question of the app.
fn is_question(id: &str) -> bool {
    is_input(id) || app_secrets::is_parameter(id)
}

fn is_input(id: &str) -> bool {
    is_id(id, "Input")
}

fn asks(group: &Value, id: &str) -> bool {
    group.get("parameters").and_then(Value::as_array).is_some_and(|all| all.iter().any(|one| one == id))
}

/// Returns the groups of parameters in which every parameter is a question of the app.
fn groups(root: &Node) -> Vec<Value> {
    let groups = root.at(&["Metadata", "AWS::CloudFormation::Interface", "ParameterGroups"]).map(Node::items);
    let of_inputs = groups.unwrap_or_default().iter().filter_map(|group| {
        let listed = group.get("Parameters")?.items();
        let ids: Vec<&str> = listed.iter().filter_map(Node::text).filter(|id| is_question(id)).collect();
        let is_of_inputs = !ids.is_empty() && ids.len() == listed.len();
        is_of_inputs.then(|| json!({ "label": Hole::Label.quoted(), "parameters": ids }))
    });
    of_inputs.collect()
}

/// The properties of a question that decide how its parameter is rendered.
struct Question<'t> {
    kind: QuestionKind,
    is_sensitive: bool,
    default: Option<&'t str>,
}

enum QuestionKind {
    Number,
    NumberOrEmpty,
    Bool,
    Text,
}

impl<'t> Question<'t> {
    fn of(node: &'t Node) -> Self {
        let is_number = node.get("Type").and_then(Node::text) == Some("Number");
        let kind = match (is_number, node.get("AllowedPattern"), node.get("AllowedValues")) {
            (true, _, _) => QuestionKind::Number,
            (false, Some(_), _) => QuestionKind::NumberOrEmpty,
            (false, None, Some(_)) => QuestionKind::Bool,
            (false, None, None) => QuestionKind::Text,
        };
        let default = node.get("Default").map(|default| default.text().unwrap_or_default());
        Self { kind, is_sensitive: node.get("NoEcho").is_some(), default }
    }

    /// Returns the parameter `id` for this question, in the form that the renderer expects.
    fn rendered(&self, id: &str) -> Value {
        let empty = "\"\"".to_owned();
        let default = self.default.map(|_| if self.is_sensitive { empty.clone() } else { Hole::Default.quoted() });
        let mut parameter = json!({
            "id": id,
            "label": Hole::Label.quoted(),
            "type": "String",
            "description": Hole::Line.quoted(),
            "sensitive": self.is_sensitive,
            "allowed_pattern": null,
            "allowed_values": [],
            "min_length": null,
            "default": default,
            "constraint": null,
        });
        let changes = match self.kind {
            QuestionKind::Number => json!({
                "type": "Number",
                "default": self.default.map(|_| Hole::DefaultNumber.quoted()),
                "constraint": "\"must be a number\"",
            }),
            QuestionKind::NumberOrEmpty => json!({
                "allowed_pattern": OPTIONAL_NUMBER,
                "default": self.default.map(|_| empty),
                "constraint": "\"must be a number, or empty\"",
            }),
            QuestionKind::Bool => {
                let words = match self.default {
                    Some("true" | "false") | None => vec!["\"true\"", "\"false\""],
                    Some(_) => vec!["\"true\"", "\"false\"", "\"\""],
                };
                let chosen = self.default.map(|default| match default {
                    "true" | "false" if !self.is_sensitive => format!("\"{default}\""),
                    _ => empty,
                });
                json!({ "allowed_values": words, "default": chosen, "constraint": "\"must be true or false\"" })
            }
            QuestionKind::Text if self.default.is_none() => {
                json!({ "min_length": 1, "constraint": "\"must not be empty\"" })
            }
            QuestionKind::Text => json!({}),
        };
        if let (Some(parameter), Value::Object(changes)) = (parameter.as_object_mut(), changes) {
            parameter.extend(changes);
        }
        parameter
    }
}

/// Returns the secret that stores the answer to a sensitive input, in the form that the renderer expects; `None` when
/// the template has no such secret.
fn secret(root: &Node, id: &str, is_optional: bool) -> Option<Value> {
    let name = name_of_secret(root, id, "Input")?;
    Some(json!({ "id": id, "name": name, "description": Hole::SecretDescription.quoted(), "optional": is_optional }))
}
