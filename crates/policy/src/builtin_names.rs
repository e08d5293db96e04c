//! Finds calls of Rego's built-in functions that do not exist here, so that a mistake shows before a policy is
//! evaluated: the engine itself reports it only when it reaches the call.

use crate::token::token;

/// The beginnings of the names of functions that the engine does not have here, each with the reason.
const ABSENT: [(&str, &str); 14] = [
    ("http.", "a policy has no network"),
    ("time.", "a policy has no clock"),
    ("rand.", "a policy must give the same answer each time"),
    ("uuid.", "a policy must give the same answer each time"),
    ("opa.", "a policy does not see the environment"),
    ("net.lookup_ip_addr", "a policy has no network"),
    ("io.jwt.", "the runner does not have it"),
    ("crypto.", "the runner does not have it"),
    ("graphql.", "the runner does not have it"),
    ("providers.", "the runner does not have it"),
    ("urlquery.", "the runner does not have it"),
    ("yaml.", "the runner does not have it"),
    ("json.patch", "the runner does not have it"),
    ("json.match_schema", "the runner does not have it"),
];

/// A call of a function that does not exist.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Absent {
    /// The position in the text, in bytes.
    pub(crate) offset: usize,
    pub(crate) name: String,
    pub(crate) reason: &'static str,
}

/// Returns the first call of a function that does not exist.
pub(crate) fn absent_call(text: &str) -> Option<Absent> {
    let mut rest = text;
    let mut before = ' ';
    while let Some(first) = rest.chars().next() {
        let offset = text.len() - rest.len();
        let length = match first {
            _ if is_word(first) => {
                let length = rest.find(|c: char| !is_word(c) && c != '.').unwrap_or(rest.len());
                let (name, after) = rest.split_at(length);
                let absent = ABSENT.iter().find(|(start, _)| name.starts_with(start));
                if let Some((_, reason)) = absent.filter(|_| before != '.' && after.trim_start().starts_with('(')) {
                    return Some(Absent { offset, name: name.to_owned(), reason });
                }
                length
            }
            _ => token(rest),
        };
        before = first;
        rest = rest.get(length..).unwrap_or_default();
    }
    None
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_found_and_words_and_texts_are_not() {
        let text = "# http.send(x)\nx := \"http.send(\\\" y)\"\nz := `time.now_ns()`\ny := input.http.send\nw := http.send({})";

        let found = absent_call(text).unwrap();

        assert_eq!((found.name.as_str(), found.offset), ("http.send", text.rfind("http").unwrap()));
        assert_eq!(absent_call("x := timeline.now(1)\ny := data.x.time.f(1)\nz := \"é\""), None);
    }
}
