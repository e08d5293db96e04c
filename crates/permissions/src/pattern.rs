//! Patterns of IAM policies (`*` any text, `?` any character): does one pattern match everything that another one
//! matches?

/// A parsed pattern.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Pattern {
    tokens: Vec<Token>,
    wild: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Token {
    Char(char),
    /// `?`.
    One,
    /// `*`.
    Any,
    /// A template or a policy variable: some text, the same wherever the same is written.
    Text(String),
}

impl Pattern {
    /// Reads a pattern of resources.
    pub(crate) fn new(text: &str) -> Self {
        let mut tokens = Vec::new();
        let mut rest = text;
        while let Some(c) = rest.chars().next() {
            let (token, length) = token(rest, c);
            rest = rest.get(length..).unwrap_or_default();
            // `**` lets through what `*` does.
            if token != Token::Any || tokens.last() != Some(&Token::Any) {
                tokens.push(token);
            }
        }
        let wild = tokens.iter().any(|token| matches!(token, Token::Any | Token::One));
        Self { tokens, wild }
    }

    /// Reads a pattern of actions, whose case means nothing.
    pub(crate) fn of_action(text: &str) -> Self {
        let mut pattern = Self::new(text);
        for token in &mut pattern.tokens {
            if let Token::Char(c) = token {
                *c = c.to_ascii_lowercase();
            }
        }
        pattern
    }

    /// Whether every text that `other` matches is matched by this pattern. A "no" may be wrong where several `?` and
    /// `*` meet; a "yes" never is.
    pub(crate) fn covers(&self, other: &Self) -> bool {
        if !self.wild {
            return self.tokens == other.tokens;
        }
        // reach: how many tokens of `other` the tokens of this pattern so far can have taken.
        let mut reach = vec![false; other.tokens.len() + 1];
        if let Some(first) = reach.first_mut() {
            *first = true;
        }
        for token in &self.tokens {
            reach = step(token, &other.tokens, &reach);
        }
        reach.last().copied().unwrap_or(false)
    }
}

fn token(rest: &str, c: char) -> (Token, usize) {
    let closed = |open: &str, close: &str| {
        let inside = rest.strip_prefix(open)?;
        let end = inside.find(close)?;
        Some((inside.get(..end)?, open.len() + end + close.len()))
    };
    if let Some((inside, length)) = closed("{{", "}}") {
        let inside = inside.trim_matches('-').trim();
        return (Token::Text(format!("{{{{{inside}}}}}")), length);
    }
    match (closed("${", "}"), c) {
        // `${*}`, `${?}` and `${$}` are the characters themselves.
        (Some(("*", length)), _) => (Token::Char('*'), length),
        (Some(("?", length)), _) => (Token::Char('?'), length),
        (Some(("$", length)), _) => (Token::Char('$'), length),
        (Some((inside, length)), _) => (Token::Text(format!("${{{inside}}}")), length),
        (None, '*') => (Token::Any, 1),
        (None, '?') => (Token::One, 1),
        (None, c) => (Token::Char(c), c.len_utf8()),
    }
}

fn step(token: &Token, other: &[Token], reach: &[bool]) -> Vec<bool> {
    let takes = |taken: &Token| match (token, taken) {
        (Token::One, Token::One | Token::Char(_)) => true,
        (Token::One, Token::Any | Token::Text(_)) => false,
        (token, taken) => token == taken,
    };
    let mut next = vec![false; reach.len()];
    let mut any = false;
    for (at, slot) in next.iter_mut().enumerate() {
        let here = reach.get(at).copied().unwrap_or(false);
        if *token == Token::Any {
            any |= here;
            *slot = any;
        } else if let Some(before) = at.checked_sub(1) {
            let from = reach.get(before).copied().unwrap_or(false);
            *slot = from && other.get(before).is_some_and(takes);
        }
    }
    next
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn covers(wide: &str, narrow: &str) -> bool {
        Pattern::new(wide).covers(&Pattern::new(narrow))
    }

    #[test]
    fn wildcards_cover_what_they_match_and_templates_are_some_text() {
        for (wide, narrow) in [
            ("*", "a?b*"),
            ("s3:*", "s3:Get*"),
            ("arn:aws:s3:::{{ .nuon.install.id }}-*", "arn:aws:s3:::{{.nuon.install.id}}-logs"),
            ("arn:*-logs", "arn:aws:s3:::{{ .nuon.install.id }}-logs"),
            ("a?c", "abc"),
            ("${*}", "${*}"),
        ] {
            assert!(covers(wide, narrow), "{wide} {narrow}");
        }
        for (wide, narrow) in [
            ("s3:Get*", "s3:*"),
            ("arn:aws:s3:::{{ .a }}", "arn:aws:s3:::{{ .b }}"),
            ("????????", "{{ .a }}"),
            ("???????", "${a:bc}"),
            ("a?c", "a*c"),
            ("${*}", "*"),
        ] {
            assert!(!covers(wide, narrow), "{wide} {narrow}");
        }
        assert!(Pattern::of_action("S3:get*").covers(&Pattern::of_action("s3:GetObject")));
    }

    fn matches(pattern: &[char], text: &[char]) -> bool {
        match (pattern, text) {
            ([], []) => true,
            (['*', rest @ ..], _) => {
                matches(rest, text) || text.split_first().is_some_and(|(_, tail)| matches(pattern, tail))
            }
            (['?', rest @ ..], [_, tail @ ..]) => matches(rest, tail),
            ([p, rest @ ..], [t, tail @ ..]) => p == t && matches(rest, tail),
            _ => false,
        }
    }

    proptest! {
        #[test]
        fn a_pattern_that_covers_another_matches_all_that_it_matches(
            wide in "[ab*?]{0,5}", narrow in "[ab*?]{0,5}", text in "[ab]{0,6}",
        ) {
            let chars = |text: &str| text.chars().collect::<Vec<char>>();

            if covers(&wide, &narrow) && matches(&chars(&narrow), &chars(&text)) {
                prop_assert!(matches(&chars(&wide), &chars(&text)), "{} {} {}", wide, narrow, text);
            }
        }
    }
}
