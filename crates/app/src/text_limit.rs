//! Cuts texts of runners to their limits.

/// The mark at the end of a text that was cut.
pub(crate) const CUT: &str = " [cut]";

/// Returns `text`, or its beginning with a mark if it has more than `limit` bytes.
pub(crate) fn cut(text: &str, limit: usize) -> String {
    if text.len() <= limit {
        return text.to_owned();
    }
    let end = text.floor_char_boundary(limit.saturating_sub(CUT.len()));
    format!("{}{CUT}", text.get(..end).unwrap_or_default())
}
