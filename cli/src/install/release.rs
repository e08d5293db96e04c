//! `freehold install release`: shows or sets what a deploy without a version or release deploys to an install.

use clap::Args;
use freehold_client::calls;
use freehold_protocol::api::{Follows, InstallView, SetReleaseRequest};
use freehold_protocol::{ChannelName, InstallId, ReleaseName};

use crate::context::Context;
use crate::error::Result;

/// Show what an install follows, pin it to a release, or let it follow a channel.
#[derive(Debug, Args)]
#[command(
    override_usage = "freehold install release [OPTIONS] <INSTALL>",
    after_help = "\
Examples:
  freehold install release globex                        shows what the install follows
  freehold install release globex --pin 2026.11
  freehold install release globex --channel stable
  freehold install release globex --latest

A pinned install gets its release and nothing else, from the next deploy on. An install that follows a channel is
deployed automatically: within minutes after this command, and whenever the channel moves. A deploy that names another
version or release is refused. The customer's windows, approvals and consent apply as to every other deploy."
)]
pub(crate) struct Release {
    /// Name of the install.
    install: InstallId,
    #[command(flatten)]
    choice: Choice,
}

/// The target that an install follows. Without any of these options, nothing changes.
#[derive(Debug, Args)]
#[group(multiple = false)]
pub(crate) struct Choice {
    /// The release to which the install is pinned.
    #[arg(long, value_name = "RELEASE")]
    pin: Option<ReleaseName>,
    /// The channel that the install follows.
    #[arg(long, value_name = "CHANNEL")]
    channel: Option<ChannelName>,
    /// Follow the latest version of the app, which is the default of an install.
    #[arg(long)]
    latest: bool,
}

impl Choice {
    /// Returns the target that the options name.
    fn follows(&self) -> Option<Follows> {
        match (&self.pin, &self.channel, self.latest) {
            (Some(release), ..) => Some(Follows::Release { release: release.clone() }),
            (None, Some(channel), _) => Some(Follows::Channel { channel: channel.clone() }),
            (None, None, true) => Some(Follows::Latest),
            (None, None, false) => None,
        }
    }
}

impl Release {
    pub(super) async fn run(&self, context: &Context) -> Result<()> {
        let (api, install) = (context.api().await?, &self.install);
        let chosen = self.choice.follows();
        let view: InstallView = match &chosen {
            None => api.send(calls::show_install(install)).await?,
            Some(release) => {
                let body = SetReleaseRequest { release: release.clone() };
                api.send(calls::set_release(install, &body)).await?
            }
        };
        context.out.show(&view, |view| {
            let text = format!("install `{install}` follows {}", view.release);
            match (&view.release, chosen.is_some()) {
                (Follows::Channel { .. }, true) => format!("{text}; it is deployed within minutes"),
                (Follows::Latest | Follows::Release { .. }, true) => {
                    format!("{text} from its next deploy on\n\nnext: freehold deploy {install}")
                }
                (_, false) => text,
            }
        })
    }
}

/// Returns the target that a new install follows.
pub(super) fn of_new(pin: Option<&ReleaseName>, channel: Option<&ChannelName>) -> Follows {
    match (pin, channel) {
        (Some(release), _) => Follows::Release { release: release.clone() },
        (None, Some(channel)) => Follows::Channel { channel: channel.clone() },
        (None, None) => Follows::Latest,
    }
}
