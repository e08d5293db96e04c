//! Counts in texts.

/// Returns a count and its noun: `1 resource`, `2 resources`.
pub fn plural(count: u64, noun: &str) -> String {
    let ending = if count == 1 { "" } else { "s" };
    format!("{count} {noun}{ending}")
}
