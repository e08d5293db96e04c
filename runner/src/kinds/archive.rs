//! Gzipped tars: packed so that the same files give the same bytes, unpacked so that nothing lands outside.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Component, Path, PathBuf};

use flate2::read::GzDecoder;
use flate2::{Compression, GzBuilder};
use tar::{Archive, Builder, EntryType, Header};

/// The most bytes that an archive may hold when unpacked, and the most entries: a small file must not fill the disk.
const MAX_BYTES: u64 = 1024 * 1024 * 1024;
const MAX_ENTRIES: usize = 100_000;
/// The most bytes of an image that was built here.
const MAX_IMAGE_BYTES: u64 = 32 * 1024 * 1024 * 1024;

/// Directories that are no part of a module: version control and what Terraform makes.
const LEFT_OUT: [&str; 2] = [".git", ".terraform"];

/// Why an archive cannot be packed or unpacked.
#[derive(Debug, thiserror::Error)]
pub(super) enum ArchiveError {
    #[error("`{0}` would be written outside its directory; nothing of the archive is used")]
    Escapes(String),
    #[error("`{path}` is a {what}; only files, directories and links inside the archive can be packed")]
    NotPlain { path: String, what: &'static str },
    #[error("it holds more than {MAX_BYTES} bytes or {MAX_ENTRIES} files")]
    TooLarge,
    #[error("it is not a gzipped tar, or the disk is full")]
    Io(#[from] io::Error),
}

/// Packs the files below `directory` into a new file: sorted, without times, owners and other traces of the machine.
pub(super) fn pack(directory: &Path, into: &Path) -> Result<(), ArchiveError> {
    let mut entries = Vec::new();
    list(directory, Path::new(""), &mut entries)?;
    entries.sort();
    // 255: unknown operating system, so that the bytes do not depend on it (RFC 1952).
    let gzip = GzBuilder::new().mtime(0).operating_system(255).write(File::create(into)?, Compression::new(6));
    let mut tar = Builder::new(gzip);
    for path in &entries {
        append(&mut tar, directory, path)?;
    }
    tar.into_inner()?.finish()?.sync_all()?;
    Ok(())
}

fn list(root: &Path, below: &Path, entries: &mut Vec<PathBuf>) -> Result<(), ArchiveError> {
    for entry in std::fs::read_dir(root.join(below))? {
        let entry = entry?;
        if LEFT_OUT.iter().any(|name| entry.file_name() == *name) {
            continue;
        }
        let path = below.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            list(root, &path, entries)?;
        }
        entries.push(path);
        if entries.len() > MAX_ENTRIES {
            return Err(ArchiveError::TooLarge);
        }
    }
    Ok(())
}

fn append<W: io::Write>(tar: &mut Builder<W>, root: &Path, path: &Path) -> Result<(), ArchiveError> {
    let file = root.join(path);
    let data = file.symlink_metadata()?;
    let mut header = Header::new_gnu();
    header.set_mtime(0);
    header.set_uid(0);
    header.set_gid(0);
    header.set_size(0);
    if data.is_dir() {
        header.set_entry_type(EntryType::Directory);
        header.set_mode(0o755);
        tar.append_data(&mut header, path, io::empty())?;
    } else if data.is_symlink() {
        let target = std::fs::read_link(&file)?;
        if !stays_inside(path, &target) {
            return Err(ArchiveError::Escapes(path.display().to_string()));
        }
        header.set_entry_type(EntryType::Symlink);
        header.set_mode(0o777);
        tar.append_link(&mut header, path, target)?;
    } else if data.is_file() {
        header.set_entry_type(EntryType::Regular);
        header.set_mode(if data.permissions().mode() & 0o100 == 0 { 0o644 } else { 0o755 });
        header.set_size(data.len());
        // A file that grows meanwhile must not shift what follows it.
        tar.append_data(&mut header, path, File::open(&file)?.take(data.len()))?;
    } else {
        return Err(ArchiveError::NotPlain { path: path.display().to_string(), what: "device, pipe or socket" });
    }
    Ok(())
}

/// Unpacks the archive at `archive` into the empty directory `into`.
pub(super) fn unpack(archive: &Path, into: &Path) -> Result<(), ArchiveError> {
    unpack_from(GzDecoder::new(File::open(archive)?), MAX_BYTES, into)
}

/// Unpacks a tar that is not gzipped, and may be larger: an image layout.
pub(super) fn unpack_plain(archive: &Path, into: &Path) -> Result<(), ArchiveError> {
    unpack_from(File::open(archive)?, MAX_IMAGE_BYTES, into)
}

fn unpack_from<R: Read>(from: R, max: u64, into: &Path) -> Result<(), ArchiveError> {
    std::fs::create_dir_all(into)?;
    let mut bytes = Counted { inner: from, left: max };
    let mut tar = Archive::new(&mut bytes);
    tar.set_preserve_mtime(false);
    tar.set_overwrite(true);
    let unpacked = unpack_entries(&mut tar, into);
    if bytes.left == 0 { Err(ArchiveError::TooLarge) } else { unpacked }
}

fn unpack_entries<R: Read>(tar: &mut Archive<R>, into: &Path) -> Result<(), ArchiveError> {
    for (count, entry) in tar.entries()?.enumerate() {
        let mut entry = entry?;
        if count >= MAX_ENTRIES {
            return Err(ArchiveError::TooLarge);
        }
        let path = entry.path()?.into_owned();
        let escapes = || ArchiveError::Escapes(path.display().to_string());
        if !is_plain(&path) {
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
        // Refuses once more to write through a link that leads outside.
        if !entry.unpack_in(into)? {
            return Err(escapes());
        }
    }
    Ok(())
}

/// Returns whether the path has no root and no `..`.
fn is_plain(path: &Path) -> bool {
    path.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir))
}

/// Returns whether a link at `path` to `target` leads to something inside the archive, going up no further than its top.
fn stays_inside(path: &Path, target: &Path) -> bool {
    let mut depth = path.components().filter(|part| matches!(part, Component::Normal(_))).count().saturating_sub(1);
    for part in target.components() {
        match part {
            Component::Normal(_) => depth += 1,
            Component::CurDir => {}
            Component::ParentDir if depth > 0 => depth -= 1,
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => return false,
        }
    }
    true
}

/// Ends when the limit is reached.
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
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    fn module(directory: &Path) {
        fs::create_dir_all(directory.join("modules/a")).unwrap();
        fs::create_dir_all(directory.join(".git")).unwrap();
        fs::write(directory.join(".git/HEAD"), "x").unwrap();
        fs::write(directory.join("main.tf"), "module \"a\" { source = \"./modules/a\" }").unwrap();
        fs::write(directory.join("modules/a/main.tf"), "").unwrap();
        fs::write(directory.join("run.sh"), "#!/bin/sh").unwrap();
        fs::set_permissions(directory.join("run.sh"), fs::Permissions::from_mode(0o700)).unwrap();
        symlink("../../main.tf", directory.join("modules/a/link.tf")).unwrap();
    }

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
        // Written by hand: the library refuses to make such archives.
        let name = &mut header.as_mut_bytes()[..100];
        name[..path.len()].copy_from_slice(path.as_bytes());
        header.as_mut_bytes()[157..157 + link.len()].copy_from_slice(link.as_bytes());
        header.set_cksum();
        tar.append(&header, body).unwrap();
    }

    #[test]
    fn the_same_files_give_the_same_bytes_whenever_and_in_whatever_order_they_were_written() {
        let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::create_dir(two.path().join("m")).unwrap();
        fs::write(two.path().join("m/run.sh"), "old").unwrap();
        module(&one.path().join("m"));
        module(&two.path().join("m"));

        pack(&one.path().join("m"), &one.path().join("a")).unwrap();
        pack(&two.path().join("m"), &two.path().join("a")).unwrap();

        assert_eq!(fs::read(one.path().join("a")).unwrap(), fs::read(two.path().join("a")).unwrap());
    }

    #[test]
    fn what_was_packed_is_unpacked_without_version_control() {
        let directory = tempfile::tempdir().unwrap();
        let (from, archive, to) = (directory.path().join("m"), directory.path().join("a"), directory.path().join("to"));
        module(&from);

        pack(&from, &archive).unwrap();
        unpack(&archive, &to).unwrap();

        assert!(to.join("modules/a/link.tf").is_symlink());
        assert_eq!(fs::read(to.join("main.tf")).unwrap(), fs::read(from.join("main.tf")).unwrap());
        assert_eq!(to.join("run.sh").metadata().unwrap().permissions().mode() & 0o111, 0o111);
        assert!(!to.join(".git").exists());
    }

    #[test]
    fn nothing_is_written_outside() {
        let directory = tempfile::tempdir().unwrap();
        let (archive, to) = (directory.path().join("a"), directory.path().join("to"));
        let attacks: [&[(EntryType, &str, &str)]; 6] = [
            &[(EntryType::Regular, "../out", "")],
            &[(EntryType::Regular, "/tmp/freehold-archive-test-out", "")],
            &[(EntryType::Symlink, "link", "/etc/passwd")],
            &[(EntryType::Symlink, "a/link", "../../out")],
            &[(EntryType::Link, "hard", "/etc/passwd")],
            &[(EntryType::Char, "device", "")],
        ];
        for attack in attacks {
            raw(&archive, |tar| {
                for (kind, path, link) in attack {
                    entry(tar, *kind, path, link, b"");
                }
            });

            assert!(unpack(&archive, &to).is_err(), "{attack:?}");
            assert!(!directory.path().join("out").exists());
        }
    }

    #[test]
    fn links_are_followed_only_inside() {
        assert!(stays_inside(Path::new("a/b"), Path::new("../c")));
        assert!(!stays_inside(Path::new("a"), Path::new("..")));
        assert!(!stays_inside(Path::new("a/b"), Path::new("c/../../../d")));
    }

    #[test]
    fn something_else_is_not_an_archive() {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("a"), "hello").unwrap();

        assert!(matches!(unpack(&directory.path().join("a"), &directory.path().join("to")), Err(ArchiveError::Io(_))));
    }
}
