//! Breaks a text by bytes, by lines and by tokens.

use crate::Draw;

/// Bytes that often matter to a parser.
const BYTES: &[u8] = b"\"'`{}[]().,:=|$#\\/-+_*&%<>!?@~^ \n\r\t\x00\x01\x1f\x7f\x80\xc3\xa9\xe2\xf0\xffazAZ09";

/// Breaks `text` in one to `most` places; `tokens` are words that it might hold, `others` texts to take lines from.
pub(crate) fn mutate(draw: &mut Draw, text: &mut Vec<u8>, most: usize, tokens: &[&str], others: &[&str]) {
    for _ in 0..=draw.below(most) {
        match draw.below(12) {
            0 => flip(draw, text),
            1 => insert_byte(draw, text),
            2 => remove_bytes(draw, text),
            3 => repeat_bytes(draw, text),
            4 => remove_line(draw, text),
            5 => repeat_line(draw, text),
            6 => swap_lines(draw, text),
            7 => foreign_line(draw, text, others),
            8 | 9 => replace_token(draw, text, tokens),
            10 => insert(text, draw, tokens),
            _ => cut(draw, text),
        }
    }
}

fn flip(draw: &mut Draw, text: &mut [u8]) {
    let at = draw.below(text.len());
    if let Some(byte) = text.get_mut(at) {
        *byte = if draw.one_in(2) { *draw.pick(BYTES) } else { *byte ^ (1 << draw.below(8)) };
    }
}

fn insert_byte(draw: &mut Draw, text: &mut Vec<u8>) {
    let at = draw.below(text.len() + 1);
    text.insert(at, *draw.pick(BYTES));
}

fn span(draw: &mut Draw, text: &[u8], most: usize) -> std::ops::Range<usize> {
    let from = draw.below(text.len());
    from..(from + 1 + draw.below(most)).min(text.len())
}

fn remove_bytes(draw: &mut Draw, text: &mut Vec<u8>) {
    let span = span(draw, text, 8);
    text.drain(span);
}

fn repeat_bytes(draw: &mut Draw, text: &mut Vec<u8>) {
    let span = span(draw, text, 12);
    let (at, piece) = (span.end, text[span].to_vec());
    let count = if draw.one_in(20) { 200 } else { 1 + draw.below(3) };
    text.splice(at..at, piece.repeat(count));
}

/// Returns where each line starts and ends, with its line break.
fn lines(text: &[u8]) -> Vec<std::ops::Range<usize>> {
    let mut found = Vec::new();
    let mut from = 0;
    for line in text.split_inclusive(|byte| *byte == b'\n') {
        found.push(from..from + line.len());
        from += line.len();
    }
    found
}

fn remove_line(draw: &mut Draw, text: &mut Vec<u8>) {
    let lines = lines(text);
    if let Some(line) = lines.get(draw.below(lines.len())) {
        text.drain(line.clone());
    }
}

fn repeat_line(draw: &mut Draw, text: &mut Vec<u8>) {
    let lines = lines(text);
    let (from, to) = (draw.below(lines.len()), draw.below(lines.len()));
    if let (Some(from), Some(to)) = (lines.get(from), lines.get(to)) {
        let line = text[from.clone()].to_vec();
        text.splice(to.start..to.start, line);
    }
}

fn swap_lines(draw: &mut Draw, text: &mut Vec<u8>) {
    let lines = lines(text);
    let (one, two) = (draw.below(lines.len()), draw.below(lines.len()));
    if let (Some(first), Some(second)) = (lines.get(one.min(two)), lines.get(one.max(two)))
        && first.end <= second.start
    {
        let parts = [&text[second.clone()], &text[first.end..second.start], &text[first.clone()]].concat();
        text.splice(first.start..second.end, parts);
    }
}

fn foreign_line(draw: &mut Draw, text: &mut Vec<u8>, others: &[&str]) {
    let other = draw.pick(others).as_bytes();
    let (from, to) = (lines(other), lines(text));
    let line = from.get(draw.below(from.len())).map_or(&b"\n"[..], |line| &other[line.clone()]).to_vec();
    let at = to.get(draw.below(to.len())).map_or(0, |line| line.start);
    text.splice(at..at, line);
}

/// Puts a token in the place of one of the text's own words.
fn replace_token(draw: &mut Draw, text: &mut Vec<u8>, tokens: &[&str]) {
    let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_' || *byte == b'-';
    let at = draw.below(text.len());
    let from = text[..at].iter().rposition(|byte| !is_word(byte)).map_or(0, |before| before + 1);
    let to = text[at..].iter().position(|byte| !is_word(byte)).map_or(text.len(), |length| at + length);
    text.splice(from..to.max(from), draw.pick(tokens).bytes());
}

fn insert(text: &mut Vec<u8>, draw: &mut Draw, tokens: &[&str]) {
    let at = draw.below(text.len() + 1);
    text.splice(at..at, draw.pick(tokens).bytes());
}

/// Rarely, removes everything after a byte.
fn cut(draw: &mut Draw, text: &mut Vec<u8>) {
    if draw.one_in(3) {
        text.truncate(draw.below(text.len() + 1));
    }
}
