//! `freehold customer approvals`: who approved what. This version asks nobody, and says so.

use clap::Args;
use serde::Serialize;

use super::super::question::Question;
use super::evidence::Records;
use super::history::runs;
use super::{answer, askers};
use crate::context::Context;
use crate::error::Result;
use crate::output::plural;

/// Say who approved what ran, as the customer.
#[derive(Debug, Args)]
#[command(after_help = Question::Approved.help("\
Example:
  freehold customer approvals globex --tenant acme"))]
pub(crate) struct Approvals {
    #[command(flatten)]
    records: Records,
}

#[derive(Debug, Serialize)]
struct Approved {
    /// Whether this version asks anybody for an approval.
    asked_for: bool,
    /// The number of attempts that ran, none of them with an approval.
    without_approval: usize,
}

impl Approvals {
    pub(crate) async fn run(&self, context: &Context) -> Result<()> {
        let evidence = self.records.read(context).await?;
        let runs = runs(&evidence.copy, evidence.roots.as_ref());
        let approved = Approved { asked_for: false, without_approval: runs.len() };
        let doubts = askers::doubts(&runs);
        answer::give(Question::Approved, &evidence, (&approved, &doubts), context, |_| {
            format!(
                "Nobody: this version of Freehold asks nobody for an approval. {} ran without one. You agreed to the \
                 contract once, and the runner held each order against it.",
                plural(runs.len(), "attempt")
            )
        })
    }
}
