//! Shortens a long reason to fit on a line. `freehold job logs` shows the whole reason.

/// The maximum number of characters of a reason in a table.
pub(crate) const IN_A_TABLE: usize = 160;
/// The maximum number of characters of a reason in a table with other wide columns.
pub(crate) const IN_A_WIDE_TABLE: usize = 100;
/// The maximum number of characters of a reason in a sentence.
pub(crate) const IN_A_SENTENCE: usize = 500;

/// Returns the beginning of `reason` as one line of at most `limit` characters. The cut is between two problems, or
/// else between two words.
pub(crate) fn brief(reason: &str, limit: usize) -> String {
    let line = reason.split_whitespace().collect::<Vec<_>>().join(" ");
    let Some((end, _)) = line.char_indices().nth(limit) else {
        return line;
    };
    let (head, _) = line.split_at(end);
    let problem = head.rfind("; ").filter(|at| *at * 3 > end);
    let cut = problem.or_else(|| head.rfind(' ')).unwrap_or(end);
    format!("{} ...", head.split_at(cut).0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_cut_between_problems_then_between_words() {
        let reason = "2 of 20 checks fail; `disk`: 3 GiB are free;\nfix: free 10 GiB";

        assert_eq!(brief(reason, 100), reason.replace('\n', " "));
        assert_eq!(brief(reason, 50), "2 of 20 checks fail; `disk`: 3 GiB are free ...");
        assert_eq!(brief(reason, 30), "2 of 20 checks fail ...");
        assert_eq!(brief("the role may not create a queue", 22), "the role may not ...");
        assert_eq!(brief("ééééé", 3), "ééé ...");
    }
}
