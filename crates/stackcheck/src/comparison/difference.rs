//! Makes findings about differences from the template that Freehold renders.

use crate::finding::{Finding, Rule};

/// Returns a finding about a difference at `line` in the part `of`.
pub(super) fn finding(line: usize, of: &str, reason: String) -> Finding {
    Finding { line, of: of.to_owned(), rule: Rule::AsRendered, reason }
}
