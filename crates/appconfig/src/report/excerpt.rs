//! Formats a mistake for a terminal, with the lines of the file around it.

use std::collections::BTreeMap;

use annotate_snippets::renderer::DecorStyle;
use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};

use crate::report::diagnostic::{Diagnostic, Severity};

/// Returns the text for one mistake. It has colours if `colour` is true.
pub(crate) fn render(one: &Diagnostic, texts: &BTreeMap<String, String>, colour: bool) -> String {
    let level = match one.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
    };
    let mut group = Group::with_title(level.primary_title(&one.message));
    match texts.get(&one.file) {
        Some(_) if one.is_secret => {
            let origin = annotate_snippets::Origin::path(one.file.as_str());
            group = group.element(origin.line(one.line).char_column(one.column));
        }
        Some(text) if !text.is_empty() => {
            let label = one.expected.as_deref().unwrap_or_default();
            let primary = AnnotationKind::Primary.span(inside(text, &one.span));
            let primary = if label.is_empty() { primary } else { primary.label(format!("expected {label}")) };
            let here = one.related.iter().filter(|related| related.file == one.file).map(|related| {
                AnnotationKind::Context.span(inside(text, &related.span)).label(related.message.as_str())
            });
            group = group
                .element(Snippet::source(text.as_str()).path(one.file.as_str()).annotation(primary).annotations(here));
        }
        _ => group = group.element(annotate_snippets::Origin::path(one.file.as_str())),
    }
    for related in one.related.iter().filter(|related| related.file != one.file) {
        if let Some(text) = texts.get(&related.file) {
            let mark = AnnotationKind::Context.span(inside(text, &related.span)).label(related.message.as_str());
            group = group.element(Snippet::source(text.as_str()).path(related.file.as_str()).annotation(mark));
        }
    }
    if let Some(help) = &one.help {
        group = group.element(Level::HELP.message(help.as_str()));
    }
    let renderer = if colour { Renderer::styled() } else { Renderer::plain() };
    renderer.decor_style(DecorStyle::Ascii).render(&[group])
}

/// Returns the part of `span` that is inside of `text`, on one line, and made of whole characters.
fn inside(text: &str, span: &std::ops::Range<usize>) -> std::ops::Range<usize> {
    let start = text.floor_char_boundary(span.start);
    let line_end = text.get(start..).and_then(|rest| rest.find('\n')).map_or(text.len(), |at| start + at);
    start..text.floor_char_boundary(span.end).clamp(start, line_end.max(start))
}
