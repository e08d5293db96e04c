//! Verifies every link of a lineage, and records whether its root key was compared with a key that the caller knows.

use freehold_protocol::envelope::PublicKey;
use freehold_protocol::lineage::{Broken, Lineage, Link, LinkName, Used};
use freehold_protocol::{InstallId, JobId, KeyId};
use serde::Serialize;

use crate::error::{Error, Result};
use crate::output::note;

/// The word for a runner's key that nothing in the customer's account confirms.
const UNANCHORED: &str = "unanchored";

/// The result of verifying a lineage.
#[derive(Debug, Serialize)]
pub(super) struct Verification {
    pub(super) verified: bool,
    /// The key that the links were verified with.
    pub(super) root_key: KeyId,
    /// Whether the caller passed the key. Otherwise the lineage itself contained it, and nobody compared it.
    pub(super) root_key_compared: bool,
    /// Whether the caller passed the keys of the runners that reported deploys, from the customer's account. Otherwise the
    /// lineage itself contained them, and nobody compared them.
    pub(super) anchored: bool,
    pub(super) links: Vec<VerifiedLink>,
}

/// The result for one link.
#[derive(Debug, Serialize)]
pub(super) struct VerifiedLink {
    pub(super) link: LinkName,
    pub(super) of: String,
    pub(super) ok: bool,
    /// The verified fact, or the reason why the verification failed.
    pub(super) says: String,
}

impl From<Link> for VerifiedLink {
    fn from(link: Link) -> Self {
        let ok = link.finding.is_ok();
        let says = link.finding.unwrap_or_else(|broken| broken.to_string());
        Self { link: link.name, of: link.of, ok, says }
    }
}

impl Verification {
    /// Verifies `lineage` with the key `known`, or else with the root key that the lineage contains.
    pub(super) fn new(lineage: &Lineage, known: Option<&PublicKey>) -> Self {
        let root = known.unwrap_or(&lineage.root_key);
        let links: Vec<VerifiedLink> = lineage.verify(root).into_iter().map(VerifiedLink::from).collect();
        Self {
            verified: links.iter().all(|link| link.ok),
            root_key: root.key_id(),
            root_key_compared: known.is_some(),
            anchored: false,
            links,
        }
    }

    /// Adds a broken link unless the lineage contains a deploy by `job`, which deployed the artifact to `install`.
    pub(super) fn require_deploy(&mut self, lineage: &Lineage, install: Option<&InstallId>, job: Option<&JobId>) {
        let (Some(install), Some(job)) = (install, job) else { return };
        if lineage.uses.iter().any(|used| used.proof.job == *job) {
            return;
        }
        let finding = Err(Broken::Missing("the record of the deploy"));
        self.links.push(Link { name: LinkName::DeployReport, of: format!("{install} {job}"), finding }.into());
        self.verified = false;
    }

    /// Adds a broken link for each deploy that a runner with another key than `runners` reported. Without `runners`,
    /// every key is accepted.
    pub(super) fn require_runners(&mut self, lineage: &Lineage, runners: &[String]) {
        self.anchored = !runners.is_empty();
        let strange =
            |used: &&Used| self.anchored && !runners.iter().any(|runner| runner == used.proof.runner.as_str());
        let broken = lineage.uses.iter().filter(strange).map(|used| {
            let Used { proof, component, .. } = used;
            let finding = Err(Broken::Other {
                what: "the runner's key",
                found: proof.runner.to_string(),
                expected: runners.join("` or `"),
            });
            let of = format!("{}/{component} {}", proof.install, proof.job);
            VerifiedLink::from(Link { name: LinkName::RunnerKey, of, finding })
        });
        let mut broken: Vec<VerifiedLink> = broken.collect();
        if self.anchored && lineage.uses.is_empty() {
            let (of, finding) = (lineage.artifact.to_string(), Err(Broken::Missing("the record of a deploy")));
            broken.push(Link { name: LinkName::RunnerKey, of, finding }.into());
        }
        self.verified &= broken.is_empty();
        let word = if self.anchored { "anchored in the customer's account" } else { UNANCHORED };
        let is_strange = |link: &VerifiedLink| broken.iter().any(|broken| broken.of == link.of);
        let held =
            self.links.iter_mut().filter(|link| link.link == LinkName::RunnerKey && link.ok && !is_strange(link));
        held.for_each(|link| link.says = format!("{}; {word}", link.says));
        self.links.extend(broken);
    }

    /// Returns an error about the first broken link, if there is one. Prints a warning if a key was not compared.
    pub(super) fn verdict(&self, whose: &str) -> Result<()> {
        if !self.root_key_compared {
            note(&format!(
                "nobody checked the root key {}, which comes from {whose}; pass the root key that you know as \
                 `--root-key KEY`",
                self.root_key
            ));
        }
        let mut broken = self.links.iter().filter(|link| !link.ok);
        let Some(first) = broken.next() else {
            self.note_unanchored(whose);
            return Ok(());
        };
        let more = match broken.count() {
            0 => String::new(),
            count => format!(" (and {count} more)"),
        };
        let VerifiedLink { link, of, says, .. } = first;
        Err(Error::failed(format!("link `{}` of {of} failed verification: {says}{more}", link.as_str())))
    }

    /// Prints a warning if nothing in the customer's account confirms the keys of runners.
    fn note_unanchored(&self, whose: &str) {
        if !self.anchored && self.links.iter().any(|link| link.link == LinkName::RunnerKey) {
            note(&format!(
                "the runner keys are {UNANCHORED}: {whose} names them, and nobody compared them; a customer passes the keys of \
                 their runners to `freehold lineage verify` as `--runner KEY` or `--audit DIR`"
            ));
        }
    }
}
