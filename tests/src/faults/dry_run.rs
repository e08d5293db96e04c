//! Counts the calls of work in which nothing fails: they are the points at which the fault of a call can fall.

use anyhow::Context as _;

use super::calls::{Calls, Side, Work, of_side, rules_of};
use super::cell::{Begun, Cell, INSTALL};
use super::class::Point;
use super::registry;
use crate::harness::wait::{SOON, until};
use crate::proxy::{Proxy, parse_rules};

impl Cell {
    /// Returns how many calls of some work a fault can meet, by a run without faults at the first time. A fault that is
    /// tried only once meets the first call, which nobody has to count.
    pub(super) async fn calls(&mut self, point: &Point, work: Work, calls: Calls) -> anyhow::Result<usize> {
        if point.is_only {
            return Ok(1);
        }
        if !self.counted.contains_key(&(work, calls)) {
            self.count(work).await?;
        }
        self.counted.get(&(work, calls)).copied().context("these calls are not counted")
    }

    /// Returns the numbers of several kinds of calls, as [`Cell::calls`] does.
    pub(super) async fn calls_each<const N: usize>(
        &mut self,
        point: &Point,
        work: Work,
        each: [Calls; N],
    ) -> anyhow::Result<[usize; N]> {
        let mut counts = [0; N];
        for (count, calls) in counts.iter_mut().zip(each) {
            *count = self.calls(point, work, calls).await?;
        }
        Ok(counts)
    }

    /// Lets calls fail, from zero counts on. `which` are the options of the rule that choose among these calls.
    pub(super) fn fail(&self, calls: Calls, fault: &str, which: &str) -> anyhow::Result<()> {
        match calls.side {
            Side::Functions => self.on_functions(&calls.rule(fault, which)),
            Side::Runner => self.on_runner(&calls.rule(fault, which)),
        }
    }

    async fn count(&mut self, work: Work) -> anyhow::Result<()> {
        let proxies = [(Side::Functions, &self.proxies.functions), (Side::Runner, &self.proxies.runners)];
        for (side, proxy) in proxies {
            proxy.set_faults(0, parse_rules(&rules_of(side))?);
        }
        let begun = self.begin(work).await?;
        self.succeeds(&begun).await?;
        self.settled().await?;
        let seen = |proxy: &Proxy| proxy.looked_at().into_iter().map(|count| count as usize).collect::<Vec<_>>();
        let (functions, runner) = (seen(&self.proxies.functions), seen(&self.proxies.runners));
        self.calm();
        let counts = of_side(Side::Functions).zip(functions).chain(of_side(Side::Runner).zip(runner));
        for (calls, count) in counts {
            eprintln!("{work:?} without faults: {count} calls of `{}`", calls.counting());
            self.counted.insert((work, calls), count);
        }
        Ok(())
    }

    async fn begin(&mut self, work: Work) -> anyhow::Result<Begun> {
        self.next_try();
        match work {
            Work::Deploy => self.deploy().await,
            Work::CopyingDeploy => {
                registry::forget_copies(self).await?;
                self.deploy().await
            }
            Work::Again => self.act("again").await,
            Work::Note => self.act("note").await,
        }
    }

    /// Waits until the runner has nothing more to send about its last job.
    async fn settled(&self) -> anyhow::Result<()> {
        self.queues.empty(&format!("{INSTALL}.fifo")).await?;
        let state = self.runner.state_directory()?;
        let sent = || async {
            let mut waiting = 0;
            for folder in ["spool", "sent"] {
                let entries = std::fs::read_dir(state.join(folder))?.flatten();
                waiting += entries.filter(|entry| entry.path().is_file()).count();
            }
            Ok((waiting == 0).then_some(()))
        };
        until("the runner has sent everything", SOON, sent).await
    }
}
