//! Decides which artifacts the tenant registry keeps, and why; all others are marked first and removed a day later.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use freehold_protocol::{BuildId, Digest, InstallId, ReleaseName, Timestamp, WorkflowId};

use crate::build::{Build, BuildState};

/// How long an artifact is kept after its build even when nothing uses it, in seconds. A release or a deploy may use it
/// later.
pub const YOUNG_SECS: u64 = 30 * 24 * 3600;
/// The time from the mark of an artifact to its removal, in seconds. No workflow or release may begin to use the
/// artifact in that time.
pub const WAIT_SECS: u64 = 24 * 3600;

/// The reason why an artifact is kept.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kept {
    /// The install runs the artifact.
    Runs(InstallId),
    /// The artifact belongs to the version that the install is at.
    InstallAt(InstallId),
    Release(ReleaseName),
    /// A workflow that has not ended may need the artifact.
    Workflow(WorkflowId),
    /// The artifact belongs to the newest version of its app.
    Newest,
    /// The artifact was built less than [`YOUNG_SECS`] ago.
    Young,
}

impl fmt::Display for Kept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Runs(install) => write!(f, "install `{install}` runs the artifact"),
            Self::InstallAt(install) => write!(f, "install `{install}` is at a version that contains the artifact"),
            Self::Release(release) => write!(f, "release `{release}`"),
            Self::Workflow(workflow) => write!(f, "workflow `{workflow}`"),
            Self::Newest => f.write_str("newest version"),
            Self::Young => write!(f, "built in the last {} days", YOUNG_SECS / (24 * 3600)),
        }
    }
}

/// The reasons to keep artifacts, by build and by artifact.
#[derive(Debug, Clone, Default)]
pub struct Uses {
    builds: BTreeMap<BuildId, BTreeSet<Kept>>,
    artifacts: BTreeMap<Digest, BTreeSet<Kept>>,
}

impl Uses {
    /// Records `kept` as a reason to keep the artifact of a build.
    pub fn build(&mut self, build: &BuildId, kept: Kept) {
        self.builds.entry(build.clone()).or_default().insert(kept);
    }

    /// Records `kept` as a reason to keep an artifact, whichever builds made it.
    pub fn artifact(&mut self, artifact: &Digest, kept: Kept) {
        self.artifacts.entry(artifact.clone()).or_default().insert(kept);
    }

    /// Returns the reasons to keep the artifact of a build; empty for a build without an artifact.
    pub fn of(&self, build: &Build, now: Timestamp) -> BTreeSet<Kept> {
        let BuildState::Built { artifact, built_at, .. } = &build.state else { return BTreeSet::new() };
        let by_build = self.builds.get(&build.id).into_iter().flatten();
        let by_artifact = self.artifacts.get(&artifact.digest).into_iter().flatten();
        let young = (now.since(*built_at) / 1000 < YOUNG_SECS).then_some(Kept::Young);
        by_build.chain(by_artifact).cloned().chain(young).collect()
    }
}

/// The next step for the artifact of a build.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    Nothing,
    /// Mark the artifact, because nothing uses it. No new workflow or release may use a marked artifact.
    Mark,
    /// Remove the mark, because the artifact is in use again.
    Restore,
    /// Remove the artifact, because it has been marked for [`WAIT_SECS`].
    Remove,
    /// Resume a removal that began and has not ended.
    Resume,
}

/// Returns the next step for a build. An artifact in use is never removed. An unused artifact is marked first and
/// removed [`WAIT_SECS`] later at the earliest. The wait is needed because a workflow or release that began just before
/// the mark may not be visible at once.
pub fn step(build: &Build, uses: &Uses, now: Timestamp) -> Step {
    match &build.state {
        BuildState::Building { .. } | BuildState::Failed { .. } | BuildState::Removed { done: true, .. } => {
            Step::Nothing
        }
        BuildState::Removed { done: false, .. } => Step::Resume,
        BuildState::Built { .. } => match (uses.of(build, now).is_empty(), build.unused_since) {
            (true, None) => Step::Mark,
            (true, Some(since)) if now.since(since) / 1000 >= WAIT_SECS => Step::Remove,
            (false, Some(_)) => Step::Restore,
            (true, Some(_)) | (false, None) => Step::Nothing,
        },
    }
}

#[cfg(test)]
mod tests {
    use freehold_protocol::order::{Artifact, Package, Source};
    use proptest::prelude::*;

    use super::*;

    const BUILT_AT: Timestamp = Timestamp::from_millis(1_000_000_000_000);

    fn build(unused_since: Option<Timestamp>) -> Build {
        let digest = Digest::of(b"artifact");
        let artifact = Artifact {
            digest: digest.clone(),
            media_type: "m".into(),
            manifests: Vec::new(),
            blobs: Vec::new(),
            provenance: None,
        };
        Build {
            id: "bld_00000000000000000001".parse().unwrap(),
            app: "shop".parse().unwrap(),
            component: "web".parse().unwrap(),
            package: Package::Image,
            source: Source::Image { reference: "r".into() },
            source_digest: Digest::of(b"source"),
            created_at: BUILT_AT,
            state: BuildState::Built { job: "job_00000000000000000001".parse().unwrap(), artifact, built_at: BUILT_AT },
            unused_since,
            revoked: None,
        }
    }

    fn uses(kept: &[Kept], by_build: bool) -> Uses {
        let mut uses = Uses::default();
        let it = build(None);
        for one in kept {
            if by_build {
                uses.build(&it.id, one.clone());
            } else {
                uses.artifact(&Digest::of(b"artifact"), one.clone());
            }
        }
        uses
    }

    #[test]
    fn an_artifact_that_nobody_uses_goes_a_day_after_it_was_retired() {
        let old = BUILT_AT.plus_secs(YOUNG_SECS);
        let nobody = Uses::default();

        let steps = [
            step(&build(None), &nobody, BUILT_AT),
            step(&build(None), &nobody, old),
            step(&build(Some(old)), &nobody, old.plus_secs(WAIT_SECS - 1)),
            step(&build(Some(old)), &nobody, old.plus_secs(WAIT_SECS)),
        ];

        assert_eq!(steps, [Step::Nothing, Step::Mark, Step::Nothing, Step::Remove]);
    }

    #[test]
    fn a_removal_that_was_begun_is_gone_on_with_whoever_uses_it() {
        let removed = |done| {
            let BuildState::Built { artifact, .. } = build(None).state else { panic!() };
            Build { state: BuildState::Removed { artifact, at: BUILT_AT, done }, ..build(None) }
        };
        let used = uses(&[Kept::Newest], true);

        assert_eq!(step(&removed(false), &used, BUILT_AT), Step::Resume);
        assert_eq!(step(&removed(true), &used, BUILT_AT), Step::Nothing);
    }

    proptest! {
        #[test]
        fn what_something_keeps_is_neither_retired_nor_removed(
            kept in prop::collection::vec(
                prop_oneof![
                    Just(Kept::Newest),
                    Just(Kept::Runs("globex".parse().unwrap())),
                    Just(Kept::InstallAt("globex".parse().unwrap())),
                    Just(Kept::Release("r1".parse().unwrap())),
                ],
                0..3,
            ),
            by_build: bool,
            age in 0..100_u64,
            marked in prop::option::of(0..100_u64),
        ) {
            let now = BUILT_AT.plus_secs(age * 24 * 3600);
            let since = marked.map(|days| BUILT_AT.plus_secs(days.min(age) * 24 * 3600));
            let young = age < 30;

            let found = step(&build(since), &uses(&kept, by_build), now);

            let free = kept.is_empty() && !young;
            prop_assert_eq!(matches!(found, Step::Mark | Step::Remove), free && marked.is_none_or(|days| days < age));
            prop_assert_eq!(found == Step::Restore, !free && marked.is_some());
        }
    }
}
