//! The two switches that grants know: an install that gets nothing any more, and an artifact that nobody gets any more.

use std::sync::Arc;

use freehold_domain::build::Build;
use freehold_domain::install::Install;
use freehold_protocol::api::{ReasonRequest, Revoked};
use freehold_protocol::{Digest, InstallId};

use crate::AppError;
use crate::ports::{Expect, Store};
use crate::table::evidence::{MadeBy, artifact_pk};
use crate::table::{self, Decided, Stored, build_key, load, load_all, put};

/// The longest reason, in characters.
const LONGEST_REASON: usize = 500;

/// What switching needs.
#[derive(Clone)]
pub struct Switches {
    pub store: Arc<dyn Store>,
}

impl Switches {
    /// Disables an install, or gives another reason for that.
    ///
    /// # Errors
    /// Invalid for an unusable reason, NotFound, or the store's.
    pub async fn disable(&self, id: &InstallId, because: &ReasonRequest) -> Result<(), AppError> {
        self.set(id, Some(reason(because)?)).await
    }

    /// Enables an install again.
    ///
    /// # Errors
    /// NotFound, or the store's.
    pub async fn enable(&self, id: &InstallId) -> Result<(), AppError> {
        self.set(id, None).await
    }

    async fn set(&self, id: &InstallId, disabled: Option<String>) -> Result<(), AppError> {
        let changed = table::change(&*self.store, ("install", id), || async {
            let stored = table::install(&*self.store, id).await?;
            if stored.value.disabled == disabled {
                return Ok(Decided::Keep(false));
            }
            let install = Install { disabled: disabled.clone(), ..stored.value };
            Ok(Decided::Commit(vec![put(&install, Expect::Rev(stored.rev))?], true))
        });
        match (changed.await?, &disabled) {
            (true, Some(why)) => tracing::warn!(install.id = %id, "Disabled install `{id}`: {why}"),
            (true, None) => tracing::info!(install.id = %id, "Enabled install `{id}`"),
            (false, _) => {}
        }
        Ok(())
    }

    /// Takes an artifact back: every build that made it is revoked.
    ///
    /// # Errors
    /// Invalid for an unusable reason, NotFound for an artifact that no build made, or the store's.
    pub async fn revoke(&self, artifact: &Digest, because: &ReasonRequest) -> Result<Revoked, AppError> {
        let reason = reason(because)?;
        let made: Vec<MadeBy> = load_all(&*self.store, &artifact_pk(artifact), "build#").await?;
        if made.is_empty() {
            return Err(AppError::not_found(format!(
                "no build made artifact `{artifact}`; `freehold install show` and `freehold build` tell digests"
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

fn reason(because: &ReasonRequest) -> Result<String, AppError> {
    let reason = because.reason.trim();
    let usable = (1..=LONGEST_REASON).contains(&reason.chars().count()) && !reason.chars().any(char::is_control);
    if usable {
        return Ok(reason.to_owned());
    }
    Err(AppError::invalid(format!("a reason is one line of 1 to {LONGEST_REASON} characters; it is shown to others")))
}
