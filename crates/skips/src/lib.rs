//! Lets a test in Rust report that it is skipped: on stderr, and in the list that `make test` prints at its end.
//!
//! `tests/house/tests/skips.rs` refuses a test that returns early without calling this crate. Only tests depend on this
//! crate.

use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The program that makes the boxes of jobs. It may be on `PATH` although it cannot make a box, for example when the
/// machine forbids namespaces.
const BWRAP: &str = "bwrap";

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

/// Returns whether every program works on this machine. An element such as `terraform|tofu` needs only one of the two.
/// When a program does not, reports that the running test is skipped.
pub fn have(programs: &[&str]) -> bool {
    let lacking = lacking(programs);
    if let Some(reason) = &lacking {
        skip(reason);
    }
    lacking.is_none()
}

/// Returns why a test that needs `programs` cannot run on this machine: a program is not on `PATH`, or `bwrap` is and
/// cannot make a box. An element such as `terraform|tofu` needs only one program.
pub fn lacking(programs: &[&str]) -> Option<String> {
    if let Some(program) = lacking_on_path(programs) {
        return Some(format!("there is no `{program}` on PATH"));
    }
    programs.contains(&BWRAP).then(|| find_program(BWRAP)).flatten().and_then(|bwrap| no_box(&bwrap))
}

/// Returns why `bwrap` cannot make a box, for example because the machine forbids user namespaces.
fn no_box(bwrap: &Path) -> Option<String> {
    let made = Command::new(bwrap).args(["--ro-bind", "/", "/", "--unshare-user", "true"]).output();
    let reason = match made {
        Ok(made) if made.status.success() => return None,
        Ok(made) => String::from_utf8_lossy(&made.stderr).trim().to_owned(),
        Err(error) => error.to_string(),
    };
    Some(format!("`bwrap` cannot make a box on this machine: {reason}"))
}

/// Returns the first of `programs` that is not on `PATH`.
fn lacking_on_path<'a>(programs: &[&'a str]) -> Option<&'a str> {
    programs.iter().copied().find(|names| !names.split('|').any(|name| find_program(name).is_some()))
}

/// Returns the path of the program `name`, searched on `PATH`.
pub fn find_program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).map(|directory| directory.join(name)).find(|program| program.is_file())
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

    #[cfg(unix)]
    #[test]
    fn a_bwrap_that_makes_no_box_is_lacking_with_what_it_says() {
        use std::os::unix::fs::PermissionsExt as _;

        let file = std::env::temp_dir().join(format!("freehold-bwrap-{}", std::process::id()));
        std::fs::write(&file, "#!/bin/sh\necho 'bwrap: No permissions to create new namespace' >&2\nexit 1\n").unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();

        let reason = no_box(&file).unwrap();

        std::fs::remove_file(&file).unwrap();
        assert_eq!(reason, "`bwrap` cannot make a box on this machine: bwrap: No permissions to create new namespace");
        assert!(no_box(&file).unwrap().starts_with("`bwrap` cannot make a box"));
        assert_eq!(no_box(&find_program("true").unwrap()), None);
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
