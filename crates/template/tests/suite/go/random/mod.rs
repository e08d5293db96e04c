//! Random templates over random trees, by seed. Every part has a type, so that Go accepts what comes out.

mod values;

use serde_json::{Value, json};

use super::Case;

/// The types that parts of templates have here. Go tells numbers of the tree (`float64`) from those it makes (`int`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Type {
    Text,
    Whole,
    Flag,
    Texts,
    Map,
}

/// Returns the case of `seed`.
pub(crate) fn case(seed: u64) -> Case {
    // Adjacent seeds would give similar first draws.
    let own = fastrand::Rng::with_seed(seed).u64(..);
    let mut maker = Maker { numbers: fastrand::Rng::with_seed(own), variables: Vec::new(), dot: None };
    let tree = maker.tree();
    let count = 1 + maker.below(4);
    let text = (0..count).map(|_| maker.statement(3, false)).collect();
    Case { text, tree }
}

struct Maker {
    numbers: fastrand::Rng,
    variables: Vec<(String, Type)>,
    /// What the dot is; nothing when it is the root.
    dot: Option<Type>,
}

impl Maker {
    fn below(&mut self, end: usize) -> usize {
        self.numbers.usize(..end)
    }

    fn one_in(&mut self, count: usize) -> bool {
        self.below(count) == 0
    }

    fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        let at = self.below(from.len());
        from[at]
    }

    fn word(&mut self) -> String {
        let signs = [
            "a", "b", "Z", "0", "9", " ", "-", "_", ".", ",", "/", "\"", "'", "\\", "\n", "\t", "<", "&", "é", "日",
            "𝄞", "ab", "x1", "{", "}", "$", "%", "\u{1}", "\u{7f}", "\u{a0}", ":", "#",
        ];
        let length = self.below(7);
        (0..length).map(|_| self.pick(&signs)).collect()
    }

    fn plain_word(&mut self) -> String {
        let length = 1 + self.below(6);
        (0..length).map(|_| self.pick(&["a", "b", "C", "d1", "-", "x", "7"])).collect()
    }

    fn number(&mut self) -> Value {
        let whole = self.below(20_000) as i64 - 10_000;
        if self.one_in(3) { json!(whole as f64 / 8.0) } else { json!(whole) }
    }

    fn tree(&mut self) -> Value {
        let words: Vec<String> = (0..1 + self.below(4)).map(|_| self.word()).collect();
        let map: Vec<(String, Value)> = (0..self.below(4)).map(|_| (self.plain_word(), self.word().into())).collect();
        json!({ "nuon": {
            "a": self.word(), "b": self.plain_word(), "c": { "d": self.word(), "e": "" },
            "n": self.number(), "on": true, "off": false,
            "words": words, "none": [], "map": Value::Object(map.into_iter().collect()), "any": self.any(3),
        }})
    }

    fn any(&mut self, depth: usize) -> Value {
        match self.below(if depth == 0 { 4 } else { 6 }) {
            0 => Value::Null,
            1 => self.one_in(2).into(),
            2 => self.number(),
            3 => self.word().into(),
            4 => (0..self.below(4)).map(|_| self.any(depth - 1)).collect(),
            _ => Value::Object((0..self.below(4)).map(|_| (self.word(), self.any(depth - 1))).collect()),
        }
    }

    fn statement(&mut self, depth: usize, looped: bool) -> String {
        let choice = if depth == 0 { self.below(6) } else { self.below(14) };
        match choice {
            0 => self.pick(&["text", " \n ", "a {b} c", "\t", "}} ", "x{ y"]).to_owned(),
            1 => "{{- /* a comment */ -}}".to_owned(),
            2..=4 => {
                let part = self.shown();
                self.action(&part)
            }
            5 if looped => {
                let flag = self.flag(1);
                let word = self.pick(&["break", "continue"]);
                format!("{{{{ if {flag} }}}}{{{{ {word} }}}}{{{{ end }}}}")
            }
            5 | 6 => self.declaration(),
            7 => self.assignment(),
            8 | 9 => {
                let condition = if self.one_in(2) { self.flag(2) } else { self.text(2) };
                let (yes, no) = (self.body(depth, looped), self.body(depth, looped));
                let middle = self.flag(1);
                match self.below(3) {
                    0 => format!("{{{{ if {condition} }}}}{yes}{{{{ end }}}}"),
                    1 => format!("{{{{- if {condition} -}}}}{yes}{{{{ else }}}}{no}{{{{ end }}}}"),
                    _ => format!(
                        "{{{{ if {condition} }}}}{yes}{{{{ else if {middle} }}}}{no}{{{{ else }}}}z{{{{- end }}}}"
                    ),
                }
            }
            10 | 11 => self.with(depth, looped),
            _ => self.range(depth),
        }
    }

    fn action(&mut self, inside: &str) -> String {
        let open = self.pick(&["{{ ", "{{ ", "{{- ", "{{\n"]);
        let close = self.pick(&[" }}", " }}", " -}}", "\t}}"]);
        format!("{open}{inside}{close}")
    }

    /// Returns statements with variables of their own.
    fn body(&mut self, depth: usize, looped: bool) -> String {
        let scope = self.variables.len();
        let body = (0..1 + self.below(2)).map(|_| self.statement(depth - 1, looped)).collect();
        self.variables.truncate(scope);
        body
    }

    fn under(&mut self, dot: Type, depth: usize, looped: bool) -> String {
        let before = self.dot.replace(dot);
        let body = self.body(depth, looped);
        self.dot = before;
        body
    }

    fn with(&mut self, depth: usize, looped: bool) -> String {
        let of = [Type::Text, Type::Texts, Type::Map, Type::Whole][self.below(4)];
        let value = self.of(of, 2);
        let (yes, no) = (self.under(of, depth, looped), self.body(depth, looped));
        format!("{{{{ with {value} }}}}{yes}{{{{ else }}}}{no}{{{{ end }}}}")
    }

    fn range(&mut self, depth: usize) -> String {
        let (name, scope) = (format!("v{}", self.variables.len()), self.variables.len());
        let (list, of) = match self.below(4) {
            0 => (format!("until {}", self.below(4)), Type::Whole),
            1 => (self.map(2), Type::Text),
            _ => (self.texts(2), Type::Text),
        };
        let form = self.below(3);
        let (head, keyed) = match form {
            0 => (list, false),
            1 => (format!("${name} := {list}"), false),
            _ => (format!("$k{name}, ${name} := {list}"), true),
        };
        if form > 0 {
            self.variables.push((name.clone(), of));
        }
        let body = self.under(of, depth, true);
        self.variables.truncate(scope);
        let key = if keyed { format!("{{{{ $k{name} }}}}") } else { String::new() };
        let other = if self.one_in(2) { "{{ else }}none" } else { "" };
        format!("{{{{ range {head} }}}}{key}{body}{other}{{{{ end }}}}")
    }

    fn declaration(&mut self) -> String {
        let of = [Type::Text, Type::Whole, Type::Flag, Type::Texts, Type::Map][self.below(5)];
        let value = self.of(of, 2);
        let name = format!("x{}", self.variables.len());
        self.variables.push((name.clone(), of));
        self.action(&format!("${name} := {value}"))
    }

    fn assignment(&mut self) -> String {
        let Some((name, of)) = self.variables.last().cloned() else { return String::new() };
        let value = self.of(of, 2);
        self.action(&format!("${name} = {value}"))
    }

    fn shown(&mut self) -> String {
        match self.below(7) {
            0..=2 => self.text(3),
            3 => self.whole(2),
            4 => self.flag(2),
            5 => self.texts(2),
            _ => self.map(2),
        }
    }

    fn of(&mut self, of: Type, depth: usize) -> String {
        match of {
            Type::Text => self.text(depth),
            Type::Whole => self.whole(depth),
            Type::Flag => self.flag(depth),
            Type::Texts => self.texts(depth),
            Type::Map => self.map(depth),
        }
    }

    /// Returns a variable or the dot, when there is one of this type.
    fn named(&mut self, of: Type) -> Option<String> {
        if self.dot == Some(of) && self.one_in(2) {
            return Some(".".to_owned());
        }
        let known: Vec<String> =
            self.variables.iter().filter(|(_, t)| *t == of).map(|(name, _)| name.clone()).collect();
        (!known.is_empty() && self.one_in(2)).then(|| format!("${}", known[self.below(known.len())]))
    }

    fn path(&mut self, rest: &str) -> String {
        let root = if self.dot.is_none() && self.one_in(2) { "" } else { "$" };
        format!("{root}.nuon.{rest}")
    }

    fn literal(&mut self) -> String {
        let word = self.word();
        if self.one_in(3) && !word.contains('`') { format!("`{word}`") } else { go_quoted(&word) }
    }

    /// Returns a call with its last argument after the others or before a pipe.
    fn call(&mut self, function: &str, last: &str) -> String {
        if self.one_in(2) { format!("({function} {last})") } else { format!("({last} | {function})") }
    }
}

/// Writes a string as Go and this engine read it.
fn go_quoted(text: &str) -> String {
    let escaped: String = text
        .chars()
        .map(|c| match c {
            '"' | '\\' => format!("\\{c}"),
            '\n' => "\\n".to_owned(),
            c if c.is_control() => format!("\\x{:02x}", u32::from(c)),
            c => c.to_string(),
        })
        .collect();
    format!("\"{escaped}\"")
}
