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

/// The existing names of one kind. An error about an unknown name shows them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Known {
    nearest: Option<String>,
    names: Vec<String>,
}

impl Known {
    /// The maximum number of names that an error lists.
    const LISTED: usize = 12;

    /// Returns the existing names, for an error about the unknown name `word`.
    pub fn instead_of<'a>(word: &str, names: impl IntoIterator<Item = &'a str>) -> Self {
        let names: Vec<String> = names.into_iter().map(str::to_owned).collect();
        Self { nearest: nearest(word, names.iter().map(String::as_str)), names }
    }

    /// Returns the way out of an error: the nearest name, or else all names of this `kind`, such as `inputs`.
    pub fn way_out(&self, kind: &str) -> String {
        let listed: Vec<String> = self.names.iter().take(Self::LISTED).map(|name| format!("`{name}`")).collect();
        let more = self.names.len().saturating_sub(Self::LISTED);
        match (&self.nearest, listed.as_slice(), more) {
            (Some(name), _, _) => format!("did you mean `{name}`?"),
            (None, [], _) => format!("it has no {kind}"),
            (None, listed, 0) => format!("its {kind} are {}", listed.join(", ")),
            (None, listed, more) => format!("its {kind} are {} and {more} more", listed.join(", ")),
        }
    }
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

    #[test]
    fn without_a_close_name_the_names_are_listed() {
        let way_out = |word: &str, names: &[&str]| Known::instead_of(word, names.iter().copied()).way_out("inputs");
        let many: Vec<String> = (0..15).map(|nth| format!("input_number_{nth}")).collect();

        assert_eq!(way_out("dayz", &["zone", "days"]), "did you mean `days`?");
        assert_eq!(way_out("retention", &["zone", "days"]), "its inputs are `zone`, `days`");
        assert_eq!(way_out("retention", &[]), "it has no inputs");
        let many = way_out("x", &many.iter().map(String::as_str).collect::<Vec<_>>());
        assert!(many.ends_with("`input_number_11` and 3 more"), "{many}");
    }
}
