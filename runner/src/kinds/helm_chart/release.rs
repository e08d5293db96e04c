//! The release of a job: its name and namespace, the file of its chart, and where Helm stores its revisions.

use freehold_protocol::order::InstallChart;

use crate::job::failure::Failure;
use crate::kinds::templates::Templates;

/// The file name of the chart in the workspace.
pub(super) const CHART: &str = "chart.tgz";

/// The identity of a release.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Release {
    pub(super) name: String,
    pub(super) namespace: String,
    pub(super) driver: Driver,
}

impl Release {
    /// Returns the release that the order names, with its templates rendered.
    pub(super) fn of(work: &InstallChart, templates: &Templates) -> Result<Self, Failure> {
        Ok(Self {
            name: templates.text("`chart_name`", &work.release)?,
            namespace: templates.text("`namespace`", &work.namespace)?,
            driver: Driver::of(&work.storage_driver),
        })
    }
}

/// The kind of object in which Helm stores the revisions of releases.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Driver {
    Secret,
    ConfigMap,
}

impl Driver {
    /// Returns the driver for the name in a config. A name that begins with `configmap` selects `ConfigMap`. Every
    /// other name selects `Secret`, also `nuon`, which is a storage of another product.
    pub(super) fn of(word: &str) -> Self {
        if word.starts_with("configmap") { Self::ConfigMap } else { Self::Secret }
    }

    /// Returns the value for the environment variable `HELM_DRIVER`.
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Secret => "secret",
            Self::ConfigMap => "configmap",
        }
    }

    /// Returns the plural name of the kind, as the paths of the Kubernetes API have it.
    pub(super) const fn plural(self) -> &'static str {
        match self {
            Self::Secret => "secrets",
            Self::ConfigMap => "configmaps",
        }
    }
}
