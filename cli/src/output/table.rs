//! Renders tables: rows below headings, without borders. If a table is too wide for the terminal, its sentences are
//! wrapped, or each row becomes a block of lines.

use comfy_table::{CellAlignment, ColumnConstraint, ContentArrangement, Table as Grid, Width, presets};
use textwrap::core::display_width;

use super::state::coloured;
use super::terminal::Stream;

/// The number of spaces between two columns.
const GAP: usize = 2;
/// The minimum width to which a sentence is wrapped, in columns.
const NARROW: usize = 16;

/// A table: rows below headings, with aligned columns.
#[derive(Debug)]
pub(crate) struct Table {
    headings: Vec<&'static str>,
    /// The headings of columns with numbers.
    numbers: Vec<&'static str>,
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(crate) fn new(headings: &[&'static str]) -> Self {
        Self { headings: headings.to_vec(), numbers: Vec::new(), rows: Vec::new() }
    }

    /// Returns the table with the columns `numbers` aligned to the right.
    pub(crate) fn with_numbers(self, numbers: &[&'static str]) -> Self {
        Self { numbers: numbers.to_vec(), ..self }
    }

    /// Adds a row; it has one cell for each heading.
    pub(crate) fn row<const N: usize>(&mut self, cells: [String; N]) {
        self.rows.push(cells.to_vec());
    }

    /// Returns the table without those of the columns `optional` in which no row has a text.
    pub(crate) fn without_empty(mut self, optional: &[&str]) -> Self {
        let has_text = |at: usize| self.rows.iter().any(|row| row.get(at).is_some_and(|cell| !cell.is_empty()));
        let columns = self.headings.iter().enumerate();
        let kept: Vec<bool> = columns.map(|(at, heading)| !optional.contains(heading) || has_text(at)).collect();
        self.headings = only(self.headings, &kept);
        self.rows = self.rows.into_iter().map(|row| only(row, &kept)).collect();
        self
    }

    /// Returns the headings of the columns.
    pub(crate) fn headings(&self) -> &[&'static str] {
        &self.headings
    }

    /// Returns the rows, each with one cell for each heading.
    pub(crate) fn rows(&self) -> &[Vec<String>] {
        &self.rows
    }

    /// Returns the table as text that fits the stream.
    pub(super) fn render(&self, stream: Stream) -> String {
        let widest: Vec<usize> = self.columns(|cell| cell.lines().map(display_width).max().unwrap_or_default());
        match stream.width {
            Some(width) if total(&widest) > width => match self.narrowed(&widest, width) {
                Some(widths) => self.grid(&widths, stream.colours),
                None => self.blocks(stream, width),
            },
            Some(_) | None => self.grid(&widest, stream.colours),
        }
    }

    /// Returns the maximum of `measure` over the cells and the heading of each column.
    fn columns(&self, measure: impl Fn(&str) -> usize) -> Vec<usize> {
        let cells = |at: usize| self.rows.iter().filter_map(move |row| row.get(at)).map(String::as_str);
        let largest = |(at, heading): (usize, &&'static str)| cells(at).chain([*heading]).map(&measure).max();
        self.headings.iter().enumerate().map(|column| largest(column).unwrap_or_default()).collect()
    }

    /// Returns column widths that fit into `width`, or `None` when wrapping sentences is not enough. The widest column
    /// shrinks first.
    fn narrowed(&self, widest: &[usize], width: usize) -> Option<Vec<usize>> {
        let longest = |text: &str| text.split_whitespace().map(display_width).max().unwrap_or_default();
        let words = self.columns(longest);
        let least = |(at, wide): (usize, &usize)| match self.headings.get(at) {
            Some(&"STATE") | None => *wide,
            Some(_) => words.get(at).map_or(*wide, |word| (*word).max(NARROW).min(*wide)),
        };
        let least: Vec<usize> = widest.iter().enumerate().map(least).collect();
        let mut widths = widest.to_vec();
        while total(&widths) > width {
            let pairs = widths.iter_mut().zip(&least).filter(|(now, least)| **now > **least);
            let (now, _) = pairs.max_by_key(|(now, _)| **now)?;
            *now -= 1;
        }
        Some(widths)
    }

    fn grid(&self, widths: &[usize], colours: bool) -> String {
        let mut grid = Grid::new();
        grid.load_preset(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
        grid.set_header(self.headings.clone()).add_rows(self.rows.clone());
        for ((column, width), heading) in grid.column_iter_mut().zip(widths).zip(&self.headings) {
            let width = u16::try_from(width + GAP).unwrap_or(u16::MAX);
            column.set_padding((0, 2)).set_constraint(ColumnConstraint::Absolute(Width::Fixed(width)));
            if self.numbers.contains(heading) {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        let state = self.headings.iter().position(|heading| *heading == "STATE");
        let at = state.map(|column| widths.iter().take(column).map(|width| width + GAP).sum::<usize>());
        let lines = grid.to_string();
        let lines = lines.lines().map(|line| match at {
            Some(at) if colours => colour_word_at(line.trim_end(), at),
            Some(_) | None => line.trim_end().to_owned(),
        });
        lines.collect::<Vec<_>>().join("\n")
    }

    /// Returns a table of names and values as lines. It is used when a value is too long for the width of the table.
    fn facts(&self, stream: Stream, width: usize) -> String {
        let pairs = || self.rows.iter().filter_map(|row| Some((row.first()?, row.get(1)?)));
        let label = pairs().map(|(name, _)| display_width(name)).max().unwrap_or_default() + GAP;
        pairs().map(|(name, value)| labelled(name, value, label, stream, width)).collect::<Vec<_>>().join("\n")
    }

    /// Returns one block for each row, with one or more lines for each cell that is not empty.
    fn blocks(&self, stream: Stream, width: usize) -> String {
        if let [heading, ""] = self.headings.as_slice() {
            return format!("{heading}\n{}", self.facts(stream, width));
        }
        let label = self.headings.iter().map(|heading| display_width(heading)).max().unwrap_or_default() + GAP;
        let block = |row: &Vec<String>| {
            let cells = self.headings.iter().zip(row).filter(|(_, cell)| !cell.is_empty());
            let lines = cells.map(|(heading, cell)| {
                let cell = if *heading == "STATE" && stream.colours { coloured(cell) } else { cell.clone() };
                labelled(heading, &cell, label, stream, width)
            });
            lines.collect::<Vec<_>>().join("\n")
        };
        if self.rows.is_empty() {
            return self.headings.join(" ".repeat(GAP).as_str());
        }
        self.rows.iter().map(block).collect::<Vec<_>>().join("\n\n")
    }
}

/// Returns a label and its text. The text is wrapped, and its lines are aligned to the right of the label.
fn labelled(label: &str, text: &str, width_of_label: usize, stream: Stream, width: usize) -> String {
    let room = Stream { width: Some(width.saturating_sub(width_of_label).max(NARROW)), ..stream };
    let text = room.wrapped(text).replace('\n', &format!("\n{}", " ".repeat(width_of_label)));
    format!("{label:<width_of_label$}{text}")
}

/// Returns the width of a table with these column widths.
fn total(widths: &[usize]) -> usize {
    widths.iter().sum::<usize>() + GAP * widths.len().saturating_sub(1)
}

/// Colours the cell that begins at character `at` of a finished line. Escape codes inside cells would count as width.
fn colour_word_at(line: &str, at: usize) -> String {
    let Some((start, _)) = line.char_indices().nth(at) else {
        return line.to_owned();
    };
    let (head, tail) = line.split_at(start);
    let end = tail.find("  ").unwrap_or(tail.len());
    let (word, rest) = tail.split_at(end);
    format!("{head}{}{rest}", coloured(word))
}

/// Returns the cells of the columns that are kept.
fn only<T>(cells: Vec<T>, kept: &[bool]) -> Vec<T> {
    cells.into_iter().zip(kept).filter_map(|(cell, is_kept)| is_kept.then_some(cell)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: Stream = Stream { colours: false, width: None };

    fn at(width: usize) -> Stream {
        Stream { width: Some(width), ..PLAIN }
    }

    fn table() -> Table {
        let mut table = Table::new(&["NODE", "STATE", "REASON"]);
        table.row(["running".into(), "failed".into(), "exit code 1".into()]);
        table.row(["db".into(), "succeeded".into(), String::new()]);
        table
    }

    fn long() -> Table {
        let mut table = Table::new(&["NODE", "STATE", "REASON"]);
        table.row(["web".into(), "failed".into(), "the role may not create a queue in this account".into()]);
        table.row(["db".into(), "succeeded".into(), String::new()]);
        table
    }

    #[test]
    fn a_table_is_aligned_without_borders_or_trailing_space() {
        let text = table().render(PLAIN);

        insta::assert_snapshot!(text, @r"
        NODE     STATE      REASON
        running  failed     exit code 1
        db       succeeded
        ");
        assert_eq!(table().render(at(200)), text);
    }

    #[test]
    fn a_column_of_numbers_is_aligned_to_the_right() {
        let mut table = Table::new(&["NODE", "JOBS", "REASON"]).with_numbers(&["JOBS"]);
        table.row(["running".into(), "7".into(), "exit code 1".into()]);
        table.row(["db".into(), "12345".into(), String::new()]);

        insta::assert_snapshot!(table.render(PLAIN), @r"
        NODE      JOBS  REASON
        running      7  exit code 1
        db       12345
        ");
    }

    #[test]
    fn an_optional_column_in_which_no_row_has_a_text_is_left_out() {
        let mut table = Table::new(&["NODE", "HEALTH", "LABELS", "REASON"]);
        table.row(["web".into(), String::new(), "a=b".into(), String::new()]);
        table.row(["db".into(), String::new(), String::new(), String::new()]);

        let text = table.without_empty(&["HEALTH", "LABELS"]).render(PLAIN);

        insta::assert_snapshot!(text, @r"
        NODE  LABELS  REASON
        web   a=b
        db
        ");
    }

    #[test]
    fn colours_touch_the_state_column_alone() {
        for stream in [PLAIN, at(40), at(24)] {
            let text = long().render(Stream { colours: true, ..stream });

            let plain = text.replace("\u{1b}[31m", "").replace("\u{1b}[32m", "").replace("\u{1b}[0m", "");
            assert_eq!(plain, long().render(stream));
            assert!(text.contains("\u{1b}[31mfailed\u{1b}[0m"), "{text}");
        }
    }

    #[test]
    fn a_table_that_is_too_wide_breaks_its_sentences() {
        insta::assert_snapshot!(long().render(at(40)), @r"
        NODE  STATE      REASON
        web   failed     the role may not create
                         a queue in this account
        db    succeeded
        ");
    }

    #[test]
    fn a_table_whose_words_do_not_fit_is_shown_row_by_row() {
        insta::assert_snapshot!(long().render(at(24)), @r"
        NODE    web
        STATE   failed
        REASON  the role may not
                create a queue
                in this account

        NODE    db
        STATE   succeeded
        ");
    }
}
