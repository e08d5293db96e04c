//! Places in a text, and the mask that replaces the text there.

use std::ops::Range;

/// The text that replaces a secret.
pub(crate) const MASK: &str = "[redacted]";

/// Returns `bytes` with a mask in place of each of `spans`, which are in order and do not overlap.
pub(crate) fn masked(bytes: &[u8], spans: &[Range<usize>]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    for span in spans {
        out.extend_from_slice(bytes.get(at..span.start).unwrap_or_default());
        out.extend_from_slice(MASK.as_bytes());
        at = span.end;
    }
    out.extend_from_slice(bytes.get(at..).unwrap_or_default());
    out
}

/// Joins overlapping spans.
pub(crate) fn merged(mut spans: Vec<Range<usize>>) -> Vec<Range<usize>> {
    spans.sort_unstable_by_key(|span| (span.start, span.end));
    let mut apart: Vec<Range<usize>> = Vec::with_capacity(spans.len());
    for span in spans.into_iter().filter(|span| !span.is_empty()) {
        match apart.last_mut() {
            Some(last) if span.start < last.end => last.end = last.end.max(span.end),
            Some(_) | None => apart.push(span),
        }
    }
    apart
}
