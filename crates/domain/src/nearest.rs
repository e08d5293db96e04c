//! Which known name a mistyped one was meant to be.

/// Returns the candidate that is spelt most like `word`, when at most a third of its letters differ.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<String> {
    candidates
        .into_iter()
        .map(|candidate| (strsim::levenshtein(word, candidate), candidate))
        .filter(|(distance, candidate)| *distance * 3 <= word.len().max(candidate.len()))
        .min()
        .map(|(_, candidate)| candidate.to_owned())
}

/// Returns the end of a message that names the candidate.
pub(crate) fn hint(nearest: &Option<String>) -> String {
    nearest.as_ref().map(|name| format!("; did you mean `{name}`?")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_closest_name_is_found_and_a_far_one_is_not() {
        assert_eq!(nearest("dattabase", ["network", "database"]), Some("database".to_owned()));
        assert_eq!(nearest("api", ["network", "database"]), None);
    }
}
