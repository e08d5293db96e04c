//! Wraps the texts that follow the options of a help page, for a narrow terminal.

use clap::Command;
use textwrap::Options;
use textwrap::core::display_width;

/// The spaces by which the continuation of an indented line is indented further.
const CONTINUATION: usize = 4;
/// An indented line whose first part is not longer than this is a row of a list, such as an exit code.
const LABEL: usize = 6;

/// The first words of commands in examples.
const PROGRAMS: [&str; 7] = ["freehold", "freehold-runner", "freehold-builder", "aws", "export", "make", "man"];

/// The maximum width of a paragraph, in columns. Longer lines are hard to read.
const PROSE: usize = 100;

/// Returns `command` with the text below its options wrapped to `width`, and the same for its subcommands; 0 means no
/// limit except for paragraphs.
pub(crate) fn fitted(command: Command, width: usize) -> Command {
    let width = if width == 0 { usize::MAX } else { width };
    let text = command.get_after_help().map(|text| fit(&text.to_string(), width));
    let command = command.mut_subcommands(|sub| fitted(sub, width));
    match text {
        Some(text) => command.after_help(text),
        None => command,
    }
}

/// Returns `text` with lines of at most `width` columns. A paragraph with a longer line is wrapped as a whole. A longer
/// indented line is wrapped separately, and its explanation moves to the next line. Commands and their comments can
/// still be pasted into a shell.
fn fit(text: &str, width: usize) -> String {
    let mut lines = Vec::new();
    let mut paragraph: Vec<&str> = Vec::new();
    let rows = rows(text, width);
    let mut continues = false;
    for line in rows.iter().map(String::as_str) {
        let is_prose = !line.is_empty() && !line.starts_with(' ');
        if is_prose {
            paragraph.push(line);
            continue;
        }
        lines.extend(filled(&std::mem::take(&mut paragraph), width));
        lines.extend(if continues || is_command(line) { command(line, width) } else { indented(line, width) });
        continues = line.ends_with('\\');
    }
    lines.extend(filled(&paragraph, width));
    lines.join("\n")
}

/// Returns the lines of `text`. If a row of a list has a line that is longer than `width`, all lines of the row are
/// joined into one line.
fn rows(text: &str, width: usize) -> Vec<String> {
    let mut rows: Vec<Vec<&str>> = Vec::new();
    let mut column = None;
    for line in text.lines() {
        let indent = line.len() - line.trim_start().len();
        match rows.last_mut().filter(|_| column == Some(indent)) {
            Some(row) => row.push(line),
            None => {
                column = column_of(line);
                rows.push(vec![line]);
            }
        }
    }
    rows.into_iter().flat_map(|row| joined(&row, width)).collect()
}

/// Returns the column at which the text of a row begins, behind a short label such as an exit code.
fn column_of(line: &str) -> Option<usize> {
    let text = line.trim_start();
    let (label, rest) = text.split_once("  ").or_else(|| text.split_once(' '))?;
    let is_row = text.len() < line.len() && label.len() <= LABEL && label.chars().all(|c| c.is_ascii_digit());
    is_row.then(|| line.len() - rest.trim_start().len())
}

fn joined(row: &[&str], width: usize) -> Vec<String> {
    if row.iter().all(|line| display_width(line) <= width) {
        return row.iter().map(|line| (*line).to_owned()).collect();
    }
    let (first, others) = row.split_first().map_or(("", &[][..]), |(first, others)| (*first, others));
    vec![others.iter().fold(first.to_owned(), |text, line| text + " " + line.trim_start())]
}

/// Returns a paragraph, unchanged if all its lines fit.
fn filled(paragraph: &[&str], width: usize) -> Vec<String> {
    let width = width.min(PROSE);
    if paragraph.iter().all(|line| display_width(line) <= width) {
        return paragraph.iter().map(|line| (*line).to_owned()).collect();
    }
    wrapped(&paragraph.join(" "), width, 0, 0)
}

/// Returns an indented line, unchanged if it fits.
fn indented(line: &str, width: usize) -> Vec<String> {
    if display_width(line) <= width {
        return vec![line.to_owned()];
    }
    let text = line.trim_start();
    let indent = line.len() - text.len();
    if let Some(comment) = text.strip_prefix("# ") {
        let marked = |line: String| format!("{}# {line}", " ".repeat(indent));
        return wrapped(comment, width.saturating_sub(indent + 2), 0, 0).into_iter().map(marked).collect();
    }
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

fn is_command(line: &str) -> bool {
    line.split_whitespace().next().is_some_and(|word| PROGRAMS.contains(&word))
}

/// Returns the line of a command. If the line does not fit, returns several lines that the shell joins again.
fn command(line: &str, width: usize) -> Vec<String> {
    if display_width(line) <= width {
        return vec![line.to_owned()];
    }
    let text = line.trim_start();
    let indent = line.len() - text.len();
    let (command, explanation) = text.split_once("  ").unwrap_or((text, ""));
    let (command, end) = command.strip_suffix(" \\").map_or((command, ""), |command| (command, " \\"));
    // A line that continues a command is indented already.
    let below = if is_command(line) { indent + CONTINUATION } else { indent };
    let (mut lines, mut now) = (Vec::new(), " ".repeat(indent));
    for word in words(command) {
        let is_first = now.trim().is_empty();
        // Each line but the last ends with a space and a backslash.
        if !is_first && display_width(&now) + 1 + display_width(word) + 2 > width {
            lines.push(format!("{now} \\"));
            now = " ".repeat(below) + word;
        } else {
            now = if is_first { now + word } else { now + " " + word };
        }
    }
    lines.push(now + end);
    if !explanation.is_empty() {
        lines.extend(wrapped(explanation.trim_start(), width, below, below));
    }
    lines
}

/// Returns the words of a command; a space between quotes does not end a word.
fn words(command: &str) -> Vec<&str> {
    let (mut all, mut from, mut quote) = (Vec::new(), 0, None);
    for (at, sign) in command.char_indices() {
        match (quote, sign) {
            (None, '\'' | '"') => quote = Some(sign),
            (Some(open), _) if open == sign => quote = None,
            (None, ' ') => {
                all.extend(command.get(from..at).filter(|word| !word.is_empty()));
                from = at + 1;
            }
            (Some(_) | None, _) => {}
        }
    }
    all.extend(command.get(from..).filter(|word| !word.is_empty()));
    all
}

/// Wraps `text` into lines of at most `width` columns. Indents the first line by `first` columns, and all later lines
/// by `others` columns.
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
    fn commands_and_comments_that_are_wrapped_can_still_be_pasted() {
        let text = "Examples:\n  # in a clone of Freehold: writes a release\n  freehold deploy globex --input title=\"good morning\" --no-wait\n  freehold build my-app \\\n      --component a-long-one --component another";

        insta::assert_snapshot!(fit(text, 40), @r#"
        Examples:
          # in a clone of Freehold: writes a
          # release
          freehold deploy globex --input \
              title="good morning" --no-wait
          freehold build my-app \
              --component a-long-one \
              --component another
        "#);
        assert_eq!(fit(text, 120), text);
    }

    #[test]
    fn lines_that_continue_a_row_are_filled_with_it() {
        let codes = "Exit codes:\n  1   the request failed (a workflow that failed,\n      wider terms)\n  130 stopped by ctrl-c";

        insta::assert_snapshot!(fit(codes, 40), @r"
        Exit codes:
          1   the request failed (a workflow
              that failed, wider terms)
          130 stopped by ctrl-c
        ");
        assert_eq!(fit(codes, 60), codes);
    }

    #[test]
    fn a_paragraph_with_a_long_line_is_filled_on_a_wide_terminal_too() {
        let text = "A sentence that goes on and on and on and on and on and on and on and on and on and on and on and on, and on.\nShort.";

        insta::assert_snapshot!(fit(text, 200), @r"
        A sentence that goes on and on and on and on and on and on and on and on and on and on and on and
        on, and on. Short.
        ");
    }

    #[test]
    fn on_a_wide_terminal_nothing_changes() {
        assert_eq!(fit(TEXT, 120), TEXT);
    }
}
