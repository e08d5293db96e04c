//! `freehold customer man`: the manual pages of the customer's commands, made from their help.

use std::path::{Path, PathBuf};

use clap::Args;

use crate::error::{Error, Result, ResultExt};
use crate::output::{note, print_exactly};

/// The section of the manual for programs that a person runs.
const SECTION: &str = "1";

/// Print the manual page of `freehold customer`, or write a page for each of its commands.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  freehold customer man | man -l -
  freehold customer man --out /usr/local/share/man/man1")]
pub(crate) struct Man {
    /// Write a page for each command into this directory.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

impl Man {
    pub(crate) fn run(&self, root: clap::Command) -> Result<()> {
        let pages = pages(&customer(root)?)?;
        match &self.out {
            None => {
                print_exactly(pages.first().map(|(_, page)| page.as_str()).unwrap_or_default());
                Ok(())
            }
            Some(directory) => write(directory, &pages),
        }
    }
}

/// Returns the command `customer` with the whole names of all commands below it.
fn customer(mut root: clap::Command) -> Result<clap::Command> {
    root.build();
    root.find_subcommand("customer").cloned().ok_or_else(|| Error::internal("there is no command `customer`"))
}

/// Returns the name and the text of the page of a command, and of each command below it.
fn pages(command: &clap::Command) -> Result<Vec<(String, String)>> {
    let name = command.get_display_name().unwrap_or_else(|| command.get_name()).to_owned();
    let mut page = Vec::new();
    let man = clap_mangen::Man::new(command.clone()).section(SECTION);
    man.render(&mut page).doing(format!("make the page of `{name}`"))?;
    let mut all = vec![(format!("{name}.{SECTION}"), String::from_utf8_lossy(&page).into_owned())];
    for below in command.get_subcommands().filter(|one| one.get_name() != "help") {
        all.extend(pages(below)?);
    }
    Ok(all)
}

fn write(directory: &Path, pages: &[(String, String)]) -> Result<()> {
    std::fs::create_dir_all(directory).doing(format!("make the directory `{}`", directory.display()))?;
    for (name, page) in pages {
        crate::file::replace(&directory.join(name), page)?;
    }
    note(&format!("wrote {} pages into `{}`", pages.len(), directory.display()));
    Ok(())
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::super::question::Question;
    use super::*;
    use crate::args::Cli;

    #[test]
    fn the_pages_say_what_each_answer_rests_on() {
        let pages = pages(&customer(Cli::command()).unwrap()).unwrap();

        // The pages escape signs, and break lines elsewhere.
        let words = |text: &str| {
            let plain = text.replace("\\*(Aq", "'").replace("\\(aq", "'").replace('\\', "");
            plain.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
        };
        let all = words(&pages.iter().map(|(_, page)| page.as_str()).collect::<String>());
        for question in Question::ALL {
            assert!(all.contains(&words(question.text())), "{question:?}");
            assert!(all.contains(&words(question.rests_on())), "{question:?}");
        }
        assert!(pages.iter().any(|(name, _)| name == "freehold-customer-audit-verify.1"), "{pages:?}");
    }

    #[test]
    fn the_docs_say_what_each_answer_rests_on_too() {
        let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        let page = words(include_str!("../../../docs/customer-command.md"));

        for question in Question::ALL {
            assert!(page.contains(question.text()), "{question:?}");
            assert!(page.contains(&words(question.rests_on())), "{question:?}");
        }
    }
}
