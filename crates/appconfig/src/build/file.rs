//! Reads and parses one file of an app config, and checks it against the key table of its kind.

use freehold_template::nearest;

use crate::check::validate::validate;
use crate::kinds::{DIRECTORIES, Kind, ROOT};
use crate::read::document;
use crate::read::files::Place;
use crate::read::recognition;
use crate::report::draft::Draft;
use crate::state::app::App;

/// Reads the file at `path`, relative to the app's directory, as a file of `kind`. Warns when `kind` is `None`, because
/// files at this path have no effect.
pub(crate) fn read(app: &mut App, path: &str, kind: Option<Kind>) {
    let file = match app.files.read(path) {
        Ok(file) => file,
        Err(reason) => {
            let message = format!("the file cannot be read: {reason}");
            report_unreadable(app, path, message);
            app.broken.extend(kind);
            return;
        }
    };
    let kind = match kind {
        None | Some(Kind::Runner) if is_of_a_runner(app.files.text(file)) => {
            report_runner_config(app, file, path, kind);
            return;
        }
        kind => kind,
    };
    let Some(kind) = kind else {
        let draft =
            Draft::warning(Place { file, span: 0..0 }, format!("`{path}` is not a known file; it has no effect"));
        app.drafts.push(draft.meant(nearest(path, ROOT.iter().map(|(name, _)| *name))));
        return;
    };
    match document::parse(app.files.text(file)) {
        Ok(root) => {
            let (kind, root) = recognition::of(kind, root);
            let checked = validate(app, file, kind, root);
            app.checked.push(checked);
        }
        Err(error) => {
            app.broken.push(kind);
            let help = toml_help(app.files.text(file), error.span.start);
            let draft = Draft::error(Place { file, span: error.span }, format!("not TOML: {}", error.message));
            app.drafts.push(match help {
                Some(help) => draft.help(help),
                None => draft,
            });
        }
    }
}

fn report_unreadable(app: &mut App, path: &str, message: String) {
    let file = app.files.add(path.to_owned(), String::new());
    let help = match app.files.tree().is_link(path) {
        true => "correct the link, or remove it",
        false => "save it as UTF-8 text that you are permitted to read, or remove it",
    };
    app.drafts.push(Draft::error(Place { file, span: 0..0 }, message).help(help));
}

/// Warns of the config of a runner. An app has a file of this name too, with other keys.
fn report_runner_config(app: &mut App, file: usize, path: &str, kind: Option<Kind>) {
    let (message, help) = match kind {
        None => ("an app config has no such file", "move it out of the app's directory"),
        Some(_) => (
            "the app's file of this name has other keys",
            "move it out of the app's directory, and write the app's file with `freehold tools init DIR`",
        ),
    };
    let draft = Draft::warning(Place { file, span: 0..0 }, format!("`{path}` is the config of a runner; {message}"));
    app.drafts.push(draft.help(help));
}

/// Returns how to fix the mistake at `at`, if the text there looks like another language than TOML.
fn toml_help(text: &str, at: usize) -> Option<&'static str> {
    let (before, rest) = (text.get(..at)?, text.get(at..)?);
    let line = before.rsplit('\n').next().unwrap_or_default().trim_end();
    let first = rest.chars().next()?;
    if "“”„‘’«»".contains(first) {
        Some("write straight quotes: `\"...\"`")
    } else if line.ends_with('=') && first.is_alphabetic() {
        Some("write a text in quotes: `\"...\"`")
    } else if line.ends_with(':') && !line.contains(['=', '"']) {
        Some("write `=` instead of `:`; config files are TOML, not YAML")
    } else if line.trim_start_matches('\u{feff}').is_empty() && first == '{' {
        Some("write `key = value` on a line of its own; config files are TOML, not JSON")
    } else {
        None
    }
}

/// Returns whether `text` is a runner's config, as `freehold install runner-config` and `freehold tenant build-runner`
/// write it.
fn is_of_a_runner(text: &str) -> bool {
    let has = |key: &str| text.lines().any(|line| line.split_once('=').is_some_and(|(name, _)| name.trim() == key));
    ["orders_queue_url", "reports_queue_url", "tenant_key"].into_iter().all(has)
}

/// Returns the kind of the file at `path`; `None` when no kind of file belongs there.
pub(crate) fn kind_of(path: &str) -> Option<Kind> {
    let found = match path.split_once('/') {
        Some((directory, _)) => DIRECTORIES.iter().find(|(name, _)| *name == directory),
        None => ROOT.iter().find(|(name, _)| *name == path),
    };
    found.map(|(_, kind)| *kind)
}
