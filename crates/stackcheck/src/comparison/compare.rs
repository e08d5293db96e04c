//! Compares two templates value by value. A value that differs, is missing or is not expected becomes a finding with
//! its line.

use super::difference::finding;
use super::hole::Hole;
use super::place::{Place, is_word, shown};
use super::policies::{self, Context};
use crate::finding::Finding;
use crate::node::{Kind, Node};
use crate::scalar::is_text;

/// Finds every difference between the template `found` and the expected one.
pub(super) fn differences(expected: &Node, found: &Node, context: &Context<'_>, findings: &mut Vec<Finding>) {
    Comparison { context, findings }.value(expected, found, &Place::default());
}

struct Comparison<'c> {
    context: &'c Context<'c>,
    findings: &'c mut Vec<Finding>,
}

impl Comparison<'_> {
    fn value(&mut self, expected: &Node, found: &Node, place: &Place) {
        match (&expected.kind, &found.kind) {
            (Kind::Text(hole), _) if Hole::of(hole).is_some() => self.hole(hole, found, place),
            (Kind::Text(one), Kind::Text(other)) => self.text(one, expected.is_plain, other, found, place),
            (Kind::List(one), Kind::List(other)) => self.list(one, other, found, place),
            (Kind::Map(one), Kind::Map(other)) => self.map(one, other, found, place),
            _ => self.report(
                found,
                place,
                format!("`{place}` must be {}, as in the template that Freehold renders", form(expected)),
            ),
        }
    }

    fn hole(&mut self, hole: &str, found: &Node, place: &Place) {
        match (Hole::of(hole), found.text()) {
            (Some(Hole::Policies), _) => {
                for (node, reason) in policies::wrong(found, self.context) {
                    self.report(node, place, format!("`{place}` {reason}"));
                }
            }
            (Some(_), Some(text)) if found.is_plain && !is_text(text) => {
                let reason = format!("`{place}` is `{}`, which is not a string", shown(text));
                self.findings.push(finding(found.line, place.of(), reason).or("put it into quotes"));
            }
            (Some(hole), Some(text)) => {
                if let Some(reason) = hole.refuses(text, self.context.account) {
                    self.report(found, place, format!("`{place}` {reason}"));
                }
            }
            _ => self.report(found, place, format!("`{place}` is not a string")),
        }
    }

    fn text(&mut self, expected: &str, is_plain: bool, text: &str, found: &Node, place: &Place) {
        if expected == text && (is_plain == found.is_plain || is_text(text)) {
            return;
        }
        if expected == text {
            let (is, should) = if is_plain { ("a string", "not a string") } else { ("not a string", "a string") };
            return self.report(
                found,
                place,
                format!(
                    "`{place}`: `{}` is {is} here, and in the template that Freehold renders it is {should}",
                    shown(text)
                ),
            );
        }
        // For a text of several lines, the message shows the first line that differs.
        let lines = expected.lines().zip(text.lines()).find(|(one, other)| one != other);
        let (one, other) = lines.unwrap_or((expected, text));
        let reason = format!("`{place}` is `{}`, and Freehold renders `{}`", shown(other), shown(one));
        self.report(found, place, reason);
    }

    fn map(&mut self, expected: &[(String, Node)], found: &[(String, Node)], node: &Node, place: &Place) {
        for (key, value) in expected {
            match node.get(key) {
                Some(other) => self.value(value, other, &place.key(key)),
                None => self.report(node, &place.key(key), format!("`{}` is missing", place.key(key))),
            }
        }
        for (key, value) in found.iter().filter(|(key, _)| !expected.iter().any(|(known, _)| known == key)) {
            self.extra(value, &place.key(key));
        }
    }

    fn extra(&mut self, value: &Node, place: &Place) {
        let name = place.of();
        let (reason, way_out) = match value.get("Type").and_then(Node::text) {
            Some(kind) if place.is_resource() => (
                format!("this install's stack has no resource `{}` of type `{}`", shown(name), shown(kind)),
                (is_word(name) && is_word(kind))
                    .then(|| format!("for a resource of your own, pass `--allow {name}={kind}`")),
            ),
            _ if place.is_output() => (
                format!("this install's stack has no output `{}`", shown(name)),
                is_word(name).then(|| format!("for an output of your own, pass `--allow-output {name}`")),
            ),
            _ => (format!("`{place}` is not in the template that Freehold renders"), None),
        };
        let found = finding(value.line, name, reason);
        self.findings.push(match way_out {
            Some(way_out) => found.or(way_out),
            None => found,
        });
    }

    /// Compares lists item by item. If the lists do not have the same length, reports the missing and the unexpected
    /// items.
    fn list(&mut self, expected: &[Node], found: &[Node], node: &Node, place: &Place) {
        if expected.len() == found.len() {
            for (at, (one, other)) in expected.iter().zip(found).enumerate() {
                self.value(one, other, &place.item(at));
            }
            return;
        }
        let reason = format!("`{place}` has {} items, and Freehold renders {}", found.len(), expected.len());
        self.report(node, place, reason);
        for one in expected {
            if !found.iter().any(|other| self.is_same(one, other)) {
                self.report(node, place, format!("`{place}` lacks {}", described(one)));
            }
        }
        for (at, other) in found.iter().enumerate() {
            if !expected.iter().any(|one| self.is_same(one, other)) {
                self.report(
                    other,
                    place,
                    format!("`{}` is not in the template that Freehold renders: {}", place.item(at), described(other)),
                );
            }
        }
    }

    fn is_same(&self, expected: &Node, found: &Node) -> bool {
        let mut findings = Vec::new();
        Comparison { context: self.context, findings: &mut findings }.value(expected, found, &Place::default());
        findings.is_empty()
    }

    fn report(&mut self, at: &Node, place: &Place, reason: String) {
        self.findings.push(finding(at.line, place.of(), reason));
    }
}

fn form(expected: &Node) -> &'static str {
    match expected.kind {
        Kind::Text(_) => "a single value",
        Kind::List(_) => "a list",
        Kind::Map(_) => "a map",
    }
}

/// Returns a description of a list's item for messages: its statement id or its text.
fn described(item: &Node) -> String {
    let inside = item.each();
    let sid = inside.iter().find_map(|one| one.get("Sid").and_then(Node::text));
    match (sid, item.text()) {
        (Some(sid), _) => format!("statement `{}`", shown(sid)),
        (None, Some(text)) => format!("`{}`", shown(text)),
        (None, None) => format!("`{}`", shown(&item.to_text())),
    }
}
