//! The policies of a role as an install stack has them: a vendor's templates with the values of one install. An input
//! that the customer answers in the stack stays a reference to its parameter, which CloudFormation fills in.

use std::collections::BTreeMap;

use freehold_protocol::app_version::RolePolicy;
use freehold_protocol::{AccountId, AppName, InstallId, Partition, TenantName, names};
use freehold_template::Limits;
use serde_json::{Map, Value, json};

use crate::boundary::{self, Own};
use crate::policy_text::{self, Unparsed};

/// Placeholders for the `${` and `}` of a reference while a policy is rendered. Ordinary text does not contain these
/// characters, because they are in a private use area of Unicode.
const OPENS: char = '\u{f001}';
const CLOSES: char = '\u{f002}';

/// The number of characters that the inline policies of a role may have together (IAM and STS quotas).
const MOST_OF_A_ROLE: usize = 10_240;

/// The policies of one role in one install's stack.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct InStack {
    /// The inline policies, each with `PolicyName` and `PolicyDocument`.
    pub inline: Vec<Value>,
    /// The ARNs of managed policies of AWS, each once: CloudFormation refuses a role that lists one twice.
    pub managed: Vec<String>,
}

/// The install whose stack contains the policies.
#[derive(Debug, Clone, Copy)]
pub struct RolePlace<'a> {
    pub tenant: &'a TenantName,
    pub app: &'a AppName,
    pub install: &'a InstallId,
    pub account: &'a AccountId,
    pub region: &'a str,
}

/// The answers to the app's inputs that the templates of policies read.
#[derive(Debug, Clone, Default)]
pub struct Answers {
    values: BTreeMap<String, Value>,
    /// The parameters of the stack to which a policy refers.
    parameters: Vec<String>,
    /// The sensitive inputs. No policy can read them.
    sensitive: Vec<String>,
}

/// A value of a policy that the install stack must not have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The keys and the indices that lead to the value in the document.
    pub path: Vec<String>,
    pub reason: String,
}

impl Answers {
    /// Adds an input whose value is known.
    pub fn known(&mut self, name: &str, value: Value) {
        self.values.insert(name.to_owned(), value);
    }

    /// Adds an input that the customer answers in this parameter of the stack.
    pub fn asked(&mut self, name: &str, parameter: &str) {
        self.values.insert(name.to_owned(), Value::from(format!("{OPENS}{parameter}{CLOSES}")));
        self.parameters.push(parameter.to_owned());
    }

    /// Adds a sensitive input, which has no value in a policy.
    pub fn sensitive(&mut self, name: &str) {
        self.sensitive.push(name.to_owned());
    }
}

impl InStack {
    /// Returns the policies of a role as the stack of `place` has them. `boundary` is the boundary in the vendor's
    /// config.
    ///
    /// # Errors
    /// A sentence about the mistake in a policy, or in the boundary.
    pub fn of(
        policies: &[RolePolicy],
        boundary: Option<&str>,
        place: RolePlace<'_>,
        answers: &Answers,
    ) -> Result<Self, String> {
        let mut found = Self::default();
        let mut names: BTreeMap<String, &str> = BTreeMap::new();
        // A policy of this name would be mistaken for the boundary.
        names.insert(boundary::POLICY_NAME.to_owned(), "permissions_boundary");
        if let Some(boundary) = boundary {
            let denials = place.denials(boundary, answers);
            let denials = denials.map_err(|reason| format!("the permissions boundary: {reason}"))?;
            found.inline.extend(denials);
        }
        for (at, policy) in policies.iter().enumerate() {
            match policy {
                RolePolicy::Managed(name) => {
                    let partition = Partition::of_region(place.region).name;
                    let arn = format!("arn:{partition}:iam::aws:policy/{name}");
                    if !found.managed.contains(&arn) {
                        found.managed.push(arn);
                    }
                }
                RolePolicy::Inline { name, document } => {
                    let cleaned = policy_name(name, at);
                    if let Some(other) = names.insert(cleaned.clone(), name) {
                        return Err(format!(
                            "policies `{other}` and `{name}` are both `{cleaned}` in AWS, so only one of them would take \
                             effect; rename one of them"
                        ));
                    }
                    let document = place.document(document, answers);
                    let document = document.map_err(|reason| format!("policy `{name}`: {reason}"))?;
                    found.inline.push(json!({ "PolicyName": cleaned, "PolicyDocument": document }));
                }
                RolePolicy::GcpPredefined(role) => {
                    return Err(format!(
                        "role `{role}` of Google Cloud cannot be in a stack of CloudFormation; remove it from the \
                         policies of the role"
                    ));
                }
            }
        }
        found.check_length()?;
        Ok(found)
    }

    /// Refuses policies that are longer together than IAM permits for one role.
    fn check_length(&self) -> Result<(), String> {
        let length: usize = self.inline.iter().map(|policy| policy.get("PolicyDocument").map_or(0, length)).sum();
        if length > MOST_OF_A_ROLE {
            return Err(format!(
                "the policies of the role have {length} characters with its boundary, and IAM permits at most \
                 {MOST_OF_A_ROLE}; name fewer actions, or use policies that AWS manages"
            ));
        }
        Ok(())
    }
}

/// Returns the number of characters that IAM counts: those of the document without white space.
fn length(document: &Value) -> usize {
    document.to_string().chars().filter(|letter| !letter.is_whitespace()).count()
}

impl RolePlace<'_> {
    /// Returns the outputs of the install stack that are known before the stack is launched.
    pub fn stack_outputs(&self) -> Value {
        let boundary = names::install_part(self.tenant, self.install, "boundary");
        let partition = Partition::of_region(self.region).name;
        json!({
            "account_id": self.account,
            "region": self.region,
            "boundary_arn": format!("arn:{partition}:iam::{}:policy/{boundary}", self.account),
            "prefix": names::app_prefix(self.tenant, self.install),
            "role_path": names::app_path(self.tenant, self.install),
        })
    }

    /// Returns the AWS account and the region of the install.
    pub fn cloud_account(&self) -> Value {
        json!({ "aws": { "account_id": self.account, "region": self.region } })
    }

    /// Returns the values in a policy document that are refused in an install stack with any answers to the app's inputs.
    /// Returns none for a document with an unclear structure, and for a text that is not JSON and cannot be rendered. A
    /// string that cannot be rendered is returned only if it reads a sensitive input.
    pub fn refusals(&self, text: &str, answers: &Answers) -> Vec<Refusal> {
        let tree = self.tree(answers);
        let (document, mut found) = match policy_text::parse(text) {
            Ok(mut document) => {
                let mut unread = Vec::new();
                render_or_clear(&mut document, &tree, answers, &mut Vec::new(), &mut unread);
                (document, unread)
            }
            Err(Unparsed::Unclear(_)) => return Vec::new(),
            Err(Unparsed::NotJson) => {
                let rendered = freehold_template::render(text, &tree, &Limits::default()).ok();
                let document = rendered.and_then(|text| policy_text::without_repeated_keys(&text).ok());
                (document.unwrap_or_default(), Vec::new())
            }
        };
        found.extend(refused(&document, answers));
        found
    }

    fn tree(&self, answers: &Answers) -> Value {
        let inputs = &answers.values;
        json!({ "nuon": {
            "org": { "id": self.tenant, "name": self.tenant },
            "app": { "id": self.app, "name": self.app },
            "install": { "id": self.install, "name": self.install, "inputs": inputs },
            "inputs": { "inputs": inputs },
            "install_stack": { "outputs": self.stack_outputs() },
            "cloud_account": self.cloud_account(),
        } })
    }

    fn document(&self, text: &str, answers: &Answers) -> Result<Value, String> {
        in_stack(self.rendered(text, answers)?, answers)
    }

    /// Returns the inline policy that denies what a boundary of the vendor does not allow; `None` if it allows everything.
    fn denials(&self, text: &str, answers: &Answers) -> Result<Option<Value>, String> {
        let own = Own::of(self.tenant, self.install, self.account, self.region);
        let statements = boundary::denials(&self.rendered(text, answers)?, &own)?;
        if statements.is_empty() {
            return Ok(None);
        }
        let document = in_stack(json!({ "Version": "2012-10-17", "Statement": statements }), answers)?;
        Ok(Some(json!({ "PolicyName": boundary::POLICY_NAME, "PolicyDocument": document })))
    }

    /// Returns a policy document with the values of the install in the places of its templates.
    fn rendered(&self, text: &str, answers: &Answers) -> Result<Value, String> {
        let tree = self.tree(answers);
        match policy_text::parse(text) {
            Ok(document) => render_each(&document, &tree),
            Err(Unparsed::Unclear(reason)) => Err(reason),
            // The contract shows such a policy as a text that nobody can compare.
            Err(Unparsed::NotJson) => {
                let rendered = freehold_template::render(text, &tree, &Limits::default()).map_err(|e| e.explain())?;
                policy_text::without_repeated_keys(&rendered)
                    .map_err(|e| format!("the policy is not JSON after its templates are rendered: {e}"))
            }
        }
    }
}

/// Returns a rendered document as a stack contains it.
fn in_stack(document: Value, answers: &Answers) -> Result<Value, String> {
    if let Some(first) = refused(&document, answers).into_iter().next() {
        return Err(first.reason);
    }
    referring(document, answers)
}

/// Renders each string of a policy separately, so that no string can add a key or a statement.
fn render_each(document: &Value, tree: &Value) -> Result<Value, String> {
    let Limits { max_steps, max_output_bytes } = Limits::default();
    let templates = policy_text::texts_in(document).iter().filter(|text| text.contains("{{")).count().max(1);
    let limits = Limits {
        max_steps: max_steps / u64::try_from(templates).unwrap_or(u64::MAX),
        max_output_bytes: max_output_bytes / templates,
    };
    freehold_template::render_value(document, tree, &limits).map_err(|error| error.explain())
}

/// Renders each string of a document. A string that cannot be rendered becomes empty; if a sensitive input is the
/// cause, a refusal is added to `unread`.
fn render_or_clear(
    value: &mut Value,
    tree: &Value,
    answers: &Answers,
    path: &mut Vec<String>,
    unread: &mut Vec<Refusal>,
) {
    match value {
        Value::String(text) if text.contains("{{") => {
            let Err(_) = freehold_template::render(text, tree, &Limits::default()).map(|rendered| *text = rendered)
            else {
                return;
            };
            let read = policy_text::inputs_read(text);
            if let Some(name) = answers.sensitive.iter().find(|name| read.contains(*name)) {
                let reason = format!(
                    "input `{name}` is sensitive, and a policy can be read by many people; use an input that is not sensitive"
                );
                unread.push(Refusal { path: path.clone(), reason });
            }
            text.clear();
        }
        Value::Array(items) => items.iter_mut().enumerate().for_each(|(at, item)| {
            path.push(at.to_string());
            render_or_clear(item, tree, answers, path, unread);
            let _ = path.pop();
        }),
        Value::Object(entries) => entries.iter_mut().for_each(|(key, value)| {
            path.push(key.clone());
            render_or_clear(value, tree, answers, path, unread);
            let _ = path.pop();
        }),
        Value::String(_) | Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Returns the texts that would mean something else in the stack: dynamic references of CloudFormation, and answers of
/// the customer at a place where an answer can give the vendor more than the contract shows.
fn refused(document: &Value, answers: &Answers) -> Vec<Refusal> {
    let mut found = Vec::new();
    each_text(document, &mut Vec::new(), &mut |path, text| {
        found.extend(refused_text(text, answers).map(|reason| Refusal { path: path.to_vec(), reason }));
    });
    let statements: Vec<(Vec<String>, &Value)> = match document.get("Statement") {
        Some(Value::Array(all)) => {
            let at = |at: usize| vec!["Statement".to_owned(), at.to_string()];
            all.iter().enumerate().map(|(nth, one)| (at(nth), one)).collect()
        }
        Some(one) => vec![(vec!["Statement".to_owned()], one)],
        None => Vec::new(),
    };
    for (path, statement) in statements {
        if statement.get("Effect").and_then(Value::as_str) == Some("Deny") {
            each_text(statement, &mut path.clone(), &mut |path, text| {
                let reason = "a `Deny` statement contains an input that the customer answers, and another answer could \
                              make it deny less; write the value, or let the vendor answer the input";
                found.extend(has_answer(text).then(|| Refusal { path: path.to_vec(), reason: reason.to_owned() }));
            });
        }
        for key in ["Action", "NotAction", "NotResource"] {
            let Some(value) = statement.get(key) else { continue };
            each_text(value, &mut [path.as_slice(), &[key.to_owned()]].concat(), &mut |path, text| {
                let reason = format!(
                    "`{key}` of a policy contains an input that the customer answers; write the value, or let the vendor \
                     answer the input"
                );
                found.extend(has_answer(text).then(|| Refusal { path: path.to_vec(), reason }));
            });
        }
    }
    found
}

/// Calls `look` with each string and each key of a document, and the path of the value.
fn each_text(value: &Value, path: &mut Vec<String>, look: &mut dyn FnMut(&[String], &str)) {
    match value {
        Value::String(text) => look(path, text),
        Value::Array(items) => items.iter().enumerate().for_each(|(at, item)| {
            path.push(at.to_string());
            each_text(item, path, look);
            let _ = path.pop();
        }),
        Value::Object(entries) => entries.iter().for_each(|(key, value)| {
            path.push(key.clone());
            look(path, key);
            each_text(value, path, look);
            let _ = path.pop();
        }),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn refused_text(text: &str, answers: &Answers) -> Option<String> {
    if text.contains("{{") {
        return Some(format!(
            "the text `{}` contains `{{{{`, which CloudFormation can replace; remove it",
            shown(text)
        ));
    }
    let beside =
        ['*', '?'].iter().any(|c| text.contains(&format!("{c}{OPENS}")) || text.contains(&format!("{CLOSES}{c}")));
    if beside {
        return Some(format!(
            "in `{}`, a wildcard is directly next to an input that the customer answers, so an empty answer matches \
             everything; write a character between them, such as `-`",
            shown(text)
        ));
    }
    referring(Value::from(text), answers).err()
}

fn has_answer(text: &str) -> bool {
    text.contains([OPENS, CLOSES])
}

/// Returns a rendered text with the customer's answers as `${Parameter}`, for a message.
fn shown(text: &str) -> String {
    text.replace(OPENS, "${").replace(CLOSES, "}")
}

/// Writes every text that contains a reference as a `Fn::Sub` of CloudFormation. IAM's own variables in such a text are
/// escaped and stay unchanged.
fn referring(value: Value, answers: &Answers) -> Result<Value, String> {
    match value {
        Value::String(text) if text.contains([OPENS, CLOSES]) => {
            let known = |name: &str| answers.parameters.iter().any(|parameter| parameter == name);
            let mut pieces = text.split(OPENS);
            let mut sub = pieces.next().unwrap_or_default().replace("${", "${!");
            for piece in pieces {
                let (name, rest) =
                    piece.split_once(CLOSES).filter(|(name, rest)| known(name) && !rest.contains(CLOSES)).ok_or(
                        "the template changes an input that the customer answers; use the input unchanged, or let \
                     the vendor answer it",
                    )?;
                sub.push_str(&format!("${{{name}}}"));
                sub.push_str(&rest.replace("${", "${!"));
            }
            Ok(json!({ "Fn::Sub": sub }))
        }
        Value::Array(items) => {
            let items = items.into_iter().map(|item| referring(item, answers));
            items.collect::<Result<_, _>>().map(Value::Array)
        }
        Value::Object(entries) => {
            let mut all = Map::new();
            for (key, value) in entries {
                if key.contains([OPENS, CLOSES]) {
                    return Err(
                        "an input that the customer answers is a key of the policy; use it in values of the policy only"
                            .to_owned(),
                    );
                }
                all.insert(key, referring(value, answers)?);
            }
            Ok(Value::Object(all))
        }
        other => Ok(other),
    }
}

fn policy_name(name: &str, at: usize) -> String {
    let kept: String = name.chars().filter(|c| c.is_ascii_alphanumeric() || "+=,.@_-".contains(*c)).take(100).collect();
    if kept.is_empty() { format!("policy-{at}") } else { kept }
}

#[cfg(test)]
mod tests;
