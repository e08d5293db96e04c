//! `freehold channel`: moves and lists channels. A channel names a release, which is deployed to the installs that
//! follow the channel.

use clap::{Args, Subcommand};
use freehold_client::calls;
use freehold_protocol::api::{ChannelView, MoveChannelRequest};
use freehold_protocol::{AppName, ChannelName, ReleaseName};

use crate::api::Api;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::output::{Output, Table, time};

#[derive(Debug, Subcommand)]
pub(crate) enum ChannelCommand {
    Move(Move),
    /// List the channels of an app, their releases, and how many installs follow each channel.
    #[command(after_help = "Examples:\n  freehold channel list my-app\n  freehold channel list my-app --json")]
    List {
        /// Name of the app.
        app: AppName,
    },
}

/// Move a channel to a release, and deploy the installs that follow it.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  freehold channel move my-app stable 2026.11
  freehold install release globex --channel stable

The first move creates the channel. At most 50 installs start their deploys each minute, and each install starts one
deploy per move. An install that cannot start is tried again after 5 minutes, then after longer pauses, up to an hour;
`freehold install show` shows the reason. A deploy that failed or was cancelled is not repeated automatically: move the
channel to another release, resume the deploy like any other, or pass `--again`. To go back, move the channel to the
earlier release.")]
pub(crate) struct Move {
    /// Name of the app.
    app: AppName,
    /// Name of the channel, such as `stable`.
    channel: ChannelName,
    /// Name of the release.
    release: ReleaseName,
    /// Deploy the installs that follow the channel but do not run its release yet, even if the channel already has this
    /// release.
    #[arg(long)]
    again: bool,
}

impl ChannelCommand {
    pub(crate) async fn run(self, context: &Context) -> Result<()> {
        let api = context.api().await?;
        match self {
            Self::Move(Move { app, channel, release, again }) => {
                let again_after = if again { Some(moves(&api, &app, &channel).await?) } else { None };
                let request = MoveChannelRequest { release, again_after };
                let view: ChannelView = api.send(calls::move_channel(&app, &channel, &request)).await?;
                context.out.show(&view, moved)
            }
            Self::List { app } => {
                let all: Vec<ChannelView> = api.send(calls::list_channels(&app)).await?;
                context.out.show(&all, |all| list(&app, all, context.out))
            }
        }
    }
}

/// Returns how often the channel was moved.
async fn moves(api: &Api, app: &AppName, channel: &ChannelName) -> Result<u64> {
    let all: Vec<ChannelView> = api.send(calls::list_channels(app)).await?;
    let known = all.iter().find(|one| one.channel == *channel);
    known.map(|known| known.moves).ok_or_else(|| {
        Error::not_found(format!(
            "app `{app}` has no channel `{channel}` yet; leave out `--again` to create it by its first move"
        ))
    })
}

fn moved(view: &ChannelView) -> String {
    let ChannelView { app, channel, release, installs, .. } = view;
    let text = format!("channel `{channel}` of app `{app}` has release `{release}`");
    match installs {
        0 => format!("{text}; no install follows it\n\nnext: freehold install release INSTALL --channel {channel}"),
        1 => format!("{text}; the install that follows it is deployed within minutes"),
        more => format!("{text}; the {more} installs that follow it are deployed, at most 50 each minute"),
    }
}

fn list(app: &AppName, all: &[ChannelView], out: Output) -> String {
    if all.is_empty() {
        return format!("app `{app}` has no channel; `freehold channel move {app} CHANNEL RELEASE` creates one");
    }
    let mut table = Table::new(&["CHANNEL", "RELEASE", "INSTALLS", "MOVED", "BY"]);
    for one in all {
        table.row([
            one.channel.to_string(),
            one.release.to_string(),
            one.installs.to_string(),
            time(one.moved_at),
            one.moved_by.to_string(),
        ]);
    }
    out.table(&table)
}
