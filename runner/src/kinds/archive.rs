//! Unpacks tar archives, and refuses an archive that would write a file outside of the target directory.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Component, Path};

use flate2::read::GzDecoder;
use tar::{Archive, EntryType};

/// The limits of an unpacked archive, in bytes and in entries. They prevent a small archive from filling the disk.
const MAX_BYTES: u64 = 1024 * 1024 * 1024;
pub const MAX_ENTRIES: usize = 100_000;

/// The reason why an archive cannot be packed or unpacked.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    #[error(
        "`{0}` leads out of the directory that the archive is unpacked into, is below a link, or is a link with `..` after a \
         name; the archive is not used"
    )]
    Escapes(String),
    #[error("`{path}` is a {what}; an archive may contain only files, directories and links that stay inside of it")]
    NotPlain { path: String, what: &'static str },
    /// The limits that the unpacked archive exceeds.
    #[error("the unpacked archive has more than {bytes} bytes or {files} files; remove files from it")]
    TooLarge { bytes: u64, files: u64 },
    /// A directory with too many files to pack.
    #[error("the directory has more than {MAX_ENTRIES} files; remove files from it")]
    TooManyFiles,
    #[error("the archive or one of its files cannot be read or written")]
    Io(#[from] io::Error),
}

/// The limits for several archives together, which are unpacked one after another. Each archive uses up a part of the
/// limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    /// The number of uncompressed bytes that may still be read.
    pub bytes: u64,
    /// The number of entries that may still be unpacked.
    pub files: u64,
}

impl Budget {
    const fn exceeded(self) -> ArchiveError {
        ArchiveError::TooLarge { bytes: self.bytes, files: self.files }
    }
}

/// Unpacks the gzipped tar at `archive` into the empty directory `into`.
///
/// # Errors
/// The same errors as [`unpack_from`].
pub fn unpack(archive: &Path, into: &Path) -> Result<(), ArchiveError> {
    unpack_from(GzDecoder::new(File::open(archive)?), MAX_BYTES, into)
}

/// Unpacks the gzipped tar at `archive` into the empty directory `into`, and subtracts its bytes and entries from
/// `left`.
///
/// # Errors
/// The same errors as [`unpack_from`].
pub fn unpack_within(archive: &Path, left: &mut Budget, into: &Path) -> Result<(), ArchiveError> {
    unpack_counted(GzDecoder::new(File::open(archive)?), left, into)
}

/// Unpacks the tar that `from` yields into the empty directory `into`. The tar must be smaller than `max` bytes.
///
/// # Errors
/// An [`ArchiveError`] when the tar is too large, not valid, or not safe to unpack.
pub fn unpack_from<R: Read>(from: R, max: u64, into: &Path) -> Result<(), ArchiveError> {
    unpack_counted(from, &mut Budget { bytes: max, files: MAX_ENTRIES as u64 }, into)
}

fn unpack_counted<R: Read>(from: R, left: &mut Budget, into: &Path) -> Result<(), ArchiveError> {
    std::fs::create_dir_all(into)?;
    let most = *left;
    let mut bytes = Counted { inner: from, left: left.bytes };
    let mut tar = Archive::new(&mut bytes);
    tar.set_preserve_mtime(false);
    tar.set_overwrite(true);
    let unpacked = unpack_entries(&mut tar, most, &mut left.files, into);
    left.bytes = bytes.left;
    if bytes.left == 0 { Err(most.exceeded()) } else { unpacked }
}

fn unpack_entries<R: Read>(
    tar: &mut Archive<R>,
    most: Budget,
    left: &mut u64,
    into: &Path,
) -> Result<(), ArchiveError> {
    for entry in tar.entries()? {
        let mut entry = entry?;
        *left = left.checked_sub(1).ok_or_else(|| most.exceeded())?;
        let path = entry.path()?.into_owned();
        let escapes = || ArchiveError::Escapes(path.display().to_string());
        if !is_plain(&path) || is_below_a_link(into, &path)? {
            return Err(escapes());
        }
        match entry.header().entry_type() {
            EntryType::Regular | EntryType::Directory => {}
            EntryType::Symlink => {
                let target = entry.link_name()?.ok_or_else(escapes)?;
                if !stays_inside(&path, &target) {
                    return Err(escapes());
                }
            }
            EntryType::XGlobalHeader => continue,
            _ => return Err(ArchiveError::NotPlain { path: path.display().to_string(), what: "hard link or device" }),
        }
        // This is a second check: the library refuses to write through a link that points out of `into`.
        if !entry.unpack_in(into)? {
            return Err(escapes());
        }
    }
    Ok(())
}

/// Returns whether the path is relative and does not contain `..`.
fn is_plain(path: &Path) -> bool {
    path.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir))
}

/// Returns whether a part of `path` before its last one is a link in `into`. A link below such a link is not at the
/// place that its path names, so the path does not show where the target leads.
fn is_below_a_link(into: &Path, path: &Path) -> io::Result<bool> {
    for above in path.ancestors().skip(1).filter(|above| !above.as_os_str().is_empty()) {
        match into.join(above).symlink_metadata() {
            Ok(data) if data.is_symlink() => return Ok(true),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(false)
}

/// Returns whether a link at `path` to `target` stays inside the archive, if no part of `path` before its last one is a
/// link. A target with `..` after a name does not stay inside: the name may be a link.
pub fn stays_inside(path: &Path, target: &Path) -> bool {
    let mut depth = path.components().filter(|part| matches!(part, Component::Normal(_))).count().saturating_sub(1);
    let mut goes_down = false;
    for part in target.components() {
        match part {
            Component::Normal(_) => goes_down = true,
            Component::CurDir => {}
            Component::ParentDir if depth > 0 && !goes_down => depth -= 1,
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => return false,
        }
    }
    true
}

/// A reader that fails when `left` bytes have been read.
struct Counted<R> {
    inner: R,
    left: u64,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.left == 0 {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        let read = self.inner.read(buffer)?;
        self.left = self.left.saturating_sub(read as u64);
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use flate2::Compression;
    use tar::{Builder, Header};

    use super::*;

    fn raw(path: &Path, write: impl FnOnce(&mut Builder<flate2::write::GzEncoder<File>>)) {
        let gzip = flate2::write::GzEncoder::new(File::create(path).unwrap(), Compression::fast());
        let mut tar = Builder::new(gzip);
        write(&mut tar);
        tar.into_inner().unwrap().finish().unwrap();
    }

    fn entry(tar: &mut Builder<flate2::write::GzEncoder<File>>, kind: EntryType, path: &str, link: &str, body: &[u8]) {
        let mut header = Header::new_gnu();
        header.set_entry_type(kind);
        header.set_size(body.len() as u64);
        header.set_mode(0o644);
        // The test writes the bytes itself: the library refuses to make such archives.
        let name = &mut header.as_mut_bytes()[..100];
        name[..path.len()].copy_from_slice(path.as_bytes());
        header.as_mut_bytes()[157..157 + link.len()].copy_from_slice(link.as_bytes());
        header.set_cksum();
        tar.append(&header, body).unwrap();
    }

    #[test]
    fn nothing_is_written_outside() {
        let directory = tempfile::tempdir().unwrap();
        let (archive, to) = (directory.path().join("a"), directory.path().join("to"));
        let attacks: [&[(EntryType, &str, &str)]; 8] = [
            &[(EntryType::Regular, "../out", "")],
            &[(EntryType::Regular, "/tmp/freehold-archive-test-out", "")],
            &[(EntryType::Symlink, "link", "/etc/passwd")],
            &[(EntryType::Symlink, "a/link", "../../out")],
            // Both lead out of `to`, though the depths of their paths and targets do not say so.
            &[(EntryType::Symlink, "a/l", "."), (EntryType::Symlink, "a/l/l/l/evil", "../../../x")],
            &[(EntryType::Symlink, "a/l", "."), (EntryType::Symlink, "a/evil", "l/l/l/../../../../x")],
            &[(EntryType::Link, "hard", "/etc/passwd")],
            &[(EntryType::Char, "device", "")],
        ];
        for attack in attacks {
            raw(&archive, |tar| {
                for (kind, path, link) in attack {
                    entry(tar, *kind, path, link, b"");
                }
            });

            let error = unpack(&archive, &to).unwrap_err();
            assert!(matches!(error, ArchiveError::Escapes(_) | ArchiveError::NotPlain { .. }), "{attack:?}: {error}");
            drop(std::fs::remove_dir_all(&to));
            assert!(!directory.path().join("out").exists());
        }
    }

    #[test]
    fn archives_with_one_budget_hold_no_more_than_it_together() {
        let directory = tempfile::tempdir().unwrap();
        let archive = directory.path().join("a");
        raw(&archive, |tar| (0..3).for_each(|at| entry(tar, EntryType::Regular, &format!("file-{at}"), "", b"text")));
        let all = |budget: Budget| {
            let mut left = budget;
            let into = |at: u32| directory.path().join(at.to_string());
            (0..4).take_while(|at| unpack_within(&archive, &mut left, &into(*at)).is_ok()).count()
        };

        let enough = Budget { bytes: 1 << 20, files: 1000 };
        let mut one = enough;
        unpack_within(&archive, &mut one, &directory.path().join("one")).unwrap();
        let size = enough.bytes - one.bytes;

        assert_eq!(enough.files - one.files, 3);
        assert_eq!(all(enough), 4);
        assert_eq!([all(Budget { files: 8, ..enough }), all(Budget { bytes: 2 * size + 600, ..enough })], [2, 2]);
    }

    #[test]
    fn an_archive_that_exceeds_a_limit_is_told_that_limit() {
        let directory = tempfile::tempdir().unwrap();
        let archive = directory.path().join("a");
        raw(&archive, |tar| (0..3).for_each(|at| entry(tar, EntryType::Regular, &format!("file-{at}"), "", b"text")));
        let error_of = |mut limits: Budget| {
            let error = unpack_within(&archive, &mut limits, &directory.path().join("to")).unwrap_err();
            error.to_string()
        };

        let [few_bytes, few_files] =
            [Budget { bytes: 600, files: 1000 }, Budget { bytes: 1 << 20, files: 2 }].map(error_of);

        assert_eq!(few_bytes, "the unpacked archive has more than 600 bytes or 1000 files; remove files from it");
        assert_eq!(few_files, "the unpacked archive has more than 1048576 bytes or 2 files; remove files from it");
    }

    #[test]
    fn links_are_followed_only_inside() {
        assert!(stays_inside(Path::new("a/b"), Path::new("../c")));
        assert!(!stays_inside(Path::new("a"), Path::new("..")));
        assert!(!stays_inside(Path::new("a/b"), Path::new("c/../../../d")));
        assert!(!stays_inside(Path::new("a/b"), Path::new("c/../d")), "`c` may be a link");
    }

    #[test]
    fn something_else_is_not_an_archive() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("a"), "hello").unwrap();

        assert!(matches!(unpack(&directory.path().join("a"), &directory.path().join("to")), Err(ArchiveError::Io(_))));
    }
}
