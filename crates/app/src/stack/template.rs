//! The text of the install stack's template, and how its placeholders are replaced.

use std::collections::BTreeMap;

use crate::AppError;

/// The template, with `%{...}` placeholders.
pub(crate) const TEMPLATE: &str = include_str!("../../../../infra/install.yaml");

/// Replaces every `%{WORD}` of `template` in one pass, so that a placeholder inside a value stays a text.
pub(crate) fn fill(template: &str, words: &BTreeMap<String, String>) -> Result<String, AppError> {
    let mut pieces = template.split("%{");
    let mut filled = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let (word, rest) = piece.split_once('}').unwrap_or((piece, ""));
        let value = words.get(word).ok_or_else(|| {
            // INVARIANT: the template is part of this crate, and a test renders it.
            AppError::internal(format!("install template has an unknown placeholder `{word}`"))
        })?;
        filled.push_str(value);
        filled.push_str(rest);
    }
    Ok(filled)
}
