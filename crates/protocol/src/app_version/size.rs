//! The size limit of an app version, which must fit into one request and one response.

use crate::limits::{MAX_APP_VERSION_BYTES, MAX_QUOTED_BYTES};

/// An app version is too large for a request or a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TooLarge {
    #[error(
        "it has {0} bytes of config, more than the maximum of {MAX_APP_VERSION_BYTES}; move long files into the \
         sources of components"
    )]
    Plain(usize),
    #[error(
        "it has {0} bytes of config when each quote and backslash counts twice, as in a response of the API; the \
         maximum is {MAX_QUOTED_BYTES}; move long files into the sources of components"
    )]
    Quoted(usize),
}

/// Checks the canonical bytes of an app version.
///
/// # Errors
/// [`TooLarge`]. Its message is the end of a sentence about the app.
pub fn check_size(canonical: &[u8]) -> Result<(), TooLarge> {
    if canonical.len() > MAX_APP_VERSION_BYTES {
        return Err(TooLarge::Plain(canonical.len()));
    }
    // In a JSON string, each quote and each backslash takes two bytes. Canonical bytes contain no other character that
    // a JSON string escapes.
    let quoted = canonical.len() + canonical.iter().filter(|byte| matches!(byte, b'"' | b'\\')).count();
    if quoted > MAX_QUOTED_BYTES { Err(TooLarge::Quoted(quoted)) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_may_be_as_large_as_an_answer_holds_and_no_larger() {
        assert_eq!(check_size(&vec![b'x'; MAX_APP_VERSION_BYTES]), Ok(()));
        assert_eq!(check_size(&vec![b'x'; MAX_APP_VERSION_BYTES + 1]), Err(TooLarge::Plain(MAX_APP_VERSION_BYTES + 1)));
    }

    #[test]
    fn quotes_count_twice_as_they_do_on_the_way() {
        let text = "\"".repeat(MAX_QUOTED_BYTES / 2 + 1);

        assert!(matches!(check_size(text.as_bytes()), Err(TooLarge::Quoted(_))));
        assert_eq!(serde_json::to_string("a\"b\\c").map(|quoted| quoted.len()).ok(), Some(5 + 2 + 2));
    }
}
