//! The permissions boundary that a vendor's config gives to a role, as statements that deny what it does not allow.
//!
//! IAM permits one boundary for each role, and each role already has the boundary of the install. So the role gets an
//! inline policy with these statements. They only remove permissions: the role can never do more than without them.

use std::collections::BTreeSet;

use freehold_protocol::{AccountId, InstallId, Partition, TenantName, names};
use serde_json::{Map, Value, json};

use crate::pattern::{Pattern, has_variable};
use crate::statements;

/// The name of the inline policy with the statements.
pub(crate) const POLICY_NAME: &str = "freehold-boundary";

/// The actions on the install's own bucket, repository and key that the policy `base` of the install stack allows to
/// every role. Each job needs these actions.
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

/// Condition operators, each with its opposite. The opposite matches exactly when the operator does not match, also
/// when the request does not have the key.
const OPPOSITES: [(&str, &str); 12] = [
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
];

/// Operators that compare with one value, and their opposites. With several values, the opposite would have to match none of
/// them, and IAM has no such operator.
const OPPOSITES_OF_ONE: [(&str, &str); 8] = [
    ("DateLessThan", "DateGreaterThanEqualsIfExists"),
    ("DateLessThanEquals", "DateGreaterThanIfExists"),
    ("DateGreaterThan", "DateLessThanEqualsIfExists"),
    ("DateGreaterThanEquals", "DateLessThanIfExists"),
    ("NumericLessThan", "NumericGreaterThanEqualsIfExists"),
    ("NumericLessThanEquals", "NumericGreaterThanIfExists"),
    ("NumericGreaterThan", "NumericLessThanEqualsIfExists"),
    ("NumericGreaterThanEquals", "NumericLessThanIfExists"),
];

/// Condition keys with several values in one request, in lower case. For these keys, an operator without
/// `ForAllValues:` or `ForAnyValue:` has no defined meaning, and therefore no opposite.
const OF_SEVERAL_VALUES: [&str; 5] =
    ["aws:calledvia", "aws:principalorgpaths", "aws:tagkeys", "dynamodb:attributes", "dynamodb:leadingkeys"];

/// The condition keys by which the install's own KMS key is recognized: two tenants may have installs of one name.
const TAG: &str = "aws:ResourceTag/freehold:install";
const TENANT: &str = "aws:ResourceTag/freehold:tenant";
/// The condition key by which a key that the app made is recognized. It has [`TAG`] and [`TENANT`] too.
const OF_APP: &str = "aws:ResourceTag/freehold:owner";

/// The resources that every role of an install uses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Own {
    /// The tags of the KMS key.
    tags: [(&'static str, String); 2],
    /// Patterns of the ARNs of the bucket and of its objects.
    bucket: Vec<String>,
    /// A pattern of the ARN of the repository.
    repository: Vec<String>,
    /// The ARNs of the bucket, of an object in it, and of the repository, in the partition and region of the install.
    arns: [String; 3],
}

/// The actions that every role needs on some of the install's own resources.
struct Need<'a> {
    actions: &'static [&'static str],
    /// The resources. Empty for the KMS key, which has tags: its ARN is not known before the stack is launched.
    on: &'a [String],
}

impl Own {
    pub(crate) fn of(tenant: &TenantName, install: &InstallId, account: &AccountId, region: &str) -> Self {
        let bucket = names::install_bucket(tenant, install, account);
        let repository = names::install_registry(tenant, install);
        let partition = Partition::of_region(region).name;
        Self {
            tags: [(TAG, install.to_string()), (TENANT, tenant.to_string())],
            arns: [
                format!("arn:{partition}:s3:::{bucket}"),
                format!("arn:{partition}:s3:::{bucket}/x"),
                format!("arn:{partition}:ecr:{region}:{account}:repository/{repository}"),
            ],
            bucket: vec![format!("arn:*:s3:::{bucket}"), format!("arn:*:s3:::{bucket}/*")],
            repository: vec![format!("arn:*:ecr:*:{account}:repository/{repository}")],
        }
    }

    fn needs(&self) -> [Need<'_>; 3] {
        [
            Need { actions: &ON_OWN_BUCKET, on: &self.bucket },
            Need { actions: &ON_OWN_REPOSITORY, on: &self.repository },
            Need { actions: &ON_OWN_KEY, on: &[] },
        ]
    }

    /// Returns whether a pattern of ARNs may match the bucket, an object in it, or the repository. The keys of the
    /// objects that jobs need are not known here, so a pattern of some objects counts if its bucket may be the install's.
    fn is_met_by(&self, pattern: &str) -> bool {
        let pattern = Pattern::new(pattern);
        let [bucket, ..] = &self.arns;
        self.arns.iter().any(|arn| pattern.may_meet(&Pattern::of_name(arn)))
            || pattern.before_slash().is_some_and(|buckets| buckets.may_meet(&Pattern::of_name(bucket)))
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

/// Returns statements that deny everything that `boundary` does not allow, except what every role of the install needs.
/// Returns no statements for a boundary that allows everything.
///
/// # Errors
/// A sentence about a statement whose opposite cannot be written exactly.
pub(crate) fn denials(boundary: &Value, own: &Own) -> Result<Vec<Value>, String> {
    let mut found = Vec::new();
    let mut allowed: Vec<Allowed> = Vec::new();
    let statements = statements(boundary)?;
    let is_of_2012 = boundary.get("Version") == Some(&json!("2012-10-17"));
    let is_only = statements.iter().filter(|one| one.get("Effect") == Some(&json!("Allow"))).count() == 1;
    for (nth, statement) in statements.into_iter().enumerate() {
        let of_this = |reason: String| format!("statement {}: {reason}", nth + 1);
        match statement.get("Effect").and_then(Value::as_str) {
            Some("Deny") => {
                if !is_of_2012 && Value::Object(statement.clone()).to_string().contains("${") {
                    let reason = "in this `Version`, `${` is plain text; write the version `2012-10-17`";
                    return Err(of_this(reason.to_owned()));
                }
                found.extend(denied(statement, own).map_err(of_this)?);
            }
            Some("Allow") if statement.contains_key("NotAction") => {
                found.extend(all_but(statement, is_only, own).map_err(of_this)?);
                add(&mut allowed, Allowed { actions: vec!["*".to_owned()], resources: None, condition: Map::new() });
            }
            Some("Allow") => add(&mut allowed, self::allowed(statement).map_err(of_this)?),
            _ => return Err(of_this("its `Effect` is neither `Allow` nor `Deny`".to_owned())),
        }
    }
    let (whole, limited): (Vec<_>, Vec<_>) = allowed.iter().partition(|one| one.is_whole());
    let whole: Vec<String> = whole.into_iter().flat_map(|one| one.actions.clone()).collect();
    let all: Vec<String> = allowed.iter().flat_map(|one| one.actions.clone()).collect();
    if !all.iter().any(|action| action == "*") {
        found.extend(denial(Actions::All { but: &all }, None, &Map::new(), own)?);
    }
    let mut before: Vec<String> = Vec::new();
    for one in limited {
        let actions: Vec<String> =
            one.actions.iter().filter(|action| !whole.iter().any(|all| covers(all, action))).cloned().collect();
        for action in &actions {
            if let Some(other) = whole.iter().chain(&before).find(|other| meet(other, action)) {
                return Err(format!(
                    "`{action}` is allowed for some resources or under a condition, and another statement allows \
                     `{other}`, which overlaps with it; name the actions so that no two statements overlap"
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
        return Err(format!(
            "an `Allow` statement with `{other}` cannot be converted into a `Deny`; write `Action` and `Resource`"
        ));
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

/// Adds a statement. Statements with the same limits, or with the same actions and condition, become one.
fn add(all: &mut Vec<Allowed>, new: Allowed) {
    if let Some(same) = all.iter_mut().find(|one| one.resources == new.resources && one.condition == new.condition) {
        return same.actions.extend(new.actions);
    }
    let is_same = |one: &&mut Allowed| one.actions == new.actions && one.condition == new.condition;
    match (all.iter_mut().find(is_same), &new.resources) {
        (Some(same), Some(resources)) if same.resources.is_some() => {
            same.resources.iter_mut().for_each(|all| all.extend(resources.clone()));
        }
        _ => all.push(new),
    }
}

/// Returns the denials of the actions that the only `Allow` statement of a boundary excludes by `NotAction`.
fn all_but(statement: &Map<String, Value>, is_only: bool, own: &Own) -> Result<Vec<Value>, String> {
    let is_whole = texts(statement, "Resource")?.iter().any(|resource| resource == "*");
    if !is_only || !is_whole || statement.contains_key("Condition") || statement.contains_key("Action") {
        return Err(
            "`NotAction` with `Allow` can be converted only in a statement for all resources, without a condition, and \
             without other `Allow` statements; write `Action`"
                .to_owned(),
        );
    }
    denial(Actions::These(&texts(statement, "NotAction")?), None, &Map::new(), own)
}

/// Returns the denials of a `Deny` statement, except of what every role needs.
fn denied(statement: &Map<String, Value>, own: &Own) -> Result<Vec<Value>, String> {
    let known = [ELEMENTS.as_slice(), &["NotAction", "NotResource"]].concat();
    if let Some(other) = statement.keys().find(|key| !known.contains(&key.as_str())) {
        return Err(format!("a `Deny` statement cannot have `{other}`; remove it"));
    }
    let none = Map::new();
    let condition = statement.get("Condition").and_then(Value::as_object).unwrap_or(&none);
    let (listed, is_all_but) = match statement.get("NotAction") {
        Some(_) => (texts(statement, "NotAction")?, true),
        None => (texts(statement, "Action")?, false),
    };
    let actions = match listed.iter().any(|action| action == "*") {
        // `NotAction` with `*` excludes all actions, so the statement denies none.
        true if is_all_but => return Ok(Vec::new()),
        true => Actions::All { but: &[] },
        false if is_all_but => Actions::All { but: &listed },
        false => Actions::These(&listed),
    };
    if statement.contains_key("NotResource") {
        return denial(actions, Some(&texts(statement, "NotResource")?), condition, own);
    }
    let resources = texts(statement, "Resource")?;
    if resources.iter().any(|resource| resource.trim_start_matches('*').is_empty()) {
        return denial(actions, None, condition, own);
    }
    let is_pattern = |resource: &&String| resource.contains(['*', '?']) && own.is_met_by(resource);
    if let Some(resource) = resources.iter().find(is_pattern) {
        return Err(format!(
            "`{resource}` is denied, and may be the install's own bucket or repository, which every job needs; name the \
             resources that you mean"
        ));
    }
    let mut same = statement.clone();
    let _ = same.remove("Sid");
    Ok(vec![Value::Object(same)])
}

/// The actions of a denial.
#[derive(Clone, Copy)]
enum Actions<'a> {
    These(&'a [String]),
    All { but: &'a [String] },
}

/// Returns the denials of `actions` under a condition, on all resources except `kept`. Does not deny what every role
/// needs.
fn denial(
    actions: Actions<'_>,
    kept: Option<&[String]>,
    condition: &Map<String, Value>,
    own: &Own,
) -> Result<Vec<Value>, String> {
    let denial = Denial { kept, condition, own };
    match actions {
        Actions::All { but } => denial.of_all_but(but),
        Actions::These(actions) => {
            check_separable(actions, own)?;
            denial.of(actions)
        }
    }
}

/// Refuses actions of which a part is needed by every job and cannot be left out of the denial.
fn check_separable(actions: &[String], own: &Own) -> Result<(), String> {
    let needs = own.needs();
    for action in actions {
        if let Some(needed) = ON_ALL.iter().find(|needed| meet(action, needed)) {
            return Err(format!(
                "`{action}` is denied or limited, and every job needs `{needed}`, which `{action}` matches; name the \
                 actions that you mean, such as `iam:Create*`"
            ));
        }
        let of = needs.iter().filter(|need| need.actions.iter().any(|needed| meet(action, needed)));
        if of.count() > 1 {
            return Err(format!("`{action}` matches several services; name the actions that you mean"));
        }
    }
    Ok(())
}

/// What the statements of a denial have in common.
struct Denial<'a> {
    /// The resources to which the denial does not apply.
    kept: Option<&'a [String]>,
    condition: &'a Map<String, Value>,
    own: &'a Own,
}

impl Denial<'_> {
    /// Returns the denials of all actions but `but`.
    fn of_all_but(&self, but: &[String]) -> Result<Vec<Value>, String> {
        let missing = |needed: &[&str]| -> Vec<String> {
            let is_missing = |needed: &&&str| !but.iter().any(|action| meet(action, needed));
            needed.iter().filter(is_missing).map(|&needed| needed.to_owned()).collect()
        };
        let mut rest: BTreeSet<String> = but.iter().cloned().chain(missing(&ON_ALL)).collect();
        let mut found = Vec::new();
        for need in &self.own.needs() {
            let missing = missing(need.actions);
            rest.extend(missing.clone());
            if !missing.is_empty() {
                found.extend(self.of_others(missing, need)?);
            }
        }
        found.insert(0, self.statement("NotAction", rest.into_iter().collect(), &[], None)?);
        Ok(found)
    }

    /// Returns the denials of `actions`.
    fn of(&self, actions: &[String]) -> Result<Vec<Value>, String> {
        let needs = self.own.needs();
        let of = |need: &Need<'_>, action: &String| need.actions.iter().any(|needed| meet(action, needed));
        let (needed, rest): (Vec<_>, Vec<_>) =
            actions.iter().cloned().partition(|action| needs.iter().any(|need| of(need, action)));
        let mut found = Vec::new();
        if !rest.is_empty() {
            found.push(self.statement("Action", rest, &[], None)?);
        }
        for need in &needs {
            let actions: Vec<String> = needed.iter().filter(|action| of(need, action)).cloned().collect();
            if !actions.is_empty() {
                found.extend(self.of_others(actions, need)?);
            }
        }
        Ok(found)
    }

    /// Returns the statements that deny `actions` on everything but the resources of `need`.
    fn of_others(&self, actions: Vec<String>, need: &Need<'_>) -> Result<Vec<Value>, String> {
        if !need.on.is_empty() {
            return Ok(vec![self.statement("Action", actions, need.on, None)?]);
        }
        let tags = self.own.tags.iter().map(|(key, value)| ("StringNotEquals", *key, value.as_str()));
        let tests = tags.chain([("Null", OF_APP, "false")]);
        tests.map(|test| self.statement("Action", actions.clone(), &[], Some(test))).collect()
    }

    /// Returns the statement that denies `actions`, or all others with `NotAction`, on everything but `on`. `test` is one more
    /// test of its condition: an operator, a condition key and a value.
    fn statement(
        &self,
        element: &str,
        actions: Vec<String>,
        on: &[String],
        test: Option<(&str, &str, &str)>,
    ) -> Result<Value, String> {
        let resources: Vec<&String> = self.kept.into_iter().flatten().chain(on).collect();
        let mut condition = self.condition.clone();
        if let Some((operator, key, value)) = test {
            let tests = condition.entry(operator).or_insert_with(|| json!({}));
            let tests = tests.as_object_mut().ok_or_else(|| format!("its condition `{operator}` is not an object"))?;
            if tests.insert(key.to_owned(), json!(value)).is_some() {
                return Err(format!(
                    "its condition has `{key}`, by which the install's own key is recognized; use another tag"
                ));
            }
        }
        let (element_of, resources) =
            if resources.is_empty() { ("Resource", json!("*")) } else { ("NotResource", json!(resources)) };
        let mut found = json!({ "Effect": "Deny", element: actions, element_of: resources });
        if let (false, Some(found)) = (condition.is_empty(), found.as_object_mut()) {
            let _ = found.insert("Condition".to_owned(), Value::Object(condition));
        }
        Ok(found)
    }
}

/// Returns the denials of `actions` beyond the limits of the statement that allows them.
fn beyond(actions: &[String], limits: &Allowed, own: &Own) -> Result<Vec<Value>, String> {
    let actions =
        if actions.iter().any(|action| action == "*") { Actions::All { but: &[] } } else { Actions::These(actions) };
    let mut found = Vec::new();
    if let Some(resources) = &limits.resources {
        found.extend(denial(actions, Some(resources), &Map::new(), own)?);
    }
    for (operator, tests) in &limits.condition {
        let tests = tests.as_object().ok_or_else(|| format!("condition `{operator}` is not an object"))?;
        for (key, value) in tests {
            found.extend(denial(actions, None, &opposite(operator, key, value)?, own)?);
        }
    }
    Ok(found)
}

/// Returns the condition that matches exactly when this one does not.
fn opposite(operator: &str, key: &str, value: &Value) -> Result<Map<String, Value>, String> {
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
    if OF_SEVERAL_VALUES.contains(&key.to_lowercase().as_str()) {
        return Err(format!(
            "`{key}` has several values, so its condition has no exact opposite; remove the condition"
        ));
    }
    let of_one = OPPOSITES_OF_ONE.iter().filter(|_| values.len() == 1);
    let plain = OPPOSITES.iter().chain(of_one).find(|(name, _)| *name == operator);
    let plain = plain.map(|(_, other)| (*other, value.clone()));
    let found = match (operator, flipped) {
        ("Bool", Some(flipped)) => Some(("BoolIfExists", json!(flipped))),
        ("Null", Some(flipped)) => Some(("Null", json!(flipped))),
        _ => plain,
    };
    let (operator, value) = found.ok_or_else(|| {
        format!("condition `{operator}` for `{key}` has no exact opposite; use an operator such as `StringEquals`")
    })?;
    Ok(Map::from_iter([(operator.to_owned(), json!({ key: value }))]))
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
