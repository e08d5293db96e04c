//! The labels of installs, by which people find them: their limits, and the default labels of an app.

use std::collections::BTreeMap;

use freehold_protocol::limits::MAX_LABELS_BYTES;
use freehold_protocol::shape::is_format;

/// The reason why labels are refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LabelsError {
    #[error("a label has an empty key; give it a key, such as `env` in `env=production`")]
    EmptyKey,
    #[error(
        "the key `{0}` of a label has a `=` or a `,`; leave it out, because a list of labels is `KEY=VALUE, KEY=VALUE`"
    )]
    Separator(String),
    #[error("the label `{}` has a line break, or another control or invisible character; remove it", .0.escape_debug())]
    Unprintable(String),
    #[error("the labels have {0} bytes in all, more than the {MAX_LABELS_BYTES} that an install stores; shorten them")]
    TooLarge(usize),
}

/// Checks the labels of an install, or the default labels of an app.
///
/// # Errors
/// [`LabelsError`].
pub fn check(labels: &BTreeMap<String, String>) -> Result<(), LabelsError> {
    if labels.contains_key("") {
        return Err(LabelsError::EmptyKey);
    }
    let bytes: usize = labels.iter().map(|(key, value)| key.len() + value.len()).sum();
    if bytes > MAX_LABELS_BYTES {
        return Err(LabelsError::TooLarge(bytes));
    }
    for (key, value) in labels {
        if key.contains(is_unprintable) || value.contains(is_unprintable) {
            return Err(LabelsError::Unprintable(key.clone()));
        }
        if key.contains(['=', ',']) {
            return Err(LabelsError::Separator(key.clone()));
        }
    }
    Ok(())
}

/// Returns whether a character could break a line of output, or change how the text around it appears.
fn is_unprintable(c: char) -> bool {
    c.is_control() || is_format(c) || matches!(c, '\u{2028}' | '\u{2029}')
}

/// Returns all labels of an install: `own`, and those of `defaults` whose keys `own` lacks.
pub fn with_defaults(
    own: &BTreeMap<String, String>,
    mut defaults: BTreeMap<String, String>,
) -> BTreeMap<String, String> {
    defaults.extend(own.clone());
    defaults
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn an_own_label_takes_precedence_over_the_default_of_the_same_key() {
        let defaults = labels(&[("env", "test"), ("team", "shop")]);

        let all = with_defaults(&labels(&[("env", "production"), ("tier", "")]), defaults);

        assert_eq!(all, labels(&[("env", "production"), ("team", "shop"), ("tier", "")]));
    }

    #[test]
    fn an_empty_key_and_labels_that_are_too_large_are_refused() {
        let long = "x".repeat(MAX_LABELS_BYTES - 1);

        assert_eq!(check(&labels(&[])), Ok(()));
        assert_eq!(check(&labels(&[("a", long.as_str())])), Ok(()));
        assert_eq!(check(&labels(&[("", "x")])), Err(LabelsError::EmptyKey));
        assert_eq!(check(&labels(&[("ab", long.as_str())])), Err(LabelsError::TooLarge(MAX_LABELS_BYTES + 1)));
    }

    #[test]
    fn a_label_that_no_line_of_output_can_show_is_refused() {
        for (key, value) in [("a\nb", ""), ("a", "b\r"), ("a", "\u{1b}[2J"), ("a\u{202e}", ""), ("a", "b\u{2028}")] {
            assert_eq!(check(&labels(&[(key, value)])), Err(LabelsError::Unprintable(key.to_owned())), "{value:?}");
        }
        for key in ["a=b", "a,b", "="] {
            assert_eq!(check(&labels(&[(key, "")])), Err(LabelsError::Separator(key.to_owned())));
        }
        assert_eq!(check(&labels(&[("a b", "c=d, e"), ("größe", "groß")])), Ok(()));
        let message = LabelsError::Unprintable("a\u{202e}\n".to_owned()).to_string();
        assert!(message.starts_with("the label `a\\u{202e}\\n` has a line break, or another control"), "{message}");
    }
}
