//! `freehold artifact revoke`: revokes an artifact.

use clap::Args;
use freehold_client::calls;
use freehold_protocol::Digest;
use freehold_protocol::api::{ReasonRequest, Revoked};

use crate::context::Context;
use crate::error::Result;

/// Revoke an artifact: no install gets it any more, and no new release may contain it.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  freehold artifact revoke sha256:05b3abf2579a5eb66403cd78be557fd860633a1fe2103c7642030defe32c657f --reason CVE-2026-1

Installs to which the artifact is deployed are not changed; `freehold lineage DIGEST` lists them. A revocation cannot be
undone: change the source of the component and build it again.")]
pub(crate) struct Revoke {
    /// Digest of the artifact.
    artifact: Digest,
    /// The reason, which every refusal and the artifact's lineage show.
    #[arg(long, value_name = "REASON")]
    reason: String,
}

impl Revoke {
    pub(crate) async fn run(self, context: &Context) -> Result<()> {
        let Self { artifact, reason } = self;
        let api = context.api().await?;
        let answer: Revoked = api.send(calls::revoke_artifact(&artifact, &ReasonRequest { reason })).await?;
        context.out.show(&answer, |answer| {
            let builds: Vec<&str> = answer.builds.iter().map(|build| build.as_str()).collect();
            format!(
                "{} is revoked (build {}): {}\n\nnext: freehold lineage {0}",
                answer.artifact,
                builds.join(", "),
                answer.reason
            )
        })
    }
}
