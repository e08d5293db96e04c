//! Creates an install and starts its provisioning, which waits for the runner.

use std::collections::BTreeMap;
use std::sync::Arc;

use freehold_domain::inputs::{check_given, merged};
use freehold_domain::install::name::check_name;
use freehold_domain::install::{Install, InstallError, Serves, labels};
use freehold_domain::plan::check_deployable;
use freehold_domain::region::check_region;
use freehold_domain::sealed_inputs::Sealing;
use freehold_domain::toggles;
use freehold_domain::workflow::{Request, RollBack, WorkflowKind};
use freehold_protocol::api::CreateInstallRequest;
use freehold_protocol::order::{AskedBy, Mode};
use freehold_protocol::{ComponentName, InstallId, Timestamp, WorkflowId};

use crate::AppError;
use crate::app_version::install_release::{followed, following};
use crate::app_version::versions::Versions;
use crate::new_workflow::{NewWorkflow, count_start, workflow_of, workflow_writes};
use crate::ports::{Clock, Committed, Expect, Key, Machines, Store, Write};
use crate::table::{
    self, InstallEntry, Stored, install_entry_key, install_key, load, name_prefixes, parse, prefix_key, put,
};

/// The use case that creates an install, with its ports.
#[derive(Clone)]
pub struct CreateInstall {
    pub store: Arc<dyn Store>,
    pub versions: Versions,
    pub machines: Arc<dyn Machines>,
    pub clock: Arc<dyn Clock>,
}

impl CreateInstall {
    /// Creates the install, on request of `by`. A repeated request gets the same workflow; a different request for the
    /// same name is refused.
    ///
    /// # Errors
    /// Invalid for wrong inputs, toggles or labels or an unknown region, NotFound for an unknown app, Conflict for a
    /// name that another install has or that collides with another name, or the ports' errors.
    pub async fn create(
        &self,
        request: &CreateInstallRequest,
        by: &AskedBy,
    ) -> Result<(Install, WorkflowId), AppError> {
        check_region(&request.region, request.unknown_region).map_err(|e| AppError::invalid(e.to_string()))?;
        labels::check(&request.labels).map_err(|e| AppError::invalid(e.to_string()))?;
        let id = &request.install;
        let known: Option<Stored<Install>> = load(&*self.store, &install_key(id)).await?;
        if let Some(known) = known {
            return self.existing(known.value, request).await;
        }
        self.check_names(id).await?;
        let toggles = self.check_version(request).await?;
        let now = self.clock.now();
        let fresh = self.fresh(request, toggles, now).await?;
        let workflow_id = fresh.provisioning();
        let (install, serial) = fresh.begin(&workflow_id, true)?;
        let new = NewWorkflow {
            id: workflow_id.clone(),
            kind: WorkflowKind::ProvisionInstall,
            mode: Mode::Provision,
            request: Request::deploy_latest(),
            digest: None,
            asked_by: by.clone(),
            run: None,
            now: false,
            roll_back: RollBack::None,
        };
        let workflow = workflow_of(&install, new, serial, now);
        let entry = InstallEntry { install: id.clone(), account: install.account.clone() };
        let mut writes = vec![put(&install, Expect::Absent)?, put(&entry, Expect::Any)?];
        writes.extend(workflow_writes(&workflow)?);
        writes.extend(prefix_writes(id));
        writes.extend(following(&*self.store, &request.app, &install).await?.0);
        if let Committed::Conflict(key) = self.store.commit(writes).await? {
            // Another copy of the same request may have created the install meanwhile.
            let known: Option<Stored<Install>> = load(&*self.store, &install_key(id)).await?;
            return match known {
                Some(known) => self.existing(known.value, request).await,
                None => Err(conflict(id, &key)),
            };
        }
        count_start(&workflow, &install);
        self.machines.start(WorkflowKind::ProvisionInstall, &workflow_id, id, 0).await?;
        tracing::info!(install.id = %id, "Created install `{id}` of app `{}`", request.app);
        Ok((install, workflow_id))
    }

    /// Checks the inputs and the toggles of the request against the version that the install follows. Returns the
    /// toggles.
    async fn check_version(&self, request: &CreateInstallRequest) -> Result<BTreeMap<ComponentName, bool>, AppError> {
        let version = followed(&self.versions, &request.app, &request.release).await?.version;
        check_deployable(&version.document)?;
        let sealing = Sealing { install: &request.install, key: None };
        check_given(&version.document, &BTreeMap::new(), &request.inputs, sealing)?;
        let chosen = request.toggles.iter().map(|(component, on)| (component.clone(), Some(*on))).collect();
        let toggles = toggles::changed(&version.document, &BTreeMap::new(), &chosen)?;
        crate::stack::render_stack::check(&version.document)?;
        Ok(toggles)
    }

    /// Returns the install that the request describes, before its first workflow.
    async fn fresh(
        &self,
        request: &CreateInstallRequest,
        toggles: BTreeMap<ComponentName, bool>,
        now: Timestamp,
    ) -> Result<Install, AppError> {
        let serves = Serves::App { app: request.app.clone(), version: None };
        let (account, region) = (request.account.clone(), request.region.clone());
        let generation = table::gone_installs(&*self.store).await?.0.count;
        Ok(Install {
            generation,
            // A runner that served a forgotten install of this name accepts only orders with higher serials than
            // before.
            next_serial: 1 + (u64::from(generation) << 32),
            inputs: merged(&BTreeMap::new(), &request.inputs),
            toggles,
            labels: request.labels.clone(),
            approval_option: request.approval_option,
            follows: request.release.clone(),
            // Most installs follow the latest version, and a short row costs one write unit.
            follows_since: if request.release.is_latest() { Timestamp::default() } else { now },
            ..Install::new(request.install.clone(), serves, account, region, now)
        })
    }

    async fn existing(
        &self,
        install: Install,
        request: &CreateInstallRequest,
    ) -> Result<(Install, WorkflowId), AppError> {
        install.check_kept()?;
        let workflow = install.provisioning();
        let same = install.app() == Some(&request.app)
            && install.account == request.account
            && install.region == request.region;
        if !same {
            let serves = install.app().map_or_else(|| "builds".to_owned(), |app| format!("app `{app}`"));
            let Install { id, account, region, .. } = install;
            return Err(InstallError::Exists { install: id, serves, account, region }.into());
        }
        if merged(&install.inputs, &request.inputs) != install.inputs {
            return Err(AppError::conflict(format!(
                "install `{0}` exists already, with other inputs; `freehold install inputs {0}` shows and changes them",
                install.id
            )));
        }
        if request.toggles.iter().any(|(component, on)| install.toggles.get(component) != Some(on)) {
            return Err(AppError::conflict(format!(
                "install `{0}` exists already, with other components switched on or off; `freehold install toggles {0}` \
                 shows and switches them",
                install.id
            )));
        }
        if request.approval_option != install.approval_option {
            return Err(AppError::conflict(format!(
                "install `{0}` exists already, with another approval option; `freehold install approvals {0}` changes it",
                install.id
            )));
        }
        if request.release != install.follows {
            return Err(AppError::conflict(format!(
                "install `{0}` exists already, and follows {1}; `freehold install release {0}` changes it",
                install.id, install.follows
            )));
        }
        if request.labels.iter().any(|(key, value)| install.labels.get(key) != Some(value)) {
            return Err(AppError::conflict(format!(
                "install `{0}` exists already, with other labels; `freehold install labels {0}` shows and changes them",
                install.id
            )));
        }
        if install.live.as_ref() == Some(&workflow) {
            self.machines.start(WorkflowKind::ProvisionInstall, &workflow, &install.id, 0).await?;
        }
        Ok((install, workflow))
    }

    /// Checks that the name is free, to return a clear error before the commit. If two installs are created at the same
    /// time, the conditions of the commit decide.
    async fn check_names(&self, id: &InstallId) -> Result<(), AppError> {
        let mut alike = self.store.query("installs", id.as_str(), None, 1).await?;
        for prefix in name_prefixes(id) {
            alike.extend(self.store.get(&install_entry_key(&prefix)).await?);
        }
        let entries: Vec<Stored<InstallEntry>> = alike.iter().map(parse).collect::<Result<_, _>>()?;
        Ok(check_name(id, entries.iter().map(|entry| &entry.value.install))?)
    }
}

/// Returns the writes which ensure that no install's name is a prefix of another install's name.
fn prefix_writes(id: &InstallId) -> Vec<Write> {
    let mut writes = vec![Write::CheckAbsent { key: prefix_key(id.as_str()) }];
    for prefix in name_prefixes(id) {
        writes.push(Write::CheckAbsent { key: install_key(&prefix) });
        let body = "{}".to_owned();
        writes.push(Write::Put { key: prefix_key(prefix.as_str()), body, expect: Expect::Any, expires: None });
    }
    writes
}

fn conflict(id: &InstallId, key: &Key) -> AppError {
    let existing = key.pk.strip_prefix("install#").and_then(|name| name.parse::<InstallId>().ok());
    match existing {
        Some(existing) if existing != *id => InstallError::Prefix { wanted: id.clone(), existing }.into(),
        _ => AppError::conflict(format!("install name `{id}` was taken meanwhile; choose another name")),
    }
}
