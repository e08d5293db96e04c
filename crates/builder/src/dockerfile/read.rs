//! Finds the images that a Dockerfile names in `FROM`, `COPY --from` and `RUN --mount=from=`.
//!
//! An image that is not found here is not fetched, and the build cannot use it.

use std::collections::BTreeMap;

use freehold_oci::{Reference, ReferenceError};

use super::instructions::instructions;

/// The way out if the name of an image has variables, which may have no value.
const UNSET: &str = "; give each `ARG` in it a default, or a value in `build_args`";

/// An image that a Dockerfile names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Named {
    /// The name of the image as the Dockerfile writes it. Buildah looks the image up under this name.
    pub(super) word: String,
    /// The name of the image after its variables are replaced.
    pub(super) image: String,
    pub(super) reference: Reference,
    /// The value of `--platform` after its variables are replaced; empty for the runner's own platform.
    pub(super) platform: String,
}

/// Returns the images that the Dockerfile `text` names, in order and without duplicates.
pub(super) fn images(text: &str, args: &BTreeMap<String, String>) -> Result<Vec<Named>, String> {
    let mut reader = Reader { args, variables: automatic(), stages: Vec::new(), found: Vec::new() };
    for line in instructions(text)? {
        let mut words = line.split_whitespace();
        let instruction = words.next().unwrap_or_default().to_ascii_uppercase();
        let words: Vec<&str> = words.collect();
        match instruction.as_str() {
            "ARG" if reader.stages.is_empty() => reader.declare(&words),
            "FROM" => reader.from(&words)?,
            "COPY" | "ADD" => reader.copied_from(&words)?,
            "RUN" => reader.mounted_from(&words)?,
            _ => {}
        }
    }
    Ok(reader.found)
}

struct Reader<'a> {
    args: &'a BTreeMap<String, String>,
    variables: BTreeMap<String, String>,
    /// The names of the stages so far, in lower case; empty for a stage without a name.
    stages: Vec<String>,
    found: Vec<Named>,
}

impl Reader<'_> {
    /// Reads an `ARG` before the first `FROM`, which declares variables that `FROM` may use.
    fn declare(&mut self, words: &[&str]) {
        for word in words {
            let (name, default) = word.split_once('=').unwrap_or((word, ""));
            let default = self.replaced(default.trim_matches(['"', '\'']));
            if let Some(value) = self.args.get(name).cloned().or_else(|| word.contains('=').then_some(default)) {
                self.variables.insert(name.to_owned(), value);
            }
        }
    }

    fn from(&mut self, words: &[&str]) -> Result<(), String> {
        let (options, rest): (Vec<&str>, Vec<&str>) = words.iter().partition(|word| word.starts_with("--"));
        let Some(word) = rest.first() else {
            return Err("a `FROM` line of the Dockerfile does not name an image".to_owned());
        };
        let platform = options.iter().find_map(|option| option.strip_prefix("--platform=")).unwrap_or_default();
        self.name(word.trim_matches('"'), self.replaced(platform))?;
        let name = match rest.get(1..) {
            Some([keyword, name, ..]) if keyword.eq_ignore_ascii_case("AS") => name.to_ascii_lowercase(),
            _ => String::new(),
        };
        self.stages.push(name);
        Ok(())
    }

    fn copied_from(&mut self, words: &[&str]) -> Result<(), String> {
        let from = words.iter().find_map(|word| word.strip_prefix("--from="));
        let from = from.map(|word| word.trim_matches('"')).filter(|word| word.parse::<usize>().is_err());
        from.map_or(Ok(()), |word| self.name(word, String::new()))
    }

    fn mounted_from(&mut self, words: &[&str]) -> Result<(), String> {
        let mounts =
            words.iter().map_while(|word| word.strip_prefix("--")).filter_map(|word| word.strip_prefix("mount="));
        for word in mounts.flat_map(|mount| mount.split(',')).filter_map(|option| option.strip_prefix("from=")) {
            self.name(word, String::new())?;
        }
        Ok(())
    }

    /// Adds the image that `word` names, unless `word` names a stage or the empty image `scratch`.
    fn name(&mut self, word: &str, platform: String) -> Result<(), String> {
        let image = self.replaced(word);
        let is_stage = self.stages.iter().any(|stage| stage.eq_ignore_ascii_case(&image));
        let is_known = self.found.iter().any(|named| named.word == word && named.platform == platform);
        if !is_stage && !is_known && !image.eq_ignore_ascii_case("scratch") {
            let reference = parse(&image).map_err(|error| {
                let way_out = if word.contains('$') { UNSET } else { "" };
                format!("image `{word}` of the Dockerfile cannot be used: {error}{way_out}")
            })?;
            self.found.push(Named { word: word.to_owned(), image, reference, platform });
        }
        Ok(())
    }

    /// Returns `text` with its variables replaced: `$NAME`, `${NAME}`, `${NAME:-default}` and `${NAME:+other}`.
    fn replaced(&self, text: &str) -> String {
        let mut all = String::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once('$') {
            all.push_str(before);
            let (variable, next) = match after.strip_prefix('{').and_then(|inner| inner.split_once('}')) {
                Some((inner, next)) => (inner, next),
                None => after.split_at(after.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(after.len())),
            };
            all.push_str(&self.value(variable));
            rest = next;
        }
        all + rest
    }

    fn value(&self, variable: &str) -> String {
        let end = variable.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(variable.len());
        let (name, rule) = variable.split_at(end);
        let value = self.variables.get(name).filter(|value| !value.is_empty());
        let rule = rule.strip_prefix(':').unwrap_or(rule);
        match (value, rule.strip_prefix('-'), rule.strip_prefix('+')) {
            (None, Some(default), _) => default.to_owned(),
            (Some(_), _, Some(other)) => other.to_owned(),
            (value, _, _) => value.cloned().unwrap_or_default(),
        }
    }
}

/// Parses the name of an image. Refuses a name such as `oci:/var/lib/other` or `dir:/etc`, because Buildah would read a
/// directory of the machine.
fn parse(image: &str) -> Result<Reference, String> {
    let reference: Reference = image.parse().map_err(|error: ReferenceError| error.to_string())?;
    if reference.host.ends_with(':') {
        return Err("expected an image of a registry".to_owned());
    }
    Ok(reference)
}

/// Returns the variables that every build has. Both platforms, of the build and of the image, are the runner's own.
fn automatic() -> BTreeMap<String, String> {
    let architecture = own_architecture();
    let platform = format!("linux/{architecture}");
    let of = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let both = ["BUILD", "TARGET"].into_iter().flat_map(|which| {
        [
            of(&format!("{which}PLATFORM"), &platform),
            of(&format!("{which}OS"), "linux"),
            of(&format!("{which}ARCH"), architecture),
        ]
    });
    both.collect()
}

/// Returns the runner's architecture in the form that images use, such as `amd64`.
pub(super) fn own_architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str, args: &[(&str, &str)]) -> Vec<String> {
        let args = args.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let show = |named: Named| format!("{} {} {}", named.word, named.image, named.platform).trim().to_owned();
        images(text, &args).unwrap().into_iter().map(show).collect()
    }

    #[test]
    fn images_are_found_wherever_a_dockerfile_names_them() {
        let text = "# syntax=docker/dockerfile:1\nFROM golang:1.24 AS build\nRUN --mount=type=cache,target=/x \\\n  # why\n  \
                    --mount=type=bind,from=tools:2,target=/t make --from=not\nfrom scratch\nCOPY --from=build /a /a\n\
                    COPY --chown=1 --from=0 /a /b\ncopy --from=nginx:1 /c /c\nFROM Build AS again\nFROM nginx:1\n";

        assert_eq!(found(text, &[]), ["golang:1.24 golang:1.24", "tools:2 tools:2", "nginx:1 nginx:1"]);
    }

    #[test]
    fn variables_are_those_before_the_first_stage_and_of_the_config() {
        let text = "ARG REGISTRY=docker.io\nARG TAG\nARG BASE=\"$REGISTRY/a\"\nFROM ${BASE}:${TAG:-3} AS one\nARG TAG=9\n\
                    FROM --platform=$BUILDPLATFORM $REGISTRY/b${TAG:+-t}\n";

        let own = format!("linux/{}", own_architecture());
        assert_eq!(
            found(text, &[]),
            ["${BASE}:${TAG:-3} docker.io/a:3".to_owned(), format!("$REGISTRY/b${{TAG:+-t}} docker.io/b {own}")]
        );
        assert_eq!(found(text, &[("TAG", "7")]).first().unwrap(), "${BASE}:${TAG:-3} docker.io/a:7");
        let unset = images("ARG BASE\nFROM $BASE\n", &BTreeMap::new()).unwrap_err();
        assert!(
            unset.starts_with("image `$BASE` of the Dockerfile cannot be used") && unset.ends_with(UNSET),
            "{unset}"
        );
    }

    #[test]
    fn an_image_is_one_of_a_registry() {
        for word in ["oci:/etc", "dir:/var/lib", "oci-archive:/x.tar", "docker-daemon:a:b", "/etc", ".."] {
            for text in [
                format!("FROM {word}"),
                format!("FROM a\nCOPY --from={word} / /"),
                format!("FROM a\nRUN --mount=type=bind,from={word} x"),
            ] {
                assert!(images(&text, &BTreeMap::new()).is_err(), "{text}");
            }
        }
    }

    #[test]
    fn a_here_document_names_no_image() {
        let text = "FROM a:1\nRUN python3 <<EOF\nfrom os import path\nEOF\nCOPY <<A <<'B' /x/\nFROM a\nA\nfrom b\nB\n\
                    COPY --from=b:2 <<-C /c /d\nRUN --mount=from=d\n\tC\nFROM c:3\n";

        assert_eq!(found(text, &[]), ["a:1 a:1", "b:2 b:2", "c:3 c:3"]);
        assert!(images("FROM a:1\nRUN <<EOF\nfrom os import path\n", &BTreeMap::new()).is_err());
    }

    #[test]
    fn another_sign_may_continue_a_line() {
        assert_eq!(found("# escape=`\nFROM `\n  a:1\nRUN C:\\\nFROM b:2\n", &[]), ["a:1 a:1", "b:2 b:2"]);
        assert!(images("FROM --platform=linux/amd64\n", &BTreeMap::new()).is_err());
    }
}
