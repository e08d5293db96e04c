//! Boolean fields of documents. A document contains only the fields that are `true`.

/// Returns whether a document omits the field.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
pub(crate) const fn is_false(flag: &bool) -> bool {
    !*flag
}
