//! The parts of an answer: a command prints them, and a page of `freehold customer ui` shows them.

use super::table::Table;

/// A part of an answer.
#[derive(Debug)]
pub(crate) enum Part {
    /// Sentences, whose long lines are wrapped.
    Text(String),
    Table(Table),
    /// A text whose lines are not wrapped, such as a log.
    Verbatim(String),
}
