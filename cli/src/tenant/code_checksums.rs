//! Compares functions, and this program, with the checksums of the release that the functions are in.

use std::collections::BTreeMap;
use std::path::Path;

use freehold_protocol::Digest;
use freehold_protocol::order::upgrade::listed;

use super::code::Code;
use crate::error::{Error, Result};

/// The checksums of a release: `make dist` writes them, and `ARCH/functions` and `ARCH/freehold` are beside them.
const SUMS: &str = "SHA256SUMS";
const WAY_OUT: &str = "make or unpack the release again, or pass another directory as `--functions DIR`";

/// The release that contains the functions, in relation to this program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Release {
    /// The release of this program.
    Own,
    /// A release that does not contain this program.
    Other,
    /// The functions have no checksums, or this program cannot be read.
    Unknown,
}

/// Returns the release of `code`, which was read from `directory`. Returns an error if the checksums of the release
/// differ from the code of a function, because the directory then contains zips of several builds. `program` returns
/// the digest of this program.
pub(super) fn of(directory: &Path, code: &[Code], program: impl FnOnce() -> Option<Digest>) -> Result<Release> {
    let Some((functions, sums)) = sums(directory)? else { return Ok(Release::Unknown) };
    let is_other =
        |one: &&Code| sums.get(&format!("{functions}{}.zip", one.function)) != Some(&one.digest.hex().to_owned());
    let others: Vec<&str> = code.iter().filter(is_other).map(|one| one.function).collect();
    if !others.is_empty() {
        let (shown, others) = (directory.display(), others.join(", "));
        let message = format!("`{shown}` has other code for {others} than `{SUMS}` of its release lists");
        return Err(Error::invalid(message).or(WAY_OUT));
    }
    let is_program = |path: &str| path.rsplit('/').next() == Some("freehold");
    Ok(match program() {
        None => Release::Unknown,
        Some(own) if sums.iter().any(|(path, digest)| is_program(path) && digest == own.hex()) => Release::Own,
        Some(_) => Release::Other,
    })
}

/// Returns the beginning of the paths of the functions in their release, such as `arm64/functions/`, and the checksums
/// of the release by path; nothing if there are no checksums for this directory.
fn sums(directory: &Path) -> Result<Option<(String, BTreeMap<String, String>)>> {
    let Ok(directory) = std::path::absolute(directory) else { return Ok(None) };
    let mut places = directory.ancestors();
    let (Some(_), Some(architecture), Some(release)) = (places.next(), places.next(), places.next()) else {
        return Ok(None);
    };
    let file = release.join(SUMS);
    let name = |path: &Path| path.file_name().map(|name| name.to_string_lossy().into_owned());
    let (Some(architecture), Some(directory), true) = (name(architecture), name(&directory), file.is_file()) else {
        return Ok(None);
    };
    let text = crate::file::read_text(&file, WAY_OUT)?;
    let sums: BTreeMap<String, String> =
        listed(&text).map(|(digest, path)| (path.to_owned(), digest.to_owned())).collect();
    let functions = format!("{architecture}/{directory}/");
    Ok(sums.keys().any(|path| path.starts_with(&functions)).then_some((functions, sums)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROGRAM: &[u8] = b"program";

    fn code(functions: &[(&'static str, &[u8])]) -> Vec<Code> {
        let made = |(function, bytes): &(&'static str, &[u8])| {
            let bytes = bytes.to_vec();
            Code { function, digest: Digest::of(&bytes), bytes }
        };
        functions.iter().map(made).collect()
    }

    /// Returns the release of two functions in a release with these checksums.
    fn of_two(sums: &str) -> Result<Release> {
        let place = tempfile::tempdir().unwrap();
        let directory = place.path().join("arm64/functions");
        std::fs::create_dir_all(&directory).unwrap();
        std::fs::write(place.path().join(SUMS), sums).unwrap();
        of(&directory, &code(&[("api", b"a"), ("sweep", b"s")]), || Some(Digest::of(PROGRAM)))
    }

    fn lines(files: &[(&str, &[u8])]) -> String {
        files.iter().map(|(path, bytes)| format!("{}  {path}\n", Digest::of(bytes).hex())).collect()
    }

    #[test]
    fn functions_are_of_this_programs_release_when_its_checksums_have_both() {
        let functions: [(&str, &[u8]); 2] = [("arm64/functions/api.zip", b"a"), ("arm64/functions/sweep.zip", b"s")];
        let with = |more: &[(&str, &[u8])]| of_two(&lines(&[&functions, more].concat())).unwrap();

        assert_eq!(with(&[("x86_64/freehold", PROGRAM)]), Release::Own);
        assert_eq!(with(&[("x86_64/freehold", b"older"), ("x86_64/freehold-runner", PROGRAM)]), Release::Other);
        assert_eq!(of_two(&lines(&[("x86_64/freehold", PROGRAM)])).unwrap(), Release::Unknown);
    }

    #[test]
    fn functions_of_several_builds_are_refused_by_name() {
        let files: [(&str, &[u8]); 2] = [("arm64/functions/api.zip", b"a"), ("arm64/functions/sweep.zip", b"older")];

        let error = of_two(&lines(&files)).unwrap_err();

        assert_eq!(error.kind().exit_code(), 2);
        let text = error.to_string();
        assert!(
            text.contains("/arm64/functions` has other code for sweep than `SHA256SUMS` of its release lists; make"),
            "{text}"
        );
    }

    #[test]
    fn without_checksums_nothing_is_known() {
        let place = tempfile::tempdir().unwrap();
        let directory = place.path().join("arm64/functions");

        assert_eq!(of(&directory, &code(&[("api", b"a")]), || None).unwrap(), Release::Unknown);
        assert_eq!(of(Path::new("/"), &[], || None).unwrap(), Release::Unknown);
    }
}
