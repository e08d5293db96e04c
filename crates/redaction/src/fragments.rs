//! Finds parts of credentials, because a line may contain only a part of a credential that a program wrapped or cut.

use std::ops::Range;

use aho_corasick::{AhoCorasick, BuildError};

use crate::views::View;

/// The length of the pieces to search for. A form of a credential is split into such pieces, so a part of a form that
/// has `2 * PIECE - 1` characters contains a whole piece.
const PIECE: usize = 8;
/// The shortest part that is redacted. Random text could contain a shorter one.
const LEAST: usize = 12;

/// Forms of credentials, as letters and digits only. Upper and lower case are equal, because hex and base32 are printed
/// in both.
#[derive(Debug, Default)]
pub(super) struct Fragments {
    forms: Vec<Vec<u8>>,
    /// For each piece, the index of its form and its position in the form.
    pieces: Vec<(usize, usize)>,
    automaton: Option<AhoCorasick>,
}

impl Fragments {
    /// Returns whether `text` is long enough to be recognized by a part of it.
    pub(super) fn takes(text: &str) -> bool {
        text.bytes().filter(u8::is_ascii_alphanumeric).count() >= 2 * PIECE
    }

    /// Adds a form of a credential, such as its base64. Returns whether the form is new. Call [`Fragments::build`]
    /// after the last form.
    pub(super) fn add(&mut self, form: &[u8]) -> bool {
        let form = View::of(form).compact().bytes;
        let is_new = form.len() >= LEAST && !self.forms.contains(&form);
        if is_new {
            let last = form.len() - PIECE;
            let number = self.forms.len();
            self.pieces.extend((0..last).step_by(PIECE).chain([last]).map(|at| (number, at)));
            self.forms.push(form);
        }
        is_new
    }

    pub(super) fn build(&mut self) -> Result<(), BuildError> {
        let pieces = self.pieces.iter().map(|(form, at)| {
            let form = self.forms.get(*form).map_or(&[][..], Vec::as_slice);
            form.get(*at..at + PIECE).unwrap_or_default()
        });
        self.automaton = Some(AhoCorasick::builder().ascii_case_insensitive(true).build(pieces)?);
        Ok(())
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.forms.is_empty()
    }

    /// Returns the positions of parts of the forms in `text`, which contains only letters and digits.
    pub(super) fn find(&self, text: &[u8]) -> Vec<Range<usize>> {
        let mut found: Vec<Range<usize>> = Vec::new();
        for piece in self.automaton.iter().flat_map(|automaton| automaton.find_overlapping_iter(text)) {
            if found.last().is_some_and(|last| piece.end() <= last.end) {
                continue;
            }
            let part = self.extended(text, piece.pattern().as_usize(), piece.start());
            if part.len() >= LEAST {
                found.push(part);
            }
        }
        found
    }

    /// Returns the whole part around the piece found at `at`: as many equal bytes before and after it as possible.
    fn extended(&self, text: &[u8], piece: usize, at: usize) -> Range<usize> {
        let (form, place) = self.pieces.get(piece).copied().unwrap_or_default();
        let form = self.forms.get(form).map_or(&[][..], Vec::as_slice);
        let same = |(a, b): &(&u8, &u8)| a.eq_ignore_ascii_case(b);
        let (form_before, form_after) = form.split_at_checked(place).unwrap_or_default();
        let (text_before, text_after) = text.split_at_checked(at).unwrap_or_default();
        let before = form_before.iter().rev().zip(text_before.iter().rev()).take_while(same).count();
        let after = form_after.iter().zip(text_after).take_while(same).count();
        at - before..at + after
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn every_part_of_twice_a_piece_less_one_is_found(form in "[a-zA-Z1-9][a-zA-Z0-9]{19,79}", at: usize, length in 2 * PIECE - 1..80) {
            let start = at % (form.len() - 15);
            let part = &form[start..form.len().min(start + length)];
            let mut fragments = Fragments::default();
            fragments.add(form.as_bytes());
            fragments.build().unwrap();

            let found = fragments.find(format!("00{part}00").as_bytes());

            prop_assert!(found.iter().any(|found| found.start <= 2 && found.end >= 2 + part.len()), "{:?} of {}", found, part);
        }
    }
}
