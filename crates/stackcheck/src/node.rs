//! A template as a tree of values, each with its line. Short forms such as `!Ref` are expanded.

/// A value of a template, and the line on which it starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Node {
    /// The line number, from 1.
    pub(crate) line: usize,
    /// True for a scalar without quotes, which may be something other than a text: a number, `true`, null.
    pub(crate) is_plain: bool,
    pub(crate) kind: Kind,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Kind {
    Text(String),
    List(Vec<Node>),
    Map(Vec<(String, Node)>),
}

impl Node {
    /// Returns the entries of a map, and no entries for another node.
    pub(crate) fn entries(&self) -> &[(String, Self)] {
        match &self.kind {
            Kind::Map(entries) => entries,
            Kind::Text(_) | Kind::List(_) => &[],
        }
    }

    pub(crate) fn get(&self, key: &str) -> Option<&Self> {
        self.entries().iter().find(|(name, _)| name == key).map(|(_, value)| value)
    }

    pub(crate) fn at(&self, path: &[&str]) -> Option<&Self> {
        path.iter().try_fold(self, |node, key| node.get(key))
    }

    pub(crate) fn text(&self) -> Option<&str> {
        match &self.kind {
            Kind::Text(text) => Some(text),
            Kind::List(_) | Kind::Map(_) => None,
        }
    }

    /// Returns the values of a list, or the value itself when it is not a list. Returns both sides of an `Fn::If`.
    /// Leaves out `AWS::NoValue`.
    pub(crate) fn each(&self) -> Vec<&Self> {
        if let Some(sides) = self.get("Fn::If") {
            return sides.items().iter().skip(1).flat_map(Self::each).collect();
        }
        match &self.kind {
            Kind::List(items) => items.iter().flat_map(Self::each).collect(),
            Kind::Map(_) if self.get("Ref").and_then(Self::text) == Some("AWS::NoValue") => Vec::new(),
            Kind::Map(_) | Kind::Text(_) => vec![self],
        }
    }

    /// Returns whether the value is `text` or a list that contains it, at least under some condition.
    pub(crate) fn names(&self, text: &str) -> bool {
        self.each().iter().any(|one| one.to_text() == text)
    }

    /// Returns the name of the condition of an `Fn::If`; `None` for another value.
    pub(crate) fn condition(&self) -> Option<&str> {
        self.get("Fn::If")?.items().first()?.text()
    }

    /// Returns the condition of an `Fn::If` that has `AWS::NoValue` on exactly one side, and the value of this
    /// condition that chooses the other side. Returns `None` for any other value.
    pub(crate) fn choice(&self) -> Option<(&str, bool)> {
        let sides: Vec<bool> = self.get("Fn::If")?.items().iter().skip(1).map(|side| side.each().is_empty()).collect();
        match sides.as_slice() {
            [false, true] => Some((self.condition()?, true)),
            [true, false] => Some((self.condition()?, false)),
            _ => None,
        }
    }

    /// Returns whether the value is `AWS::NoValue` under some condition.
    pub(crate) fn may_be_nothing(&self) -> bool {
        match self.get("Fn::If") {
            Some(sides) => sides.items().iter().skip(1).any(Self::may_be_nothing),
            None => self.get("Ref").and_then(Self::text) == Some("AWS::NoValue"),
        }
    }

    pub(crate) fn items(&self) -> &[Self] {
        match &self.kind {
            Kind::List(items) => items,
            Kind::Text(_) | Kind::Map(_) => &[],
        }
    }

    /// Returns the value as text. A reference becomes `${Name}`, as in `Fn::Sub`. A value that cannot be determined
    /// becomes `*`, so that rules assume the worst.
    pub(crate) fn to_text(&self) -> String {
        if let Some(text) = self.text() {
            return text.to_owned();
        }
        if let Some(name) = self.get("Ref").and_then(Self::text) {
            return format!("${{{name}}}");
        }
        if let Some(sub) = self.get("Fn::Sub") {
            return sub.text().or_else(|| sub.items().first()?.text()).unwrap_or("*").to_owned();
        }
        if let Some(of) = self.get("Fn::GetAtt") {
            let parts: Vec<&str> = of.items().iter().filter_map(Self::text).collect();
            return format!("${{{}}}", parts.join("."));
        }
        "*".to_owned()
    }

    /// Calls `look` with this value and every value below it.
    pub(crate) fn walk<'n>(&'n self, look: &mut impl FnMut(&'n Self)) {
        look(self);
        match &self.kind {
            Kind::Text(_) => {}
            Kind::List(items) => items.iter().for_each(|item| item.walk(look)),
            Kind::Map(entries) => entries.iter().for_each(|(_, value)| value.walk(look)),
        }
    }
}
