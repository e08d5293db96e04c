//! The answer of a command for customers before anybody sees it. The command prints it, and a page of
//! `freehold customer ui` shows it, so that both state the same.

use serde::Serialize;

use crate::error::{Error, Result};
use crate::output::{Output, Part, json_of};

/// The answer of a command.
#[derive(Debug)]
pub(super) struct Answer {
    /// The answer as `--json` prints it.
    pub(super) json: String,
    /// The answer as people read it.
    pub(super) parts: Vec<Part>,
    /// The reason why the answer is no, or is not proven. The command ends with it.
    pub(super) wrong: Option<Error>,
}

impl Answer {
    pub(super) fn new<T: Serialize>(value: &T, parts: Vec<Part>) -> Result<Self> {
        Ok(Self { json: json_of(value)?, parts, wrong: None })
    }

    /// Returns this answer with the reason why it is no or is not proven, if `verdict` is an error.
    pub(super) fn with_verdict(self, verdict: Result<()>) -> Self {
        Self { wrong: verdict.err(), ..self }
    }

    /// Prints the answer. Returns an error if the answer is no or is not proven.
    pub(super) fn print(self, out: Output) -> Result<()> {
        out.show_parts(&self.json, &self.parts);
        self.wrong.map_or(Ok(()), Err)
    }
}
