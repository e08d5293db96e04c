//! Flags of documents. A document leaves out a flag that is `false`.

/// Returns whether a document leaves the flag out.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
pub(crate) const fn is_false(flag: &bool) -> bool {
    !*flag
}
