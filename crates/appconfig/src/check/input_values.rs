//! Checks whether a text fits the type of an input.

use freehold_protocol::app_version::InputKind;

use crate::check::syntax;
use crate::read::json;

/// The reason why a text does not fit the type of an input.
#[derive(Debug)]
pub(crate) struct Misfit {
    /// The position of the mistake in the text, in bytes, if it is known.
    pub(crate) offset: Option<usize>,
    /// The reason as the end of a sentence about the text, such as "is not JSON: ...".
    pub(crate) message: String,
    pub(crate) expected: &'static str,
}

/// Returns why `text` does not fit `kind`; `None` if it fits. For most types, a text with templates is accepted,
/// because it can only be checked after rendering.
pub(crate) fn misfit(kind: InputKind, text: &str) -> Option<Misfit> {
    let plain = |expected: &'static str| Misfit { offset: None, message: "does not fit its type".to_owned(), expected };
    let placed = |what: &str, offset: usize, message: &str, expected: &'static str| Misfit {
        offset: Some(offset),
        message: format!("is not {what}: {message}"),
        expected,
    };
    let templated = text.contains("{{");
    match kind {
        InputKind::String | InputKind::List => None,
        InputKind::Number => {
            let number = text.parse::<f64>().is_ok_and(f64::is_finite);
            (!number && !text.is_empty() && !templated).then(|| plain("a number"))
        }
        InputKind::Bool => {
            let flag = matches!(text, "" | "true" | "false");
            (!flag && !templated).then(|| plain("`true` or `false`"))
        }
        InputKind::Json => json::check(text).err().map(|no| placed("JSON", no.offset, &no.message, "valid JSON")),
        InputKind::Yaml if templated => None,
        InputKind::Yaml => syntax::yaml(text).err().map(|no| placed("YAML", no.offset, &no.message, "valid YAML")),
        InputKind::Hcl if templated => None,
        InputKind::Hcl => {
            let expected = "a value or a body of HCL";
            syntax::hcl(text).err().map(|no| placed("HCL", no.offset, &no.message, expected))
        }
    }
}
