//! Decides when to log a condition that lasts: once when it begins, and then at growing intervals.

use std::time::Duration;

use tokio::time::Instant;

/// The pause after the condition was logged for the first time. Each later pause is twice as long.
const FIRST: Duration = Duration::from_secs(60);
/// The longest pause.
const LONGEST: Duration = Duration::from_secs(60 * 60);

/// A condition that may last, with its text and the time of its next log line.
#[derive(Debug, Clone, Default)]
pub struct Repeat(Option<Logged>);

#[derive(Debug, Clone)]
struct Logged {
    text: String,
    next: Instant,
    pause: Duration,
}

impl Repeat {
    /// Returns whether to log `text` at `now`: when the text is new, or when the pause since its last log line is over.
    pub fn is_due(&mut self, text: &str, now: Instant) -> bool {
        let pause = match &self.0 {
            Some(logged) if logged.text == text && now < logged.next => return false,
            Some(logged) if logged.text == text => (logged.pause * 2).min(LONGEST),
            Some(_) | None => FIRST,
        };
        self.0 = Some(Logged { text: text.to_owned(), next: now + pause, pause });
        true
    }

    /// Marks the condition as ended. Returns whether it was ever logged.
    pub fn is_over(&mut self) -> bool {
        self.0.take().is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_of_the_same_text_is_some_thirty_lines_and_another_text_is_logged_at_once() {
        let (start, mut repeat) = (Instant::now(), Repeat::default());
        let lines = (0..24 * 120).filter(|half_minute| {
            let now = start + Duration::from_secs(30) * *half_minute;
            repeat.is_due("denied", now)
        });

        assert_eq!(lines.count(), 29);
        assert!(repeat.is_due("no answer", start));
        assert!(repeat.is_over() && !repeat.is_over());
        assert!(repeat.is_due("denied", start));
    }
}
