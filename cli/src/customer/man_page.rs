//! The text of one manual page, made from the help of a command: characters that `man` would change are escaped, and
//! the lines of examples are not wrapped.

use clap::Command;

use super::question::Question;
use crate::error::{EXIT_CODES, Error, Result, ResultExt};

/// The section of the manual for programs that a person runs.
pub(super) const SECTION: &str = "1";
/// The beginning of the words about exit code 1 in [`EXIT_CODES`] that apply to the customer's commands.
const OF_CUSTOMER: &str = "of `customer`: ";

/// Returns the page of `command`, which is called `name`. `others` are the names of the pages that it refers to.
pub(super) fn page(command: &Command, name: &str, others: &[String]) -> Result<String> {
    let man = clap_mangen::Man::new(command.clone()).title(name).section(SECTION).manual("Freehold");
    let man = man.source(format!("freehold {}", env!("CARGO_PKG_VERSION")));
    let rendered = |render: &dyn Fn(&mut Vec<u8>) -> std::io::Result<()>| -> Result<String> {
        let mut text = Vec::new();
        render(&mut text).doing(format!("make the page of `{name}`"))?;
        String::from_utf8(text).map_err(|_| Error::internal(format!("the page of `{name}` is not text")))
    };
    let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let (examples, prose): (Vec<&str>, Vec<&str>) =
        help.split("\n\n").filter(|part| !part.is_empty()).partition(|part| part.starts_with("Example"));
    let mut sections = vec![
        rendered(&|text| man.render_title(text))?,
        // Words and examples must not be hyphenated, since people copy them.
        ".nh\n.ad l\n".to_owned(),
        rendered(&|text| man.render_name_section(text))?,
        section("SYNOPSIS", &escaped(&usage(command))),
        rendered(&|text| man.render_description_section(text))?,
    ];
    sections.extend(prose.iter().map(|part| format!(".PP\n{}\n", block(part))));
    if command.has_subcommands() {
        sections.push(section("COMMANDS", &commands(command)));
    }
    if command.get_name() == "customer" {
        sections.push(section("ANSWERS", &answers()));
        sections.push(section("A COPY OF THE BUCKET", &copy()));
    }
    sections.push(rendered(&|text| man.render_options_section(text))?);
    if !examples.is_empty() {
        let lines: Vec<&str> = examples.iter().flat_map(|part| part.lines().skip(1)).collect();
        sections.push(section("EXAMPLES", &verbatim(&lines)));
    }
    sections.push(section("EXIT STATUS", &exit_status()));
    let pages: Vec<String> = others.iter().map(|other| format!(".BR {} ({SECTION})", escaped(other))).collect();
    sections.push(section("SEE ALSO", &pages.join(",\n")));
    Ok(sections.concat())
}

fn section(title: &str, text: &str) -> String {
    format!(".SH \"{title}\"\n{text}\n")
}

fn usage(command: &Command) -> String {
    let usage = command.clone().render_usage().to_string();
    usage.trim_start_matches("Usage:").split_whitespace().collect::<Vec<_>>().join(" ")
}

fn commands(command: &Command) -> String {
    let all = command.get_subcommands().filter(|one| one.get_name() != "help");
    let entry = |one: &Command| {
        let about = one.get_about().map(ToString::to_string).unwrap_or_default();
        format!(".TP\n.B {}\n{}", escaped(one.get_bin_name().unwrap_or_else(|| one.get_name())), escaped(&about))
    };
    all.map(entry).collect::<Vec<_>>().join("\n")
}

/// Returns the questions, each with its command and the evidence for the answer.
fn answers() -> String {
    let entry = |question: Question| {
        let (text, command) = (escaped(question.text()), escaped(question.command()));
        format!(".TP\n{text}\n.B {command}\n.br\n{}", escaped(question.rests_on()))
    };
    Question::ALL.map(entry).join("\n")
}

fn copy() -> String {
    let lines = [
        "  aws s3 cp --recursive s3://fh-VENDOR--INSTALL--ACCOUNT/audit/ globex-bucket/audit \\",
        "      --exclude '*' --include 'reports/*' --include 'receipts/*'",
        "  aws s3 cp --recursive s3://fh-VENDOR--INSTALL--ACCOUNT/ globex-bucket \\",
        "      --exclude 'audit/reports/*' --exclude 'audit/receipts/*'",
        "  freehold customer ran --copy globex-bucket --root-key KEY",
    ];
    let about = "With `--copy DIR`, the commands that read records need no account and no network. The vendor's root key is \
                 the output `TenantKey` of your stack; without it, nobody checks who signed the orders and receipts. Copy \
                 the reports and receipts first: a runner may write while you copy, and they name records.";
    format!("{}\n{}", escaped(about), verbatim(&lines))
}

/// Returns the exit codes as a list.
fn exit_status() -> String {
    let mut entries: Vec<(&str, String)> = Vec::new();
    for line in EXIT_CODES.lines().filter(|line| line.starts_with("  ")) {
        let text = line.trim_start();
        match text.split_once(' ').filter(|(code, _)| code.parse::<u8>().is_ok()) {
            Some((code, text)) => entries.push((code, text.trim_start().to_owned())),
            None => {
                if let Some((_, entry)) = entries.last_mut() {
                    *entry += &format!(" {text}");
                }
            }
        }
    }
    let of_customer = |text: &str| text.split_once(OF_CUSTOMER).map_or(text, |(_, text)| text).to_owned();
    let entries = entries.iter().map(|(code, text)| format!(".TP\n{code}\n{}", escaped(&of_customer(text))));
    entries.collect::<Vec<_>>().join("\n")
}

/// Returns a part of a help page. `man` wraps its sentences, and prints its indented lines as they are.
fn block(part: &str) -> String {
    let (indented, filled): (Vec<&str>, Vec<&str>) = part.lines().partition(|line| line.starts_with(' '));
    let text = escaped(&filled.join(" "));
    if indented.is_empty() { text } else { format!("{text}\n{}", verbatim(&indented)) }
}

/// Returns lines that `man` neither wraps nor hyphenates.
fn verbatim(lines: &[&str]) -> String {
    let lines = lines.iter().map(|line| escaped(line.strip_prefix("  ").unwrap_or(line)));
    format!(".PP\n.EX\n{}\n.EE", lines.collect::<Vec<_>>().join("\n"))
}

/// Escapes the characters that have a meaning in the source of a page, or that `man` would print as other characters.
fn escaped(text: &str) -> String {
    let signs = text.replace('\\', "\\e").replace('-', "\\-").replace('\'', "\\(aq").replace('`', "\\(ga");
    let signs = signs.replace('~', "\\(ti").replace('^', "\\(ha");
    if signs.starts_with('.') { format!("\\&{signs}") } else { signs }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signs_are_printed_as_they_are_and_a_dot_begins_no_request() {
        assert_eq!(escaped("a-b 'c' `d` \\"), "a\\-b \\(aqc\\(aq \\(gad\\(ga \\e");
        assert_eq!(escaped(".x"), "\\&.x");
    }

    #[test]
    fn the_exit_codes_are_those_of_the_customers_commands() {
        let text = exit_status();

        assert!(text.contains(".TP\n1\nthe answer is no or is not proven, such as"), "{text}");
        assert!(text.contains(".TP\n130\nstopped by"), "{text}");
    }
}
