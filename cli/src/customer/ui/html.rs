//! Shows the answer of a command as a section of a page.

use freehold_pages::{Tone, code, encoded, lines, notice};
use maud::{Markup, html};

use super::super::answer::Answer;
use super::super::question::Question;
use crate::error::Result;
use crate::output::{Part, Table, clean_lines, plural};

/// The maximum number of rows of a history that a page shows.
const MOST_ROWS: usize = 500;

/// The questions whose answers are proven by the log, if nothing contradicts them.
const OF_LOG: [Question; 6] =
    [Question::Asked, Question::Approved, Question::Ran, Question::Origin, Question::Sent, Question::Whole];
/// The verdict about a proven answer.
const PROVEN: &str = "The log is complete and unchanged, and nothing contradicts this answer.";

/// An answer, and the command that gives the same answer.
#[derive(Debug)]
pub(super) struct Section {
    pub(super) title: &'static str,
    pub(super) command: String,
    /// The question that the answer proves something about.
    pub(super) question: Option<Question>,
    pub(super) answer: Result<Answer>,
}

impl Section {
    /// Returns the section as HTML.
    pub(super) fn render(&self) -> Markup {
        html! {
            section {
                h2 { (self.title) }
                @match &self.answer {
                    Ok(answer) => {
                        @if self.is_proven(answer) { (notice(Tone::Good, PROVEN)) }
                        (answer_of(self.title, answer))
                    },
                    Err(error) => { (notice(Tone::Bad, clean_lines(&error.to_string()))) },
                }
                p { "The command that gives this answer: " (code(&self.command)) }
                @if let Some(question) = self.question {
                    p { small { "It rests on: " (question.rests_on()) } }
                }
            }
        }
    }

    /// Returns whether the log proves the answer.
    fn is_proven(&self, answer: &Answer) -> bool {
        answer.wrong.is_none() && self.question.is_some_and(|question| OF_LOG.contains(&question))
    }
}

/// Returns an answer with its verdict.
pub(super) fn answer_of(title: &'static str, answer: &Answer) -> Markup {
    html! {
        @if let Some(wrong) = &answer.wrong { (notice(Tone::Bad, clean_lines(&wrong.to_string()))) }
        @for part in &answer.parts { (part_of(title, part)) }
        details {
            summary { "As JSON" }
            (lines("The answer as JSON", &clean_lines(&answer.json)))
        }
    }
}

/// Returns a part of an answer.
pub(super) fn part_of(title: &'static str, part: &Part) -> Markup {
    match part {
        Part::Text(text) => html! {
            @for line in clean_lines(text).lines().filter(|line| !line.trim().is_empty()) { p { (line) } }
        },
        Part::Table(table) => table_of(title, table),
        Part::Verbatim(text) => lines(title, &clean_lines(text)),
    }
}

/// Returns a table. The newest row of a history comes first.
fn table_of(caption: &'static str, table: &Table) -> Markup {
    let (headings, rows) = (table.headings(), table.rows());
    let is_history = headings.first() == Some(&"AT");
    let shown: Vec<&Vec<String>> =
        if is_history { rows.iter().rev().take(MOST_ROWS).collect() } else { rows.iter().collect() };
    let mut page = freehold_pages::Table::new(caption, headings.iter().copied());
    for row in &shown {
        page.row(headings.iter().zip(row.iter()).map(|(heading, cell)| cell_of(heading, cell)));
    }
    let left_out = rows.len().saturating_sub(shown.len());
    html! {
        (page.render())
        @if left_out > 0 {
            p { (plural(left_out, "older row")) " left out: the command prints all rows." }
        }
    }
}

/// Returns the text of a cell. Names of jobs, reports and artifacts are links to the page about each of them.
fn cell_of(heading: &str, text: &str) -> Markup {
    let place = match heading {
        "JOB" => "/ran?job=",
        "REPORT" => "/sent?report=",
        "ARTIFACT" => "/origin?artifact=",
        _ => "",
    };
    html! {
        @if place.is_empty() || text.is_empty() {
            @for (at, line) in text.lines().enumerate() {
                @if at > 0 { br; }
                (line)
            }
        } @else {
            a href={ (place) (encoded(text)) } { (text) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;

    const HOSTILE: &str = "<script>alert(1)</script>\u{202e}\u{1b}[2J\" onload=\"x";

    fn rendered(answer: Result<Answer>) -> String {
        let command = "freehold customer ran globex --tenant acme".to_owned();
        Section { title: "What ran", command, question: Some(Question::Ran), answer }.render().into_string()
    }

    #[test]
    fn what_somebody_else_wrote_is_text_in_each_part_of_an_answer() {
        let mut table = Table::new(&["JOB", "REASON"]);
        table.row([HOSTILE.to_owned(), HOSTILE.to_owned()]);
        let parts = vec![Part::Text(HOSTILE.to_owned()), Part::Table(table), Part::Verbatim(HOSTILE.to_owned())];
        let answer = Answer::new(&HOSTILE, parts).unwrap().with_verdict(Err(Error::failed(HOSTILE)));

        for page in [rendered(Ok(answer)), rendered(Err(Error::failed(HOSTILE)))] {
            assert!(!page.contains("<script") && !page.contains("\" onload"), "{page}");
            assert!(page.contains("&lt;script&gt;alert(1)&lt;/script&gt;") && !page.contains(PROVEN), "{page}");
        }
    }

    #[test]
    fn a_section_names_its_command_and_the_evidence() {
        let page = rendered(Answer::new(&1, vec![Part::Text("no job has started".to_owned())]));

        assert!(page.contains("<code>freehold customer ran globex --tenant acme</code>"), "{page}");
        assert!(page.contains("It rests on: The record of each start and end"), "{page}");
        assert!(page.contains("<p>no job has started</p>") && page.contains(PROVEN), "{page}");
        assert!(!page.contains("role=\"alert\""), "{page}");
    }

    #[test]
    fn the_newest_row_of_a_history_comes_first_and_the_oldest_rows_are_counted() {
        let mut table = Table::new(&["AT", "JOB"]);
        for at in 0..=MOST_ROWS {
            table.row([format!("at {at}"), format!("job_{at}")]);
        }

        let page = part_of("What ran", &Part::Table(table)).into_string();

        let first = page.find("at 500").unwrap();
        assert!(first < page.find("at 499").unwrap() && !page.contains("at 0<"), "{page}");
        assert!(page.contains("1 older row left out") && page.contains("href=\"/ran?job=job_500\""), "{page}");
    }
}
