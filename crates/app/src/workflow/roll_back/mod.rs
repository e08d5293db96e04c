//! Rolls back a verified deploy that failed: a separate workflow deploys the version that ran before, with the vendor's
//! values with which it ran.
//!
//! The commit that ends the failed deploy stores a task that is due at once, and a sweep rolls the deploy back if the
//! call that should follow is lost. The roll back's id is derived from the failed deploy, so that there is at most one
//! roll back.

mod values;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use freehold_domain::install::Install;
use freehold_domain::plan::check_deployable;
use freehold_domain::workflow::{Before, Node, Request, RolledBack, Workflow, WorkflowKind};
use freehold_protocol::WorkflowId;
use freehold_protocol::order::{AskedBy, Mode};

use crate::app_version::builds::builds_of;
use crate::app_version::versions::{Version, Versions};
use crate::contract::terms;
use crate::new_workflow::{NewWorkflow, start};
use crate::ports::{Clock, Committed, Expect, Machines};
use crate::table::{self, RanRecord, Stored, load};
use crate::workflow::plan_deploy::{DeployOf, plan_deploy};
use crate::{AppError, Kind};
use values::check_one_set_of_values;

/// The use case that rolls deploys back, with its ports.
#[derive(Clone)]
pub struct RollBackDeploy {
    pub versions: Versions,
    pub machines: Arc<dyn Machines>,
    pub clock: Arc<dyn Clock>,
}

impl RollBackDeploy {
    /// Starts the roll back of a verified deploy that failed, or records why the deploy cannot be rolled back. A
    /// repeated call starts the execution of the same roll back. Does nothing for every other workflow.
    ///
    /// # Errors
    /// The errors of the store and Step Functions, and Transient while a job of the failed deploy is open. A refusal
    /// because of the install, the app or the customer is recorded in the failed deploy and is not an error.
    pub async fn roll_back(&self, failed: &WorkflowId) -> Result<(), AppError> {
        let Some(stored) = table::find_workflow(&*self.versions.store, failed).await? else { return Ok(()) };
        let by = stored.value.roll_back_id();
        if let Some(known) = table::find_workflow(&*self.versions.store, &by).await? {
            return self.start_again(&known.value).await;
        }
        let Some(before) = stored.value.to_roll_back().cloned() else { return Ok(()) };
        if let Some(job) = stored.value.active_jobs().next() {
            // Until the job has ended, the records that the plan compares do not show what the job changed.
            let message = format!("job `{job}` of deploy `{failed}` has not ended yet; the roll back waits for it");
            return Err(AppError::new(Kind::Transient, message));
        }
        match self.begin(&stored, &before).await {
            Ok(()) => Ok(()),
            Err(error) => self.refuse(&stored, error.refusal()?).await,
        }
    }

    /// Starts the execution of a roll back if a crash followed its commit.
    async fn start_again(&self, roll_back: &Workflow) -> Result<(), AppError> {
        if roll_back.state.is_terminal() {
            return Ok(());
        }
        self.machines.start(roll_back.machine(), &roll_back.id, &roll_back.install, roll_back.attempt()).await?;
        Ok(())
    }

    async fn begin(&self, failed: &Stored<Workflow>, before: &Before) -> Result<(), AppError> {
        let (store, workflow) = (&*self.versions.store, &failed.value);
        let mut install = table::install(store, &workflow.install).await?;
        if install.value.live.is_some() || install.value.last_exclusive != workflow.serial {
            return Err(AppError::conflict(format!(
                "another workflow of install `{}` has begun since the deploy failed",
                workflow.install
            )));
        }
        install.value.inputs.clone_from(&before.inputs);
        install.value.toggles.clone_from(&before.toggles);
        let version = self.versions.load(install.value.require_app()?, Some(&before.version)).await?;
        let nodes = self.plan(&install.value, &version).await?;
        before.check(&nodes).map_err(|why| AppError::conflict(why.to_string()))?;
        self.check_not_revoked(&version, &nodes).await?;
        let gates = terms::commands_of_gates(&nodes);
        terms::check_accepted(&self.versions, &install.value, &version, &gates).await?;
        let new = NewWorkflow {
            id: workflow.roll_back_id(),
            kind: WorkflowKind::DeployComponents,
            mode: Mode::Maintenance,
            request: Request::deploy_of(Some(before.version.clone())),
            digest: None,
            asked_by: workflow.asker().cloned().unwrap_or(AskedBy::Sweep),
            run: None,
            now: workflow.now,
            roll_back: workflow.rolled_back_as(),
        };
        let noted = workflow.followed_by(RolledBack::By { workflow: new.id.clone() });
        let writes = vec![table::put_workflow(&noted, Expect::Rev(failed.rev))?];
        start(store, &*self.machines, self.clock.now(), &install, new, writes).await
    }

    /// Plans the roll back in the same way as its workflow, to refuse a roll back that cannot be planned.
    async fn plan(&self, install: &Install, version: &Version) -> Result<Vec<Node>, AppError> {
        check_deployable(&version.document)?;
        let (only, former_inputs) = (BTreeSet::new(), BTreeMap::new());
        let of = DeployOf {
            only: &only,
            alone: false,
            all: false,
            release: None,
            role: None,
            former_inputs: &former_inputs,
            provision: false,
            serial: 0,
        };
        plan_deploy(&self.versions, install, &version.document, of).await
    }

    async fn check_not_revoked(&self, version: &Version, nodes: &[Node]) -> Result<(), AppError> {
        let builds = builds_of(&*self.versions.store, &version.document).await?;
        for deploys in nodes.iter().filter_map(|node| node.target.deploys()) {
            if let Some(why) = builds.get(&deploys.part).and_then(|build| build.revoked.as_ref()) {
                let (part, artifact) = (&deploys.part, deploys.artifact);
                return Err(AppError::conflict(format!(
                    "artifact `{artifact}` of component `{part}` was revoked: {why}"
                )));
            }
        }
        Ok(())
    }

    /// Records in the failed deploy why it is not rolled back, and what a person can do.
    async fn refuse(&self, failed: &Stored<Workflow>, why: String) -> Result<(), AppError> {
        let (id, install) = (&failed.value.id, &failed.value.install);
        tracing::warn!(workflow.id = %id, install.id = %install, "Deploy `{id}` is not rolled back: {why}");
        let way_out = format!("deploy a version or a release with `freehold deploy {install}`");
        let noted = failed.value.followed_by(RolledBack::refused(&why, &way_out));
        match self.versions.store.commit(vec![table::put_workflow(&noted, Expect::Rev(failed.rev))?]).await? {
            Committed::Done => Ok(()),
            Committed::Conflict(_) => Err(table::contended("workflow", id)),
        }
    }
}

/// Returns what runs in the install now, for a verified deploy.
///
/// # Errors
/// Conflict when no single version with one set of values could be deployed again.
pub(crate) async fn what_ran(versions: &Versions, install: &Install) -> Result<Before, AppError> {
    let (store, id) = (&*versions.store, &install.id);
    let ran: Option<Stored<RanRecord>> = load(store, &table::ran_key(id)).await?;
    let (Some(version), Some(ran)) = (install.version(), ran) else {
        return Err(AppError::conflict(format!(
            "install `{id}` has nothing to roll back to, because no deploy of all its components has succeeded yet; leave \
             out `--verified`"
        )));
    };
    let document = versions.load(install.require_app()?, Some(version)).await?.document;
    let builds = builds_of(store, &document).await?;
    let parts = table::parts(store, id).await?;
    for (name, part) in parts.iter().filter(|(name, _)| document.part(name).is_some()) {
        let usable = builds.get(name).and_then(|build| build.usable());
        if part.partial || usable.is_none_or(|artifact| artifact.digest != part.artifact) {
            return Err(AppError::conflict(format!(
                "component `{name}` of install `{id}` does not run the artifact of the install's version, so there is \
                 no version to roll back to; run `freehold deploy {id}` without `--verified` first"
            )));
        }
    }
    check_one_set_of_values(install, &document, &ran.value, &parts)?;
    let artifacts = parts.into_iter().map(|(name, part)| (name, part.artifact)).collect();
    Ok(Before { version: version.clone(), inputs: ran.value.inputs, toggles: ran.value.toggles, artifacts })
}
