//! The policies of a tenant, read from their text and checked against the schema.

use std::collections::{BTreeMap, BTreeSet};

use cedar_policy::{PolicyId, PolicySet, ValidationMode};
use freehold_protocol::Shape;

use crate::limits::excess;
use crate::mistake::{MAX_POLICIES_BYTES, Mistake, PoliciesError, of_error, of_warning};
use crate::vocabulary::Vocabulary;

/// The form of a policy's name.
const NAME: Shape = Shape::Label { max: 64, also: "._-" };
/// Policies read attributes of the request's own entities, not those of other entities, which no request has.
const MAX_DEREFERENCES: u32 = 1;
/// The stack on which policies are read. Cedar's validator passes over an expression for which its stack is too
/// small, and does not report it. An expression in the longest permitted policy has at most about 2,000 levels.
const STACK_BYTES: usize = 64 * 1024 * 1024;
/// The policies of a new tenant.
const READY_MADE: &str = include_str!("ready_made.cedar");

/// The policies of a tenant. They are valid: they fit the schema, and each has a name of its own.
#[derive(Debug, Clone)]
pub struct Policies {
    pub(crate) set: PolicySet,
}

impl Policies {
    /// Reads policies from their text, and checks them.
    ///
    /// # Errors
    /// All mistakes of the first kind that the text has: its length, its syntax, the names of the policies, then types
    /// and attributes.
    pub fn parse(text: &str) -> Result<Self, PoliciesError> {
        if text.len() > MAX_POLICIES_BYTES {
            return Err(PoliciesError::TooLong { bytes: text.len() });
        }
        if let Some(mistake) = excess(text) {
            return Err(PoliciesError::wrong(vec![mistake]));
        }
        stacker::grow(STACK_BYTES, || Self::read(text))
    }

    fn read(text: &str) -> Result<Self, PoliciesError> {
        let parsed = text.parse::<PolicySet>().map_err(|errors| PoliciesError::of_syntax(text, &errors))?;
        let set = named(text, &parsed)?;
        check(text, &set)?;
        Ok(Self { set })
    }

    /// Returns the text of the policies that a new tenant has.
    pub const fn ready_made() -> &'static str {
        READY_MADE
    }
}

/// Returns the policies under the names that their annotations `@id` give them.
fn named(text: &str, parsed: &PolicySet) -> Result<PolicySet, PoliciesError> {
    let (mut named, mut mistakes) = (Vec::new(), Vec::new());
    let mut lines: BTreeMap<&str, u32> = BTreeMap::new();
    let mut end = 0;
    for policy in parsed.policies() {
        let begin = begin_of(text, &policy.to_cedar().unwrap_or_default(), &mut end);
        let id = policy.annotation("id").unwrap_or_default();
        match name_problem(id, &lines) {
            Some(problem) => mistakes.push(Mistake::at(text, begin, None, problem)),
            None => {
                lines.insert(id, Mistake::at(text, begin, None, String::new()).line);
                named.push(policy.new_id(PolicyId::new(id)));
            }
        }
    }
    mistakes.extend(parsed.templates().map(|template| {
        let begin = begin_of(text, &template.to_cedar(), &mut 0);
        let message = "the policy has a slot for a principal or a resource; name the principal or the resource itself";
        Mistake::at(text, begin, None, message.to_owned())
    }));
    if !mistakes.is_empty() {
        return Err(PoliciesError::wrong(mistakes));
    }
    // INVARIANT: the names differ, and no policy has a slot.
    PolicySet::from_policies(named).map_err(|error| PoliciesError::Broken(error.to_string()))
}

/// Returns where the source of a policy begins in the text, searched from `end`, and moves `end` behind it.
fn begin_of(text: &str, source: &str, end: &mut usize) -> usize {
    let begin = text.get(*end..).and_then(|rest| rest.find(source)).map_or(*end, |found| *end + found);
    *end = begin + source.len();
    begin
}

/// Returns what is wrong with the name of a policy. `lines` has the names before it, and their lines.
fn name_problem(id: &str, lines: &BTreeMap<&str, u32>) -> Option<String> {
    if id.is_empty() {
        return Some("the policy has no name; write `@id(\"NAME\")` before it".to_owned());
    }
    if !NAME.accepts(id) {
        return Some(
            "the policy's name is not 1 to 64 letters, digits, dots, dashes or underscores, starting with a letter or \
             digit; change its `@id`"
                .to_owned(),
        );
    }
    let line = lines.get(id)?;
    Some(format!("the policy on line {line} is named `{id}` too; give each policy a name of its own"))
}

/// Checks the policies against the schema.
fn check(text: &str, set: &PolicySet) -> Result<(), PoliciesError> {
    let vocabulary = Vocabulary::get().map_err(PoliciesError::Broken)?;
    let result = vocabulary.validator.validate_with_level(set, ValidationMode::Strict, MAX_DEREFERENCES);
    let mut mistakes: Vec<Mistake> = result.validation_errors().map(|error| of_error(text, error)).collect();
    // A policy with an error has warnings because of it.
    let wrong: BTreeSet<Option<String>> = mistakes.iter().map(|mistake| mistake.policy.clone()).collect();
    let warnings = result.validation_warnings().map(|warning| of_warning(text, warning));
    mistakes.extend(warnings.filter(|warning| !wrong.contains(&warning.policy)));
    if mistakes.is_empty() {
        return Ok(());
    }
    Err(PoliciesError::wrong(mistakes))
}
