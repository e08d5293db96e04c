//! `freehold customer man`: the manual pages of the customer's commands, made from their help.

use std::path::{Path, PathBuf};

use clap::Args;
use serde::Serialize;

use super::man_page::{SECTION, page};
use crate::context::Context;
use crate::error::{Error, Result, ResultExt};
use crate::output::{plural, print_exactly};

/// Print the manual page of `freehold customer`, or write a page for each of its commands.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  freehold customer man | man -l -
  freehold customer man --out /usr/local/share/man/man1

With `--json`, the output contains the names and the texts of all pages, or with `--out` the paths of the files.")]
pub(crate) struct Man {
    /// Write a page for each command into this directory.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Replace existing pages that have another text, such as pages of an earlier version.
    #[arg(long, requires = "out")]
    force: bool,
}

/// A page, as `--json` prints it.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct Page {
    /// The name of its file.
    file: String,
    text: String,
}

impl Man {
    pub(crate) fn run(&self, context: &Context, root: clap::Command) -> Result<()> {
        let pages = pages(&customer(root)?)?;
        let Some(directory) = &self.out else {
            if context.out.is_json() {
                return context.out.show(&pages, |_| String::new());
            }
            print_exactly(pages.first().map(|page| page.text.as_str()).unwrap_or_default());
            return Ok(());
        };
        let files = write(directory, &pages, self.force)?;
        context
            .out
            .show(&files, |files| format!("{} are written into `{}`", plural(files.len(), "page"), directory.display()))
    }
}

/// Returns the command `customer` with the whole names of all commands below it.
fn customer(mut root: clap::Command) -> Result<clap::Command> {
    root.build();
    root.find_subcommand("customer").cloned().ok_or_else(|| Error::internal("there is no command `customer`"))
}

/// Returns the page of `customer`, and of each command below it.
fn pages(customer: &clap::Command) -> Result<Vec<Page>> {
    let all = with_commands_below(customer);
    let names: Vec<String> = all.iter().map(|command| name(command)).collect();
    let (top, below) =
        names.split_first().map_or((&[][..], &[][..]), |(first, rest)| (std::slice::from_ref(first), rest));
    let pages = all.iter().zip(&names).map(|(command, name)| {
        let others = if top.contains(name) { below } else { top };
        Ok(Page { file: format!("{name}.{SECTION}"), text: page(command, name, others)? })
    });
    pages.collect()
}

fn with_commands_below(command: &clap::Command) -> Vec<&clap::Command> {
    let below = command.get_subcommands().filter(|one| one.get_name() != "help").flat_map(with_commands_below);
    std::iter::once(command).chain(below).collect()
}

fn name(command: &clap::Command) -> String {
    command.get_display_name().unwrap_or_else(|| command.get_name()).to_owned()
}

/// Writes the pages, and returns the paths of their files.
fn write(directory: &Path, pages: &[Page], force: bool) -> Result<Vec<PathBuf>> {
    let shown = directory.display();
    if directory.is_file() {
        return Err(Error::invalid(format!("`{shown}` is a file, and each page is written into a file of its own"))
            .or("pass a directory as `--out DIR`"));
    }
    std::fs::create_dir_all(directory).doing(format!("make the directory `{shown}`"))?;
    let files: Vec<(PathBuf, &str)> =
        pages.iter().map(|page| (directory.join(&page.file), page.text.as_str())).collect();
    crate::file::create_all(&files, force)?;
    Ok(files.into_iter().map(|(path, _)| path).collect())
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
            let plain = text.replace("\\*(Aq", "'").replace("\\(aq", "'").replace("\\(ga", "`").replace('\\', "");
            plain.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
        };
        let all = words(&pages.iter().map(|page| page.text.as_str()).collect::<String>());
        for question in Question::ALL {
            assert!(all.contains(&words(question.text())), "{question:?}");
            assert!(all.contains(&words(question.rests_on())), "{question:?}");
        }
        assert!(pages.iter().any(|page| page.file == "freehold-customer-audit-verify.1"), "{pages:?}");
    }

    #[test]
    fn the_page_of_customer_answers_which_command_answers_which_question() {
        let pages = pages(&customer(Cli::command()).unwrap()).unwrap();
        let top = &pages.first().unwrap().text;

        for question in Question::ALL {
            let command = question.command().replace('-', "\\-");
            assert!(top.contains(&format!("\n.B {command}\n.br\n")), "{question:?}: {top}");
        }
        assert!(top.starts_with(".ie") || top.contains(".TH freehold-customer 1"), "{top}");
        for heading in [".SH \"EXIT STATUS\"", ".SH \"A COPY OF THE BUCKET\"", ".SH \"SEE ALSO\""] {
            assert!(top.contains(heading), "{heading}: {top}");
        }
        assert!(!top.contains("\\-\\-api") && !top.contains("EXTRA"), "{top}");
    }

    #[test]
    fn each_page_that_a_page_refers_to_exists() {
        let pages = pages(&customer(Cli::command()).unwrap()).unwrap();

        let named: Vec<String> = pages
            .iter()
            .flat_map(|page| page.text.lines().filter_map(|line| line.strip_prefix(".BR ")))
            .map(|line| line.replace('\\', "").split(' ').next().unwrap().to_owned() + ".1")
            .collect();

        assert!(named.len() > 20, "{named:?}");
        assert!(named.iter().all(|name| pages.iter().any(|page| page.file == *name)), "{named:?}");
    }

    #[test]
    fn examples_are_neither_filled_nor_hyphenated() {
        let pages = pages(&customer(Cli::command()).unwrap()).unwrap();
        let verify = pages.iter().find(|page| page.file == "freehold-customer-audit-verify.1").unwrap();

        let example = "freehold customer audit verify \\-\\-copy audit \\-\\-root\\-key \
                       11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=\n";
        let section = verify.text.split(".SH \"EXAMPLES\"\n.PP\n.EX\n").nth(1).unwrap();
        assert!(section.split(".EE").next().unwrap().contains(example), "{}", verify.text);
        assert!(pages.iter().all(|page| page.text.contains("\n.nh\n")));
    }

    #[test]
    fn pages_are_not_written_into_a_file() {
        let file = tempfile::NamedTempFile::new().unwrap();

        let error = write(file.path(), &[], false).unwrap_err();

        assert_eq!(error.kind().exit_code(), 2);
        assert_eq!(error.way_out(), Some("pass a directory as `--out DIR`"));
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
