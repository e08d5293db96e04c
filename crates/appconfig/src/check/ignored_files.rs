//! Warns about files that look like config files and are not read: files in a directory that is named nearly like a
//! directory of the config, and files with another ending than `.toml`.

use std::path::Path;

use freehold_template::nearest;

use crate::kinds::{DIRECTORIES, ROOT};
use crate::read::files::Place;
use crate::report::draft::Draft;
use crate::state::app::App;
use crate::state::source::Held;

/// The endings of files that may be meant as config files, in lower case.
const ENDINGS: [&str; 4] = ["json", "yaml", "yml", "toml"];

/// The directories that also hold texts which a config names: policy documents, and rules.
const TEXTS: [&str; 3] = ["permissions", "break_glass", "policies"];

/// A file that is not read: its path, the reason, and the way out.
struct Ignored {
    path: String,
    reason: String,
    help: String,
}

/// Warns about the files in the app's directory and in those directly below it. A file that a config names, or that
/// belongs to a source in `held`, is not reported.
pub(crate) fn check(app: &mut App, held: &[Held]) {
    // A directory that cannot be read was reported before.
    let entries = |directory: &str| app.files.tree().entries(directory).unwrap_or_default();
    let mut found = Vec::new();
    for (name, is_dir) in entries("") {
        if !is_dir {
            found.extend(in_root(&name));
            continue;
        }
        let files = entries(&name).into_iter().filter(|(_, is_dir)| !is_dir);
        found.extend(files.filter_map(|(file, _)| in_directory(&name, &file)));
    }
    let is_of_a_source = |path: &str| {
        held.iter()
            .any(|source| path.strip_prefix(&source.path).is_some_and(|rest| rest.is_empty() || rest.starts_with('/')))
    };
    found.retain(|one| app.files.text_of(&one.path).is_none() && !is_of_a_source(&one.path));
    for Ignored { path, reason, help } in found {
        let file = app.files.add(path.clone(), String::new());
        let draft = Draft::warning(Place { file, span: 0..0 }, format!("`{path}` is not read: {reason}"));
        app.drafts.push(draft.help(help));
    }
}

fn in_root(name: &str) -> Option<Ignored> {
    let meant = with_toml(name)?;
    ROOT.iter().any(|(known, _)| *known == meant).then(|| ignored(name.to_owned(), not_toml(), &meant))
}

fn in_directory(directory: &str, file: &str) -> Option<Ignored> {
    let path = format!("{directory}/{file}");
    if TEXTS.contains(&directory) && ending(file).is_some_and(|ending| !ending.eq_ignore_ascii_case("toml")) {
        with_toml(file)?;
        let help = format!("name it in a `.toml` file, such as `contents = \"./{file}\"`, or remove it");
        return Some(Ignored { path, reason: "no file of the config names it".to_owned(), help });
    }
    if DIRECTORIES.iter().any(|(known, _)| *known == directory) {
        return Some(ignored(path, not_toml(), &format!("{directory}/{}", with_toml(file)?)));
    }
    let is_toml = ending(file).is_some_and(|ending| ending.eq_ignore_ascii_case("toml"));
    let meant = meant_directory(directory).filter(|_| is_toml)?;
    let file = with_toml(file).unwrap_or_else(|| file.to_owned());
    Some(ignored(path, format!("an app config has no directory `{directory}`"), &format!("{meant}/{file}")))
}

fn ignored(path: String, reason: String, meant: &str) -> Ignored {
    Ignored { path, reason, help: format!("did you mean `{meant}`?") }
}

fn not_toml() -> String {
    "config files are TOML and end in `.toml`".to_owned()
}

/// Returns the directory of the config whose name is nearly `directory`.
fn meant_directory(directory: &str) -> Option<&'static str> {
    let known = DIRECTORIES.map(|(known, _)| known);
    let is_singular = |plural: &&str| plural.strip_suffix("ies").is_some_and(|stem| directory == format!("{stem}y"));
    known.into_iter().find(is_singular).or_else(|| nearest(directory, known))
}

/// Returns `name` with the ending `.toml`, if it has another ending of [`ENDINGS`].
fn with_toml(name: &str) -> Option<String> {
    let other = ending(name).filter(|ending| *ending != "toml")?;
    let stem = name.strip_suffix(other)?;
    ENDINGS.contains(&other.to_ascii_lowercase().as_str()).then(|| format!("{stem}toml"))
}

fn ending(name: &str) -> Option<&str> {
    Path::new(name).extension()?.to_str()
}
