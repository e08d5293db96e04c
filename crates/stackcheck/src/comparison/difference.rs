//! Makes findings about differences from the template that Freehold renders.

use crate::finding::{Finding, Rule};

/// The way out when the template and the contract do not belong together.
pub(super) const OTHER_CONTRACT: &str = "ask the vendor for the contract of this template";

/// Returns a finding about a difference at `line` in the part `of`.
pub(super) fn finding(line: usize, of: &str, reason: String) -> Finding {
    Finding { line, of: of.to_owned(), rule: Rule::AsRendered, reason, way_out: None }
}
