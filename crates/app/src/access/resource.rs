//! The resource of a request: what its path or body names, and the install or app that this belongs to.

use std::collections::BTreeMap;
use std::fmt;

use freehold_access::Resource;
use freehold_domain::absence::Absence;
use freehold_domain::install::{BUILD_INSTALL, Install};
use freehold_domain::workflow::Request;
use freehold_domain::{Job, Workflow};
use freehold_protocol::{AppName, IdError, InstallId, JobId, RunId, WorkflowId};

use crate::AppError;
use crate::ports::Store;
use crate::table::{self, load};

/// The label that names the environment of an install. Only a label of the install itself counts: everybody who may
/// sync the app can change its default labels.
const ENVIRONMENT: &str = "environment";

/// The thing that a request names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum About {
    Tenant,
    App(AppName),
    /// An install that the request would create with these labels.
    NewInstall {
        install: InstallId,
        app: AppName,
        labels: BTreeMap<String, String>,
    },
    Install(InstallId),
    Workflow(WorkflowId),
    Job(JobId),
    Run(RunId),
}

impl fmt::Display for About {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tenant => f.write_str("the tenant"),
            Self::App(app) => write!(f, "app `{app}`"),
            Self::NewInstall { install, .. } | Self::Install(install) => write!(f, "install `{install}`"),
            Self::Workflow(workflow) => write!(f, "workflow `{workflow}`"),
            Self::Job(job) => write!(f, "job `{job}`"),
            Self::Run(run) => write!(f, "run `{run}`"),
        }
    }
}

impl About {
    /// Returns the resource that the policies know; `None` when the thing does not exist. An app may not exist: it is
    /// created by its first sync.
    ///
    /// # Errors
    /// The store's errors.
    pub(super) async fn resource(&self, store: &dyn Store) -> Result<Option<Resource>, AppError> {
        match self {
            Self::Tenant => Ok(Some(Resource::Tenant)),
            Self::App(app) => Ok(Some(Resource::App { app: app.clone() })),
            // Who creates an install again gets the view of the existing one.
            Self::NewInstall { install, app, labels } => Ok(Some(match of_install(store, install).await? {
                Some(existing) => existing,
                None => {
                    let (install, app) = (install.clone(), app.clone());
                    Resource::Install { install, app, environment: environment(labels) }
                }
            })),
            Self::Install(id) => of_install(store, id).await,
            Self::Workflow(id) => match table::find_workflow(store, id).await? {
                Some(found) => of_workflow(store, &found.value).await,
                None => Ok(None),
            },
            Self::Job(id) => match load::<Job>(store, &table::job_key(id)).await? {
                Some(job) if job.value.install.as_str() == BUILD_INSTALL => {
                    let workflow = table::find_workflow(store, &job.value.workflow).await?;
                    Ok(workflow.map(|found| of_build(&found.value)))
                }
                Some(job) => of_install(store, &job.value.install).await,
                None => Ok(None),
            },
            Self::Run(id) => match table::find_run(store, id).await? {
                Some(run) => of_install(store, &run.value.install).await,
                None => Ok(None),
            },
        }
    }

    /// Returns the resource that stands for a thing that does not exist: an install in production. Whoever may act on
    /// it may learn that the thing does not exist.
    ///
    /// # Errors
    /// Internal when the names of the install and of its app are not valid.
    pub(super) fn missing(&self) -> Result<Resource, AppError> {
        // INVARIANT: both texts have the form of their types.
        let invalid = |_: IdError| AppError::internal("the resource that stands for a missing one has no valid name");
        let install = match self {
            Self::Install(id) | Self::NewInstall { install: id, .. } => id.clone(),
            Self::Tenant | Self::App(_) | Self::Workflow(_) | Self::Job(_) | Self::Run(_) => {
                "missing".parse::<InstallId>().map_err(invalid)?
            }
        };
        let app = "missing".parse::<AppName>().map_err(invalid)?;
        Ok(Resource::Install { install, app, environment: Resource::PRODUCTION.to_owned() })
    }

    /// Returns the error about a thing that does not exist. Somebody who may not see the thing gets it too.
    pub(super) fn absence(&self) -> AppError {
        match self {
            Self::Tenant => AppError::not_found("the tenant does not have this"),
            Self::App(app) => table::unknown_app(app),
            Self::Install(id) | Self::NewInstall { install: id, .. } => Absence::Install(id.clone()).into(),
            Self::Workflow(id) => table::unknown_workflow(id),
            Self::Job(id) => table::unknown_job(id),
            Self::Run(id) => Absence::Run(id.clone()).into(),
        }
    }
}

async fn of_install(store: &dyn Store, id: &InstallId) -> Result<Option<Resource>, AppError> {
    let found = load::<Install>(store, &table::install_key(id)).await?;
    Ok(found.map(|found| resource_of(&found.value)))
}

async fn of_workflow(store: &dyn Store, workflow: &Workflow) -> Result<Option<Resource>, AppError> {
    if workflow.install.as_str() == BUILD_INSTALL {
        return Ok(Some(of_build(workflow)));
    }
    of_install(store, &workflow.install).await
}

/// Returns the resource of a workflow of the build runner: the app that it builds.
fn of_build(workflow: &Workflow) -> Resource {
    match &workflow.request {
        Request::Build { app, .. } => Resource::App { app: app.clone() },
        _ => Resource::Tenant,
    }
}

/// Returns the resource of an install. The build runner belongs to the tenant.
pub(super) fn resource_of(install: &Install) -> Resource {
    match install.app() {
        Some(app) => {
            let environment = environment(&install.labels);
            Resource::Install { install: install.id.clone(), app: app.clone(), environment }
        }
        None => Resource::Tenant,
    }
}

/// Returns the environment of an install with these labels of its own.
fn environment(labels: &BTreeMap<String, String>) -> String {
    let label = labels.get(ENVIRONMENT).map(|label| label.trim()).unwrap_or_default();
    if label.is_empty() || label.eq_ignore_ascii_case(Resource::PRODUCTION) {
        return Resource::PRODUCTION.to_owned();
    }
    label.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_install_without_an_environment_is_in_production() {
        let of = |label: &str| environment(&BTreeMap::from([(ENVIRONMENT.to_owned(), label.to_owned())]));

        assert_eq!(environment(&BTreeMap::new()), "production");
        assert_eq!(["", " ", "Production", " PRODUCTION "].map(of), ["production"; 4]);
        assert_eq!(["staging", "test-eu"].map(of), ["staging", "test-eu"]);
    }

    #[test]
    fn what_stands_for_a_missing_thing_has_valid_names() {
        assert!(About::Tenant.missing().is_ok());
    }
}
