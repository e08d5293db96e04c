//! Which release a job is about, where its chart lies, and where Helm keeps its revisions.

use freehold_protocol::order::InstallChart;

use crate::kinds::failure::Failure;
use crate::kinds::templates::Templates;

/// The chart in the workspace.
pub(super) const CHART: &str = "chart.tgz";

/// Which release it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Release {
    pub(super) name: String,
    pub(super) namespace: String,
    pub(super) driver: Driver,
}

impl Release {
    /// Renders the names that the config gives.
    pub(super) fn of(work: &InstallChart, templates: &Templates) -> Result<Self, Failure> {
        Ok(Self {
            name: templates.text("`chart_name`", &work.release)?,
            namespace: templates.text("`namespace`", &work.namespace)?,
            driver: Driver::of(&work.storage_driver),
        })
    }
}

/// Where Helm keeps releases.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Driver {
    Secret,
    ConfigMap,
}

impl Driver {
    /// Returns the driver that a config names. `nuon` is a store of another product's runner.
    pub(super) fn of(word: &str) -> Self {
        if word.starts_with("configmap") { Self::ConfigMap } else { Self::Secret }
    }

    /// Returns the word for `HELM_DRIVER`.
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Secret => "secret",
            Self::ConfigMap => "configmap",
        }
    }

    /// Returns the word for the objects in the API of the cluster.
    pub(super) const fn plural(self) -> &'static str {
        match self {
            Self::Secret => "secrets",
            Self::ConfigMap => "configmaps",
        }
    }
}
