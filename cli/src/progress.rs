//! Shows the progress of a running command on stderr: a spinner on a terminal, plain lines otherwise.

use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use console::{Alignment, pad_str};
use indicatif::{MultiProgress, ProgressBar, ProgressStyle};

use crate::error::{Error, Result};
use crate::output::{beside_spinner, clean, live_lines, note, stderr_is_json};

/// Work that is shorter than this prints no plain line of progress.
const QUIET: Duration = Duration::from_secs(2);
/// The minimum time between two plain lines of the same counter.
const BETWEEN: Duration = Duration::from_secs(5);
/// The minimum time between two plain lines with the same text.
const BETWEEN_SAME: Duration = Duration::from_secs(30);

/// Waits for `work`. Ctrl-c ends the wait with `message`, because work that AWS or the tenant has begun continues
/// without this command.
pub(crate) async fn or_stopped<T>(work: impl Future<Output = Result<T>>, message: String) -> Result<T> {
    tokio::select! {
        done = work => done,
        _ = tokio::signal::ctrl_c() => Err(Error::interrupted(message)),
    }
}

/// The progress of the command. With `--json` nothing is shown, because stderr may contain only JSON.
#[derive(Debug)]
pub(crate) struct Progress {
    lines: MultiProgress,
    terminal: bool,
    silent: bool,
    started: Instant,
    last_note: Mutex<Option<(Instant, String)>>,
    bar: ProgressBar,
}

impl Progress {
    /// Starts the display. Nothing appears before the first [`Progress::now`].
    pub(crate) fn start() -> Self {
        let silent = stderr_is_json();
        let terminal = std::io::stderr().is_terminal() && !silent;
        let lines = live_lines();
        let bar = if terminal { lines.add(spinner()) } else { ProgressBar::hidden() };
        Self { lines, terminal, silent, started: Instant::now(), last_note: Mutex::new(None), bar }
    }

    /// Shows the current operation `what`.
    pub(crate) fn now(&self, what: impl Into<String>) {
        let what = what.into();
        if self.terminal {
            self.bar.enable_steady_tick(Duration::from_millis(100));
            self.bar.set_message(beside_spinner(&clean(&what)));
        } else if self.may_print(&what) {
            note(&what);
        }
    }

    /// Shows `what` the command waits for: in the progress line of a terminal; otherwise as a plain line, if
    /// `line_is_due`.
    pub(crate) fn waiting(&self, what: &str, line_is_due: bool) {
        if self.terminal {
            self.now(what);
        } else if line_is_due {
            self.say(what);
        }
    }

    /// Removes the text of [`Progress::waiting`] from the progress line of a terminal.
    pub(crate) fn no_longer_waiting(&self) {
        if self.terminal && !self.bar.message().is_empty() {
            self.bar.set_message("");
        }
    }

    /// Prints a line that stays on the screen.
    pub(crate) fn say(&self, what: &str) {
        if !self.silent {
            self.lines.suspend(|| note(what));
        }
    }

    /// Returns a display of named things with changing states, such as the nodes of a workflow.
    pub(crate) fn things(&self) -> Things<'_> {
        Things { progress: self, order: Vec::new(), shown: BTreeMap::new(), bars: BTreeMap::new() }
    }

    fn may_print(&self, what: &str) -> bool {
        let now = Instant::now();
        if self.silent || now.duration_since(self.started) < QUIET {
            return false;
        }
        let Ok(mut last_note) = self.last_note.lock() else {
            return false;
        };
        let due = is_due(last_note.as_ref(), what, now);
        if due {
            *last_note = Some((now, what.to_owned()));
        }
        due
    }
}

/// Returns whether a plain line may follow the line `last`.
fn is_due(last: Option<&(Instant, String)>, what: &str, now: Instant) -> bool {
    last.is_none_or(|(at, before)| {
        let pause = if before == what { BETWEEN_SAME } else { BETWEEN };
        now.duration_since(*at) >= pause
    })
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
        let _ = self.lines.clear();
    }
}

/// A display of named things and their states. On a terminal each thing has a live line. Otherwise each change prints a
/// line.
#[derive(Debug)]
pub(crate) struct Things<'a> {
    progress: &'a Progress,
    /// The names, in the order of their first states.
    order: Vec<String>,
    shown: BTreeMap<String, String>,
    bars: BTreeMap<String, ProgressBar>,
}

impl Things<'_> {
    /// Shows that `name` has the state `state`.
    pub(crate) fn set(&mut self, name: &str, state: &str, reason: &str, width: usize) {
        let text = line(name, state, reason, width);
        if self.shown.get(name) == Some(&text) {
            return;
        }
        if self.progress.terminal {
            let bar = self.bars.entry(name.to_owned()).or_insert_with(|| {
                let bar = self.progress.lines.add(spinner());
                bar.enable_steady_tick(Duration::from_millis(100));
                bar
            });
            bar.set_message(beside_spinner(&clean(&text)));
        } else if !self.progress.silent {
            note(&text);
        }
        if self.shown.insert(name.to_owned(), text).is_none() {
            self.order.push(name.to_owned());
        }
    }

    /// Ends the display, and leaves the last states on the screen.
    pub(crate) fn finish(self) {
        for bar in self.bars.values() {
            bar.finish_and_clear();
        }
        if self.progress.terminal {
            let texts = self.order.iter().filter_map(|name| self.shown.get(name));
            // The progress line may be redrawn at any time, and would remove lines that are printed below it.
            self.progress.lines.suspend(|| texts.for_each(|text| note(text)));
        }
    }
}

fn line(name: &str, state: &str, reason: &str, width: usize) -> String {
    let text = format!("{}  {state}", pad_str(name, width, Alignment::Left, None));
    if reason.is_empty() { text } else { format!("{text}  {reason}") }
}

fn spinner() -> ProgressBar {
    let style = ProgressStyle::with_template("{spinner} {msg}").unwrap_or_else(|_| ProgressStyle::default_spinner());
    ProgressBar::new_spinner().with_style(style)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_with_the_same_text_comes_less_often() {
        let (at, after) = (Instant::now(), Duration::from_secs);
        let last = (at, "waiting".to_owned());

        let due = |what, secs| is_due(Some(&last), what, at + after(secs));

        assert_eq!([due("waiting", 29), due("waiting", 30)], [false, true]);
        assert_eq!([due("copying", 4), due("copying", 5)], [false, true]);
        assert!(is_due(None, "waiting", at));
    }

    #[test]
    fn a_plain_line_names_the_thing_its_state_and_the_reason() {
        assert_eq!(line("web", "running", "", 5), "web    running");
        assert_eq!(line("web", "failed", "exit code 1", 3), "web  failed  exit code 1");
    }
}
