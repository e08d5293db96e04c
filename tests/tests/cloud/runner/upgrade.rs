//! A runner is replaced by order: by a program that works, by ones that do not, and while it is killed at each step.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, ensure};
use freehold_protocol::Digest;
use freehold_tests::harness::runner::{Runner, Signal};
use freehold_tests::harness::wait::{SOON, until};
use freehold_tests::harness::{Capability, Install, Needs, World, app};
use freehold_tests::releases::{self, ARCHITECTURE, public_key};
use rustix::process::{Pid, kill_process};
use serde_json::{Value, json};

const NEEDS: Needs = Needs { cloud: &[Capability::HttpApi, Capability::Registry], programs: &["bwrap"] };
/// The time within which a program that never gets healthy has to, in seconds: the least that a request may ask for.
const SHORT: &str = "10";
/// Says its version and ends otherwise.
const ENDS: &str = "[ \"$1\" = --version ] && echo freehold-runner 0.1.0 && exit 0\nexit 7\n";
/// Says its version and does nothing otherwise.
const STANDS_STILL: &str = "[ \"$1\" = --version ] && echo freehold-runner 0.1.0 && exit 0\nexec sleep 40\n";

/// A tenant, an install whose customer names the key of the releases, and its runner.
struct Bench {
    world: World,
    install: Install,
    runner: Runner,
    releases: u32,
    /// How long its naps would last: no other test has this number.
    nap_secs: u32,
}

impl Bench {
    async fn start(test: &str) -> anyhow::Result<Option<Self>> {
        let Some(world) = World::start(test, NEEDS).await? else { return Ok(None) };
        let small = app::small(world.directory())?;
        let nap_secs = fastrand::u32(1_000_000..9_000_000);
        // A message may be handed to the poll of a runner that was killed, so the next delivery is the second one.
        for (name, command) in [("nap", format!("sleep {nap_secs} || true")), ("again", "echo said".to_owned())] {
            let trigger = "[[triggers]]\ntype = \"manual\"\n\n";
            let step = format!("[[steps]]\nname = \"{name}\"\ncommand = \"{command}\"\n");
            let action = format!("name = \"{name}\"\ntimeout = \"15m\"\nidempotent = true\n\n{trigger}{step}");
            app::write(&small, &format!("actions/{name}.toml"), &action)?;
        }
        world.vendor(&["app", "sync", &small.display().to_string()]).await?;
        let key = format!("RunnerReleaseKey={}", public_key(7));
        let install = world.install_answering("globex", "small", &[&key]).await?;
        let runner = world.runner(&install).await?;
        world.provisioned(&install).await?;
        Ok(Some(Self { world, install, runner, releases: 0, nap_secs }))
    }

    /// Makes a release with `program`, signed by the key `seed`, and returns its folder.
    fn release(&mut self, program: &[u8], seed: u8) -> anyhow::Result<String> {
        self.releases += 1;
        let folder = self.world.directory().join(format!("release-{}", self.releases));
        releases::write(&folder, program, seed)
    }

    /// Returns this tree's runner with other bytes at its end, which is another program that works.
    fn another_runner(&self, name: &str) -> anyhow::Result<Vec<u8>> {
        releases::another(&self.runner.how().program, self.world.directory(), name)
    }

    /// Asks for an upgrade, and returns its workflow.
    async fn ask(&self, release: &str, health_secs: &str) -> anyhow::Result<String> {
        let words = ["install", "upgrade-runner", "globex", "--release", release, "--arch", ARCHITECTURE];
        let started = self.world.vendor(&[&words[..], &["--health-secs", health_secs, "--no-wait"]].concat()).await?;
        Ok(started["workflow"].as_str().context("no workflow")?.to_owned())
    }

    /// Lets naps end, and waits for the end of a workflow.
    async fn ended(&self, workflow: &str) -> anyhow::Result<Value> {
        until("the workflow has ended", Duration::from_secs(300), || async {
            // A job that was interrupted naps again.
            self.wake()?;
            let view = self.world.vendor(&["workflow", "show", workflow]).await?;
            Ok(Some(view).filter(|view| !["pending", "running"].iter().any(|open| view["state"] == **open)))
        })
        .await
    }

    /// Waits until the upgrade has failed, and returns the reason.
    async fn fails(&self, release: &str, health_secs: &str) -> anyhow::Result<String> {
        let ended = self.ended(&self.ask(release, health_secs).await?).await?;
        ensure!(ended["state"] == "failed", "{ended}\n{}", self.runner.log());
        Ok(ended["nodes"][0]["reason"].as_str().unwrap_or_default().to_owned())
    }

    async fn succeeds(&self, workflow: &str) -> anyhow::Result<()> {
        let ended = self.ended(workflow).await?;
        ensure!(ended["state"] == "succeeded", "{ended}\n{}", self.runner.log());
        Ok(())
    }

    /// Runs an action to its end.
    async fn works(&self) -> anyhow::Result<()> {
        let ran = self.world.vendor(&["action", "run", "globex", "again"]).await?;
        ensure!(ran["state"] == "succeeded", "{ran}\n{}", self.runner.log());
        Ok(())
    }

    async fn nap(&self) -> anyhow::Result<String> {
        let started = self.world.vendor(&["action", "run", "globex", "nap", "--no-wait"]).await?;
        let workflow = started["workflow"].as_str().context("no workflow")?.to_owned();
        until("the nap has begun", SOON, || async {
            let job = self.job(&workflow).await?;
            Ok((job["state"] == "running").then_some(()))
        })
        .await?;
        Ok(workflow)
    }

    /// Ends the naps that run.
    fn wake(&self) -> anyhow::Result<()> {
        let wanted = format!("sleep\0{}\0", self.nap_secs);
        for entry in std::fs::read_dir("/proc")?.flatten() {
            let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
            let pid = entry.file_name().to_str().and_then(|name| name.parse().ok()).and_then(Pid::from_raw);
            if let Some(pid) = pid.filter(|_| line == wanted.as_bytes()) {
                // It may have ended meanwhile.
                let _ = kill_process(pid, Signal::TERM);
            }
        }
        Ok(())
    }

    /// Returns the only job of a workflow.
    async fn job(&self, workflow: &str) -> anyhow::Result<Value> {
        let view = self.world.vendor(&["workflow", "show", workflow]).await?;
        let Some(job) = view["nodes"][0]["job"].as_str() else { return Ok(Value::Null) };
        self.world.vendor(&["job", "show", job]).await
    }

    /// Returns what the runner knows of its programs.
    fn programs(&self) -> Value {
        let state = self.runner.state_directory().unwrap_or_default();
        let text = std::fs::read_to_string(state.join("programs.json")).unwrap_or_default();
        serde_json::from_str(&text).unwrap_or_default()
    }

    fn current(&self) -> Option<String> {
        Some(self.programs()["current"]["program"].as_str()?.to_owned())
    }

    async fn phase(&self, phase: &str) -> anyhow::Result<()> {
        until("the upgrade is in its phase", SOON, || async {
            let now = self.programs()["candidate"]["phase"].clone();
            Ok((now == phase || now["phase"] == phase).then_some(()))
        })
        .await
    }

    /// Checks that the job of a workflow was ended once: no report about it was refused.
    async fn ended_once(&self, workflow: &str) -> anyhow::Result<()> {
        let job = self.job(workflow).await?;
        let id = job["job"].as_str().context("no job")?;
        let refused = self.world.rows(&format!("job#{id}"), "refused#").await?;
        ensure!(refused.is_empty(), "{refused:?}");
        Ok(())
    }
}

fn script(text: &str) -> Vec<u8> {
    format!("#!/bin/sh\n{text}").into_bytes()
}

fn digest(program: &[u8]) -> String {
    Digest::of(program).to_string()
}

/// Returns the program that the process below the launcher runs, if there is one.
fn launched(state: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc")?.flatten() {
        let program = std::fs::read_link(entry.path().join("exe")).unwrap_or_default();
        if program.starts_with(state.join("programs")) {
            found.push(program);
        }
    }
    Ok(found)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_of_a_signed_release_takes_over_and_the_runner_goes_back_from_one_that_does_not_work()
-> anyhow::Result<()> {
    let Some(mut bench) = Bench::start("cloud_upgrade.programs").await? else { return Ok(()) };
    let good = bench.another_runner("one")?;

    // What the customer does not permit, and what does not work.
    let strange = bench.release(&good, 8)?;
    let refused = bench.fails(&strange, SHORT).await?;
    ensure!(refused.contains("not signed by the release key"), "{refused}");
    ensure!(bench.programs().is_null(), "{}", bench.programs());
    for (program, reason) in [
        (b"not a program".to_vec(), "the new program does not start on this machine"),
        (script("echo freehold-runner 9.9.9"), "does not report version 0.1.0"),
        (script(ENDS), "the new program ended with exit status: 7 before it proved its health"),
        (script(STANDS_STILL), "the new program did not prove its health within 10 s"),
    ] {
        let release = bench.release(&program, 7)?;
        let failed = bench.fails(&release, SHORT).await?;
        ensure!(failed.contains(reason), "{failed}\n{}", bench.runner.log());
        ensure!(bench.runner.is_alive()? && bench.current().is_none(), "{}", bench.programs());
        bench.works().await?;
    }

    // What works takes over when the job that runs has ended.
    let release = bench.release(&good, 7)?;
    let nap = bench.nap().await?;
    let upgrade = bench.ask(&release, "60").await?;
    bench.phase("ready").await?;
    ensure!(bench.job(&nap).await?["state"] == "running", "the job ended before the program was there");
    bench.succeeds(&upgrade).await?;
    bench.succeeds(&nap).await?;
    ensure!(bench.current() == Some(digest(&good)), "{}", bench.programs());
    for workflow in [&upgrade, &nap] {
        bench.ended_once(workflow).await?;
    }
    let state = bench.runner.state_directory()?;
    ensure!(launched(&state)?.len() == 1, "{:?}", launched(&state)?);
    bench.works().await?;

    // It stays after a restart, and the same order again changes nothing.
    bench.runner.kill().await?;
    until("the program has ended with its launcher", SOON, || async { Ok(launched(&state)?.is_empty().then_some(())) })
        .await?;
    bench.runner.start_again()?;
    let again = bench.ask(&release, "60").await?;
    bench.succeeds(&again).await?;
    ensure!(launched(&state)?.len() == 1 && bench.current() == Some(digest(&good)), "{}", bench.programs());

    // A third program follows the second one. The customer takes the permission back: the stack's program works again.
    let third = bench.another_runner("two")?;
    let release = bench.release(&third, 7)?;
    let upgrade = bench.ask(&release, "60").await?;
    bench.succeeds(&upgrade).await?;
    ensure!(bench.current() == Some(digest(&third)), "{}", bench.programs());
    let config = std::fs::read_to_string(&bench.install.config)?;
    let without: String =
        config.lines().filter(|line| !line.starts_with("release_key")).map(|l| format!("{l}\n")).collect();
    ensure!(without != config, "the config has no release key: {config}");
    std::fs::write(&bench.install.config, without)?;
    bench.runner.kill().await?;
    bench.runner.start_again()?;
    bench.works().await?;
    ensure!(launched(&state)?.is_empty(), "{:?}", launched(&state)?);
    let refused = bench.fails(&release, SHORT).await?;
    ensure!(refused.contains("permits no order to replace the runner"), "{refused}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_runner_that_is_killed_at_any_step_of_an_upgrade_runs_afterwards_and_the_job_ends_once() -> anyhow::Result<()>
{
    let Some(mut bench) = Bench::start("cloud_upgrade.killed").await? else { return Ok(()) };

    // While the old program lets a job end: its order comes again, and the upgrade continues.
    let first = bench.another_runner("first")?;
    let release = bench.release(&first, 7)?;
    let nap = bench.nap().await?;
    let upgrade = bench.ask(&release, "60").await?;
    bench.phase("ready").await?;
    bench.runner.kill().await?;
    ensure!(bench.current().is_none(), "{}", bench.programs());
    bench.runner.start_again()?;
    bench.succeeds(&upgrade).await?;
    bench.ended_once(&upgrade).await?;
    ensure!(bench.current() == Some(digest(&first)), "{}", bench.programs());
    // A nap that comes again after the upgrade would hold up the next one.
    bench.ended(&nap).await?;

    // While a program is on trial: the one before works again.
    let release = bench.release(&script(STANDS_STILL), 7)?;
    let upgrade = bench.ask(&release, "60").await?;
    bench.phase("on_trial").await?;
    bench.runner.kill().await?;
    bench.runner.start_again()?;
    let ended = bench.ended(&upgrade).await?;
    let reason = ended["nodes"][0]["reason"].as_str().unwrap_or_default();
    ensure!(reason.contains("was ended while the new program was on trial"), "{ended}");
    bench.ended_once(&upgrade).await?;
    ensure!(bench.current() == Some(digest(&first)), "{}", bench.programs());
    bench.works().await?;

    // As soon as a program has proved its health, and the report of it may not have been sent: it stays.
    let second = bench.another_runner("second")?;
    let release = bench.release(&second, 7)?;
    let upgrade = bench.ask(&release, "60").await?;
    until("the program is the current one", SOON, || async {
        Ok((bench.current() == Some(digest(&second))).then_some(()))
    })
    .await?;
    bench.runner.kill().await?;
    bench.runner.start_again()?;
    bench.succeeds(&upgrade).await?;
    bench.ended_once(&upgrade).await?;
    ensure!(bench.current() == Some(digest(&second)), "{}", bench.programs());

    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_runner_that_is_killed_at_any_time_of_an_upgrade_agrees_with_its_report() -> anyhow::Result<()> {
    let Some(mut bench) = Bench::start("cloud_upgrade.any_time").await? else { return Ok(()) };
    // Again and again, later each time: it ends one way or the other.
    for number in 0..3_u32 {
        let program = bench.another_runner(&format!("number {number}"))?;
        let release = bench.release(&program, 7)?;
        let upgrade = bench.ask(&release, "60").await?;
        until("the job has begun", SOON, || async {
            let job = bench.job(&upgrade).await?;
            Ok((!matches!(job["state"].as_str(), Some("queued" | "waiting_for_runner"))).then_some(()))
        })
        .await?;
        tokio::time::sleep(Duration::from_millis(800) * number).await;
        bench.runner.kill().await?;
        bench.runner.start_again()?;
        let ended = bench.ended(&upgrade).await?;
        let took_over = bench.current() == Some(digest(&program));
        ensure!((ended["state"] == "succeeded") == took_over, "{ended}\n{}", bench.programs());
        bench.ended_once(&upgrade).await?;
        bench.works().await?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_machine_of_the_stack_reads_the_key_from_its_stack() -> anyhow::Result<()> {
    let Some(mut bench) = Bench::start("cloud_upgrade.stack").await? else { return Ok(()) };
    bench.runner.kill().await?;
    bench.runner = bench.world.runner_of_stack(&bench.install).await?;
    let program = bench.another_runner("of the stack")?;
    let release = bench.release(&program, 7)?;

    let upgrade = bench.ask(&release, "60").await?;

    bench.succeeds(&upgrade).await?;
    ensure!(bench.current() == Some(digest(&program)), "{}", bench.programs());
    let path =
        bench.runner.state_directory()?.join("programs").join(Digest::of(&program).hex()).join("freehold-runner");
    ensure!(std::fs::metadata(&path)?.permissions().mode() & 0o777 == 0o755, "{}", path.display());
    ensure!(bench.job(&upgrade).await?["outputs"]["program"] == json!(digest(&program)), "the job has other outputs");
    Ok(())
}
