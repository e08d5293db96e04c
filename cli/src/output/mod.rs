//! Prints the output of commands: text for people, or JSON for programs. Results go to stdout, everything else to
//! stderr.

mod findings;
mod help;
mod live;
mod part;
mod printable_text;
mod state;
mod style;
mod table;
mod terminal;

use std::io::Write;

use console::{Alignment, measure_text_width, pad_str};
use serde::Serialize;

pub(crate) use help::fitted;
pub(crate) use live::live_lines;
pub(crate) use part::Part;
pub(crate) use style::styled;
pub(crate) use table::Table;
pub(crate) use terminal::{beside_spinner, help_width, note, stderr_has_colours, stderr_is_json, write_json};

use crate::error::{Error, Result};
use printable_text::{is_control, printable, printable_json};
use terminal::Stream;

/// The format of the output. The arguments and the terminal decide it once.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Output {
    json: bool,
    stdout: Stream,
}

impl Output {
    /// Returns the output of this process. Also sets the form of stderr.
    pub(crate) fn of_process(json: bool) -> Self {
        terminal::decide(json);
        Self { json, stdout: Stream::stdout() }
    }

    /// Returns an output without a terminal, such as that of a page or of a test: text without colours or a width.
    pub(crate) const fn plain() -> Self {
        Self { json: false, stdout: Stream { colours: false, width: None } }
    }

    /// Returns whether results are JSON.
    pub(crate) const fn is_json(self) -> bool {
        self.json
    }

    /// Returns whether text may have colours.
    pub(crate) const fn colours(self) -> bool {
        self.stdout.colours
    }

    /// Prints a result: as JSON, or as the text that `for_people` returns, wrapped to the terminal's width.
    pub(crate) fn show<T: Serialize + ?Sized>(self, value: &T, for_people: impl FnOnce(&T) -> String) -> Result<()> {
        self.show_verbatim(value, |value| self.stdout.wrapped(for_people(value).trim_end()))
    }

    /// Prints a result whose lines must not be wrapped: as JSON, or as the text that `for_people` returns.
    pub(crate) fn show_verbatim<T: Serialize + ?Sized>(
        self,
        value: &T,
        for_people: impl FnOnce(&T) -> String,
    ) -> Result<()> {
        if !self.json {
            print(for_people(value).trim_end());
            return Ok(());
        }
        print_json(&json_of(value)?);
        Ok(())
    }

    /// Prints an answer: as `json`, which [`json_of`] returned, or as the texts of its parts.
    pub(crate) fn show_parts(self, json: &str, parts: &[Part]) {
        if self.json {
            print_json(json);
        } else {
            let texts: Vec<String> = parts.iter().map(|part| self.text_of(part)).collect();
            print(texts.join("\n\n").trim_end());
        }
    }

    /// Returns a part of an answer as text.
    fn text_of(self, part: &Part) -> String {
        match part {
            Part::Text(text) => self.wrapped(text),
            Part::Table(table) => self.wrapped(&self.table(table)),
            Part::Verbatim(text) => text.clone(),
        }
    }

    /// Prints a text for people. Prints nothing with `--json`.
    pub(crate) fn line(self, text: &str) {
        if !self.json {
            print(&self.stdout.wrapped(text));
        }
    }

    /// Returns `text` wrapped to the terminal's width.
    pub(crate) fn wrapped(self, text: &str) -> String {
        self.stdout.wrapped(text)
    }

    /// Returns findings in files, as [`freehold_appconfig::Diagnostics::render`] returns them, with their sentences wrapped.
    pub(crate) fn findings(self, text: &str) -> String {
        findings::fitted(text, self.stdout)
    }

    /// Returns `table` as text.
    pub(crate) fn table(self, table: &Table) -> String {
        table.render(self.stdout)
    }

    /// Returns the name of a state in its colour.
    pub(crate) fn state(self, word: &str) -> String {
        if self.stdout.colours { state::coloured(word) } else { word.to_owned() }
    }
}

/// Switches stderr to JSON, for errors that occur before the arguments are parsed.
pub(crate) fn json_to_stderr() {
    terminal::decide(true);
}

/// Prints a line to stdout, without characters that control a terminal. If the reader has closed the pipe (`| head`),
/// this is not an error.
pub(crate) fn print(text: &str) {
    print_exactly(&format!("{}\n", printable(text)));
}

/// Returns a value as the JSON that `--json` prints.
pub(crate) fn json_of<T: Serialize + ?Sized>(value: &T) -> Result<String> {
    serde_json::to_string_pretty(value).map_err(|error| Error::internal(format!("cannot print JSON: {error}")))
}

/// Prints JSON and a line end to stdout.
pub(crate) fn print_json(json: &str) {
    print_exactly(&format!("{}\n", printable_json(json)));
}

/// Prints a part of a log to stdout, without characters that control a terminal, and does not add a line end.
pub(crate) fn print_log(text: &str) {
    print_exactly(&printable(text));
}

/// Prints a text to stdout unchanged, such as a template, because people compare its digest.
pub(crate) fn print_exactly(text: &str) {
    let mut out = std::io::stdout().lock();
    let _ = write!(out, "{text}").and_then(|()| out.flush());
}

/// Returns a text on one line, without control characters and colours. Names come from configs and could otherwise
/// control the terminal.
pub(crate) fn clean(text: &str) -> String {
    text.chars().map(|c| if is_control(c) { '?' } else { c }).collect()
}

/// Returns a text without control characters, for a page that shows its lines.
pub(crate) fn clean_lines(text: &str) -> String {
    text.chars().map(|c| if is_control(c) && !matches!(c, '\n' | '\t') { '?' } else { c }).collect()
}

/// Returns commands and what each of them does, as indented lines in two columns. A command without a description does
/// not widen the first column.
pub(crate) fn described_commands(commands: &[(String, &str)]) -> String {
    let described = commands.iter().filter(|(_, what)| !what.is_empty());
    let width = described.map(|(command, _)| measure_text_width(command)).max().unwrap_or_default();
    let lines = commands.iter().map(|(command, what)| {
        format!("  {}  {what}", pad_str(command, width, Alignment::Left, None)).trim_end().to_owned()
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Returns a count and its noun: `1 install`, `2 installs`.
pub(crate) fn plural(count: usize, noun: &str) -> String {
    format!("{count} {}", noun_for(count, noun))
}

/// Returns the noun for a count, without the count: `install`, `installs`.
pub(crate) fn noun_for(count: usize, noun: &str) -> String {
    let ending = if count == 1 { "" } else { "s" };
    format!("{noun}{ending}")
}

/// Returns a number of bytes as text, such as `1.50 MiB`.
pub(crate) fn bytes(count: u64) -> String {
    indicatif::BinaryBytes(count).to_string()
}

/// Returns a time as `2026-11-21 09:00:05Z`.
pub(crate) fn time(at: freehold_protocol::Timestamp) -> String {
    i64::try_from(at.as_millis())
        .ok()
        .and_then(|millis| jiff::Timestamp::from_millisecond(millis).ok())
        .map(|at| at.strftime("%Y-%m-%d %H:%M:%SZ").to_string())
        .unwrap_or_default()
}

/// Returns a duration in milliseconds as text: `850 ms`, `12 s`, `3 min 5 s`, `2 h 10 min`.
pub(crate) fn duration(millis: u64) -> String {
    let secs = millis / 1000;
    match secs {
        0 => format!("{millis} ms"),
        1..60 => format!("{secs} s"),
        60..3600 => format!("{} min {} s", secs / 60, secs % 60),
        _ => format!("{} h {} min", secs / 3600, secs % 3600 / 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_times_and_durations_are_readable() {
        assert_eq!(bytes(999), "999 B");
        assert_eq!(bytes(1_572_864), "1.50 MiB");
        assert_eq!(duration(850), "850 ms");
        assert_eq!(duration(185_000), "3 min 5 s");
        assert_eq!(time(freehold_protocol::Timestamp::from_millis(1_000)), "1970-01-01 00:00:01Z");
    }
}
