//! Parses chart versions and version constraints in the same way as Helm (Masterminds/semver 3, "Checking Version
//! Constraints").

use std::cmp::Ordering;

use semver::{BuildMetadata, Prerelease, Version};

/// Returns the version in `text`; accepts a leading `v` and missing parts, as Helm does.
pub(super) fn version(text: &str) -> Option<Version> {
    let part = part(text)?;
    part.major.is_some().then_some(part.version)
}

/// A version constraint: sets of conditions. A version must meet all conditions of at least one set.
#[derive(Debug, Clone)]
pub(super) struct Wanted(Vec<Vec<Condition>>);

#[derive(Debug, Clone)]
struct Condition {
    relation: Relation,
    part: Part,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Relation {
    Equal,
    Different,
    Greater,
    Less,
    AtLeast,
    AtMost,
    /// `~`: the same minor version; the same major version if the constraint names no minor version.
    Near,
    /// `^`: this version, or a newer one without breaking changes.
    Compatible,
}

/// A version whose last parts may be missing or wildcards. Such parts are 0 in `version`.
#[derive(Debug, Clone)]
struct Part {
    version: Version,
    major: Option<u64>,
    minor: Option<u64>,
    patch: Option<u64>,
}

impl Wanted {
    /// Parses the constraint of a chart or a config; an empty text accepts every version.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let wrong = || format!("`{text}` is not a version or a range of versions, such as `1.2.3` or `^1.2`");
        let text = if text.trim().is_empty() { "*" } else { text };
        text.split("||").map(|set| conditions(set).ok_or_else(wrong)).collect::<Result<_, _>>().map(Self)
    }

    /// Returns whether `version` meets the constraint. A prerelease meets only conditions that have a prerelease too.
    pub(super) fn takes(&self, version: &Version) -> bool {
        self.0.iter().any(|set| set.iter().all(|condition| condition.takes(version)))
    }
}

/// Parses conditions separated by commas or spaces, and ranges such as `1.2 - 1.4`.
fn conditions(set: &str) -> Option<Vec<Condition>> {
    let mut found: Vec<Condition> = Vec::new();
    let mut rest = set.trim_start_matches([' ', ',']);
    let mut range = false;
    while !rest.is_empty() {
        let (sign, after) = split(rest, |c| "=!<>~^".contains(c));
        let (word, after) = split(after.trim_start(), |c| c != ' ' && c != ',');
        rest = after.trim_start_matches([' ', ',']);
        if sign.is_empty() && word == "-" {
            let low = found.last_mut().filter(|low| !range && low.relation == Relation::Equal)?;
            low.relation = Relation::AtLeast;
            range = true;
            continue;
        }
        let relation = match sign {
            "" if range => Relation::AtMost,
            "" | "=" => Relation::Equal,
            "!=" => Relation::Different,
            ">" => Relation::Greater,
            "<" => Relation::Less,
            ">=" | "=>" => Relation::AtLeast,
            "<=" | "=<" => Relation::AtMost,
            "~" | "~>" => Relation::Near,
            "^" => Relation::Compatible,
            _ => return None,
        };
        range = false;
        found.push(Condition { relation, part: part(word)? });
    }
    (!found.is_empty() && !range).then_some(found)
}

/// Splits `text` after its leading characters for which `wanted` returns true.
fn split(text: &str, wanted: impl Fn(char) -> bool) -> (&str, &str) {
    text.split_at(text.find(|c| !wanted(c)).unwrap_or(text.len()))
}

fn part(text: &str) -> Option<Part> {
    let text = text.trim();
    let text = text.strip_prefix(['v', 'V']).unwrap_or(text);
    let (text, build) = text.split_once('+').unwrap_or((text, ""));
    let (text, pre) = text.split_once('-').unwrap_or((text, ""));
    let mut numbers = [None; 3];
    let mut open = false;
    let mut words = text.split('.');
    for (slot, word) in numbers.iter_mut().zip(words.by_ref()) {
        match word {
            "x" | "X" | "*" => open = true,
            word if !open && word.bytes().all(|byte| byte.is_ascii_digit()) => *slot = Some(word.parse().ok()?),
            _ => return None,
        }
    }
    if words.next().is_some() {
        return None;
    }
    let [major, minor, patch] = numbers;
    let mut version = Version::new(major.unwrap_or(0), minor.unwrap_or(0), patch.unwrap_or(0));
    version.pre = Prerelease::new(pre).ok()?;
    version.build = BuildMetadata::new(build).ok()?;
    Some(Part { version, major, minor, patch })
}

impl Condition {
    fn takes(&self, version: &Version) -> bool {
        let Part { version: wanted, major, minor, patch } = &self.part;
        if !version.pre.is_empty() && wanted.pre.is_empty() {
            return false;
        }
        let order = version.cmp_precedence(wanted);
        // Compares only the parts that the constraint gives.
        let written = |major: &Option<u64>| match (major, minor, patch) {
            (None, _, _) => Ordering::Equal,
            (Some(_), None, _) => version.major.cmp(&wanted.major),
            (Some(_), Some(_), None) => (version.major, version.minor).cmp(&(wanted.major, wanted.minor)),
            (Some(_), Some(_), Some(_)) => order,
        };
        match self.relation {
            Relation::Equal => written(major).is_eq(),
            Relation::Different => written(major).is_ne(),
            Relation::Greater => written(major).is_gt(),
            Relation::Less => order.is_lt(),
            Relation::AtLeast => order.is_ge(),
            Relation::AtMost => written(major).is_le(),
            Relation::Near => {
                let all = *wanted == Version::new(0, 0, 0) && patch.is_some();
                let same = version.major == wanted.major && (minor.is_none() || version.minor == wanted.minor);
                order.is_ge() && (all || major.is_none() || same)
            }
            Relation::Compatible => {
                let same = if wanted.major > 0 || minor.is_none() {
                    version.major == wanted.major
                } else if wanted.minor > 0 || patch.is_none() {
                    (version.major, version.minor) == (0, wanted.minor)
                } else {
                    (version.major, version.minor, version.patch) == (0, 0, wanted.patch)
                };
                order.is_ge() && (major.is_none() || same)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_take_what_helm_takes() {
        let cases: [(&str, &[&str], &[&str]); 17] = [
            ("", &["0.0.1", "9.0.0"], &["1.0.0-rc.1"]),
            ("*", &["1.2.3"], &[]),
            ("1.2.3", &["1.2.3", "v1.2.3", "1.2.3+build"], &["1.2.4", "1.2.3-rc"]),
            ("v1.2.3", &["1.2.3"], &["1.2.4"]),
            ("1.2", &["1.2.0", "1.2.9"], &["1.3.0"]),
            ("1.x.x", &["1.0.0", "1.9.0"], &["2.0.0"]),
            ("~1.2.3", &["1.2.3", "1.2.9"], &["1.3.0", "1.2.2"]),
            ("~1", &["1.9.0"], &["2.0.0"]),
            ("^1.2.3", &["1.2.3", "1.9.0"], &["2.0.0", "1.2.2"]),
            ("^0.2.3", &["0.2.3", "0.2.9"], &["0.3.0"]),
            ("^0.0.3", &["0.0.3"], &["0.0.4"]),
            (">= 1.2, < 3.0.0", &["1.2.0", "2.9.9"], &["3.0.0", "1.1.9"]),
            (">1.2", &["1.3.0"], &["1.2.9"]),
            ("<=1.2", &["1.2.9"], &["1.3.0"]),
            ("1.2 - 1.4.5", &["1.2.0", "1.4.5"], &["1.4.6"]),
            ("<1 || >=2 !=2.5.x", &["0.9.0", "2.4.0"], &["1.5.0", "2.5.3"]),
            (">=1.0.0-0", &["1.0.0", "1.1.0-rc.1"], &["0.9.0"]),
        ];
        for (text, yes, no) in cases {
            let wanted = Wanted::parse(text).unwrap();
            for word in yes {
                assert!(wanted.takes(&version(word).unwrap()), "`{text}` takes `{word}`");
            }
            for word in no {
                assert!(!wanted.takes(&version(word).unwrap()), "`{text}` does not take `{word}`");
            }
        }
    }

    #[test]
    fn an_invalid_range_is_refused() {
        for text in ["latest", ">>1", "1.2.3.4", "1.2 -", "- 1", "=", "x.1"] {
            assert!(Wanted::parse(text).is_err(), "{text}");
        }
        assert_eq!(version("1.4").unwrap(), Version::new(1, 4, 0));
        assert!(version("*").is_none());
    }
}
