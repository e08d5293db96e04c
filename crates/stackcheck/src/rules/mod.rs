//! The rules, one in each file: each looks at the whole template and returns what it finds.

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
use crate::node::{self, Unreadable};
use crate::template::Template;

/// Returns what is wrong with a template, by line; nothing for one that keeps every rule.
///
/// # Errors
/// When the text is not a template.
pub fn check(template: &str) -> Result<Vec<Finding>, Unreadable> {
    let root = node::read(template)?;
    let template = Template::new(&root)?;
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
    let found: BTreeSet<Finding> = rules.iter().flat_map(|rule| rule(&template)).collect();
    Ok(found.into_iter().collect())
}
