//! Reads `.helmignore`, whose patterns exclude files from a chart. The rules are Helm's; they differ from the rules of
//! git and Docker.

/// The patterns that Helm always ignores.
const ALWAYS: &str = "templates/.?*";

/// The rules of one chart.
#[derive(Debug)]
pub(super) struct Ignore(Vec<Rule>);

#[derive(Debug)]
struct Rule {
    pattern: Vec<char>,
    /// Whether the pattern begins with `!`. Such a pattern ignores every path that does not match it.
    negated: bool,
    directories_only: bool,
    /// Whether the pattern is compared with the whole path, and not only with the file name.
    whole: bool,
}

impl Ignore {
    /// Parses the rules in `text`.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
        lines.chain([ALWAYS]).map(rule).collect::<Result<_, _>>().map(Self)
    }

    /// Returns whether the file or directory at `path`, relative to the chart, is ignored.
    pub(super) fn ignores(&self, path: &str, is_directory: bool) -> bool {
        let name = path.rsplit('/').next().unwrap_or(path);
        self.0.iter().any(|rule| {
            let text: Vec<char> = if rule.whole { path } else { name }.chars().collect();
            let fits = matches(&rule.pattern, &text);
            match (rule.negated, rule.directories_only && !is_directory) {
                (true, other_kind) => other_kind || !fits,
                (false, other_kind) => !other_kind && fits,
            }
        })
    }
}

fn rule(line: &str) -> Result<Rule, String> {
    if line.contains("**") {
        return Err(format!(
            "`.helmignore` has `{line}`, but Helm does not support `**`; a pattern without `/` matches in any directory"
        ));
    }
    let (negated, line) = line.strip_prefix('!').map_or((false, line), |rest| (true, rest));
    let (directories_only, line) = line.strip_suffix('/').map_or((false, line), |rest| (true, rest));
    let whole = line.contains('/');
    let pattern = line.strip_prefix('/').unwrap_or(line).chars().collect();
    Ok(Rule { pattern, negated, directories_only, whole })
}

/// Returns whether all of `text` matches `pattern`, which may contain `*`, `?`, `[...]` and `\`. These never match `/`
/// (Go, `path/filepath.Match`).
fn matches(pattern: &[char], text: &[char]) -> bool {
    let Some((first, rest)) = pattern.split_first() else { return text.is_empty() };
    let next = text.split_first();
    match (first, next) {
        ('*', _) => {
            let reach = text.iter().position(|c| *c == '/').unwrap_or(text.len());
            // Several stars in a row count as one.
            let rest = rest.iter().position(|c| *c != '*').and_then(|at| rest.get(at..)).unwrap_or_default();
            (0..=reach).any(|at| text.get(at..).is_some_and(|text| matches(rest, text)))
        }
        (_, None) => false,
        ('?', Some((c, text))) => *c != '/' && matches(rest, text),
        ('[', Some((c, text))) => match class(rest, *c) {
            Some((true, rest)) => *c != '/' && matches(rest, text),
            Some((false, _)) | None => false,
        },
        ('\\', Some((c, text))) => rest.split_first().is_some_and(|(wanted, rest)| wanted == c && matches(rest, text)),
        (wanted, Some((c, text))) => wanted == c && matches(rest, text),
    }
}

/// Returns whether `c` is in the character class at the start of `pattern`, and the pattern after the class.
fn class(pattern: &[char], c: char) -> Option<(bool, &[char])> {
    let end = pattern.iter().skip(1).position(|c| *c == ']')? + 1;
    let (inside, rest) = (pattern.get(..end)?, pattern.get(end + 1..)?);
    let (negated, mut inside) = match inside.split_first() {
        Some(('^', inside)) => (true, inside),
        _ => (false, inside),
    };
    let mut fits = false;
    while let Some((low, after)) = inside.split_first() {
        (fits, inside) = match after {
            ['-', high, after @ ..] => (fits || (*low..=*high).contains(&c), after),
            after => (fits || *low == c, after),
        };
    }
    Some((fits != negated, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_mean_what_helm_means() {
        let ignore = Ignore::parse("# tests\n*.txt\n/root.md\nci/\ndocs/*.md\n[a-c]?.log\n").unwrap();

        for (path, is_directory) in [
            ("notes.txt", false),
            ("deep/notes.txt", false),
            ("root.md", false),
            ("sub/ci", true),
            ("docs/a.md", false),
            ("b1.log", false),
            ("templates/.swp", false),
        ] {
            assert!(ignore.ignores(path, is_directory), "{path}");
        }
        for (path, is_directory) in [
            ("Chart.yaml", false),
            ("sub/root.md", false),
            ("ci", false),
            ("docs/deep/a.md", false),
            ("d1.log", false),
            ("templates", true),
            (".helmignore", false),
        ] {
            assert!(!ignore.ignores(path, is_directory), "{path}");
        }
        assert!(Ignore::parse("a/**").is_err());
    }

    #[test]
    fn a_negated_rule_ignores_what_does_not_fit_it() {
        let ignore = Ignore::parse("!*.yaml").unwrap();

        assert!(ignore.ignores("README.md", false) && !ignore.ignores("Chart.yaml", false));
    }
}
