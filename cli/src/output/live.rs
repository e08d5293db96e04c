//! The lines at the end of stderr that are drawn again and again on a terminal while a command runs.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

use console::Term;
use indicatif::{MultiProgress, ProgressDrawTarget, TermLike};

/// The maximum number of draws in a second.
const DRAWS_PER_SEC: u8 = 20;

/// Returns the display of live lines. It shows nothing when stderr is not a terminal.
pub(crate) fn live_lines() -> MultiProgress {
    let term = Term::buffered_stderr();
    let plain = ProgressDrawTarget::term(term.clone(), DRAWS_PER_SEC);
    let target = if plain.is_hidden() {
        plain
    } else {
        let live = LiveTerm { term, wrote: AtomicBool::new(false) };
        ProgressDrawTarget::term_like_with_hz(Box::new(live), DRAWS_PER_SEC)
    };
    MultiProgress::with_draw_target(target)
}

/// A terminal whose cursor is at the start of its row between two draws. A drawn line is filled up to the last column,
/// so the cursor would otherwise be behind the end of the row. There, the terminal shows a typed key, such as the `^C`
/// of ctrl-c, on the next row. The next draw counts only its own rows, and would leave the first of them on the screen.
#[derive(Debug)]
struct LiveTerm {
    term: Term,
    /// Whether text was written since the cursor was at the start of its row.
    wrote: AtomicBool,
}

impl TermLike for LiveTerm {
    fn width(&self) -> u16 {
        TermLike::width(&self.term)
    }

    fn height(&self) -> u16 {
        TermLike::height(&self.term)
    }

    fn move_cursor_up(&self, n: usize) -> io::Result<()> {
        self.term.move_cursor_up(n)
    }

    fn move_cursor_down(&self, n: usize) -> io::Result<()> {
        self.term.move_cursor_down(n)
    }

    fn move_cursor_right(&self, n: usize) -> io::Result<()> {
        self.term.move_cursor_right(n)
    }

    fn move_cursor_left(&self, n: usize) -> io::Result<()> {
        self.term.move_cursor_left(n)
    }

    fn write_line(&self, s: &str) -> io::Result<()> {
        self.term.write_line(s)
    }

    fn write_str(&self, s: &str) -> io::Result<()> {
        self.wrote.store(true, Ordering::Relaxed);
        self.term.write_str(s)
    }

    fn clear_line(&self) -> io::Result<()> {
        self.term.clear_line()
    }

    fn flush(&self) -> io::Result<()> {
        if self.wrote.swap(false, Ordering::Relaxed) {
            self.term.write_str("\r")?;
        }
        self.term.flush()
    }
}
