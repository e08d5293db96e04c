//! Texts of the help that follow the options, on a narrow terminal.

use clap::Command;
use textwrap::Options;
use textwrap::core::display_width;

/// The spaces by which the continuation of an indented line is indented further.
const CONTINUATION: usize = 4;
/// An indented line whose first part is not longer than this is a row of a list, such as an exit code.
const LABEL: usize = 6;

/// Returns `command` with all texts below the options of it and its subcommands fitted to `width`; 0 means no limit.
pub(crate) fn fitted(command: Command, width: usize) -> Command {
    if width == 0 {
        return command;
    }
    let text = command.get_after_help().map(|text| fit(&text.to_string(), width));
    let command = command.mut_subcommands(|sub| fitted(sub, width));
    match text {
        Some(text) => command.after_help(text),
        None => command,
    }
}

/// Returns `text` with lines of at most `width` columns. A paragraph with a longer line is filled anew; an indented line stays
/// a line of its own, and what explains it goes below it.
fn fit(text: &str, width: usize) -> String {
    let mut lines = Vec::new();
    let mut paragraph: Vec<&str> = Vec::new();
    for line in text.lines() {
        let is_prose = !line.is_empty() && !line.starts_with(' ');
        if is_prose {
            paragraph.push(line);
            continue;
        }
        lines.extend(filled(&std::mem::take(&mut paragraph), width));
        lines.extend(indented(line, width));
    }
    lines.extend(filled(&paragraph, width));
    lines.join("\n")
}

/// Returns a paragraph; unchanged when all its lines fit.
fn filled(paragraph: &[&str], width: usize) -> Vec<String> {
    if paragraph.iter().all(|line| display_width(line) <= width) {
        return paragraph.iter().map(|line| (*line).to_owned()).collect();
    }
    wrapped(&paragraph.join(" "), width, 0, 0)
}

/// Returns an indented line; unchanged when it fits.
fn indented(line: &str, width: usize) -> Vec<String> {
    if display_width(line) <= width {
        return vec![line.to_owned()];
    }
    let text = line.trim_start();
    let indent = line.len() - text.len();
    let Some((first, rest)) = text.split_once("  ") else {
        return wrapped(text, width, indent, indent + CONTINUATION);
    };
    let rest = rest.trim_start();
    if first.len() <= LABEL {
        return wrapped(text, width, indent, line.len() - rest.len());
    }
    let below = indent + CONTINUATION;
    let mut lines = wrapped(first, width, indent, below);
    lines.extend(wrapped(rest, width, below, below));
    lines
}

/// Returns `text` in lines of `width` columns, the first one and the others with these indentations.
fn wrapped(text: &str, width: usize, first: usize, others: usize) -> Vec<String> {
    let (first, others) = (" ".repeat(first), " ".repeat(others));
    let options = Options::new(width)
        .initial_indent(&first)
        .subsequent_indent(&others)
        .break_words(false)
        .word_separator(textwrap::WordSeparator::AsciiSpace)
        .word_splitter(textwrap::WordSplitter::NoHyphenation);
    textwrap::wrap(text, options).into_iter().map(std::borrow::Cow::into_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
Examples:
  freehold deploy globex             what changed since the last deploy
  freehold deploy globex --all

Inputs that are changed here are kept for later
deploys.

Exit codes:
  4   conflict: the current state does not allow it";

    #[test]
    fn on_a_narrow_terminal_what_explains_an_example_goes_below_it_and_prose_is_filled() {
        insta::assert_snapshot!(fit(TEXT, 40), @r"
        Examples:
          freehold deploy globex
              what changed since the last deploy
          freehold deploy globex --all

        Inputs that are changed here are kept
        for later deploys.

        Exit codes:
          4   conflict: the current state does
              not allow it
        ");
    }

    #[test]
    fn on_a_wide_terminal_nothing_changes() {
        assert_eq!(fit(TEXT, 120), TEXT);
    }
}
