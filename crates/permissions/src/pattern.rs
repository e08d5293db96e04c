//! Patterns of IAM policies, in which `*` matches any text and `?` any character. Answers two questions: does one
//! pattern match every text that another pattern matches, and is there a text that both match?

/// A parsed pattern.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Pattern {
    tokens: Vec<Token>,
    wild: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Token {
    Char(char),
    /// `?`, which matches any one character.
    One,
    /// `*`, which matches any text.
    Any,
    /// A template or a policy variable. Its value is unknown, but equal templates have equal values.
    Text(String),
}

impl Pattern {
    /// Parses a pattern of a policy. A text with a template that does more than print a value, such as `{{ if }}`, is
    /// one token, because the text between its parts is not always a part of the pattern.
    pub(crate) fn new(text: &str) -> Self {
        if prints_only(text) {
            return Self::of_name(text);
        }
        Self { tokens: vec![Token::Text(text.to_owned())], wild: false }
    }

    /// Parses a pattern that is not from a policy, such as the name of a resource.
    pub(crate) fn of_name(text: &str) -> Self {
        let mut tokens = Vec::new();
        let mut rest = text;
        while let Some(c) = rest.chars().next() {
            let (token, length) = token(rest, c);
            rest = rest.get(length..).unwrap_or_default();
            // `**` matches the same texts as `*`.
            if token != Token::Any || tokens.last() != Some(&Token::Any) {
                tokens.push(token);
            }
        }
        Self::of_tokens(tokens)
    }

    fn of_tokens(tokens: Vec<Token>) -> Self {
        let wild = tokens.iter().any(|token| matches!(token, Token::Any | Token::One));
        Self { tokens, wild }
    }

    /// Returns the part of the pattern before its first `/`, which is not in a template or a variable; `None` without
    /// such a `/`. In a pattern of the ARNs of S3, this part is about buckets, and the rest is about their objects.
    pub(crate) fn before_slash(&self) -> Option<Self> {
        let end = self.tokens.iter().position(|token| *token == Token::Char('/'))?;
        self.tokens.get(..end).map(|before| Self::of_tokens(before.to_vec()))
    }

    /// Parses a pattern of actions, which are not case-sensitive.
    pub(crate) fn of_action(text: &str) -> Self {
        let mut pattern = Self::new(text);
        for token in &mut pattern.tokens {
            if let Token::Char(c) = token {
                *c = c.to_ascii_lowercase();
            }
        }
        pattern
    }

    /// Returns whether this pattern matches every text that `other` matches. `true` is always right. `false` may be
    /// wrong for patterns with several `?` and `*`.
    pub(crate) fn covers(&self, other: &Self) -> bool {
        if !self.wild {
            return self.tokens == other.tokens;
        }
        // `reach[n]` is true when the tokens of this pattern so far can match exactly the first `n` tokens of `other`.
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

/// The maximum number of steps of [`Pattern::may_meet`]. Patterns of real policies need some thousands.
const MAX_STEPS: usize = 200_000;

impl Pattern {
    /// Returns whether one text may match both this pattern, which is of a policy, and `name`. `name` is a pattern in
    /// which `*` and a template match texts without `/` and `:`. Equal templates have equal values on both sides.
    /// `false` is always right. `true` may be wrong, because a template that only the policy contains may have any
    /// value.
    pub(crate) fn may_meet(&self, name: &Self) -> bool {
        let (width, height) = (name.tokens.len() + 1, self.tokens.len() + 1);
        let steps = width.saturating_mul(height).saturating_mul(4);
        if steps > MAX_STEPS {
            return true;
        }
        let mut seen = vec![false; steps];
        let mut open = vec![At { policy: 0, name: 0, inside: [false; 2] }];
        while let Some(at) = open.pop() {
            let index = (at.policy * width + at.name) * 4 + usize::from(at.inside[0]) * 2 + usize::from(at.inside[1]);
            match seen.get_mut(index) {
                Some(slot) if !*slot => *slot = true,
                Some(_) | None => continue,
            }
            match (self.tokens.get(at.policy), name.tokens.get(at.name)) {
                (None, None) => return true,
                (mine, theirs) => at.next(mine, theirs, name, &mut open),
            }
        }
        false
    }

    fn has(&self, token: &Token) -> bool {
        self.tokens.contains(token)
    }
}

/// A position in both patterns, and for each pattern whether the position is inside a token that matches a text of any
/// length.
#[derive(Debug, Clone, Copy)]
struct At {
    policy: usize,
    name: usize,
    inside: [bool; 2],
}

impl At {
    const fn policy_on(self) -> Self {
        Self { policy: self.policy + 1, inside: [false, self.inside[1]], ..self }
    }

    const fn name_on(self) -> Self {
        Self { name: self.name + 1, inside: [self.inside[0], false], ..self }
    }

    /// Adds the positions that can follow this one to `open`.
    fn next(self, policy: Option<&Token>, name: Option<&Token>, whole: &Pattern, open: &mut Vec<Self>) {
        if let (Some(mine @ Token::Text(_)), Some(theirs)) = (policy, name)
            && mine == theirs
            && self.inside == [false; 2]
        {
            open.push(self.policy_on().name_on());
            return;
        }
        if let Some(mine) = policy {
            match mine {
                Token::Any => open.push(self.policy_on()),
                Token::Text(text) => {
                    let plain = is_install(text) || whole.has(mine);
                    open.push(self.policy_on());
                    if name.is_some_and(|theirs| !plain || may_be_plain(theirs)) {
                        open.push(Self { inside: [true, self.inside[1]], ..self.name_on() });
                    }
                }
                Token::Char(_) | Token::One => {}
            }
            if *mine == Token::Any && name.is_some() {
                open.push(Self { inside: [true, self.inside[1]], ..self.name_on() });
            }
        }
        if let Some(Token::Any | Token::Text(_)) = name {
            open.push(self.name_on());
            if policy.is_some_and(may_be_plain) {
                open.push(Self { inside: [self.inside[0], true], ..self.policy_on() });
            }
        }
        if let (Some(Token::Char(_) | Token::One), Some(Token::Char(_) | Token::One)) = (policy, name) {
            let same = match (policy, name) {
                (Some(Token::Char(mine)), Some(Token::Char(theirs))) => mine == theirs,
                _ => true,
            };
            if same {
                open.push(self.policy_on().name_on());
            }
        }
    }
}

/// Returns whether a token can match a text without `/` and `:`.
const fn may_be_plain(token: &Token) -> bool {
    !matches!(token, Token::Char('/' | ':'))
}

/// Returns whether a template is the id or the name of the install, which never contain `/` or `:`.
fn is_install(text: &str) -> bool {
    let path = text.trim_start_matches("{{").trim_end_matches("}}").trim_start_matches('.');
    let rest = path.strip_prefix("nuon.").or_else(|| path.strip_prefix("freehold."));
    matches!(rest, Some("install.id" | "install.name"))
}

/// The first words of templates that print no value or decide about the text after them.
const KEYWORDS: [&str; 10] = ["if", "else", "end", "range", "with", "break", "continue", "define", "template", "block"];

/// Returns whether each template in a text prints a value at its place and does nothing else.
fn prints_only(text: &str) -> bool {
    let mut rest = text;
    while let Some((before, template)) = rest.split_once("{{") {
        let Some((inside, after)) = template.split_once("}}") else { return false };
        let word: String = inside.trim().chars().take_while(char::is_ascii_alphabetic).collect();
        // Trim markers change the text around the template, and a variable can have another value elsewhere. In quotes,
        // `}}` does not end a template.
        let is_print = !inside.starts_with('-')
            && !inside.ends_with('-')
            && !inside.contains(['{', '}', '$', '`', '\'', '\\'])
            && !inside.contains("/*")
            && inside.matches('"').count().is_multiple_of(2)
            && !KEYWORDS.contains(&word.as_str());
        // A policy variable that contains a template has no known name.
        let opens_variable = before.rsplit_once("${").is_some_and(|(_, name)| !name.contains('}'));
        if !is_print || opens_variable || before.ends_with('$') {
            return false;
        }
        rest = after;
    }
    true
}

/// Returns whether a text contains a policy variable, or a template that can write one.
pub(crate) fn has_variable(text: &str) -> bool {
    text.contains("${") || !prints_only(text)
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
        // `${*}`, `${?}` and `${$}` mean the plain characters `*`, `?` and `$`.
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

    #[test]
    fn a_template_that_decides_about_other_text_is_covered_by_the_same_text_alone() {
        let covered = [
            ("{{ if .nuon.a }}x*{{ end }}", "{{ if .nuon.a }}x{{ else }}*{{ end }}"),
            ("{{ if \"}}*\" }}arn:x{{ end }}", "{{ if \"}}\" }}*{{ else if \"}}\" }}arn:x{{ end }}"),
            ("{{ $x := `a` }}*{{ $x }}", "{{ $x := `*` }}{{ $x := `a` }}{{ $x }}"),
            ("${a{{ .nuon.b }}*", "${a{{ .nuon.b }}-{{ .nuon.c }}*"),
        ];

        for (wide, narrow) in covered {
            assert!(!covers(wide, narrow), "{wide} {narrow}");
            assert!(covers(wide, wide) && covers("*", narrow), "{wide} {narrow}");
        }
        assert!(covers("a*", "a{{ .nuon.inputs.inputs.b | default \"c\" }}"));
    }

    #[test]
    fn two_patterns_meet_where_a_text_can_match_both() {
        let meets = |policy: &str, name: &str| Pattern::new(policy).may_meet(&Pattern::new(name));
        let stack = |name: &str| format!("arn:*:cloudformation:*:*:stack/{name}/*");
        for (policy, name) in [
            ("*", "{{ .nuon.install.id }}-topic"),
            ("arn:aws:cloudformation:*:*:stack/{{.nuon.install.id}}-*", "{{ .nuon.install.id }}-topic"),
            (
                "arn:aws:cloudformation:eu-west-1:111122223333:stack/{{ .nuon.install.id }}-topic/*",
                "{{ .nuon.install.id }}-topic",
            ),
            (
                "arn:aws:cloudformation:{{ .nuon.cloud_account.aws.region }}:*:stack/acme-t*",
                "{{ .nuon.install.id }}-topic",
            ),
            ("{{ .nuon.components.a.outputs.arn }}", "{{ .nuon.install.id }}-topic"),
            ("arn:aws:cloudformation:*:*:stack/{{ .freehold.install.id }}-topic/*", "{{ .nuon.install.id }}-topic"),
            (
                "arn:aws:cloudformation:*:*:stack/{{ .nuon.install.id }}-a-*/*",
                "{{ .nuon.install.id }}-{{ .nuon.inputs.inputs.a }}",
            ),
        ] {
            assert!(meets(policy, &stack(name)), "{policy} {name}");
        }
        for (policy, name) in [
            ("arn:aws:cloudformation:*:*:stack/{{ .nuon.install.id }}-queue/*", "{{ .nuon.install.id }}-topic"),
            ("arn:aws:cloudformation:*:*:stack/{{ .nuon.install.id }}/*", "{{ .nuon.install.id }}-topic"),
            ("arn:aws:cloudformation:*:*:stack/{{ .nuon.install.id }}-t?pi/*", "{{ .nuon.install.id }}-topic"),
            ("arn:aws:cloudformation:*:*:stack/acme-queue/*", "{{ .nuon.install.id }}-topic"),
            ("arn:aws:s3:::{{ .nuon.install.id }}-topic", "{{ .nuon.install.id }}-topic"),
            ("arn:aws:cloudformation:*:*:changeSet/*", "x"),
            ("arn:aws:cloudformation:*:*:stack/{{ .freehold.install.id }}-queue/*", "{{ .nuon.install.id }}-topic"),
        ] {
            assert!(!meets(policy, &stack(name)), "{policy} {name}");
        }
    }

    #[test]
    fn the_part_before_a_slash_ends_outside_of_templates_and_variables() {
        for (whole, before) in [
            ("arn:aws:s3:::*/a/*", Some("arn:aws:s3:::*")),
            ("arn:aws:s3:::${aws:PrincipalTag/team}/*", Some("arn:aws:s3:::${aws:PrincipalTag/team}")),
            ("arn:aws:s3:::{{ .nuon.install.id }}/a", Some("arn:aws:s3:::{{ .nuon.install.id }}")),
            ("/a", Some("")),
            ("arn:aws:s3:::*", None),
        ] {
            assert_eq!(Pattern::new(whole).before_slash(), before.map(Pattern::new), "{whole}");
        }
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
        fn patterns_that_match_one_text_meet(
            policy in "[ab*?]{0,5}", name in "[ab*?]{0,5}", text in "[ab]{0,6}",
        ) {
            let chars = |text: &str| text.chars().collect::<Vec<char>>();

            if matches(&chars(&policy), &chars(&text)) && matches(&chars(&name), &chars(&text)) {
                prop_assert!(Pattern::new(&policy).may_meet(&Pattern::new(&name)), "{} {} {}", policy, name, text);
            }
        }

        #[test]
        fn patterns_that_match_one_text_for_some_values_meet(
            policy in "[ab*]{0,3}(T[ab*]{0,3})?", name in "[ab*]{0,3}(T[ab*]{0,3})?", value in "[ab]{0,2}", text in "[ab]{0,6}",
        ) {
            let chars = |text: &str| text.replace('T', &value).chars().collect::<Vec<char>>();
            let pattern = |text: &str| Pattern::new(&text.replace('T', "{{ .nuon.install.id }}"));

            if matches(&chars(&policy), &chars(&text)) && matches(&chars(&name), &chars(&text)) {
                prop_assert!(pattern(&policy).may_meet(&pattern(&name)), "{} {} {} {}", policy, name, value, text);
            }
        }

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
