//! The screen of a terminal: what a person sees of a program that draws its lines again and again.

use std::str::Chars;

use console::measure_text_width;

/// Fills the second column of a wide character.
const SECOND_HALF: char = '\0';

/// A screen that never scrolls, and the place of the next character.
#[derive(Debug, Clone)]
pub(crate) struct Screen {
    columns: usize,
    rows: Vec<Vec<char>>,
    row: usize,
    column: usize,
}

impl Screen {
    pub(crate) fn new(columns: u16) -> Self {
        Self { columns: usize::from(columns), rows: Vec::new(), row: 0, column: 0 }
    }

    /// Shows what a program writes.
    pub(crate) fn show(&mut self, output: &str) {
        let rest = self.show_until(output, |_| false);
        assert_eq!(rest, None);
    }

    /// Shows what a program writes until the cursor goes up from a wanted screen, as it does before lines are drawn
    /// again; returns the rest. Returns nothing when there is no such moment.
    pub(crate) fn show_until<'a>(&mut self, output: &'a str, is_wanted: impl Fn(&str) -> bool) -> Option<&'a str> {
        let mut rest = output.chars();
        loop {
            let from_here = rest.as_str();
            match rest.next()? {
                '\r' => self.column = 0,
                '\n' => self.row += 1,
                '\u{1b}' => {
                    let (count, command) = sequence(&mut rest)?;
                    if command == 'A' && is_wanted(&self.text()) {
                        return Some(from_here);
                    }
                    self.obey(count, command);
                }
                c => self.write(c),
            }
        }
    }

    /// Returns what is on the screen, without spaces at the ends of rows.
    pub(crate) fn text(&self) -> String {
        let text_of = |row: &Vec<char>| row.iter().filter(|c| **c != SECOND_HALF).collect::<String>();
        let rows: Vec<String> = self.rows.iter().map(|row| text_of(row).trim_end().to_owned()).collect();
        rows.join("\n").trim_end().to_owned()
    }

    fn obey(&mut self, count: usize, command: char) {
        match command {
            'A' => self.row = self.row.saturating_sub(count),
            'B' => self.row += count,
            'K' => {
                if let Some(row) = self.rows.get_mut(self.row) {
                    row.clear();
                }
            }
            _ => panic!("this screen does not know the control sequence `{command}`"),
        }
    }

    fn write(&mut self, c: char) {
        let width = measure_text_width(c.encode_utf8(&mut [0; 4]));
        // The cursor stays behind a character in the last column. The next character goes to the next row, and so does
        // a wide one that has only one column left.
        if self.column + width > self.columns {
            self.row += 1;
            self.column = 0;
        }
        if self.rows.len() <= self.row {
            self.rows.resize(self.row + 1, Vec::new());
        }
        let row = &mut self.rows[self.row];
        row.resize(row.len().max(self.column + width), ' ');
        for (at, part) in [c, SECOND_HALF].into_iter().enumerate().take(width) {
            row[self.column + at] = part;
        }
        self.column += width;
    }
}

/// Takes a control sequence (ECMA-48, CSI), and returns its number and its letter, if `rest` has the whole sequence.
fn sequence(rest: &mut Chars<'_>) -> Option<(usize, char)> {
    let mut count = String::new();
    loop {
        match rest.next()? {
            '[' => {}
            c if c.is_ascii_digit() => count.push(c),
            command => return Some((count.parse().unwrap_or(1), command)),
        }
    }
}

#[test]
fn a_screen_shows_lines_before_and_after_they_are_drawn_again() {
    let output = "first\r\n* second line\u{1b}[1A\r\u{1b}[2K\u{1b}[1B\r\u{1b}[2K\u{1b}[1Adone\r\n";
    let mut screen = Screen::new(8);

    let rest = screen.show_until(output, |text| text.contains("second")).unwrap();
    let before = screen.text();
    screen.show(rest);

    assert_eq!((before.as_str(), screen.text().as_str()), ("first\n* second\n line", "first\ndone"));
}

#[test]
fn a_screen_has_no_half_of_a_wide_character_in_its_last_column() {
    let mut screen = Screen::new(6);

    screen.show("a変更する");

    assert_eq!(screen.text(), "a変更\nする");
}
