//! Writes the install stacks of real apps and of generated ones into a folder, and ends with an error when one is not the same
//! bytes twice; or checks templates, one JSON document a line: the rules alone, or all of `freehold customer verify-template`.

use std::fs;
use std::io::{BufRead, stdin};
use std::path::PathBuf;

use anyhow::ensure;
use clap::{Parser, Subcommand};
use freehold_skips::skip_as;
use freehold_stackcheck::{Finding, Unreadable, check, check_rules};
use freehold_tests::stacks::{Case, generated, real_apps, real_apps_are_here};

#[derive(Debug, Parser)]
struct Arguments {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Renders each app's stack twice, into `<out>/<app>.yaml`.
    Render {
        #[arg(long)]
        out: PathBuf,
        /// How many apps are made up.
        #[arg(long, default_value_t = 10)]
        generated: u64,
        #[arg(long, default_value_t = 1)]
        seed: u64,
        /// How many of the real ones.
        #[arg(long, default_value_t = usize::MAX)]
        real: usize,
    },
    /// Prints, for each line of the input, which rules the template in it breaks; an empty line for none.
    Check,
    /// Prints, for each line of the input, what `verify-template` finds in it; an empty line for nothing.
    Verify,
}

fn main() -> anyhow::Result<()> {
    match Arguments::parse().what {
        What::Render { out, generated, seed, real } => render(&out, generated, seed, real),
        What::Check => stdin().lock().lines().try_for_each(|line| {
            print_findings(check_rules(&line?));
            Ok(())
        }),
        What::Verify => stdin().lock().lines().try_for_each(|line| {
            print_findings(check(&line?));
            Ok(())
        }),
    }
}

fn render(out: &PathBuf, apps: u64, seed: u64, real: usize) -> anyhow::Result<()> {
    fs::create_dir_all(out)?;
    let mut cases: Vec<Case> = Vec::new();
    if real_apps_are_here() {
        cases.extend(real_apps()?.into_iter().take(real));
    } else {
        skip_as("stacks of real apps", "no real app configs beside the project");
    }
    for number in 0..apps {
        cases.push(generated(seed, number)?);
    }
    let mut written = 0;
    for case in &cases {
        match case.rendered()? {
            Ok(template) => {
                fs::write(out.join(format!("{}.yaml", case.name)), template)?;
                written += 1;
            }
            Err(refused) if case.name.starts_with("made-") => return Err(refused.into()),
            Err(refused) => eprintln!("no stack for `{}`: {refused}", case.name),
        }
    }
    ensure!(written > 0, "there is no template");
    eprintln!("{written} templates, each rendered twice to the same bytes; seed {seed}");
    Ok(())
}

fn print_findings(found: Result<Vec<Finding>, Unreadable>) {
    let sentence = |one: &Finding| format!("{}: {}: {}", one.rule.as_str(), one.of, one.reason);
    let summary = match found {
        Ok(found) => found.iter().map(sentence).collect::<Vec<_>>().join("; "),
        Err(unreadable) => format!("unreadable: {unreadable}"),
    };
    println!("{summary}");
}
