//! Reads the package of a provider, with its program: a zip file in the format of provider registries, or its files.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read, Seek as _, Write};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Component, Path};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use freehold_protocol::digest::hex;
use sha2::{Digest as _, Sha256};
use zip::ZipArchive;
use zip::result::ZipError;

/// The size limit of a package, in bytes. The largest known package has about 200 MB.
pub const MAX_PACKED: u64 = 1024 * 1024 * 1024;
/// The limits of an unpacked provider, in bytes and in files.
const MAX_UNPACKED: u64 = 4 * MAX_PACKED;
const MAX_FILES: usize = 10_000;

/// The reason why the package of a provider cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ProviderZipError {
    #[error("it is not a zip")]
    Zip(#[from] ZipError),
    #[error("entry `{0}` is not a regular file inside the package")]
    NotPlain(String),
    #[error("it holds more than {MAX_UNPACKED} bytes or {MAX_FILES} files")]
    TooLarge,
    #[error("its hash `{0}` is not in the lock file of the module")]
    NotLocked(String),
    #[error("it cannot be read or unpacked")]
    Io(#[from] io::Error),
}

/// Unpacks the package at `zip` into the empty directory `into`.
///
/// # Errors
/// A [`ProviderZipError`]. The files that were unpacked before the error stay in `into`.
pub fn unpack(zip: &Path, into: &Path) -> Result<(), ProviderZipError> {
    for_each_file(zip, |name, is_program, content| {
        io::copy(content, &mut create(&into.join(name), is_program)?)?;
        Ok(())
    })
}

/// Copies the files of an unpacked package into the empty directory `into`. `files` has them by their names in the
/// package. Returns the hash of the copy, as [`hash`] does.
///
/// Each copy is executable: the hash does not cover modes, and the program of a job may have changed those of `files`.
///
/// # Errors
/// A [`ProviderZipError`]. The files that were copied before the error stay in `into`.
pub(super) fn copy(files: &BTreeMap<String, File>, into: &Path) -> Result<String, ProviderZipError> {
    let (mut digests, mut left) = (BTreeMap::new(), MAX_UNPACKED);
    for (name, file) in files {
        if !is_plain(name) {
            return Err(ProviderZipError::NotPlain(name.clone()));
        }
        let mut file: &File = file;
        let mut copy = create(&into.join(name), true)?;
        file.rewind()?;
        left = left.saturating_sub(io::copy(&mut file.take(left), &mut copy)?);
        if left == 0 {
            return Err(ProviderZipError::TooLarge);
        }
        copy.rewind()?;
        digests.insert(name.clone(), digest(&mut copy)?);
    }
    Ok(hash_of(&digests))
}

/// Creates a file and the directories above it.
fn create(path: &Path, is_program: bool) -> io::Result<File> {
    path.parent().map_or(Ok(()), std::fs::create_dir_all)?;
    let mut options = std::fs::OpenOptions::new();
    options.read(true).write(true).create_new(true).mode(if is_program { 0o755 } else { 0o644 });
    options.open(path)
}

/// Returns the hash of the package at `zip` as Terraform's lock files have it: with the prefix `h1:`. The algorithm is
/// `Hash1` of Go's `golang.org/x/mod/sumdb/dirhash`.
///
/// # Errors
/// A [`ProviderZipError`].
pub fn hash(zip: &Path) -> Result<String, ProviderZipError> {
    let mut digests = BTreeMap::new();
    for_each_file(zip, |name, _, content| {
        digests.insert(name.to_owned(), digest(content)?);
        Ok(())
    })?;
    Ok(hash_of(&digests))
}

fn digest(content: &mut dyn Read) -> io::Result<String> {
    let mut hash = Sha256::new();
    io::copy(content, &mut HashWriter(&mut hash))?;
    Ok(hex(hash.finalize().as_slice()))
}

/// Returns the hash of the files that have these SHA-256 digests, by their names.
fn hash_of(digests: &BTreeMap<String, String>) -> String {
    let mut all = Sha256::new();
    for (name, digest) in digests {
        all.update(format!("{digest}  {name}\n"));
    }
    format!("h1:{}", STANDARD.encode(all.finalize()))
}

fn for_each_file(
    zip: &Path,
    mut with: impl FnMut(&str, bool, &mut dyn Read) -> Result<(), ProviderZipError>,
) -> Result<(), ProviderZipError> {
    let mut archive = ZipArchive::new(File::open(zip)?)?;
    if archive.len() > MAX_FILES {
        return Err(ProviderZipError::TooLarge);
    }
    let mut left = MAX_UNPACKED;
    for number in 0..archive.len() {
        let mut entry = archive.by_index(number)?;
        let name = entry.name().to_owned();
        if !is_plain(&name) || entry.is_symlink() {
            return Err(ProviderZipError::NotPlain(name));
        }
        if entry.is_dir() {
            continue;
        }
        // A zip file from Windows does not have Unix permissions. Its files become executable.
        let is_program = entry.unix_mode().is_none_or(|mode| mode & 0o111 != 0);
        // The size in the archive's directory can be false, so the limit applies to the bytes that are read.
        let mut content = (&mut entry).take(left);
        with(&name, is_program, &mut content)?;
        left = content.limit();
        if left == 0 {
            return Err(ProviderZipError::TooLarge);
        }
    }
    Ok(())
}

/// Returns whether a name stays inside the package and has no control character. The hash of a file with a line break
/// in its name could be that of several files.
fn is_plain(name: &str) -> bool {
    let mut parts = Path::new(name).components();
    let is_text = !name.is_empty() && !name.contains('\\') && !name.contains(char::is_control);
    is_text && parts.all(|part| matches!(part, Component::Normal(_)))
}

struct HashWriter<'a>(&'a mut Sha256);

impl Write for HashWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use zip::write::SimpleFileOptions;

    use super::*;

    fn pack(path: &Path, files: &[(&str, &[u8], u32)]) {
        let mut zip = zip::ZipWriter::new(File::create(path).unwrap());
        for (name, content, mode) in files {
            zip.start_file(*name, SimpleFileOptions::default().unix_permissions(*mode)).unwrap();
            zip.write_all(content).unwrap();
        }
        zip.finish().unwrap();
    }

    #[test]
    fn a_package_is_unpacked_with_its_program() {
        let directory = tempfile::tempdir().unwrap();
        let (zip, to) = (directory.path().join("a.zip"), directory.path().join("to"));
        pack(&zip, &[("terraform-provider-note_v1", b"program", 0o755), ("docs/README.md", b"text", 0o644)]);

        unpack(&zip, &to).unwrap();

        assert_eq!(std::fs::read(to.join("docs/README.md")).unwrap(), b"text");
        let mode = |name: &str| to.join(name).metadata().unwrap().permissions().mode() & 0o111;
        assert!(mode("terraform-provider-note_v1") != 0 && mode("docs/README.md") == 0);
    }

    /// The hash was made by `sha256sum a b | openssl dgst -sha256 -binary | base64`.
    #[test]
    fn the_hash_of_a_package_is_that_of_its_files_in_order() {
        let directory = tempfile::tempdir().unwrap();
        let zip = directory.path().join("a.zip");
        let files: [(&str, &[u8], u32); 2] = [("b", b"two\n", 0o755), ("a", b"one\n", 0o644)];
        pack(&zip, &files);
        let one = hash(&zip).unwrap();
        let [first, second] = files;
        pack(&zip, &[second, first]);

        assert_eq!(one, "h1:c9kx41MfEyR7vDoBCPzQwO9IAmCl51mA23+m4LxTGsQ=");
        assert_eq!(hash(&zip).unwrap(), one);
    }

    #[test]
    fn a_copy_has_the_hash_of_the_package_and_its_program() {
        let directory = tempfile::tempdir().unwrap();
        let (zip, unpacked, to) =
            (directory.path().join("a.zip"), directory.path().join("unpacked"), directory.path().join("to"));
        pack(&zip, &[("terraform-provider-note_v1", b"program", 0o755), ("docs/README.md", b"text", 0o644)]);
        unpack(&zip, &unpacked).unwrap();
        let open = |name: &str| (name.to_owned(), File::open(unpacked.join(name)).unwrap());
        let files: BTreeMap<String, File> = [open("terraform-provider-note_v1"), open("docs/README.md")].into();

        assert_eq!(copy(&files, &to).unwrap(), hash(&zip).unwrap());

        assert_eq!(std::fs::read(to.join("docs/README.md")).unwrap(), b"text");
        let out: BTreeMap<String, File> = [("../out".to_owned(), File::open(&zip).unwrap())].into();
        assert!(matches!(copy(&out, &to), Err(ProviderZipError::NotPlain(name)) if name == "../out"));
    }

    #[test]
    fn the_copy_of_a_program_is_executable_whatever_a_job_did_to_its_file() {
        let directory = tempfile::tempdir().unwrap();
        let (file, to) = (directory.path().join("program"), directory.path().join("to"));
        std::fs::write(&file, "program").unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
        let files: BTreeMap<String, File> = [("program".to_owned(), File::open(&file).unwrap())].into();

        copy(&files, &to).unwrap();

        assert_eq!(to.join("program").metadata().unwrap().permissions().mode() & 0o500, 0o500);
    }

    #[test]
    fn a_name_with_a_line_break_cannot_stand_for_two_files() {
        let directory = tempfile::tempdir().unwrap();
        let (zip, to) = (directory.path().join("a.zip"), directory.path().join("to"));
        let name = format!("LICENSE\n{}  program", "0".repeat(64));
        pack(&zip, &[(&name, b"x", 0o644)]);
        let files: BTreeMap<String, File> = [(name.clone(), File::open(&zip).unwrap())].into();

        assert!(matches!(copy(&files, &to), Err(ProviderZipError::NotPlain(refused)) if refused == name));
        assert!(matches!(hash(&zip), Err(ProviderZipError::NotPlain(refused)) if refused == name));
    }

    #[test]
    fn nothing_is_written_outside_and_no_link_is_made() {
        let directory = tempfile::tempdir().unwrap();
        let (zip, to) = (directory.path().join("a.zip"), directory.path().join("to"));
        for name in ["../out", "/tmp/freehold-zip-test-out", "a/../../out", "a\\..\\..\\out"] {
            pack(&zip, &[(name, b"x", 0o644)]);

            assert!(unpack(&zip, &to).is_err(), "{name}");
            assert!(!directory.path().join("out").exists());
        }
        let mut link = zip::ZipWriter::new(File::create(&zip).unwrap());
        link.add_symlink("link", "/etc/passwd", SimpleFileOptions::default()).unwrap();
        link.finish().unwrap();

        assert!(matches!(unpack(&zip, &to), Err(ProviderZipError::NotPlain(name)) if name == "link"));
    }

    #[test]
    fn something_else_is_not_a_package() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("a"), "hello").unwrap();

        assert!(matches!(unpack(&directory.path().join("a"), directory.path()), Err(ProviderZipError::Zip(_))));
    }
}
