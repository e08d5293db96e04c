//! The span of one piece of work, such as one message, request or due workflow. It names the install, its app, the
//! workflow and the job, so that every log line of the work can be found by them.

use freehold_domain::{Install, Job};
use freehold_protocol::{InstallId, WorkflowId};
use tracing::Span;
use tracing::field::Empty;

/// The name of the span.
pub const SPAN: &str = "work";

/// Returns the span of a piece of work whose names are not known yet. They are recorded when the install or the job is
/// loaded.
pub fn span() -> Span {
    // The span is not a log line. Its level is the highest, so that also a filter of errors alone keeps the names.
    tracing::error_span!(SPAN, app = Empty, install = Empty, workflow = Empty, job = Empty)
}

/// Returns the span of work on one workflow, which may be about several jobs.
pub fn of_workflow(id: &WorkflowId) -> Span {
    tracing::error_span!(SPAN, app = Empty, install = Empty, workflow = id.as_str())
}

/// Returns the span of work on one install, which may be about several workflows.
pub fn of_install(id: &InstallId) -> Span {
    tracing::error_span!(SPAN, app = Empty, install = id.as_str())
}

/// Records the install and its app in the span of the current work. The install of the build runner has no app and is
/// left out: work on it is about a build.
pub(crate) fn note_install(install: &Install) {
    if let Some(app) = install.app() {
        Span::current().record("app", app.as_str()).record("install", install.id.as_str());
    }
}

/// Records a job, its workflow and its install in the span of the current work.
pub(crate) fn note_job(job: &Job) {
    let span = Span::current();
    span.record("install", job.install.as_str());
    span.record("workflow", job.workflow.as_str());
    span.record("job", job.id.as_str());
}
