//! Reads and writes the files of commands. A file is written completely or not at all. It replaces an existing file only when the
//! user allows it.

use std::fs::{DirEntry, File};
use std::io::{ErrorKind, Read as _, Write as _};
use std::path::Path;

use tempfile::NamedTempFile;

use crate::error::{Error, Result, ResultExt};
use crate::output::bytes;

/// The maximum size of a file that a command reads into memory, in bytes.
const MAX_BYTES: u64 = 64 * 1024 * 1024;

/// The advice about a directory that is not a copy of an install's audit records.
pub(crate) const COPY_OF_AUDIT: &str = "copy all objects below `audit/` of the install's bucket into a directory, and pass its path; `freehold customer audit \
     verify --help` shows how to copy them";

/// Returns the content of a file that the user names. `way_out` is the advice in the error about a path that does not
/// exist, is a directory, or is too large: the advice states which file to pass.
pub(crate) fn read(path: &Path, way_out: &str) -> Result<Vec<u8>> {
    read_at_most(path, MAX_BYTES, way_out)
}

/// Returns the text of a file that the user names, as [`read`] does.
pub(crate) fn read_text(path: &Path, way_out: &str) -> Result<String> {
    read_text_at_most(path, MAX_BYTES, way_out)
}

/// Returns the text of a file of at most `most` bytes, as [`read`] does.
pub(crate) fn read_text_at_most(path: &Path, most: u64, way_out: &str) -> Result<String> {
    String::from_utf8(read_at_most(path, most, way_out)?).map_err(|error| {
        let at = error.utf8_error().valid_up_to() + 1;
        Error::invalid(format!("`{}` is not text: byte {at} is not UTF-8", path.display())).or(way_out)
    })
}

/// Returns the entries of a directory that the user names. `way_out` states which directory to pass.
pub(crate) fn entries(directory: &Path, way_out: &str) -> Result<Vec<DirEntry>> {
    let shown = directory.display();
    let failed = |error: std::io::Error| match error.kind() {
        ErrorKind::NotFound => Error::invalid(format!("there is no directory `{shown}`")).or(way_out),
        ErrorKind::NotADirectory => Error::invalid(format!("`{shown}` is a file, and not a directory")).or(way_out),
        ErrorKind::PermissionDenied => unreadable(directory, &error),
        _ => Error::invalid(format!("cannot read the directory `{shown}`: {error}")).or(way_out),
    };
    std::fs::read_dir(directory).map_err(failed)?.map(|entry| entry.map_err(failed)).collect()
}

fn unreadable(path: &Path, error: &std::io::Error) -> Error {
    Error::invalid(format!("cannot read `{}`: {error}", path.display()))
        .or("let this user read it, or pass a copy of it")
}

/// Returns the content of a file of at most `most` bytes, as [`read`] does.
pub(crate) fn read_at_most(path: &Path, most: u64, way_out: &str) -> Result<Vec<u8>> {
    let shown = path.display();
    let failed = |error: std::io::Error| match error.kind() {
        ErrorKind::NotFound => Error::invalid(format!("there is no file `{shown}`")).or(way_out),
        ErrorKind::IsADirectory => Error::invalid(format!("`{shown}` is a directory")).or(way_out),
        ErrorKind::PermissionDenied => unreadable(path, &error),
        _ => Error::invalid(format!("cannot read `{shown}`: {error}")).or(way_out),
    };
    let mut content = Vec::new();
    let file = File::open(path).map_err(failed)?;
    file.take(most.saturating_add(1)).read_to_end(&mut content).map_err(failed)?;
    if u64::try_from(content.len()).unwrap_or(u64::MAX) > most {
        return Err(Error::invalid(format!("`{shown}` has more than {}", bytes(most))).or(way_out));
    }
    Ok(content)
}

/// Refuses a path at which a file with another text exists, unless `force` is true. Writes nothing: callers use this
/// function before effects that cannot be undone.
pub(crate) fn may_create(path: &Path, text: &str, force: bool) -> Result<()> {
    let is_free = path.symlink_metadata().is_err_and(|error| error.kind() == ErrorKind::NotFound);
    if force || is_free || has(path, text) { Ok(()) } else { Err(exists(path)) }
}

fn has(path: &Path, text: &str) -> bool {
    std::fs::read(path).is_ok_and(|there| there == text.as_bytes())
}

/// Writes a new file. Without `force`, an existing file is not replaced, and is an error unless it has the same text.
pub(crate) fn create(path: &Path, text: &str, force: bool) -> Result<()> {
    if force {
        return replace(path, text);
    }
    match beside(path, text)?.persist_noclobber(path) {
        Ok(_) => Ok(()),
        Err(error) if error.error.kind() == ErrorKind::AlreadyExists => {
            if has(path, text) {
                Ok(())
            } else {
                Err(exists(path))
            }
        }
        Err(error) => Err(error.error).doing(writing(path)),
    }
}

/// Refuses a path at which a file exists. Writes nothing: callers use this function before a long work.
pub(crate) fn must_be_free(path: &Path) -> Result<()> {
    let is_free = path.symlink_metadata().is_err_and(|error| error.kind() == ErrorKind::NotFound);
    if is_free { Ok(()) } else { Err(exists(path).or("name another file")) }
}

/// Writes a new file that only this user can read. An existing file is an error.
pub(crate) fn create_secret(path: &Path, content: impl AsRef<[u8]>) -> Result<()> {
    match beside_with(path, content.as_ref(), 0o600)?.persist_noclobber(path) {
        Ok(_) => Ok(()),
        Err(error) if error.error.kind() == ErrorKind::AlreadyExists => Err(exists(path).or("name another file")),
        Err(error) => Err(error.error).doing(writing(path)),
    }
}

/// Writes several files, as [`create`] does. If one of the files may not be written, none is written.
pub(crate) fn create_all<P: AsRef<Path>, T: AsRef<str>>(files: &[(P, T)], force: bool) -> Result<()> {
    for (path, text) in files {
        may_create(path.as_ref(), text.as_ref(), force)?;
    }
    files.iter().try_for_each(|(path, text)| create(path.as_ref(), text.as_ref(), force))
}

/// Writes a file and replaces an existing file of that name.
pub(crate) fn replace(path: &Path, text: &str) -> Result<()> {
    if path.is_dir() {
        return Err(exists(path));
    }
    beside(path, text)?.persist(path).map_err(|error| error.error).doing(writing(path))?;
    Ok(())
}

/// Writes the text to a temporary file in the directory of `path`. The caller renames it to `path`, so a reader never
/// sees a partly written file.
fn beside(path: &Path, text: &str) -> Result<NamedTempFile> {
    beside_with(path, text.as_bytes(), 0o666)
}

fn beside_with(path: &Path, content: &[u8], mode: u32) -> Result<NamedTempFile> {
    let directory = path.parent().filter(|directory| !directory.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if !directory.is_dir() {
        let (shown, directory) = (path.display(), directory.display());
        return Err(Error::invalid(format!(
            "cannot write `{shown}`: there is no directory `{directory}`; make it, or name another file"
        )));
    }
    let mut options = tempfile::Builder::new();
    #[cfg(unix)]
    options.permissions(std::os::unix::fs::PermissionsExt::from_mode(mode));
    #[cfg(not(unix))]
    let _ = mode;
    // The error of `tempfile` names the temporary file, which the user does not know.
    let plain = |error: std::io::Error| std::io::Error::from(error.kind());
    let mut file = options.tempfile_in(directory).map_err(plain).doing(writing(path))?;
    file.write_all(content).doing(writing(path))?;
    file.as_file().sync_all().doing(writing(path))?;
    Ok(file)
}

fn writing(path: &Path) -> String {
    format!("write `{}`", path.display())
}

fn exists(path: &Path) -> Error {
    let shown = path.display();
    if path.is_dir() {
        return Error::invalid(format!("`{shown}` is a directory; name a file"));
    }
    Error::conflict(format!("`{shown}` exists and was left as it is"))
        .or("name another file, or pass `--force` to replace it")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_not_there_has_a_way_out() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("globex.yaml");

        let error_of = |path: &Path| read(path, "ask the vendor for it").unwrap_err().to_string();

        assert_eq!(error_of(&path), format!("there is no file `{}`; ask the vendor for it", path.display()));
        let place = directory.path().display();
        assert_eq!(error_of(directory.path()), format!("`{place}` is a directory; ask the vendor for it"));
        std::fs::write(&path, "text").unwrap();
        assert_eq!(read(&path, "").unwrap(), b"text");
    }

    #[test]
    fn a_file_that_is_not_text_is_named_with_the_place_and_the_way_out() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("tools.toml");
        std::fs::write(&path, b"ok\n\xff\xfe").unwrap();

        let refused = read_text(&path, "write it again").unwrap_err();

        let expected = format!("`{}` is not text: byte 4 is not UTF-8; write it again", path.display());
        assert_eq!((refused.kind().exit_code(), refused.to_string()), (2, expected));
        std::fs::write(&path, "text").unwrap();
        assert_eq!(read_text(&path, "").unwrap(), "text");
    }

    #[test]
    fn a_directory_that_is_not_one_is_named_with_the_way_out() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("audit.json");
        std::fs::write(&file, "{}").unwrap();

        let error_of = |path: &Path| entries(path, "copy `audit/` into it").unwrap_err().to_string();

        let absent = directory.path().join("audit");
        assert_eq!(error_of(&absent), format!("there is no directory `{}`; copy `audit/` into it", absent.display()));
        assert_eq!(
            error_of(&file),
            format!("`{}` is a file, and not a directory; copy `audit/` into it", file.display())
        );
        assert_eq!(entries(directory.path(), "").unwrap().len(), 1);
    }

    #[test]
    fn a_file_that_is_too_large_is_refused_before_it_is_read_whole() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("globex.yaml");
        std::fs::write(&path, "text").unwrap();

        let refused = read_at_most(&path, 3, "ask the vendor for it").unwrap_err().to_string();

        assert_eq!(refused, format!("`{}` has more than 3 B; ask the vendor for it", path.display()));
        assert_eq!(read_at_most(&path, 4, "").unwrap(), b"text");
        // A sparse file takes no space on the disk.
        File::create(&path).unwrap().set_len(600_000_000).unwrap();
        assert!(read(&path, "").unwrap_err().to_string().contains("has more than 64.00 MiB"));
    }

    #[test]
    fn a_file_is_replaced_only_when_that_is_asked_for() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("runner.toml");
        std::fs::write(&path, "mine\n").unwrap();

        let refused = create(&path, "theirs\n", false).unwrap_err();

        assert_eq!(refused.kind().exit_code(), 4);
        assert!(refused.to_string().ends_with("name another file, or pass `--force` to replace it"), "{refused}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "mine\n");
        assert_eq!(may_create(&path, "theirs\n", false), Err(refused));
        create(&path, "mine\n", false).unwrap();
        create(&path, "theirs\n", true).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "theirs\n");
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1, "a temporary file is left");
    }

    #[test]
    fn a_path_that_cannot_be_written_is_named_without_the_temporary_file() {
        let directory = tempfile::tempdir().unwrap();
        let (missing, file) = (directory.path().join("none"), directory.path().join("none/globex.yaml"));

        let no_directory = create(&file, "", false).unwrap_err().to_string();
        let is_directory = [false, true].map(|force| create(directory.path(), "", force).unwrap_err());

        let (file, missing, place) = (file.display(), missing.display(), directory.path().display());
        let expected =
            format!("cannot write `{file}`: there is no directory `{missing}`; make it, or name another file");
        assert_eq!(no_directory, expected);
        for error in is_directory {
            assert_eq!(error.to_string(), format!("`{place}` is a directory; name a file"));
            assert_eq!(error.kind().exit_code(), 2);
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_new_file_has_the_rights_of_any_new_file() {
        use std::os::unix::fs::PermissionsExt;

        let directory = tempfile::tempdir().unwrap();
        let (ours, usual) = (directory.path().join("ours"), directory.path().join("usual"));
        std::fs::write(&usual, "").unwrap();

        create(&ours, "", false).unwrap();

        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode();
        assert_eq!(mode(&ours), mode(&usual));
    }
}
