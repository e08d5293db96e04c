//! Checks the syntax of YAML, HCL and regular expressions.

use saphyr_parser::Parser;

/// A syntax error: its place and the reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Wrong {
    /// The position of the error in the text, in bytes.
    pub(crate) offset: usize,
    pub(crate) message: String,
}

/// Checks that `text` is YAML with any number of documents.
pub(crate) fn yaml(text: &str) -> Result<(), Wrong> {
    for event in Parser::new_from_str(text) {
        if let Err(error) = event {
            let at = text.char_indices().nth(error.marker().index()).map_or(text.len(), |(at, _)| at);
            return Err(Wrong { offset: at, message: error.info().to_owned() });
        }
    }
    Ok(())
}

/// Checks that `text` is a value or a body of HCL.
pub(crate) fn hcl(text: &str) -> Result<(), Wrong> {
    let value = text.trim();
    if value.is_empty() {
        return Ok(());
    }
    let Err(as_value) = hcl_edit::parser::parse_expr(value) else { return Ok(()) };
    let Err(as_body) = hcl_edit::parser::parse_body(text) else { return Ok(()) };
    let skipped = text.len() - text.trim_start().len();
    let value_offset = skipped + as_value.location().offset();
    // The author probably meant the form whose parser read further, so that parser's error is returned.
    let (offset, reason) = if as_body.location().offset() > value_offset {
        (as_body.location().offset(), as_body.message())
    } else {
        (value_offset, as_value.message())
    };
    let message = reason.split("; ").next().unwrap_or_default().to_owned();
    Err(Wrong { offset: offset.min(text.len()), message })
}

/// Checks that `text` is a regular expression.
pub(crate) fn regex(text: &str) -> Result<(), Wrong> {
    match regex_syntax::Parser::new().parse(text) {
        Ok(_) => Ok(()),
        Err(regex_syntax::Error::Parse(error)) => {
            Err(Wrong { offset: error.span().start.offset, message: error.kind().to_string() })
        }
        Err(regex_syntax::Error::Translate(error)) => {
            Err(Wrong { offset: error.span().start.offset, message: error.kind().to_string() })
        }
        Err(error) => Err(Wrong { offset: 0, message: error.to_string() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_and_bodies_are_hcl() {
        for text in
            ["", "1", "\"a\"", "[1, 2]\n", "{ a = 1 }", "a = 1", "a = 1\nb {\n  c = var.d\n}\n", "<<EOT\nx\nEOT\n"]
        {
            assert_eq!(hcl(text), Ok(()), "{text}");
        }
    }

    #[test]
    fn invalid_hcl_is_reported_with_its_place() {
        let wrong = hcl("a = 1\nb = [1,\n").unwrap_err();

        assert!(wrong.offset >= 10, "{wrong:?}");
    }

    #[test]
    fn documents_are_yaml_and_an_open_list_is_not() {
        assert_eq!(yaml("a: 1\n---\n- é\n"), Ok(()));

        assert_eq!(yaml("é: [1, 2\nb: }").unwrap_err().offset, 11);
    }

    #[test]
    fn a_regular_expression_is_placed_where_it_breaks() {
        assert_eq!(regex("^docs/.*\\.md$"), Ok(()));

        assert_eq!(regex("a(b").unwrap_err().offset, 1);
    }

    #[test]
    fn deep_nesting_is_refused_without_a_crash() {
        for open in ["[", "{a=", "(", "\"${", "- "] {
            let text = open.repeat(100_000);
            let _ = (yaml(&text), hcl(&text), regex(&text));
        }
    }
}
