//! An XML tree that preserves unknown parts, so that one part of a response can be changed and the rest is passed on
//! unchanged.

use quick_xml::events::{BytesEnd, BytesStart, BytesText, Event};
use quick_xml::{Reader, Writer};

/// The maximum depth of a response. IAM's responses have about ten levels.
const DEEPEST: usize = 64;

/// An element with its contents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Element {
    start: BytesStart<'static>,
    nodes: Vec<Node>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Node {
    Element(Element),
    /// Text, a reference or a comment, which is passed on unchanged.
    Other(Event<'static>),
}

impl Element {
    /// Returns an element that contains `text`.
    pub(crate) fn with_text(name: &str, text: &str) -> Self {
        let text = BytesText::new(text).into_owned();
        Self { start: BytesStart::new(name.to_owned()), nodes: vec![Node::Other(Event::Text(text))] }
    }

    /// Returns an element that contains `children`.
    pub(crate) fn with(name: &str, children: Vec<Self>) -> Self {
        Self { start: BytesStart::new(name.to_owned()), nodes: children.into_iter().map(Node::Element).collect() }
    }

    /// Parses a document; `None` when it is not well-formed XML or is too deep.
    pub(crate) fn parse(document: &[u8]) -> Option<Self> {
        let mut reader = Reader::from_str(std::str::from_utf8(document).ok()?);
        let mut open: Vec<Self> = Vec::new();
        loop {
            match reader.read_event().ok()? {
                Event::Start(start) if open.len() < DEEPEST => {
                    open.push(Self { start: start.into_owned(), nodes: Vec::new() });
                }
                Event::Start(_) | Event::Eof => return None,
                Event::Empty(start) => {
                    let empty = Self { start: start.into_owned(), nodes: Vec::new() };
                    match open.last_mut() {
                        Some(parent) => parent.nodes.push(Node::Element(empty)),
                        None => return Some(empty),
                    }
                }
                Event::End(_) => {
                    let closed = open.pop()?;
                    match open.last_mut() {
                        Some(parent) => parent.nodes.push(Node::Element(closed)),
                        None => return Some(closed),
                    }
                }
                other => {
                    if let Some(parent) = open.last_mut() {
                        parent.nodes.push(Node::Other(other.into_owned()));
                    }
                }
            }
        }
    }

    /// Returns the document with this element as its root.
    pub(crate) fn document(&self) -> Option<Vec<u8>> {
        let mut writer = Writer::new(b"<?xml version=\"1.0\" encoding=\"UTF-8\"?>".to_vec());
        self.write(&mut writer)?;
        Some(writer.into_inner())
    }

    fn write(&self, writer: &mut Writer<Vec<u8>>) -> Option<()> {
        writer.write_event(Event::Start(self.start.borrow())).ok()?;
        for node in &self.nodes {
            match node {
                Node::Element(element) => element.write(writer)?,
                Node::Other(event) => writer.write_event(event.borrow()).ok()?,
            }
        }
        let end = self.start.name().as_ref().to_owned();
        writer.write_event(Event::End(BytesEnd::new(end))).ok()
    }

    pub(crate) fn is(&self, name: &str) -> bool {
        self.start.local_name().as_ref() == name
    }

    pub(crate) fn children(&self) -> impl Iterator<Item = &Self> {
        self.nodes.iter().filter_map(|node| match node {
            Node::Element(element) => Some(element),
            Node::Other(_) => None,
        })
    }

    pub(crate) fn children_mut(&mut self) -> impl Iterator<Item = &mut Self> {
        self.nodes.iter_mut().filter_map(|node| match node {
            Node::Element(element) => Some(element),
            Node::Other(_) => None,
        })
    }

    pub(crate) fn child(&self, name: &str) -> Option<&Self> {
        self.children().find(|child| child.is(name))
    }

    pub(crate) fn child_mut(&mut self, name: &str) -> Option<&mut Self> {
        self.children_mut().find(|child| child.is(name))
    }

    /// Returns the text of the first child element `name`.
    pub(crate) fn value(&self, name: &str) -> Option<String> {
        self.child(name).map(Self::text)
    }

    /// Returns the element's own text.
    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        for node in &self.nodes {
            match node {
                Node::Other(Event::Text(part)) => text.push_str(part),
                Node::Other(Event::CData(part)) => text.push_str(part),
                Node::Other(Event::GeneralRef(name)) => match name.resolve_char_ref() {
                    Ok(Some(character)) => text.push(character),
                    Ok(None) | Err(_) => {
                        text.push_str(quick_xml::escape::resolve_predefined_entity(name).unwrap_or_default());
                    }
                },
                Node::Element(_) | Node::Other(_) => {}
            }
        }
        text
    }

    /// Replaces the contents of the element by `text`.
    pub(crate) fn set_text(&mut self, text: &str) {
        self.nodes = vec![Node::Other(Event::Text(BytesText::new(text).into_owned()))];
    }

    pub(crate) fn push(&mut self, child: Self) {
        self.nodes.push(Node::Element(child));
    }

    /// Removes the child elements for which `keep` returns false.
    pub(crate) fn retain(&mut self, keep: impl Fn(&Self) -> bool) {
        self.nodes.retain(|node| match node {
            Node::Element(element) => keep(element),
            Node::Other(_) => true,
        });
    }
}

/// Returns `text`, escaped for the contents of an element.
pub(crate) fn escape(text: &str) -> String {
    quick_xml::escape::escape(text).into_owned()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ROLE: &str = "<GetRoleResponse xmlns=\"urn:iam\" x=\"1\"><Role><!-- new --><Path>/a&amp;b&#33;/</Path>\
                        <Later><member>1</member></Later><Empty></Empty></Role></GetRoleResponse>";

    #[test]
    fn what_is_not_known_is_kept() {
        let document = Element::parse(ROLE.as_bytes()).unwrap().document().unwrap();

        let text = String::from_utf8(document).unwrap();
        assert_eq!(text.strip_prefix("<?xml version=\"1.0\" encoding=\"UTF-8\"?>"), Some(ROLE));
    }

    #[test]
    fn references_in_a_text_are_resolved() {
        let tree = Element::parse(ROLE.as_bytes()).unwrap();

        assert_eq!(tree.child("Role").unwrap().value("Path").unwrap(), "/a&b!/");
    }

    #[test]
    fn what_is_deeper_than_any_answer_is_not_read() {
        assert_eq!(Element::parse("<a>".repeat(100_000).as_bytes()), None);
    }

    proptest! {
        #[test]
        fn any_text_is_read_as_it_was_written(text in "[\\PC\\n\\t<>&'\"]*") {
            let document = Element::with("a", vec![Element::with_text("b", &text)]).document().unwrap();

            prop_assert_eq!(Element::parse(&document).unwrap().value("b").unwrap(), text);
        }

        #[test]
        fn no_document_makes_the_reader_panic(document in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = Element::parse(&document);
        }
    }
}
