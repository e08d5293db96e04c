//! Lets a test in Rust report that it is skipped: on stderr, and in the list that `make test` prints at its end.
//!
//! `tests/tests/skips.rs` refuses a test that returns early without calling this crate. Only tests depend on this
//! crate.

use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// Reports that the running test is skipped, with the reason.
pub fn skip(reason: &str) {
    skip_as(&running_test(), reason);
}

/// Reports that `test` is skipped, with the reason.
pub fn skip_as(test: &str, reason: &str) {
    let line = format!("SKIPPED {test}: {reason}");
    eprintln!("{line}");
    if let Some(path) = std::env::var_os("FREEHOLD_SKIPS")
        && let Err(error) = append(Path::new(&path), &line)
    {
        eprintln!("`FREEHOLD_SKIPS` names {}, which cannot be written: {error}", path.display());
    }
}

/// Returns whether every program is on `PATH`. An element such as `terraform|tofu` needs only one of the two. When a
/// program is missing, reports that the running test is skipped.
pub fn have(programs: &[&str]) -> bool {
    let missing = lacking_on_path(programs);
    if let Some(program) = missing {
        skip(&format!("there is no `{program}` on PATH"));
    }
    missing.is_none()
}

/// Returns the first of `programs` that is not on `PATH`. An element such as `terraform|tofu` needs only one program.
pub fn lacking_on_path<'a>(programs: &[&'a str]) -> Option<&'a str> {
    programs.iter().copied().find(|names| !names.split('|').any(|name| find_program(name).is_some()))
}

/// Returns the path of the program `name`, searched on `PATH`.
pub fn find_program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).map(|folder| folder.join(name)).find(|program| program.is_file())
}

/// Returns the names of the crate and of the running test. Rust's test harness gives each thread the name of its test.
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
    // One call writes the whole line, because several tests append at the same time.
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
