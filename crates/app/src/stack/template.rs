//! The text of the install stack's template, and the call that renders it.

use freehold_template::Limits;
use serde::Serialize;

use crate::AppError;

/// The template, in the language of Go's `text/template`.
const TEMPLATE: &str = include_str!("../../../../infra/install.yaml");
/// The limits of a rendering. They are higher than CloudFormation's, so that a stack that is too large is rendered
/// first and then refused with its size.
const LIMITS: Limits = Limits { max_steps: 10_000_000, max_output_bytes: 128 * 1024 * 1024 };

/// Returns the template rendered with `stack`. The template is rendered once: a template inside a value is not rendered
/// and stays text.
pub(crate) fn fill(stack: &impl Serialize) -> Result<String, AppError> {
    // INVARIANT: the template is part of this crate, and a test renders it.
    let wrong = |why: String| AppError::internal(format!("cannot render the install template: {why}"));
    let stack = serde_json::to_value(stack).map_err(|error| wrong(error.to_string()))?;
    freehold_template::render(TEMPLATE, &stack, &LIMITS).map_err(|error| wrong(error.to_string()))
}
