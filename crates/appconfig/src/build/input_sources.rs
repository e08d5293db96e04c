//! Reads further files of inputs, which a file of inputs names under `source` or `sources`.

use std::collections::BTreeSet;
use std::path::Path;

use wildmatch::WildMatchPattern;

use crate::build::file;
use crate::kinds::Kind;
use crate::read::addresses::{Naming, naming};
use crate::read::document::Node;
use crate::read::files::Place;
use crate::read::paths::{join, normal};
use crate::report::draft::Draft;
use crate::state::app::App;
use crate::state::file::Checked;

/// The maximum number of files that one pattern may match.
const MAX_FILES: usize = 500;

/// Reads every file of inputs that another file of inputs names. These files may name further files.
pub(crate) fn read(app: &mut App) {
    let mut seen = BTreeSet::new();
    let mut next = 0;
    while let Some(checked) = app.checked.get(next) {
        next += 1;
        if checked.kind != Kind::Inputs {
            continue;
        }
        let listed = list(checked);
        for (word, place) in listed {
            for path in found(app, &word, place) {
                let known = app.checked.iter().any(|one| app.files.path(one.file) == path);
                if !known && seen.insert(path.clone()) {
                    file::read(app, &path, Some(Kind::Inputs));
                }
            }
        }
    }
}

fn list(checked: &Checked) -> Vec<(String, Place)> {
    let one = checked.root.get("source");
    let more = checked.root.get("sources").map(Node::items).unwrap_or_default();
    let nodes = one.into_iter().chain(more);
    nodes.filter_map(|node| Some((node.as_text()?.to_owned(), checked.place(node)))).collect()
}

/// Returns the files that `word` names by path or address. Reports a `word` that names no file.
fn found(app: &mut App, word: &str, place: Place) -> Vec<String> {
    match naming(word) {
        Some(Naming::Remote) => fetched(app, word),
        Some(Naming::FileAddress(path)) => paths(app, path, place),
        Some(Naming::Malformed) => {
            let draft = Draft::error(place, format!("`{word}` is not the address of a file in a repository"));
            app.drafts.push(draft.expected("`git::https://host/repository//path?ref=name`"));
            Vec::new()
        }
        Some(Naming::Path(_)) | None => paths(app, word, place),
    }
}

/// Returns the address if the caller has fetched its text. Otherwise adds the address to the addresses that the caller
/// still has to fetch.
fn fetched(app: &mut App, address: &str) -> Vec<String> {
    let App { files, fetched, addresses, broken, .. } = app;
    let Some(text) = fetched.get(address) else {
        addresses.missing.insert(address.to_owned());
        // The inputs in this text are not known, so they are treated like the inputs of a file that cannot be parsed.
        broken.push(Kind::Inputs);
        return Vec::new();
    };
    addresses.files.entry(address.to_owned()).or_insert_with(|| files.add(address.to_owned(), text.clone()));
    vec![address.to_owned()]
}

fn paths(app: &mut App, word: &str, place: Place) -> Vec<String> {
    let directory = app.files.path(place.file).rsplit_once('/').map_or("", |(directory, _)| directory).to_owned();
    let candidates: Vec<String> =
        [directory.as_str(), ""].iter().filter_map(|directory| normal(&format!("./{directory}/{word}"))).collect();
    let Some(first) = candidates.first().filter(|_| !Path::new(word).is_absolute()) else {
        let draft = Draft::error(place, format!("`{word}` is outside of the app's directory"));
        app.drafts.push(draft.help("move the file into the app's directory"));
        return Vec::new();
    };
    let paths = candidates.iter().map(|path| expand(app, path)).find(|paths| !paths.is_empty()).unwrap_or_default();
    if paths.is_empty() {
        let (message, help) = if first.contains('*') {
            (format!("`{word}` matches no file"), "create one, or correct the pattern")
        } else {
            (format!("`{word}` cannot be read: it does not exist"), "create the file, or correct the path")
        };
        app.drafts.push(Draft::error(place, message).help(help));
    }
    paths
}

/// Returns the files that match `path`. A `*` in it matches any text without a slash.
fn expand(app: &App, path: &str) -> Vec<String> {
    let tree = app.files.tree();
    let mut found = vec![String::new()];
    for part in path.split('/') {
        let mut deeper = Vec::new();
        for at in &found {
            if part.contains('*') {
                let names = tree.entries(at).unwrap_or_default().into_iter().map(|(name, _)| name);
                deeper.extend(names.filter(|name| matches(part, name)).map(|name| join(at, &name)));
            } else if tree.exists(&join(at, part)) {
                deeper.push(join(at, part));
            }
        }
        deeper.truncate(MAX_FILES);
        found = deeper;
    }
    found.retain(|path| tree.is_file(path));
    found
}

/// Returns whether `name` matches `pattern`. Each `*` in it matches any text.
fn matches(pattern: &str, name: &str) -> bool {
    WildMatchPattern::<'*', '\0'>::new(pattern).matches(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_any_part_of_a_name() {
        let yes = [("a.toml", "a.toml"), ("*.toml", "x.toml"), ("*", "x"), ("a*b*c", "a-b-c"), ("a*b*c", "abcbc")];
        let no = [("a.toml", "b.toml"), ("*.toml", "x.tom"), ("a*b", "a"), ("aa*aa", "aaa"), ("a*b*c", "acb")];

        for (pattern, name) in yes {
            assert!(matches(pattern, name), "{pattern} {name}");
        }
        for (pattern, name) in no {
            assert!(!matches(pattern, name), "{pattern} {name}");
        }
    }
}
