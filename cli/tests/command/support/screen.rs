//! The screen of a terminal: what a person sees while a program redraws its lines, and afterwards.

use std::str::Chars;

/// A screen that never scrolls, and the place of the next character.
#[derive(Debug, Default)]
struct Screen {
    columns: usize,
    rows: Vec<Vec<char>>,
    row: usize,
    column: usize,
}

/// Returns what is on a screen of `columns` each time before the cursor goes up, as it does before lines are redrawn, and at
/// the end.
pub(crate) fn frames(output: &str, columns: u16) -> Vec<String> {
    let mut screen = Screen { columns: usize::from(columns), ..Screen::default() };
    let mut frames = Vec::new();
    let mut rest = output.chars();
    while let Some(c) = rest.next() {
        match c {
            '\r' => screen.column = 0,
            '\n' => screen.row += 1,
            '\u{1b}' => {
                let (count, command) = sequence(&mut rest);
                if command == 'A' {
                    frames.push(screen.text());
                }
                screen.obey(count, command);
            }
            c => screen.write(c),
        }
    }
    frames.push(screen.text());
    frames
}

/// Returns the number and the letter of a control sequence (ECMA-48, CSI).
fn sequence(rest: &mut Chars<'_>) -> (usize, char) {
    let mut count = String::new();
    loop {
        match rest.next().unwrap() {
            '[' => {}
            c if c.is_ascii_digit() => count.push(c),
            command => return (count.parse().unwrap_or(1), command),
        }
    }
}

impl Screen {
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
        // The cursor stays behind a character in the last column; only the next character goes to the next row.
        if self.column == self.columns {
            self.row += 1;
            self.column = 0;
        }
        if self.rows.len() <= self.row {
            self.rows.resize(self.row + 1, Vec::new());
        }
        let row = &mut self.rows[self.row];
        if row.len() <= self.column {
            row.resize(self.column + 1, ' ');
        }
        row[self.column] = c;
        self.column += 1;
    }

    fn text(&self) -> String {
        let rows: Vec<String> =
            self.rows.iter().map(|row| row.iter().collect::<String>().trim_end().to_owned()).collect();
        rows.join("\n").trim_end().to_owned()
    }
}

#[test]
fn lines_that_are_redrawn_are_seen_before_and_after() {
    let output = "first\r\n* second line\u{1b}[1A\r\u{1b}[2K\u{1b}[1B\r\u{1b}[2K\u{1b}[1Adone\r\n";

    assert_eq!(frames(output, 8), ["first\n* second\n line", "first", "first\ndone"]);
}
