//! Channels of releases, and the rule that an install which follows a release or a channel deploys nothing else.

use freehold_protocol::api::Follows;
use freehold_protocol::order::AskedBy;
use freehold_protocol::{AppName, ChannelName, Digest, InstallId, ReleaseName, Timestamp, WorkflowId};
use serde::{Deserialize, Serialize};

use super::Install;

/// The maximum number of channels of one app.
pub const MAX_CHANNELS: usize = 20;

/// A channel of an app: a name for the release that the installs which follow the channel are to run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Channel {
    pub app: AppName,
    pub name: ChannelName,
    pub release: ReleaseName,
    /// How often the channel was moved.
    pub moves: u64,
    pub moved_at: Timestamp,
    pub moved_by: AskedBy,
}

impl Channel {
    /// Returns a new channel of the release.
    pub const fn new(app: AppName, name: ChannelName, release: ReleaseName, by: AskedBy, at: Timestamp) -> Self {
        Self { app, name, release, moves: 1, moved_at: at, moved_by: by }
    }

    /// Returns the channel after its move to `release`; `None` if it has that release already.
    #[must_use]
    pub fn moved(&self, release: &ReleaseName, by: &AskedBy, at: Timestamp) -> Option<Self> {
        (self.release != *release).then(|| Self { release: release.clone(), ..self.moved_again(by, at) })
    }

    /// Returns the channel after a move to the release that it has, which deploys its followers again.
    #[must_use]
    pub fn moved_again(&self, by: &AskedBy, at: Timestamp) -> Self {
        Self { moves: self.moves.saturating_add(1), moved_at: at, moved_by: by.clone(), ..self.clone() }
    }

    /// Returns the id of the workflow that deploys the channel's release in `install`. Each move of the channel has its
    /// own workflow. An install that begins to follow the channel again gets a new workflow too.
    pub fn workflow(&self, install: &Install) -> WorkflowId {
        WorkflowId::derive(install.id.as_str(), &self.cause(install))
    }

    /// Returns the cause from which the id of this workflow is derived.
    pub fn cause(&self, install: &Install) -> String {
        format!("channel {} {} {}", self.name, self.moves, install.follows_since.as_millis())
    }
}

/// A deploy names another version or release than the install follows.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "install `{install}` follows {follows}, so only release `{release}` is deployed there; leave out the version or \
     release, or change what it follows: `freehold install release {install} --pin RELEASE` or `--latest`"
)]
pub struct OtherRelease {
    pub install: InstallId,
    pub follows: Follows,
    /// The release that the install is to run.
    pub release: ReleaseName,
}

/// The target that a deploy names: nothing, a version or a release.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Named<'a> {
    pub version: Option<&'a Digest>,
    pub release: Option<&'a ReleaseName>,
}

/// Checks that a deploy names nothing, the release that the install follows, or its version: `followed` is that release
/// and its version, or `None` if the install follows the latest version.
///
/// # Errors
/// [`OtherRelease`].
pub fn check_wanted(
    install: &Install,
    followed: Option<(&ReleaseName, &Digest)>,
    named: Named<'_>,
) -> Result<(), OtherRelease> {
    let Some((release, version)) = followed else { return Ok(()) };
    if named.version.is_none_or(|named| named == version) && named.release.is_none_or(|named| named == release) {
        return Ok(());
    }
    Err(OtherRelease { install: install.id.clone(), follows: install.follows.clone(), release: release.clone() })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::install::Serves;

    fn name(number: u8) -> ReleaseName {
        format!("r{number}").parse().unwrap()
    }

    fn install(follows: Follows) -> Install {
        let serves = Serves::App { app: "shop".parse().unwrap(), version: None };
        let (account, region) = ("222222222222".parse().unwrap(), "eu-west-1".to_owned());
        Install { follows, ..Install::new("globex".parse().unwrap(), serves, account, region, Timestamp::default()) }
    }

    fn channel() -> Channel {
        let (app, stable) = ("shop".parse().unwrap(), "stable".parse().unwrap());
        Channel::new(app, stable, name(1), AskedBy::Schedule, Timestamp::from_millis(1))
    }

    #[test]
    fn a_channel_moves_to_another_release_and_only_to_another() {
        let (by, at) = (AskedBy::Sweep, Timestamp::from_millis(9));

        let moved = channel().moved(&name(2), &by, at).unwrap();

        assert_eq!((moved.moves, moved.moved_at, &moved.moved_by, &moved.release), (2, at, &by, &name(2)));
        assert_eq!(moved.moved(&name(2), &by, at), None);
    }

    #[test]
    fn each_move_and_each_time_of_following_has_a_workflow_of_its_own() {
        let moved = channel().moved(&name(2), &AskedBy::Sweep, Timestamp::from_millis(9)).unwrap();
        let first = install(Follows::Channel { channel: "stable".parse().unwrap() });
        let again = Install { follows_since: Timestamp::from_millis(7), ..first.clone() };

        let ids = [channel().workflow(&first), moved.workflow(&first), moved.workflow(&again)];

        assert_eq!(ids.iter().collect::<std::collections::BTreeSet<_>>().len(), 3);
        assert_eq!(channel().workflow(&first), ids[0]);
    }

    #[test]
    fn a_refused_deploy_names_what_the_install_follows_and_the_way_out() {
        let install = install(Follows::Channel { channel: "stable".parse().unwrap() });
        let (version, two) = (Digest::of(b"1"), name(2));
        let named = Named { version: None, release: Some(&two) };

        let refused = check_wanted(&install, Some((&name(1), &version)), named).unwrap_err();

        assert_eq!(
            refused.to_string(),
            "install `globex` follows channel `stable`, so only release `r1` is deployed there; leave out the version or \
             release, or change what it follows: `freehold install release globex --pin RELEASE` or `--latest`"
        );
    }

    proptest! {
        /// Whatever a deploy names, an install that follows a release gets that release or a refusal.
        #[test]
        fn an_install_that_follows_a_release_gets_no_other(
            has in 0_u8..4,
            version in proptest::option::of(0_u8..4),
            release in proptest::option::of(0_u8..4),
        ) {
            let install = install(Follows::Release { release: name(has) });
            let (followed, version) = (Digest::of(&[has]), version.map(|number| Digest::of(&[number])));
            let release = release.map(name);
            let named = Named { version: version.as_ref(), release: release.as_ref() };

            let pinned = check_wanted(&install, Some((&name(has), &followed)), named);

            let is_same = version.as_ref().is_none_or(|named| *named == followed)
                && release.as_ref().is_none_or(|named| *named == name(has));
            prop_assert_eq!(pinned.is_ok(), is_same);
            prop_assert!(check_wanted(&install, None, named).is_ok());
        }
    }
}
