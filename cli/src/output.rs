//! Output of commands: tables and sentences for people, JSON for programs. Results go to stdout, all else to stderr.

use std::io::{IsTerminal, Write};

use comfy_table::{Table as Grid, presets};
use serde::Serialize;

use crate::error::{Error, Result};

/// How results are shown; made once from the arguments and the terminal.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Output {
    json: bool,
    colours: bool,
}

impl Output {
    /// Returns the output for this process: colours only on a terminal, and not when `NO_COLOR` is set.
    pub(crate) fn of_process(json: bool) -> Self {
        let colours = std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty());
        Self { json, colours }
    }

    /// Returns the output of a test: text without colours.
    #[cfg(test)]
    pub(crate) const fn plain() -> Self {
        Self { json: false, colours: false }
    }

    /// Returns whether results are JSON.
    pub(crate) const fn is_json(self) -> bool {
        self.json
    }

    /// Returns whether text may have colours.
    pub(crate) const fn colours(self) -> bool {
        self.colours
    }

    /// Prints a result: its JSON, or what `for_people` makes of it.
    pub(crate) fn show<T: Serialize + ?Sized>(self, value: &T, for_people: impl FnOnce(&T) -> String) -> Result<()> {
        if !self.json {
            self.line(for_people(value).trim_end());
            return Ok(());
        }
        let text =
            serde_json::to_string_pretty(value).map_err(|e| Error::internal(format!("cannot print JSON: {e}")))?;
        print(&text);
        Ok(())
    }

    /// Prints a line for people.
    pub(crate) fn line(self, text: &str) {
        if !self.json {
            print(text);
        }
    }

    /// Returns `table` as text.
    pub(crate) fn table(self, table: &Table) -> String {
        table.render(self.colours)
    }

    /// Returns a state word in its colour.
    pub(crate) fn state(self, word: &str) -> String {
        if self.colours { coloured(word) } else { word.to_owned() }
    }
}

/// Prints a line to stdout; a reader that went away (`| head`) is not an error.
pub(crate) fn print(text: &str) {
    let mut out = std::io::stdout().lock();
    let _ = writeln!(out, "{text}").and_then(|()| out.flush());
}

/// Prints text without a line end.
pub(crate) fn print_raw(text: &str) {
    let mut out = std::io::stdout().lock();
    let _ = write!(out, "{text}").and_then(|()| out.flush());
}

/// Prints a line to stderr.
pub(crate) fn note(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}

/// Rows under headings, without borders, columns aligned.
#[derive(Debug)]
pub(crate) struct Table {
    headings: Vec<&'static str>,
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(crate) fn new(headings: &[&'static str]) -> Self {
        Self { headings: headings.to_vec(), rows: Vec::new() }
    }

    /// Adds a row; it has one cell for each heading.
    pub(crate) fn row<const N: usize>(&mut self, cells: [String; N]) {
        self.rows.push(cells.to_vec());
    }

    fn render(&self, colours: bool) -> String {
        let mut grid = Grid::new();
        grid.load_preset(presets::NOTHING).set_header(self.headings.clone()).add_rows(self.rows.clone());
        for column in grid.column_iter_mut() {
            column.set_padding((0, 2));
        }
        let state = self.headings.iter().position(|heading| *heading == "STATE");
        let widths = grid.column_max_content_widths();
        let at = state.map(|column| widths.iter().take(column).map(|width| usize::from(*width) + 2).sum::<usize>());
        let lines = grid.to_string();
        let lines = lines.lines().map(|line| match at {
            Some(at) if colours => colour_word_at(line.trim_end(), at),
            Some(_) | None => line.trim_end().to_owned(),
        });
        lines.collect::<Vec<_>>().join("\n")
    }
}

/// Colours the cell that begins at character `at`. Escape codes inside cells would break the widths.
fn colour_word_at(line: &str, at: usize) -> String {
    let Some((start, _)) = line.char_indices().nth(at) else {
        return line.to_owned();
    };
    let (head, tail) = line.split_at(start);
    let end = tail.find("  ").unwrap_or(tail.len());
    let (word, rest) = tail.split_at(end);
    format!("{head}{}{rest}", coloured(word))
}

fn coloured(word: &str) -> String {
    let code = match word {
        "succeeded" | "ready" | "built" | "deployed" | "ok" | "pass" => 32,
        "failed" | "fail" | "broken" | "disabled" | "lost" | "interrupted" | "refused" | "blocked" | "timed_out" => 31,
        "running" | "active" | "building" | "provisioning" | "deploying" | "pending" | "queued" | "dispatched"
        | "warn" => 33,
        "skipped" | "waiting" | "cancelled" | "idle" => 90,
        word if word.ends_with("FAILED") || word.contains("ROLLBACK") => 31,
        word if word.ends_with("_COMPLETE") => 32,
        _ => return word.to_owned(),
    };
    format!("\u{1b}[{code}m{word}\u{1b}[0m")
}

/// Returns a text in which nothing steers a terminal: names come from configs.
pub(crate) fn clean(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '?' } else { c }).collect()
}

/// Returns a count and its noun: `1 install`, `2 installs`.
pub(crate) fn plural(count: usize, noun: &str) -> String {
    let ending = if count == 1 { "" } else { "s" };
    format!("{count} {noun}{ending}")
}

/// Returns a byte count as people read it.
pub(crate) fn bytes(count: u64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut rest = count;
    let mut tenths = 0;
    let mut unit = 0;
    while rest >= 1024 && unit + 1 < UNITS.len() {
        tenths = (rest % 1024) * 10 / 1024;
        rest /= 1024;
        unit += 1;
    }
    let name = UNITS.get(unit).copied().unwrap_or("B");
    if unit == 0 { format!("{rest} {name}") } else { format!("{rest}.{tenths} {name}") }
}

/// Returns the first 12 hex digits of a digest, enough to recognise it in a table.
pub(crate) fn short(digest: &freehold_protocol::Digest) -> String {
    digest.hex().chars().take(12).collect()
}

/// Returns a time as `2026-11-21 09:00:05Z`.
pub(crate) fn time(at: freehold_protocol::Timestamp) -> String {
    i64::try_from(at.as_millis())
        .ok()
        .and_then(|millis| jiff::Timestamp::from_millisecond(millis).ok())
        .map(|at| at.strftime("%Y-%m-%d %H:%M:%SZ").to_string())
        .unwrap_or_default()
}

/// Returns a duration in milliseconds as people read it: `850 ms`, `12 s`, `3 min 5 s`, `2 h 10 min`.
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

    fn table() -> Table {
        let mut table = Table::new(&["NODE", "STATE", "REASON"]);
        table.row(["running".into(), "failed".into(), "exit code 1".into()]);
        table.row(["db".into(), "succeeded".into(), String::new()]);
        table
    }

    #[test]
    fn a_table_is_aligned_without_borders_or_trailing_space() {
        let text = table().render(false);

        insta::assert_snapshot!(text, @r"
        NODE     STATE      REASON
        running  failed     exit code 1
        db       succeeded
        ");
    }

    #[test]
    fn colours_touch_the_state_column_alone() {
        let text = table().render(true);

        let plain = text.replace("\u{1b}[31m", "").replace("\u{1b}[32m", "").replace("\u{1b}[0m", "");
        assert_eq!(plain, table().render(false));
        assert!(text.contains("running  \u{1b}[31mfailed\u{1b}[0m"), "{text}");
    }

    #[test]
    fn sizes_times_and_durations_are_readable() {
        assert_eq!(bytes(999), "999 B");
        assert_eq!(bytes(1_572_864), "1.5 MiB");
        assert_eq!(duration(850), "850 ms");
        assert_eq!(duration(185_000), "3 min 5 s");
        assert_eq!(time(freehold_protocol::Timestamp::from_millis(1_000)), "1970-01-01 00:00:01Z");
    }
}
