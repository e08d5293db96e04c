//! Requests and responses of the API about channels, and what an install deploys when a deploy names nothing.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::order::AskedBy;
use crate::{AppName, ChannelName, ReleaseName, Timestamp};

/// The target that an install deploys when a deploy names neither a version nor a release.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "follows", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Follows {
    /// The latest version of its app.
    #[default]
    Latest,
    /// This release, and nothing else: the install is pinned to it.
    Release { release: ReleaseName },
    /// The release of this channel. When the channel moves, the install is deployed.
    Channel { channel: ChannelName },
}

impl Follows {
    /// Returns whether the install follows the latest version.
    pub const fn is_latest(&self) -> bool {
        matches!(self, Self::Latest)
    }
}

impl fmt::Display for Follows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Latest => f.write_str("the latest version"),
            Self::Release { release } => write!(f, "release `{release}`"),
            Self::Channel { channel } => write!(f, "channel `{channel}`"),
        }
    }
}

/// `POST /v1/installs/{install}/release`: pins the install to a release, lets it follow a channel, or lets it follow the
/// latest version again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct SetReleaseRequest {
    pub release: Follows,
}

/// `POST /v1/apps/{app}/channels/{channel}`: moves a channel to a release. The first move creates the channel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct MoveChannelRequest {
    pub release: ReleaseName,
    /// The number of the channel's moves so far. If it is set, a channel that already has the release deploys its
    /// followers again. A repeated request finds one move more, and changes nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub again_after: Option<u64>,
}

/// `GET /v1/apps/{app}/channels`: a channel, the release that it has, and how many installs follow it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ChannelView {
    pub app: AppName,
    pub channel: ChannelName,
    pub release: ReleaseName,
    /// How often the channel was moved, 1 after the move that created it.
    pub moves: u64,
    pub moved_at: Timestamp,
    /// Who moved the channel last.
    pub moved_by: AskedBy,
    /// The number of installs that follow the channel.
    pub installs: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_install_follows_is_one_word_with_its_name() {
        let channel = Follows::Channel { channel: "stable".parse().unwrap() };
        let release = Follows::Release { release: "2026.11".parse().unwrap() };

        for (follows, text, display) in [
            (Follows::Latest, r#"{"follows":"latest"}"#, "the latest version"),
            (release, r#"{"follows":"release","release":"2026.11"}"#, "release `2026.11`"),
            (channel, r#"{"follows":"channel","channel":"stable"}"#, "channel `stable`"),
        ] {
            assert_eq!(serde_json::to_string(&follows).unwrap(), text);
            assert_eq!(serde_json::from_str::<Follows>(text).unwrap(), follows);
            assert_eq!(follows.to_string(), display);
        }
    }
}
