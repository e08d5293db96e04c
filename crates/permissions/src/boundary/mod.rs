//! The permissions boundary that a vendor's config gives to a role, as statements that deny what it does not allow.
//!
//! IAM takes one boundary for each role, and that place belongs to the boundary of the install. So the role gets an inline
//! policy with these statements. They only take permissions away: whatever they say, the role can do no more than
//! without them.

use std::collections::BTreeSet;

use freehold_protocol::{AccountId, InstallId, TenantName, names};
use serde_json::{Map, Value, json};

use crate::pattern::{Pattern, has_variable};
use crate::statements;

/// The name of the inline policy with the statements.
pub(crate) const POLICY_NAME: &str = "freehold-boundary";

/// The actions on the install's own bucket, repository and key that the install stack allows to every role, and without
/// which no job can run: the policy `base` of the stack.
const ON_OWN_BUCKET: [&str; 4] = ["s3:GetObject", "s3:PutObject", "s3:DeleteObject", "s3:ListBucket"];
const ON_OWN_REPOSITORY: [&str; 3] =
    ["ecr:BatchCheckLayerAvailability", "ecr:BatchGetImage", "ecr:GetDownloadUrlForLayer"];
const ON_OWN_KEY: [&str; 3] = ["kms:Decrypt", "kms:GenerateDataKey", "kms:DescribeKey"];

/// The actions that the same policy allows on every resource, because IAM or their use permits no narrower statement.
const ON_ALL: [&str; 9] = [
    "cloudformation:DescribeAccountLimits",
    "ecr:GetAuthorizationToken",
    "eks:DescribeCluster",
    "eks:ListClusters",
    "iam:GetAccountSummary",
    "iam:ListOpenIDConnectProviders",
    "iam:ListRoles",
    "iam:SimulatePrincipalPolicy",
    "tag:GetResources",
];

/// The elements of a statement (IAM JSON policy elements).
const ELEMENTS: [&str; 5] = ["Action", "Condition", "Effect", "Resource", "Sid"];

/// Condition operators and those that match exactly when they do not, also when the request has no such key.
const OPPOSITES: [(&str, &str); 15] = [
    ("StringEquals", "StringNotEquals"),
    ("StringEqualsIgnoreCase", "StringNotEqualsIgnoreCase"),
    ("StringLike", "StringNotLike"),
    ("StringNotEquals", "StringEquals"),
    ("StringNotEqualsIgnoreCase", "StringEqualsIgnoreCase"),
    ("StringNotLike", "StringLike"),
    ("ArnEquals", "ArnNotEquals"),
    ("ArnLike", "ArnNotLike"),
    ("ArnNotEquals", "ArnEquals"),
    ("ArnNotLike", "ArnLike"),
    ("IpAddress", "NotIpAddress"),
    ("NotIpAddress", "IpAddress"),
    ("DateLessThan", "DateGreaterThanEqualsIfExists"),
    ("DateGreaterThan", "DateLessThanEqualsIfExists"),
    ("DateGreaterThanEquals", "DateLessThanIfExists"),
];

/// The resources of an install that every role of it uses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Own {
    install: String,
    /// Patterns of the ARNs of the bucket and of its objects.
    bucket: [String; 2],
    repository: String,
    /// A pattern of the ARNs of keys: the ARN of the install's key is not known before the stack is launched.
    keys: String,
}

impl Own {
    pub(crate) fn of(tenant: &TenantName, install: &InstallId, account: &AccountId) -> Self {
        let bucket = names::install_bucket(tenant, install, account);
        let repository = names::install_registry(tenant, install);
        Self {
            install: install.to_string(),
            bucket: [format!("arn:*:s3:::{bucket}"), format!("arn:*:s3:::{bucket}/*")],
            repository: format!("arn:*:ecr:*:{account}:repository/{repository}"),
            keys: format!("arn:*:kms:*:{account}:key/*"),
        }
    }

    /// Returns the install's own resources on which a role needs one of `actions`.
    fn needed_by(&self, actions: &[String]) -> Vec<String> {
        let needs = |own: &[&str]| own.iter().any(|one| actions.iter().any(|action| meet(action, one)));
        let mut found = Vec::new();
        if needs(&ON_OWN_BUCKET) {
            found.extend(self.bucket.clone());
        }
        if needs(&ON_OWN_REPOSITORY) {
            found.push(self.repository.clone());
        }
        if needs(&ON_OWN_KEY) {
            found.push(self.keys.clone());
        }
        found
    }
}

/// An `Allow` statement of a boundary.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Allowed {
    actions: Vec<String>,
    /// The patterns of its resources; `None` for all.
    resources: Option<Vec<String>>,
    condition: Map<String, Value>,
}

impl Allowed {
    /// Returns whether the statement allows its actions always and on every resource.
    fn is_whole(&self) -> bool {
        self.resources.is_none() && self.condition.is_empty()
    }
}

/// Returns statements that deny everything that `boundary` does not allow, but what every role of the install needs.
/// Returns none for a boundary that allows everything.
///
/// # Errors
/// A sentence about a statement whose opposite cannot be written exactly.
pub(crate) fn denials(boundary: &Value, own: &Own) -> Result<Vec<Value>, String> {
    let mut found = Vec::new();
    let mut allowed: Vec<Allowed> = Vec::new();
    let statements = statements(boundary)?;
    let is_only = statements.iter().filter(|one| one.get("Effect") == Some(&json!("Allow"))).count() == 1;
    for (nth, statement) in statements.into_iter().enumerate() {
        let of_this = |reason: String| format!("statement {}: {reason}", nth + 1);
        match statement.get("Effect").and_then(Value::as_str) {
            Some("Deny") => found.push(denied(statement, own).map_err(of_this)?),
            Some("Allow") if statement.contains_key("NotAction") => {
                found.push(all_but(statement, is_only, own).map_err(of_this)?);
                add(&mut allowed, Allowed { actions: vec!["*".to_owned()], resources: None, condition: Map::new() });
            }
            Some("Allow") => add(&mut allowed, self::allowed(statement).map_err(of_this)?),
            _ => return Err(of_this("its `Effect` is neither `Allow` nor `Deny`".to_owned())),
        }
    }
    let (whole, limited): (Vec<_>, Vec<_>) = allowed.iter().partition(|one| one.is_whole());
    let whole: Vec<String> = whole.into_iter().flat_map(|one| one.actions.clone()).collect();
    let all: Vec<String> = allowed.iter().flat_map(|one| one.actions.clone()).collect();
    found.extend(outside(&all, own));
    let mut before: Vec<String> = Vec::new();
    for one in limited {
        let actions: Vec<String> =
            one.actions.iter().filter(|action| !whole.iter().any(|all| covers(all, action))).cloned().collect();
        for action in &actions {
            if let Some(other) = whole.iter().chain(&before).find(|other| meet(other, action)) {
                return Err(format!(
                    "`{action}` is allowed within limits, and another statement allows `{other}`, which is a part of it or \
                     meets it; name actions so that each is in one statement"
                ));
            }
            if let Some(needed) = ON_ALL.iter().find(|needed| action != "*" && meet(action, needed)) {
                return Err(format!(
                    "`{action}` is allowed within limits, and every job needs `{needed}`, which it contains; name the \
                     actions that the limits are for"
                ));
            }
        }
        if !actions.is_empty() {
            found.extend(beyond(&actions, one, own)?);
        }
        before.extend(actions);
    }
    Ok(found)
}

/// Returns the statements of a document.
fn statements(document: &Value) -> Result<Vec<&Map<String, Value>>, String> {
    let all = match document.get("Statement") {
        Some(Value::Array(all)) => all.iter().collect(),
        Some(one) => vec![one],
        None => return Err("it has no `Statement`".to_owned()),
    };
    all.into_iter().map(|one| one.as_object().ok_or_else(|| "a statement is not an object".to_owned())).collect()
}

fn allowed(statement: &Map<String, Value>) -> Result<Allowed, String> {
    if let Some(other) = statement.keys().find(|key| !ELEMENTS.contains(&key.as_str())) {
        return Err(format!("`{other}` cannot be turned into what it does not allow; write `Action` and `Resource`"));
    }
    let resources = texts(statement, "Resource")?;
    if let Some(text) = resources.iter().find(|text| has_variable(text)) {
        return Err(format!("resource `{text}` contains a variable of IAM; write the text that it stands for"));
    }
    let condition = match statement.get("Condition") {
        None => Map::new(),
        Some(Value::Object(condition)) => condition.clone(),
        Some(_) => return Err("its `Condition` is not an object".to_owned()),
    };
    let resources = (!resources.iter().any(|resource| resource == "*")).then_some(resources);
    Ok(Allowed { actions: texts(statement, "Action")?, resources, condition })
}

/// Adds a statement. Statements with the same limits become one.
fn add(all: &mut Vec<Allowed>, new: Allowed) {
    match all.iter_mut().find(|one| one.resources == new.resources && one.condition == new.condition) {
        Some(same) => same.actions.extend(new.actions),
        None => all.push(new),
    }
}

/// Returns the denial of what the only `Allow` statement of a boundary leaves out by `NotAction`.
fn all_but(statement: &Map<String, Value>, is_only: bool, own: &Own) -> Result<Value, String> {
    let is_whole = texts(statement, "Resource")?.iter().any(|resource| resource == "*");
    if !is_only || !is_whole || statement.contains_key("Condition") || statement.contains_key("Action") {
        return Err(
            "`NotAction` with `Allow` can be kept only in a statement for all resources, without a condition, and \
                    without other `Allow` statements beside it; write `Action`"
                .to_owned(),
        );
    }
    let mut denial = statement.clone();
    let _ = denial.insert("Effect".to_owned(), json!("Deny"));
    if let Some(actions) = denial.remove("NotAction") {
        let _ = denial.insert("Action".to_owned(), actions);
    }
    denied(&denial, own)
}

/// Returns a `Deny` statement as it is. If it is about every resource, what every role needs stays.
fn denied(statement: &Map<String, Value>, own: &Own) -> Result<Value, String> {
    let mut denial = statement.clone();
    let _ = denial.remove("Sid");
    let is_for_all = statement.contains_key("Resource") && texts(statement, "Resource")?.iter().any(|text| text == "*");
    if !is_for_all {
        return Ok(Value::Object(denial));
    }
    let needed = if statement.contains_key("NotAction") {
        let rest = texts(statement, "NotAction")?.into_iter().chain(ON_ALL.map(str::to_owned));
        let _ = denial.insert("NotAction".to_owned(), json!(rest.collect::<Vec<_>>()));
        own.needed_by(&["*".to_owned()])
    } else {
        let actions = texts(statement, "Action")?;
        let is_needed = |action: &&String| ON_ALL.iter().any(|needed| meet(action, needed));
        if let Some(action) = actions.iter().find(is_needed) {
            let needed = ON_ALL.iter().find(|needed| meet(action, needed)).copied().unwrap_or_default();
            return Err(format!(
                "`{action}` is denied, and every job needs `{needed}`; name the actions that you mean, such as `iam:Create*`"
            ));
        }
        own.needed_by(&actions)
    };
    if !needed.is_empty() {
        let _ = denial.remove("Resource");
        let _ = denial.insert("NotResource".to_owned(), json!(needed));
    }
    Ok(Value::Object(denial))
}

/// Returns the denials of every action that no statement allows. What every role needs stays, on the install's own
/// resources.
fn outside(allowed: &[String], own: &Own) -> Vec<Value> {
    if allowed.iter().any(|action| action == "*") {
        return Vec::new();
    }
    let missing = |needed: &[&str]| -> Vec<String> {
        let is_missing = |needed: &&&str| !allowed.iter().any(|action| meet(action, needed));
        needed.iter().filter(is_missing).map(|&needed| needed.to_owned()).collect()
    };
    let (bucket, repository, key) = (missing(&ON_OWN_BUCKET), missing(&ON_OWN_REPOSITORY), missing(&ON_OWN_KEY));
    let needed = [&bucket, &repository, &key].into_iter().flatten().cloned().chain(missing(&ON_ALL));
    let rest: BTreeSet<String> = allowed.iter().cloned().chain(needed).collect();
    let mut found = vec![json!({ "Effect": "Deny", "NotAction": rest, "Resource": "*" })];
    if !bucket.is_empty() {
        found.push(json!({ "Effect": "Deny", "Action": bucket, "NotResource": own.bucket }));
    }
    if !repository.is_empty() {
        found.push(json!({ "Effect": "Deny", "Action": repository, "NotResource": own.repository }));
    }
    if !key.is_empty() {
        let condition = json!({ "StringNotEquals": { "aws:ResourceTag/freehold:install": own.install } });
        found.push(json!({ "Effect": "Deny", "Action": key, "Resource": "*", "Condition": condition }));
    }
    found
}

/// Returns the denials of `actions` beyond the limits of the statement that allows them.
fn beyond(actions: &[String], limits: &Allowed, own: &Own) -> Result<Vec<Value>, String> {
    let needed = own.needed_by(actions);
    // All actions but those that every job needs.
    let (element, listed) = if actions.iter().any(|action| action == "*") {
        ("NotAction", json!(ON_ALL))
    } else {
        ("Action", json!(actions))
    };
    let mut found = Vec::new();
    if let Some(resources) = &limits.resources {
        let kept: Vec<&String> = resources.iter().chain(&needed).collect();
        found.push(json!({ "Effect": "Deny", element: listed, "NotResource": kept }));
    }
    for (operator, tests) in &limits.condition {
        let tests = tests.as_object().ok_or_else(|| format!("condition `{operator}` is not an object"))?;
        for (key, value) in tests {
            let condition = opposite(operator, key, value)?;
            let (on, resources) =
                if needed.is_empty() { ("Resource", json!("*")) } else { ("NotResource", json!(needed)) };
            found.push(json!({ "Effect": "Deny", element: listed, on: resources, "Condition": condition }));
        }
    }
    Ok(found)
}

/// Returns the condition that matches exactly when this one does not.
fn opposite(operator: &str, key: &str, value: &Value) -> Result<Value, String> {
    let values = match value {
        Value::Array(all) => all.clone(),
        one => vec![one.clone()],
    };
    if values.iter().filter_map(Value::as_str).any(has_variable) {
        return Err(format!("the condition for `{key}` contains a variable of IAM; write the text that it stands for"));
    }
    let is_flag = |flag: &Value, word: &str| {
        flag.as_bool().map(|flag| flag.to_string()).as_deref().or(flag.as_str()) == Some(word)
    };
    let flipped = match values.as_slice() {
        [flag] if is_flag(flag, "true") => Some("false"),
        [flag] if is_flag(flag, "false") => Some("true"),
        _ => None,
    };
    let plain = OPPOSITES.iter().find(|(name, _)| *name == operator).map(|(_, other)| (*other, value.clone()));
    let found = match (operator, flipped) {
        ("Bool", Some(flipped)) => Some(("BoolIfExists", json!(flipped))),
        ("Null", Some(flipped)) => Some(("Null", json!(flipped))),
        _ => plain,
    };
    let (operator, value) = found.ok_or_else(|| {
        format!("condition `{operator}` for `{key}` has no exact opposite; use an operator such as `StringEquals`")
    })?;
    Ok(json!({ operator: { key: value } }))
}

fn texts(statement: &Map<String, Value>, element: &str) -> Result<Vec<String>, String> {
    let value = statement.get(element).ok_or_else(|| format!("it has no `{element}`"))?;
    statements::texts(value).ok_or_else(|| format!("its `{element}` is neither a text nor a list of texts"))
}

fn covers(action: &str, other: &str) -> bool {
    Pattern::of_action(action).covers(&Pattern::of_action(other))
}

/// Returns whether an action may exist that both patterns match.
fn meet(action: &str, other: &str) -> bool {
    let is_all = |action: &str| action.trim_start_matches('*').is_empty();
    is_all(action) || is_all(other) || Pattern::of_action(action).may_meet(&Pattern::of_action(other))
}

#[cfg(test)]
mod tests;
