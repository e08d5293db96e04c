//! Finds the known word that is most similar to a mistyped one.

/// Returns the candidate that is most similar to `word`; `None` when no candidate is similar enough for a suggestion.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if word.len() > 256 {
        return None;
    }
    candidates
        .into_iter()
        .filter(|candidate| candidate.len() <= 256)
        .map(|candidate| (distance(word, candidate), candidate))
        .filter(|(distance, candidate)| *distance <= allowed(word, candidate))
        .min()
        .map(|(_, candidate)| candidate)
}

fn distance(word: &str, candidate: &str) -> usize {
    let fold = |text: &str| text.to_lowercase().replace('-', "_");
    strsim::damerau_levenshtein(&fold(word), &fold(candidate))
}

fn allowed(word: &str, candidate: &str) -> usize {
    match word.len().min(candidate.len()) {
        0..=3 => 1,
        4..=7 => 2,
        8.. => 3,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_closest_word_is_named_and_a_far_one_is_not() {
        assert_eq!(nearest("regoin", ["region", "reason"]), Some("region"));
        assert_eq!(nearest("store_info", ["store-info", "store"]), Some("store-info"));
        assert_eq!(nearest("vpc", ["cluster", "domain"]), None);
    }
}
