//! Writes the vendor's texts into the install stack: on one line, and escaped so that nothing in a text can end its
//! quotes.

use std::io;

use serde::{Serialize, Serializer, ser::Error};
use serde_json::ser::Formatter;

/// The longest descriptions and titles that are one_line, in characters.
pub(crate) const DESCRIPTION_CHARS: usize = 500;
pub(crate) const TITLE_CHARS: usize = 120;

/// Returns a text for people on one line, without characters that cannot be printed, and not longer than `most`
/// characters.
pub(crate) fn one_line(text: &str, most: usize) -> String {
    let printable: String = text.chars().map(|c| if is_printable(c) { c } else { ' ' }).collect();
    // CloudFormation does not substitute anything in these texts, but linters take `${` for a substitution.
    let line = printable.split_whitespace().collect::<Vec<_>>().join(" ").replace("${", "$ {");
    if line.chars().count() <= most {
        return line;
    }
    let kept: String = line.chars().take(most.saturating_sub(1)).collect();
    format!("{}…", kept.trim_end())
}

/// A text, or a JSON value, that the template shows as YAML on one line: each of its texts is a double-quoted scalar
/// (YAML 1.1, sections 5.6 and 9.2.1), which nothing in it can end.
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

/// Writes JSON that is also YAML: a JSON text may contain characters that end a line in YAML or are forbidden there.
struct Flow;

impl Formatter for Flow {
    fn write_string_fragment<W: ?Sized + io::Write>(&mut self, writer: &mut W, fragment: &str) -> io::Result<()> {
        let mut rest = fragment;
        while let Some((at, c)) = rest.char_indices().find(|(_, c)| !is_printable(*c)) {
            let (printable, after) = rest.split_at(at);
            write!(writer, "{printable}\\U{:08X}", u32::from(c))?;
            rest = after.strip_prefix(c).unwrap_or_default();
        }
        writer.write_all(rest.as_bytes())
    }
}

/// Returns whether a character may be in a YAML document unescaped and does not end a line.
fn is_printable(c: char) -> bool {
    !c.is_control() && !matches!(c, '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}')
}
