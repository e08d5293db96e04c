//! The audit chain of an install under faults and tamperings: the code that ships writes it and verifies it.

mod bucket;
mod machines;
mod messages;
mod reader;
mod tamper;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use fastrand::Rng;
use freehold_protocol::audit::READING_ORDER;

pub use machines::{Chain, Run};
pub use tamper::{Tampering, tampered, whole};

/// What the runs with seeds from a first one on found, and the chains that they left.
#[derive(Debug, Default)]
pub struct Found {
    pub chains: Vec<Chain>,
    pub faults: BTreeMap<&'static str, u64>,
    /// Each with the seed of its run.
    pub holes: Vec<String>,
    /// The number of copies that customers made while machines wrote.
    pub copies: u64,
    /// The first problem that the verification found in each of these copies, with the seed of its run.
    pub alarms: Vec<String>,
}

impl Found {
    /// Makes runs until there were this many faults, and at least two of them.
    ///
    /// # Errors
    /// As [`Run::of`].
    pub async fn with_faults(seed: u64, faults: u64) -> anyhow::Result<Self> {
        let mut found = Self::default();
        while found.chains.len() < 2 || found.faults.values().sum::<u64>() < faults {
            let number = found.chains.len() as u64;
            // A record of one install in the chain of another one is a tampering.
            let install = if number.is_multiple_of(2) { "globex" } else { "initech" };
            let seed = seed.wrapping_mul(1_000_003).wrapping_add(number);
            let run = Run::of(seed, install, &READING_ORDER).await?;
            for (fault, times) in run.faults {
                *found.faults.entry(fault).or_default() += times;
            }
            found.holes.extend(run.holes.into_iter().map(|hole| format!("run {seed}: {hole}")));
            found.alarms.extend(run.alarms.into_iter().map(|alarm| format!("run {seed}: {alarm}")));
            found.copies += run.copies;
            found.chains.push(run.chain);
        }
        Ok(found)
    }

    /// Draws one chain, and one of another install.
    ///
    /// # Panics
    /// Without chains.
    pub fn draw(&self, rng: &mut Rng) -> (&Chain, &Chain) {
        let (at, step) = (rng.usize(0..self.chains.len()), 1 + 2 * rng.usize(0..self.chains.len()));
        let mut other = (at + step) % self.chains.len();
        if other % 2 == at % 2 {
            other = usize::from(at.is_multiple_of(2));
        }
        (&self.chains[at], &self.chains[other])
    }
}
