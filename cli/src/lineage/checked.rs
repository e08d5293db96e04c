//! The verdict on a lineage: every link, and whether the key that it stands on was compared with a known one.

use freehold_protocol::envelope::PublicKey;
use freehold_protocol::lineage::{Broken, Lineage, Link, LinkName};
use freehold_protocol::{InstallId, JobId, KeyId};
use serde::Serialize;

use crate::error::{Error, Result};
use crate::output::note;

/// A lineage's links, checked.
#[derive(Debug, Serialize)]
pub(super) struct Checked {
    pub(super) verified: bool,
    /// The key that was stood on.
    pub(super) root_key: KeyId,
    /// Whether that key was given by the person who asks.
    pub(super) root_key_compared: bool,
    pub(super) links: Vec<CheckedLink>,
}

/// One link.
#[derive(Debug, Serialize)]
pub(super) struct CheckedLink {
    pub(super) link: LinkName,
    pub(super) of: String,
    pub(super) ok: bool,
    /// What holds, or why it does not.
    pub(super) says: String,
}

impl From<Link> for CheckedLink {
    fn from(link: Link) -> Self {
        let ok = link.finding.is_ok();
        let says = link.finding.unwrap_or_else(|broken| broken.to_string());
        Self { link: link.name, of: link.of, ok, says }
    }
}

impl Checked {
    /// Checks `lineage` against `known`, or else against the key that it brings along.
    pub(super) fn new(lineage: &Lineage, known: Option<&PublicKey>) -> Self {
        let root = known.unwrap_or(&lineage.root_key);
        let links: Vec<CheckedLink> = lineage.verify(root).into_iter().map(CheckedLink::from).collect();
        Self {
            verified: links.iter().all(|link| link.ok),
            root_key: root.key_id(),
            root_key_compared: known.is_some(),
            links,
        }
    }

    /// What an install has deployed must be among the uses: `job` did it.
    pub(super) fn must_tell_of(&mut self, lineage: &Lineage, install: Option<&InstallId>, job: Option<&JobId>) {
        let (Some(install), Some(job)) = (install, job) else { return };
        if lineage.uses.iter().any(|used| used.proof.job == *job) {
            return;
        }
        let finding = Err(Broken::Missing("the record of the deploy"));
        self.links.push(Link { name: LinkName::DeployReport, of: format!("{install} {job}"), finding }.into());
        self.verified = false;
    }

    /// Says whose key it was when nobody compared it; an error names the first broken link.
    pub(super) fn verdict(&self, whose: &str) -> Result<()> {
        if !self.root_key_compared {
            note(&format!(
                "the root key itself was not compared: {} is {whose}; pass the one that you know as `--root-key KEY`",
                self.root_key
            ));
        }
        let mut broken = self.links.iter().filter(|link| !link.ok);
        let Some(first) = broken.next() else { return Ok(()) };
        let more = match broken.count() {
            0 => String::new(),
            count => format!(" (and {count} more)"),
        };
        let CheckedLink { link, of, says, .. } = first;
        Err(Error::failed(format!("link `{}` of {of} does not hold: {says}{more}", link.as_str())))
    }
}
