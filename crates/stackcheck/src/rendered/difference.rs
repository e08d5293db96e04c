//! A difference from what Freehold renders.

use crate::finding::{Finding, Rule};

/// Returns the finding that says it.
pub(super) fn finding(line: usize, of: &str, reason: String) -> Finding {
    Finding { line, of: of.to_owned(), rule: Rule::AsRendered, reason }
}
