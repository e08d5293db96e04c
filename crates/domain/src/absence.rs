//! The errors for things that a tenant does not have. They are in this crate so that tests of the command can use their
//! texts.

use freehold_protocol::{ActionName, AppName, ChannelName, Digest, InstallId, ReleaseName, RunId, WebhookName};

/// A thing that a request names or needs, and that the tenant does not have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Absence {
    #[error("install `{0}` does not exist; `freehold install list` shows all installs")]
    Install(InstallId),
    #[error("app `{0}` does not exist; sync it with `freehold app sync DIR`")]
    App(AppName),
    #[error("app `{app}` has no version `{version}`; sync it first")]
    Version { app: AppName, version: Digest },
    #[error("release `{release}` of app `{app}` does not exist; `freehold release list {app}` shows all releases")]
    Release { app: AppName, release: ReleaseName },
    #[error(
        "channel `{channel}` of app `{app}` does not exist; `freehold channel list {app}` shows all channels, and `freehold \
         channel move {app} {channel} RELEASE` creates it"
    )]
    Channel { app: AppName, channel: ChannelName },
    #[error("webhook `{0}` does not exist; `freehold webhook list` shows all webhooks")]
    Webhook(WebhookName),
    #[error("run `{0}` does not exist; `freehold runbook runs INSTALL` shows the runs of an install")]
    Run(RunId),
    /// `place` is the version that does not have the action, and `way_out` is the hint that ends the message.
    #[error("there is no action `{action}` in {place}; {way_out}")]
    Action { action: ActionName, place: String, way_out: String },
    #[error("the tenant has no build runner yet; register one with `freehold tenant build-runner`")]
    BuildRunner,
}
