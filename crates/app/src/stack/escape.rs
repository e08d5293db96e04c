//! Writes the vendor's texts into the install stack. Each text is on one line, and is escaped so that no character in
//! it can end its quotes.

use std::io;

use freehold_protocol::limits::MAX_TITLE_CHARS;
use freehold_protocol::shape::{is_format, is_printable_in_yaml, yaml_escape};
use serde::{Serialize, Serializer, ser::Error};
use serde_json::ser::Formatter;

/// The maximum lengths of descriptions and titles, in characters.
pub(crate) const DESCRIPTION_CHARS: usize = 500;
pub(crate) const TITLE_CHARS: usize = MAX_TITLE_CHARS;

/// Returns a readable text on one line, without unprintable characters, and with at most `most` characters.
pub(crate) fn one_line(text: &str, most: usize) -> String {
    // Invisible characters, such as marks for the direction of writing, could hide the text beside them.
    let shown = text.chars().filter(|c| !is_format(*c));
    let printable: String = shown.map(|c| if is_printable_in_yaml(c) { c } else { ' ' }).collect();
    // CloudFormation substitutes no parameter in these texts, but linters read `${` as the start of a substitution.
    let line = printable.split_whitespace().collect::<Vec<_>>().join(" ").replace("${", "$ {");
    // In the description of a secret, CloudFormation would replace a dynamic reference (`{{resolve:...}}`) with a value of
    // the account. The second replacement finds the pair that overlaps the first one in `{{{`.
    let line = line.replace("{{", "{ {").replace("{{", "{ {");
    if line.chars().count() <= most {
        return line;
    }
    let kept: String = line.chars().take(most.saturating_sub(1)).collect();
    format!("{}…", kept.trim_end())
}

/// A text, or a JSON value, that the template shows as YAML on one line. Each text in it becomes a double-quoted scalar
/// (YAML 1.1, sections 5.6 and 9.2.1); no character in the text can end the scalar.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Quoted<T = String>(pub(crate) T);

impl<T: Serialize> Serialize for Quoted<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut yaml = Vec::new();
        let mut flow = serde_json::Serializer::with_formatter(&mut yaml, Flow);
        self.0.serialize(&mut flow).map_err(S::Error::custom)?;
        serializer.serialize_str(&String::from_utf8(yaml).map_err(S::Error::custom)?)
    }
}

/// Writes JSON that is also YAML. It escapes the characters that JSON allows in a text, but that end a line in YAML or
/// are forbidden there.
struct Flow;

impl Formatter for Flow {
    fn write_string_fragment<W: ?Sized + io::Write>(&mut self, writer: &mut W, fragment: &str) -> io::Result<()> {
        let mut rest = fragment;
        while let Some((at, c)) = rest.char_indices().find(|(_, c)| !is_printable_in_yaml(*c)) {
            let (printable, after) = rest.split_at(at);
            write!(writer, "{printable}{}", yaml_escape(c))?;
            rest = after.strip_prefix(c).unwrap_or_default();
        }
        writer.write_all(rest.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_line_begins_a_reference_that_cloudformation_replaces() {
        for (text, line) in [
            ("Answer to {{resolve:secretsmanager:prod/db}}", "Answer to { {resolve:secretsmanager:prod/db}}"),
            ("{{{resolve:ssm:x}}", "{ { {resolve:ssm:x}}"),
            ("{{{{", "{ { { {"),
        ] {
            assert_eq!(one_line(text, DESCRIPTION_CHARS), line);
        }
    }
}
