//! Real app configs pass `check` without an error.

use std::path::{Path, PathBuf};

use freehold_appconfig::{Diagnostic, Severity, check};

/// Returns the directory of real apps; it is no part of the project, and where it is absent the test says so and ends.
pub(crate) fn real_apps() -> Option<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/appconfigs");
    root.is_dir().then_some(root)
}

#[test]
fn every_real_app_passes() {
    let Some(root) = real_apps() else {
        eprintln!("skipped: no real app configs beside the project");
        return;
    };
    let mut apps: Vec<PathBuf> =
        std::fs::read_dir(root).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_dir()).collect();
    apps.sort();

    let failed: Vec<String> = apps
        .iter()
        .flat_map(|app| check(app).iter().filter(|one| is_fault(one)).map(|one| said(app, one)).collect::<Vec<_>>())
        .collect();

    assert!(apps.len() >= 20, "only {} apps", apps.len());
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

/// Whether the mistake is one of the config; files below `src/` are left out of the collection.
fn is_fault(one: &Diagnostic) -> bool {
    let left_out = one.message.starts_with("`./src/");
    one.severity == Severity::Error && !(left_out && one.message.ends_with("it does not exist"))
}

fn said(app: &Path, one: &Diagnostic) -> String {
    format!("{}/{}:{}:{}: {}", app.display(), one.file, one.line, one.column, one.message)
}
