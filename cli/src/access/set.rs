//! `freehold access set`: replaces the policies.

use std::path::PathBuf;

use clap::Args;
use freehold_access::Policies;
use freehold_client::calls;
use freehold_protocol::Digest;
use freehold_protocol::api::{PoliciesView, SetPoliciesRequest};
use similar::TextDiff;

use super::origin;
use crate::confirm::{self, Effect};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::output::note;

/// The advice about a file that has no policies.
const FILE: &str = "pass a file with all policies; `freehold access show > policies.cedar` writes one to begin with";
const CHANGE: Effect = Effect {
    verb: "changes who may do what",
    refused: "the policies were not changed",
    way_out: "pass `--yes` to replace the policies, or compare the file with the output of `freehold access show`",
};

/// Replace the policies: show what changes, and ask before it is applied.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  freehold access show > policies.cedar
  freehold access set policies.cedar
  freehold access set policies.cedar --yes

The file has all policies of the tenant, and what it leaves out is removed: begin with the output of `freehold access
show`. Each policy has a name, `@id`. The ready-made policies let developers look at production and change nothing
there. This one, added to them, lets one developer deploy one install in production:

  @id(\"ana-deploys-globex\")
  permit (
      principal,
      action == Freehold::Action::\"deploy_components\",
      resource == Freehold::Install::\"globex\"
  ) when { principal.name == \"ana@example.com\" };

A policy that begins with `forbid` wins over all that permit. A mistake is named with its line and column before
anything is sent, and the tenant refuses policies with which nobody could change the policies again. New policies
decide about each request from then on; `freehold access test` asks what they decide.")]
pub(crate) struct Set {
    /// File with all policies, in the language Cedar.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Digest of the policies that the file is a change of, as `freehold access show` prints it. If somebody has
    /// changed the policies since, the command changes nothing.
    #[arg(long, value_name = "DIGEST")]
    expected: Option<Digest>,
    /// Do not ask.
    #[arg(long)]
    yes: bool,
}

impl Set {
    pub(super) async fn run(&self, context: &Context) -> Result<()> {
        let policies = crate::file::read_text(&self.file, FILE)?;
        Policies::parse(&policies).map_err(|error| Error::invalid(format!("`{}`: {error}", self.file.display())))?;
        let api = context.api().await?;
        let stored: PoliciesView = api.send(calls::show_policies()).await?;
        self.check_expected(&stored.digest)?;
        if stored.policies == policies {
            return context.out.show(&stored, |_| "the tenant has these policies already".to_owned());
        }
        if !(self.yes && context.out.is_json()) {
            note(&self.difference(&stored, &policies));
        }
        confirm::consent("Replace the policies?", self.yes, CHANGE)?;
        // Somebody else may have changed the policies while the person read the difference.
        let request = SetPoliciesRequest { policies, expected: Some(stored.digest) };
        let set: PoliciesView = api.send(calls::set_policies(&request)).await?;
        context.out.show(&set, |set| {
            format!(
                "change {} of the policies decides about each request from now on; digest {}\n\n\
                 next: freehold access test --member NAME --action ACTION",
                set.number, set.digest
            )
        })
    }

    fn check_expected(&self, stored: &Digest) -> Result<()> {
        match &self.expected {
            Some(expected) if expected != stored => {
                let message = format!("the policies have the digest {stored}, and you expected {expected}");
                Err(Error::conflict(message).or(
                    "somebody has changed them: read them with `freehold access show`, and make your change in them",
                ))
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Returns the lines in which the file differs from the stored policies.
    fn difference(&self, stored: &PoliciesView, policies: &str) -> String {
        let from = origin::of(stored);
        let lines = TextDiff::from_lines(stored.policies.as_str(), policies);
        lines.unified_diff().context_radius(2).header(&from, &self.file.display().to_string()).to_string()
    }
}
