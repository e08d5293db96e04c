//! Revokes an artifact: it is not granted to any install again, and a release cannot contain it.

use std::sync::Arc;

use freehold_domain::build::Build;
use freehold_protocol::Digest;
use freehold_protocol::api::{ReasonRequest, Revoked};

use crate::AppError;
use crate::ports::{Expect, Store};
use crate::reason::reason;
use crate::table::evidence::{MadeBy, artifact_pk};
use crate::table::{self, Decided, Stored, build_key, load, load_all, put};

/// The use case that revokes an artifact, with its ports.
#[derive(Clone)]
pub struct RevokeArtifact {
    pub store: Arc<dyn Store>,
}

impl RevokeArtifact {
    /// Revokes every build that made the artifact.
    ///
    /// # Errors
    /// Invalid for a reason that is empty, too long or has several lines, NotFound for an artifact that no build made,
    /// or the store's errors.
    pub async fn revoke(&self, artifact: &Digest, because: &ReasonRequest) -> Result<Revoked, AppError> {
        let reason = reason(because)?;
        let made: Vec<MadeBy> = load_all(&*self.store, &artifact_pk(artifact), "build#").await?;
        if made.is_empty() {
            return Err(AppError::not_found(format!(
                "no build made artifact `{artifact}`; `freehold install show` and `freehold build` show digests"
            )));
        }
        let mut builds = Vec::with_capacity(made.len());
        for made in made {
            self.revoke_build(&made, &reason).await?;
            builds.push(made.build);
        }
        tracing::warn!("Revoked artifact `{artifact}`: {reason}");
        Ok(Revoked { artifact: artifact.clone(), reason, builds })
    }

    async fn revoke_build(&self, made: &MadeBy, reason: &str) -> Result<(), AppError> {
        let revoked = table::change(&*self.store, ("build", &made.build), || async {
            let stored: Option<Stored<Build>> = load(&*self.store, &build_key(&made.app, &made.build)).await?;
            let Some(stored) = stored.filter(|stored| stored.value.revoked.as_deref() != Some(reason)) else {
                return Ok(Decided::Keep(()));
            };
            let build = Build { revoked: Some(reason.to_owned()), ..stored.value };
            Ok(Decided::Commit(vec![put(&build, Expect::Rev(stored.rev))?], ()))
        });
        revoked.await
    }
}
