//! Suggests the known name that somebody probably meant by a mistyped name.

/// Returns the candidate with the smallest edit distance to `word`, if the distance is at most a third of the longer
/// length.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<String> {
    candidates
        .into_iter()
        .map(|candidate| (strsim::levenshtein(word, candidate), candidate))
        .filter(|(distance, candidate)| *distance * 3 <= word.len().max(candidate.len()))
        .min()
        .map(|(_, candidate)| candidate.to_owned())
}

/// Returns the end of an error message that suggests the nearest name; empty when there is none.
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
