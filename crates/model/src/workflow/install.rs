//! Which workflow holds an install. A property test holds this equal to `freehold_domain::install::Install`.

use crate::bug::{Seed, seeded};

/// A workflow that changes the install.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Who {
    /// The verified deploy.
    Deploy,
    /// Another workflow, which a person starts.
    Other,
    RollBack,
}

/// The install, as far as it decides who may change it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Install {
    pub live: Option<Who>,
    /// The serial of the last workflow that held it.
    pub last: u8,
    pub next_serial: u8,
}

impl Install {
    /// Gives the install to a workflow; returns it with the workflow's serial, or `None` while another workflow holds it.
    pub fn begin(self, seed: Seed, who: Who) -> Option<(Self, u8)> {
        let is_held = self.live.is_some_and(|live| live != who) && !seeded!(seed, HeldInstallIsTaken);
        let serial = self.next_serial;
        (!is_held).then_some((Self { live: Some(who), last: serial, next_serial: serial + 1 }, serial))
    }

    /// Gives the install back to a workflow that had ended; `None` while another workflow holds it, or if one began since.
    pub fn hold_again(self, seed: Seed, who: Who, serial: u8) -> Option<Self> {
        let (held, _) = self.begin(seed, who)?;
        let is_later = self.last > serial && !seeded!(seed, ContinuedAfterOther);
        (!is_later).then_some(Self { live: held.live, ..self })
    }

    /// Takes the install from a workflow that has ended.
    pub fn release(self, who: Who) -> Self {
        Self { live: self.live.filter(|live| *live != who), ..self }
    }
}
