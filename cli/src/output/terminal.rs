//! The properties of stdout and stderr: their width, whether they support colours, and whether stderr carries JSON.

use std::io::{IsTerminal, Write};
use std::sync::OnceLock;

use console::Term;
use serde_json::json;
use textwrap::{Options, WordSeparator, WordSplitter};

use super::printable_text::{printable, printable_json};

/// The minimum width to which text is wrapped, in columns. With a smaller width, each line would contain only one word.
const NARROWEST: usize = 20;

/// The properties of stdout or stderr.
#[derive(Debug, Clone, Copy)]
pub(super) struct Stream {
    pub(super) colours: bool,
    /// The width in columns; absent when lines may have any length.
    pub(super) width: Option<usize>,
}

impl Stream {
    /// Returns the properties of stdout: colours only on a terminal, and not when `NO_COLOR` is set
    /// (<https://no-color.org>).
    pub(super) fn stdout() -> Self {
        Self::of(std::io::stdout().is_terminal(), &Term::stdout())
    }

    fn stderr() -> Self {
        Self::of(std::io::stderr().is_terminal(), &Term::stderr())
    }

    fn of(terminal: bool, term: &Term) -> Self {
        let colours = terminal && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        Self { colours, width: asked_width().or_else(|| terminal.then(|| term_width(term)).flatten()) }
    }

    /// Returns `text` with long lines broken at spaces. The new lines keep the indentation of the broken line.
    pub(super) fn wrapped(self, text: &str) -> String {
        let Some(width) = self.width else {
            return text.to_owned();
        };
        let lines: Vec<String> = text.split('\n').map(|line| wrapped_line(line, width)).collect();
        lines.join("\n")
    }

    /// Returns a text that is printed after `columns` other characters: with long lines broken at spaces, and with each
    /// further line below the text.
    fn wrapped_after(self, text: &str, columns: usize) -> String {
        let wrapped = self.wrapped(&format!("{:columns$}{text}", ""));
        wrapped.get(columns..).unwrap_or_default().to_owned()
    }
}

/// Returns the width that the user sets with `COLUMNS`. It also applies when the output is not a terminal.
fn asked_width() -> Option<usize> {
    std::env::var("COLUMNS").ok()?.parse().ok().filter(|width| *width >= NARROWEST)
}

fn term_width(term: &Term) -> Option<usize> {
    let (_, columns) = term.size_checked()?;
    Some(usize::from(columns)).filter(|width| *width >= NARROWEST)
}

fn wrapped_line(line: &str, width: usize) -> String {
    if textwrap::core::display_width(line) <= width {
        return line.to_owned();
    }
    let indentation: String = line.chars().take_while(|c| *c == ' ').collect();
    let rest = line.trim_start_matches(' ');
    // Words are not broken, so that ids, digests and addresses can be copied.
    let options = Options::new(width)
        .initial_indent(&indentation)
        .subsequent_indent(&indentation)
        .break_words(false)
        .word_separator(WordSeparator::AsciiSpace)
        .word_splitter(WordSplitter::NoHyphenation);
    textwrap::fill(rest, options)
}

#[derive(Debug, Clone, Copy)]
struct Stderr {
    json: bool,
    stream: Stream,
}

static STDERR: OnceLock<Stderr> = OnceLock::new();

/// Sets how this process writes to stderr. Only the first call has an effect.
pub(super) fn decide(json: bool) {
    let _ = STDERR.set(Stderr { json, stream: Stream::stderr() });
}

fn stderr() -> Stderr {
    *STDERR.get_or_init(|| Stderr { json: false, stream: Stream::stderr() })
}

/// Returns whether stderr is JSON, with one object per line.
pub(crate) fn stderr_is_json() -> bool {
    stderr().json
}

/// Returns whether stderr supports colours.
pub(crate) fn stderr_has_colours() -> bool {
    stderr().stream.colours
}

/// Prints a text to stderr. With `--json`, prints a JSON object that contains the text.
pub(crate) fn note(text: &str) {
    let Stderr { json, stream } = stderr();
    if json {
        write_json(&json!({ "note": text }).to_string());
    } else {
        write(&printable(&stream.wrapped(text)));
    }
}

/// Returns a text of one line, wrapped for a live line of stderr: after a spinner and a space.
pub(crate) fn beside_spinner(text: &str) -> String {
    stderr().stream.wrapped_after(text, 2)
}

/// Prints JSON and a line end to stderr.
pub(crate) fn write_json(json: &str) {
    write(&printable_json(json));
}

fn write(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}

/// Returns the maximum width of the command's help; 0 means no limit.
pub(crate) fn help_width() -> usize {
    Stream::stdout().width.unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(width: usize) -> Stream {
        Stream { colours: false, width: Some(width) }
    }

    #[test]
    fn a_long_line_is_broken_at_spaces_and_keeps_its_indentation() {
        let text = "  deploy of `globex` failed: `web` failed; see `freehold job logs job_1`\nshort";

        insta::assert_snapshot!(at(40).wrapped(text), @r"
          deploy of `globex` failed: `web`
          failed; see `freehold job logs job_1`
        short
        ");
    }

    #[test]
    fn a_long_word_stays_whole() {
        let digest = "sha256:05b3abf2579a5eb66403cd78be557fd860633a1fe2103c7642030defe32c657f";

        assert_eq!(at(40).wrapped(&format!("artifact {digest}")), format!("artifact\n{digest}"));
    }

    #[test]
    fn further_lines_of_a_text_after_a_spinner_stand_below_the_text() {
        let text = "queue  waiting_for_approval  its plan changes 2 objects of 「注文」";

        insta::assert_snapshot!(at(32).wrapped_after(text, 2), @r"
        queue  waiting_for_approval
          its plan changes 2 objects of
          「注文」
        ");
        assert_eq!((at(40).wrapped_after("web", 2).as_str(), at(40).wrapped_after("", 2).as_str()), ("web", ""));
    }

    #[test]
    fn without_a_width_nothing_is_broken() {
        let text = "a b ".repeat(100);
        let endless = Stream { colours: false, width: None };

        assert_eq!((endless.wrapped(&text), endless.wrapped_after(&text, 2)), (text.clone(), text));
    }
}
