//! Finds the directory with the code of the functions when `--functions` does not name one, and checks whether the code
//! is of the same build as this program.

use std::path::{Path, PathBuf};

use freehold_protocol::Digest;

use super::code::{self, Code, WAY_OUT};
use super::code_checksums::{self, Release};
use crate::error::{Error, Kind, Result};
use crate::output::note;

/// Returns the code in the directory `named`, or else in the directory that [`find`] finds. Code that this program
/// found itself is refused if it is of another build, because the stack template in this program fits only the
/// functions of its own build.
pub(super) fn code(named: Option<&Path>) -> Result<Vec<Code>> {
    let directory = named.map_or_else(find, |directory| Ok(directory.to_owned()))?;
    let code = code::find(&directory)?;
    let program = || Some(Digest::of(&std::fs::read(std::env::current_exe().ok()?).ok()?));
    if let Some(remark) = remark(code_checksums::of(&directory, &code, program)?, &directory, named.is_some())? {
        note(&remark);
    }
    Ok(code)
}

/// Returns the note for the user about code that is from `release`, or an error if such code must not be deployed.
fn remark(release: Release, directory: &Path, is_named: bool) -> Result<Option<String>> {
    let shown = directory.display();
    let other = format!(
        "the functions in `{shown}` are from another build than this program: `SHA256SUMS` of their release does not list this program"
    );
    match (release, is_named) {
        (Release::Own | Release::Unknown, true) => Ok(None),
        (Release::Own, false) => {
            Ok(Some(format!("deploying the functions in `{shown}`, of the same release as this program")))
        }
        (Release::Unknown, false) => Ok(Some(format!(
            "warning: deploying the functions in `{shown}`, which may be of another build than this program: their \
             release is not known, because they have no `SHA256SUMS` as `make dist` writes it"
        ))),
        (Release::Other, true) => Ok(Some(format!("warning: {other}"))),
        (Release::Other, false) => Err(Error::invalid(other)
            .or(format!("run the `freehold` of that release, or pass `--functions {shown}` to deploy them anyway"))),
    }
}

/// Returns the directory of the release that this program belongs to, or else the directory that a build wrote below
/// the current directory.
fn find() -> Result<PathBuf> {
    first_with_code(candidates(std::env::current_exe().ok().as_deref()))
}

/// Returns the directories in which functions may be, for a program at `program`. A release has `ARCH/freehold` and
/// `ARCH/functions` (`infra/dist`). Functions for arm64 come first, because Lambda charges less for them.
fn candidates(program: Option<&Path>) -> Vec<PathBuf> {
    let mut all = Vec::new();
    if let Some(directory) = program.and_then(Path::parent) {
        all.extend(directory.parent().map(|release| release.join("arm64/functions")));
        all.push(directory.join("functions"));
        all.dedup();
    }
    let built =
        ["target/dist/arm64/functions", "target/dist/x86_64/functions", "target/lambda/arm64", "target/lambda/x86_64"];
    all.extend(built.map(PathBuf::from));
    all
}

fn first_with_code(candidates: Vec<PathBuf>) -> Result<PathBuf> {
    if let Some(found) = candidates.iter().find(|directory| code::has_any(directory)) {
        return Ok(found.clone());
    }
    let looked: Vec<String> = candidates.iter().map(|directory| format!("`{}`", directory.display())).collect();
    let message = format!("the code of the functions was not found; no zip of a function is in {}", looked.join(", "));
    Err(Error::quoting(Kind::Invalid, message).or(WAY_OUT))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_code(directory: &Path) {
        std::fs::create_dir_all(directory).unwrap();
        std::fs::write(directory.join("api.zip"), "PK").unwrap();
    }

    #[test]
    fn the_functions_of_an_unpacked_release_are_found_beside_the_program() {
        let place = tempfile::tempdir().unwrap();
        let program = place.path().join("x86_64/freehold");
        let find = || first_with_code(candidates(Some(&program))).unwrap();

        with_code(&place.path().join("x86_64/functions"));
        let own = find();
        with_code(&place.path().join("arm64/functions"));
        let both = find();

        assert_eq!(own, place.path().join("x86_64/functions"));
        assert_eq!(both, place.path().join("arm64/functions"));
    }

    #[test]
    fn the_functions_that_a_build_in_the_tree_wrote_are_found_after_those_of_the_release() {
        let all = candidates(Some(Path::new("/opt/freehold/arm64/freehold")));

        let paths: Vec<&str> = all.iter().filter_map(|directory| directory.to_str()).collect();
        let expected = [
            "/opt/freehold/arm64/functions",
            "target/dist/arm64/functions",
            "target/dist/x86_64/functions",
            "target/lambda/arm64",
            "target/lambda/x86_64",
        ];
        assert_eq!(paths, expected);
    }

    #[test]
    fn without_any_code_each_directory_that_was_looked_into_is_named() {
        let place = tempfile::tempdir().unwrap();
        let directories = ["one", "two"].map(|name| place.path().join(name));

        let error = first_with_code(directories.to_vec()).unwrap_err();

        let [one, two] = directories.each_ref().map(|directory| directory.display());
        assert_eq!(error.kind().exit_code(), 2);
        assert_eq!(
            error.to_string(),
            format!("the code of the functions was not found; no zip of a function is in `{one}`, `{two}`; {WAY_OUT}")
        );
    }

    #[test]
    fn code_that_may_not_fit_this_program_is_deployed_with_a_warning_or_only_when_it_is_named() {
        let directory = Path::new("target/dist/arm64/functions");
        let message_of = |release, is_named| match remark(release, directory, is_named) {
            Ok(remark) => remark.unwrap_or_default(),
            Err(error) => format!("error: {error}"),
        };

        assert_eq!([message_of(Release::Own, true), message_of(Release::Unknown, true)], [""; 2]);
        insta::assert_snapshot!(message_of(Release::Own, false), @"deploying the functions in `target/dist/arm64/functions`, of the same release as this program");
        insta::assert_snapshot!(message_of(Release::Unknown, false), @"warning: deploying the functions in `target/dist/arm64/functions`, which may be of another build than this program: their release is not known, because they have no `SHA256SUMS` as `make dist` writes it");
        insta::assert_snapshot!(message_of(Release::Other, true), @"warning: the functions in `target/dist/arm64/functions` are from another build than this program: `SHA256SUMS` of their release does not list this program");
        insta::assert_snapshot!(message_of(Release::Other, false), @"error: the functions in `target/dist/arm64/functions` are from another build than this program: `SHA256SUMS` of their release does not list this program; run the `freehold` of that release, or pass `--functions target/dist/arm64/functions` to deploy them anyway");
    }
}
