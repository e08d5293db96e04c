//! Real app configs pass `check` without an error, and all of their components become part of a version.

use std::path::{Path, PathBuf};

use freehold_appconfig::Diagnostic;
use freehold_appconfig::Diagnostics;
use freehold_appconfig::Fetched;
use freehold_appconfig::Loaded;
use freehold_appconfig::Severity;
use freehold_appconfig::check;
use freehold_appconfig::load_with;
use freehold_skips::skip;
use tempfile::TempDir;

/// Returns the directories of real apps; they are not part of the project, and where they are absent the test is
/// skipped.
pub(crate) fn real_apps() -> Option<Vec<PathBuf>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/appconfigs");
    let Ok(entries) = std::fs::read_dir(root) else {
        skip("no real app configs beside the project");
        return None;
    };
    let mut apps: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).filter(|path| path.is_dir()).collect();
    apps.sort();
    assert!(apps.len() >= 20, "only {} apps", apps.len());
    Some(apps)
}

#[test]
fn every_real_app_passes() {
    let Some(apps) = real_apps() else { return };

    let failed: Vec<String> = apps
        .iter()
        .flat_map(|app| {
            let found = check(app);
            found.iter().filter(|one| is_error(one)).map(|one| shown(app, one)).collect::<Vec<_>>()
        })
        .collect();

    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

#[test]
fn every_component_of_every_real_app_is_in_its_version() {
    let Some(apps) = real_apps() else { return };

    for app in apps {
        let loaded = load_whole(&app);

        let files = toml_files(&app.join("components"));
        assert_eq!(loaded.version.components.len(), files, "{}", app.display());
        // Commands of runbooks are actions too.
        let own = loaded.version.actions.iter().filter(|action| !action.description.contains("of runbook `"));
        assert_eq!(own.count(), toml_files(&app.join("actions")), "{}", app.display());
        assert_eq!(loaded.version.runbooks.len(), toml_files(&app.join("runbooks")), "{}", app.display());
        assert!(loaded.addresses.is_empty());
    }
}

#[test]
fn every_real_module_and_chart_is_read() {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/sources");
    if !sources.is_dir() {
        skip("no sources of real app configs beside the project");
        return;
    }
    let home = TempDir::new().unwrap();
    let app = home.path().join("real");
    std::fs::create_dir_all(app.join("components")).unwrap();
    std::fs::write(app.join("metadata.toml"), "version = \"v2\"\n").unwrap();
    let sandbox = "terraform_version = \"1\"\n[public_repo]\nrepo = \"acme/sandboxes\"\n";
    std::fs::write(app.join("sandbox.toml"), sandbox).unwrap();
    copy_tree(&sources, &app.join("sources"));
    let mut count = 0;
    for (folder, kind) in modules_and_charts(&app.join("sources")) {
        let source = folder.strip_prefix(&app).unwrap().display().to_string();
        let key = if kind == "helm_chart" { "chart_name" } else { "terraform_version" };
        let text = format!("name = \"c{count}\"\ntype = \"{kind}\"\n{key} = \"1\"\nsource = \"./{source}\"\n");
        std::fs::write(app.join(format!("components/c{count}.toml")), text).unwrap();
        count += 1;
    }

    let found = check(&app);

    // Values of variables belong to the configs, which are not here; some modules call the one around them. Few of these
    // modules pin their providers.
    let is_known = |one: &&Diagnostic| {
        ["needs variable", "is outside of the source", "needs a provider, and has no"]
            .iter()
            .any(|w| one.message.contains(w))
    };
    let wrong = found.iter().filter(|one| is_error(one) && !is_known(one));
    let wrong: Vec<String> = wrong.map(|one| shown(&app, one)).collect();
    assert!(count >= 70, "only {count} modules and charts");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Returns the directories below `folder` that hold a module or a chart.
fn modules_and_charts(folder: &Path) -> Vec<(PathBuf, &'static str)> {
    let mut found = Vec::new();
    let entries: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    let has = |end: &str| entries.iter().any(|path| path.to_string_lossy().ends_with(end));
    if has(".tf") {
        found.push((folder.to_owned(), "terraform_module"));
    }
    if has("/Chart.yaml") {
        found.push((folder.to_owned(), "helm_chart"));
    }
    found.extend(entries.iter().filter(|path| path.is_dir()).flat_map(|path| modules_and_charts(path)));
    found
}

/// Loads a copy of an app in which the files that the collection leaves out are there, with any text behind addresses.
fn load_whole(app: &Path) -> Loaded {
    let home = TempDir::new().unwrap();
    let copy = home.path().join(app.file_name().unwrap());
    copy_tree(app, &copy);
    let mut fetched = Fetched::new();
    for _ in 0..100 {
        match load_with(&copy, &fetched) {
            Ok(loaded) if loaded.addresses.is_empty() => return loaded,
            Ok(loaded) => fetched
                .extend(loaded.addresses.into_iter().map(|address| (address, "apiVersion: v1\nkind: X\n".to_owned()))),
            Err(found) => assert!(add_left_out(&copy, &found), "{}: {found}", app.display()),
        }
    }
    panic!("{} is never whole", app.display());
}

/// Creates the files whose absence is an error; returns whether there was any other error.
fn add_left_out(app: &Path, found: &Diagnostics) -> bool {
    let errors: Vec<&Diagnostic> = found.iter().filter(|one| is_error(one)).collect();
    let paths: Vec<&str> = errors.iter().filter_map(|one| left_out(one)).collect();
    for path in &paths {
        let path = app.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, "x\n").unwrap();
    }
    paths.len() == errors.len()
}

fn is_error(one: &Diagnostic) -> bool {
    one.severity == Severity::Error
}

/// Returns the path that an error misses below `src/`, which is left out of the collection.
fn left_out(one: &Diagnostic) -> Option<&str> {
    one.message.strip_prefix('`')?.strip_suffix("` cannot be read: directory `src` does not exist")
}

fn shown(app: &Path, one: &Diagnostic) -> String {
    format!("{}/{}:{}:{}: {}", app.display(), one.file, one.line, one.column, one.message)
}

fn toml_files(dir: &Path) -> usize {
    let Ok(entries) = std::fs::read_dir(dir) else { return 0 };
    let paths = entries.map(|entry| entry.unwrap().path());
    paths
        .map(|path| {
            if path.is_dir() {
                toml_files(&path)
            } else {
                usize::from(path.extension().is_some_and(|extension| extension == "toml"))
            }
        })
        .sum()
}

pub(crate) fn copy_tree(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy_tree(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}
