//! How a test in Rust says that it does not run: on stderr, and in the list with which `make test` ends.
//!
//! `tests/tests/skips.rs` refuses a test that returns early without this. Nothing that is shipped depends on it.

use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// Says that the running test is skipped, and why.
pub fn skip(reason: &str) {
    skip_as(&running_test(), reason);
}

/// Says that `test` is skipped, and why.
pub fn skip_as(test: &str, reason: &str) {
    let line = format!("SKIPPED {test}: {reason}");
    eprintln!("{line}");
    if let Some(path) = std::env::var_os("FREEHOLD_SKIPS")
        && let Err(error) = append(Path::new(&path), &line)
    {
        eprintln!("`FREEHOLD_SKIPS` names {}, which cannot be written: {error}", path.display());
    }
}

/// Returns whether every program is on `PATH`; of words with `|` between them any one is enough. Says that the running
/// test is skipped when one is missing.
pub fn have(programs: &[&str]) -> bool {
    let missing = lacking_on_path(programs);
    if let Some(program) = missing {
        skip(&format!("there is no `{program}` on PATH"));
    }
    missing.is_none()
}

/// Returns the first of `programs` that is not on `PATH`; of words with `|` between them any one is enough.
pub fn lacking_on_path<'a>(programs: &[&'a str]) -> Option<&'a str> {
    programs.iter().copied().find(|names| !names.split('|').any(|name| find_program(name).is_some()))
}

/// Returns where a program is on `PATH`.
pub fn find_program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).map(|folder| folder.join(name)).find(|program| program.is_file())
}

/// Returns the name of the test that runs on this thread, after its crate. The harness of Rust names threads by tests.
fn running_test() -> String {
    let thread = std::thread::current();
    let test = thread.name().unwrap_or("a test");
    match std::env::var("CARGO_PKG_NAME") {
        Ok(package) => format!("{package} {test}"),
        Err(_) => test.to_owned(),
    }
}

fn append(path: &Path, line: &str) -> std::io::Result<()> {
    let mut file = File::options().create(true).append(true).open(path)?;
    // In one call, since tests append at the same time.
    file.write_all(format!("{line}\n").as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_is_missing_is_named() {
        assert_eq!(lacking_on_path(&["sh", "no-such-program|sh"]), None);
        assert_eq!(lacking_on_path(&["sh", "no-such-program|nor-this"]), Some("no-such-program|nor-this"));
    }

    #[test]
    fn a_skip_names_the_running_test() {
        assert!(running_test().ends_with("tests::a_skip_names_the_running_test"), "{}", running_test());
    }

    #[test]
    fn skips_are_appended() {
        let file = std::env::temp_dir().join(format!("freehold-skips-{}", std::process::id()));

        append(&file, "SKIPPED one: why").unwrap();
        append(&file, "SKIPPED two: why").unwrap();

        assert_eq!(std::fs::read_to_string(&file).unwrap(), "SKIPPED one: why\nSKIPPED two: why\n");
        std::fs::remove_file(file).unwrap();
    }
}
