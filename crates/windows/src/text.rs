//! Reads a parameter's text piece by piece, and reports where a piece is wrong.

use std::ops::Range;

/// A parameter of the install stack is not a rule about changes. The message names the place in the text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("parameter `{parameter}`, column {column}: {what}")]
pub struct RulesError {
    pub parameter: &'static str,
    /// The place of the first wrong character, counted in characters from 1.
    pub column: usize,
    /// The mistake, and the text to write instead.
    pub what: String,
}

/// A part of a parameter's text.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Piece<'a> {
    parameter: &'static str,
    whole: &'a str,
    start: usize,
    end: usize,
}

impl<'a> Piece<'a> {
    /// Returns the whole text of a parameter.
    pub(crate) const fn of(parameter: &'static str, whole: &'a str) -> Self {
        Self { parameter, whole, start: 0, end: whole.len() }
    }

    pub(crate) fn text(&self) -> &'a str {
        self.whole.get(self.start..self.end).unwrap_or_default()
    }

    /// Returns the piece without spaces at its ends.
    pub(crate) fn trimmed(self) -> Self {
        let text = self.text();
        let start = self.start + (text.len() - text.trim_start().len());
        Self { start, end: start + text.trim().len(), ..self }
    }

    /// Returns the trimmed pieces between the separators.
    pub(crate) fn split(self, separator: char) -> impl Iterator<Item = Self> {
        let mut at = self.start;
        self.text().split(separator).map(move |part| {
            let start = at;
            at += part.len() + separator.len_utf8();
            Self { start, end: start + part.len(), ..self }.trimmed()
        })
    }

    /// Returns the trimmed pieces before and after the first separator.
    pub(crate) fn split_once(self, separator: &str) -> Option<(Self, Self)> {
        let at = self.text().find(separator)?;
        let (before, after) = (self.start..self.start + at, self.start + at + separator.len()..self.end);
        let part = |Range { start, end }: Range<usize>| Self { start, end, ..self }.trimmed();
        Some((part(before), part(after)))
    }

    /// Returns an error at the beginning of this piece.
    pub(crate) fn wrong(&self, what: impl Into<String>) -> RulesError {
        let before = self.whole.get(..self.start).unwrap_or_default();
        RulesError { parameter: self.parameter, column: before.chars().count() + 1, what: what.into() }
    }

    /// Returns the text in the form that messages show.
    pub(crate) fn quoted(&self) -> String {
        let text: String = self.text().chars().take(60).flat_map(char::escape_default).collect();
        format!("`{text}`")
    }
}
