//! The rules, one in each file. Each rule checks the whole template and returns its findings.

mod boundary;
mod encryption;
mod instance_metadata;
mod no_code;
mod no_ingress;
mod no_outside_principal;
mod no_public_access;
mod no_wildcard_assume_role;
mod switch_defaults;

use std::collections::BTreeSet;

use crate::finding::Finding;
use crate::read::{Unreadable, read};
use crate::template::Template;

/// Returns the findings of the nine rules about a template, sorted by line. Does not compare the template with the one
/// that Freehold renders.
///
/// # Errors
/// [`Unreadable`] when the text is not a template.
pub fn check_rules(template: &str) -> Result<Vec<Finding>, Unreadable> {
    let root = read(template)?;
    Ok(find(&Template::new(&root)?).into_iter().map(Finding::on_one_line).collect())
}

/// Returns the findings of the nine rules.
pub(crate) fn find(template: &Template<'_>) -> BTreeSet<Finding> {
    let rules: [fn(&Template<'_>) -> Vec<Finding>; 9] = [
        no_code::find,
        no_outside_principal::find,
        no_wildcard_assume_role::find,
        boundary::find,
        no_ingress::find,
        instance_metadata::find,
        encryption::find,
        no_public_access::find,
        switch_defaults::find,
    ];
    rules.iter().flat_map(|rule| rule(template)).collect()
}
