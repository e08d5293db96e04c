//! Changes resources of two Terraform modules behind Freehold's back, asks `freehold drift detect`, and prints the figures as
//! JSON lines. The exit code is 1 when a change is not found as it was made, or when something is found that nobody changed.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context as _, ensure};
use clap::Parser;
use fastrand::Rng;
use freehold_tests::drift::{BY_HAND, Expected, change_some, instances, module};
use freehold_tests::harness::{Capability, Install, Needs, World, app};
use serde_json::{Value, json};

const NEEDS: Needs =
    Needs { cloud: &[Capability::HttpApi, Capability::Registry], programs: &["bwrap", "terraform|tofu"] };
/// The exit code by which a program of the tests says that everything was skipped.
const ALL_SKIPPED: u8 = 77;
const PARTS: [&str; 2] = ["site", "shop"];

/// Makes changes behind Freehold's back, and counts those that a check finds.
#[derive(Debug, Parser)]
struct Arguments {
    /// How many checks; in one of five nothing was changed before.
    #[arg(long, default_value_t = 25)]
    checks: u32,
    /// The seed of the modules and the changes.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

#[derive(Debug, Default)]
struct Counts {
    made: u64,
    found: u64,
    untouched: u64,
    alarms: u64,
    kinds: BTreeMap<String, u64>,
}

#[tokio::main]
async fn main() -> anyhow::Result<ExitCode> {
    let Arguments { checks, seed } = Arguments::parse();
    let Some(world) = World::start("drift-figures", NEEDS).await? else { return Ok(ExitCode::from(ALL_SKIPPED)) };
    let mut rng = Rng::with_seed(seed);
    let directory = app::small(world.directory())?;
    for part in PARTS {
        write_module(&directory, part, &mut rng)?;
    }
    world.ship(&directory).await?;
    let install = world.install("globex", "small").await?;
    let _runner = world.runner(&install).await?;
    world.provisioned(&install).await?;
    let mut counts = Counts::default();
    for check in 0..checks {
        let is_changed = check % 5 != 4;
        round(&world, &install, is_changed, &mut rng, &mut counts).await.with_context(|| format!("check {check}"))?;
    }
    for (kind, times) in &counts.kinds {
        eprintln!("{times:>6} {kind}");
    }
    let Counts { made, found, untouched, alarms, .. } = counts;
    let print = |name: &str, value: u64, attempted: u64, passed: u64| {
        println!("{}", json!({ "name": name, "value": value, "attempted": attempted, "passed": passed, "seed": seed }));
    };
    print("drift.made", made, made, made);
    print("drift.found", found, made, found);
    print("drift.false_alarms", alarms, untouched, untouched.saturating_sub(alarms));
    Ok(ExitCode::from(u8::from(found != made || alarms > 0 || made == 0)))
}

fn write_module(directory: &Path, part: &str, rng: &mut Rng) -> anyhow::Result<()> {
    let component = format!(
        "name = \"{part}\"\ntype = \"terraform_module\"\nterraform_version = \"1.11.3\"\nsource = \"../{part}\"\n"
    );
    app::write(directory, &format!("components/{part}.toml"), &component)?;
    for (name, text) in module(rng) {
        app::write(directory, &format!("{part}/{name}"), &text)?;
    }
    Ok(())
}

/// Changes drawn resources of both parts, checks, and puts the states back as they were.
async fn round(
    world: &World,
    install: &Install,
    is_changed: bool,
    rng: &mut Rng,
    counts: &mut Counts,
) -> anyhow::Result<()> {
    let mut parts = BTreeMap::new();
    for part in PARTS {
        let before = state(world, install, part).await?;
        let mut after = before.clone();
        let expected = if is_changed { change_some(&mut after, rng)? } else { Expected::new() };
        put(world, install, part, &after).await?;
        parts.insert(part, (before, after, expected));
    }
    let earlier = listed(world).await?;
    world.run(&["drift", "detect", "globex"]).await?.ended_with(0)?;
    let found = listed(world).await?;
    ensure!(!found.to_string().contains(BY_HAND), "the list has a value: {found}");
    for (part, (before, after, expected)) in parts {
        let of = |list: &Value| {
            let parts = list["parts"].as_array().into_iter().flatten();
            parts.clone().find(|one| one["component"] == part).cloned().unwrap_or_default()
        };
        let (old, new) = (of(&earlier), of(&found));
        let (last, check) = (old.get("workflow"), new.get("workflow"));
        ensure!(check.is_some() && last != check, "`{part}` was not checked: {new}");
        ensure!(state(world, install, part).await? == after, "the check changed the state of `{part}`");
        compare(part, &expected, &new, counts, &instances(&before)?);
        put(world, install, part, &before).await?;
    }
    Ok(())
}

/// Counts the changes that were found as they were made, and what was found of resources that nobody changed.
fn compare(part: &str, expected: &Expected, found: &Value, counts: &mut Counts, all: &[String]) {
    let mut reports = reported(found);
    for (address, made) in expected {
        counts.made += 1;
        *counts.kinds.entry(made.0.clone()).or_default() += 1;
        match reports.remove(address) {
            Some(report) if report == *made => counts.found += 1,
            report => eprintln!("`{part}`, {address}: made {made:?}, found {report:?}"),
        }
    }
    counts.untouched += all.iter().filter(|address| !expected.contains_key(*address)).count() as u64;
    counts.alarms += reports.len() as u64 + found["more"].as_u64().unwrap_or_default();
    for (address, report) in reports {
        eprintln!("`{part}`, {address}: nobody changed it, found {report:?}");
    }
}

fn reported(part: &Value) -> Expected {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let resources = part["resources"].as_array().into_iter().flatten();
    resources
        .map(|one| {
            let names = one["attributes"].as_array().into_iter().flatten().map(text).collect();
            (text(&one["address"]), (text(&one["change"]), names))
        })
        .collect()
}

async fn listed(world: &World) -> anyhow::Result<Value> {
    world.vendor(&["drift", "list", "globex"]).await
}

fn key(part: &str) -> String {
    format!("terraform/{part}.tfstate")
}

async fn state(world: &World, install: &Install, part: &str) -> anyhow::Result<Value> {
    let s3 = aws_sdk_s3::Client::new(&world.administrator(&install.account)?);
    let object = s3.get_object().bucket(bucket(world, install)).key(key(part)).send().await?;
    Ok(serde_json::from_slice(&object.body.collect().await?.into_bytes())?)
}

async fn put(world: &World, install: &Install, part: &str, state: &Value) -> anyhow::Result<()> {
    let s3 = aws_sdk_s3::Client::new(&world.administrator(&install.account)?);
    let body = serde_json::to_vec(state)?;
    s3.put_object().bucket(bucket(world, install)).key(key(part)).body(body.into()).send().await?;
    Ok(())
}

fn bucket(world: &World, install: &Install) -> String {
    format!("fh-{}--globex--{}", world.tenant(), install.account)
}
