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

/// The maximum number of characters of a value in a message.
const SHOWN_CHARS: usize = 80;

/// Returns the start of a text on one line, for a message.
pub(super) fn shown(text: &str) -> String {
    let line: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(SHOWN_CHARS).collect();
    if text.chars().count() > SHOWN_CHARS { format!("{line}…") } else { line }
}
