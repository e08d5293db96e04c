//! Limits the length of a workflow's reason. This reason repeats the reasons of the nodes, which runners write, and the
//! row of the workflow has to fit into DynamoDB.

/// The maximum length of all reasons, in characters. The nodes have the whole texts.
const LONGEST: usize = 10_000;
/// The maximum number of nodes whose reasons are repeated.
const MOST: usize = 20;

/// Returns the reasons in one text. The fewer there are, the longer each may be.
pub(super) fn joined(reasons: &[String]) -> String {
    let each = LONGEST / reasons.len().clamp(1, MOST);
    let cut = |reason: &String| match reason.char_indices().nth(each) {
        Some((at, _)) => format!("{}…", reason.get(..at).unwrap_or_default()),
        None => reason.clone(),
    };
    let shown: Vec<String> = reasons.iter().take(MOST).map(cut).collect();
    let left = reasons.len().saturating_sub(MOST);
    let more = if left > 0 { format!("; and {left} more") } else { String::new() };
    format!("{}{more}", shown.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_long_reasons_stay_short() {
        let reasons: Vec<String> = (0..300).map(|at| format!("`node-{at}` failed: {}", "é".repeat(8_000))).collect();

        let text = joined(&reasons);

        assert!(text.len() < 25_000, "{}", text.len());
        assert!(text.starts_with("`node-0` failed: é") && text.ends_with("…; and 280 more"));
    }

    #[test]
    fn a_reason_of_one_node_is_whole() {
        let long = vec![format!("`a` failed: {}", "x".repeat(8_000))];

        assert_eq!(joined(&long), long[0]);
        assert_eq!(
            joined(&["`a` failed: no".to_owned(), "`b` refused: no".to_owned()]),
            "`a` failed: no; `b` refused: no"
        );
    }
}
