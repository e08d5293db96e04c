//! Worlds on a local cloud that a test disturbs: calls fail in proxies, the clock is moved, or a program is another one.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use freehold_skips::{lacking, skip_as};

use super::ministack::MiniStack;
use super::programs::Programs;
use super::proxies::Proxies;
use super::world::World;

/// A clock that a test moves: programs that are started with it, and those that they start, take it for the true one. A file,
/// which they read whenever they ask for the time, says how far it is ahead.
#[derive(Debug, Clone)]
pub struct MovableClock {
    file: PathBuf,
}

impl MovableClock {
    /// Returns a clock that is ahead by `secs`, which its file in `directory` says.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn ahead_by(secs: i64, directory: &Path) -> anyhow::Result<Self> {
        let clock = Self { file: directory.join("clock") };
        clock.set(secs)?;
        Ok(clock)
    }

    /// Lets the clock be ahead by `secs` from now on.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn set(&self, secs: i64) -> anyhow::Result<()> {
        // Nobody may read half of it.
        let next = self.file.with_extension("next");
        std::fs::write(&next, format!("{secs:+}"))?;
        std::fs::rename(&next, &self.file).context("setting the clock")
    }

    /// Returns the variables that give the clock to a program. How long something takes is still measured truly.
    ///
    /// # Errors
    /// When this machine has no libfaketime.
    pub fn environment(&self) -> anyhow::Result<[(&'static str, String); 4]> {
        Ok([
            ("LD_PRELOAD", library()?.display().to_string()),
            ("FAKETIME_TIMESTAMP_FILE", self.file.display().to_string()),
            ("FAKETIME_NO_CACHE", "1".to_owned()),
            ("FAKETIME_DONT_FAKE_MONOTONIC", "1".to_owned()),
        ])
    }
}

impl World {
    /// Starts a local cloud behind `proxies` and deploys a tenant there, whose functions are the zips in the folder
    /// `functions` or the newest ones.
    ///
    /// # Errors
    /// When a program does not start.
    pub async fn start_behind(proxies: &Proxies, functions: Option<&Path>) -> anyhow::Result<Self> {
        let (programs, directory) = (Programs::find(functions)?, directory()?);
        let cloud = MiniStack::start_behind(proxies, &directory.path().join("cloud")).await?;
        Self::on((Box::new(cloud), directory), programs, Some(proxies.runners.url()), Vec::new()).await
    }

    /// Starts a local cloud with a clock that the test can move, and deploys a tenant there; prints why and returns nothing
    /// when a program is missing. The cloud, its functions, the commands and the runners have this clock.
    ///
    /// # Errors
    /// When a program does not start.
    pub async fn start_with_clock(test: &str, needed: &[&str]) -> anyhow::Result<Option<(Self, MovableClock)>> {
        if let Some(reason) = lacking(needed).or_else(|| lacking(&["faketime"])) {
            skip_as(test, &reason);
            return Ok(None);
        }
        let (programs, directory) = (Programs::find(None)?, directory()?);
        let clock = MovableClock::ahead_by(0, directory.path())?;
        let cloud = MiniStack::start_with_clock(&clock.file, &directory.path().join("cloud")).await?;
        let variables = clock.environment()?.to_vec();
        let world = Self::on((Box::new(cloud), directory), programs, None, variables).await?;
        Ok(Some((world, clock)))
    }

    /// Lets commands and runners that are started from now on find a program as `pulumi` that has Pulumi's documented
    /// interface (`runner/examples/pulumi-stand-in.rs`). Pulumi itself cannot be had here.
    ///
    /// # Errors
    /// When the program is not built; the error says how to build it.
    pub fn find_pulumi_stand_in(&mut self) -> anyhow::Result<()> {
        let own = std::env::current_exe()?;
        let target = own.ancestors().nth(2).context("this test is not in a target folder")?;
        let folder = self.directory().join("programs");
        std::fs::create_dir_all(&folder)?;
        std::fs::copy(target.join("examples/pulumi-stand-in"), folder.join("pulumi"))
            .context("no stand-in; `cargo build --package freehold-runner --examples` builds it")?;
        self.find_programs_in(&folder)
    }

    /// Lets commands and runners that are started from now on find the programs in `folder` before those of this machine.
    fn find_programs_in(&mut self, folder: &Path) -> anyhow::Result<()> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let path = std::env::join_paths(std::iter::once(folder.to_owned()).chain(std::env::split_paths(&path)))?;
        self.variables.push(("PATH", path.to_string_lossy().into_owned()));
        Ok(())
    }
}

fn directory() -> anyhow::Result<tempfile::TempDir> {
    Ok(tempfile::Builder::new().prefix("freehold-test-").tempdir()?)
}

/// Returns the library of the program `faketime`, as Debian installs it.
fn library() -> anyhow::Result<PathBuf> {
    let mut libraries =
        std::fs::read_dir("/usr/lib")?.flatten().map(|entry| entry.path().join("faketime/libfaketime.so.1"));
    libraries.find(|path| path.is_file()).context("there is no libfaketime.so.1 in `/usr/lib/*/faketime`")
}
