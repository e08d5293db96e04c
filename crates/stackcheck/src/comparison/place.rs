//! The position of a value in a template, for messages.

use std::fmt;

/// The keys and list items that lead from the template's root to a value.
#[derive(Debug, Clone, Default)]
pub(super) struct Place(Vec<String>);

impl Place {
    /// Returns the place of the entry `key` of this map.
    pub(super) fn key(&self, key: &str) -> Self {
        Self([self.0.as_slice(), &[key.to_owned()]].concat())
    }

    /// Returns the place of the item `at` of this list, counted from 0.
    pub(super) fn item(&self, at: usize) -> Self {
        self.key(&format!("[{at}]"))
    }

    /// Returns the name of the resource, parameter or other part that contains the value; empty for the template as a
    /// whole.
    pub(super) fn of(&self) -> &str {
        self.0.get(1).map_or("", String::as_str)
    }

    /// Returns whether the place is that of a whole resource.
    pub(super) fn is_resource(&self) -> bool {
        self.is_entry_of("Resources")
    }

    /// Returns whether the place is that of a whole output.
    pub(super) fn is_output(&self) -> bool {
        self.is_entry_of("Outputs")
    }

    fn is_entry_of(&self, name: &str) -> bool {
        matches!(self.0.as_slice(), [section, _] if section == name)
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, part) in self.0.iter().enumerate() {
            let dot = if at == 0 || part.starts_with('[') { "" } else { "." };
            write!(f, "{dot}{}", shown(part))?;
        }
        Ok(())
    }
}

/// The maximum length of a word of a command in a message. No logical id and no type of AWS is longer.
const MAX_WORD_CHARS: usize = 255;

/// The maximum number of characters of a value in a message.
const SHOWN_CHARS: usize = 80;

/// Returns whether a text can be a part of a command in a message: the logical id of a resource, or its type.
pub(super) fn is_word(text: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || byte == b':';
    !text.is_empty() && text.len() <= MAX_WORD_CHARS && text.bytes().all(is_part)
}

/// Returns the start of a text on one line, for a message that has it in backticks. A backtick in the text would end them, and
/// what follows would look like a text of Freehold.
pub(super) fn shown(text: &str) -> String {
    let plain = |c: char| match c {
        '`' => '\'',
        c if c.is_control() => ' ',
        c => c,
    };
    let line: String = text.chars().map(plain).take(SHOWN_CHARS).collect();
    if text.chars().count() > SHOWN_CHARS { format!("{line}…") } else { line }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_cannot_leave_its_backticks_or_become_a_part_of_a_command() {
        assert_eq!(shown("x`; run `curl evil`"), "x'; run 'curl evil'");
        assert_eq!(shown("a\nb"), "a b");
        assert!(is_word("AWS::SNS::Topic") && is_word("Alarm1"));
        assert!(!is_word("Alarm; curl") && !is_word("$(x)") && !is_word(""));
    }
}
