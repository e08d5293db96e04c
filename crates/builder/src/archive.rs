//! Packs directories so that the same files give the same bytes, and unpacks image layouts.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use flate2::{Compression, GzBuilder};
use freehold_protocol::source::LEFT_OUT;
use freehold_runner::kinds::archive::{ArchiveError, MAX_ENTRIES, stays_inside, unpack_from};
use tar::{Builder, EntryType, Header};

/// The maximum size of an unpacked image layout, in bytes.
const MAX_IMAGE_BYTES: u64 = 32 * 1024 * 1024 * 1024;

/// The modules that Terraform installed for the root module, which are packed although they are below a directory of
/// [`LEFT_OUT`].
const KEPT: &str = ".terraform/modules";

/// Packs the files below `directory` into a new file, sorted and without times, owners or other data of the machine.
pub(crate) fn pack(directory: &Path, into: &Path) -> Result<(), ArchiveError> {
    let mut entries = Vec::new();
    list(directory, Path::new(""), &mut entries)?;
    entries.sort();
    // 255 means an unknown operating system (RFC 1952): the bytes must not depend on the machine.
    let gzip = GzBuilder::new().mtime(0).operating_system(255).write(File::create(into)?, Compression::new(6));
    let mut tar = Builder::new(gzip);
    for path in &entries {
        append(&mut tar, directory, path)?;
    }
    tar.into_inner()?.finish()?.sync_all()?;
    Ok(())
}

/// Returns the size of the uncompressed tar that [`pack`] makes of `directory`, in bytes. The runner limits this size, and
/// not the sum of the sizes of the files.
pub(crate) fn bytes(directory: &Path) -> Result<u64, ArchiveError> {
    let mut entries = Vec::new();
    list(directory, Path::new(""), &mut entries)?;
    // A tar ends with two empty blocks.
    let mut sum = 2 * BLOCK;
    for path in &entries {
        let data = directory.join(path).symlink_metadata()?;
        sum = sum.saturating_add(BLOCK + long_name(path));
        if data.is_symlink() {
            sum = sum.saturating_add(long_name(&std::fs::read_link(directory.join(path))?));
        } else if data.is_file() {
            sum = sum.saturating_add(padded(data.len()));
        }
    }
    Ok(sum)
}

/// The size of an entry's header, in bytes. The size of an entry's data is rounded up to a multiple of it.
const BLOCK: u64 = 512;
/// The longest name that fits into the header of an entry, in bytes.
const SHORT_NAME: usize = 100;

fn padded(bytes: u64) -> u64 {
    bytes.div_ceil(BLOCK).saturating_mul(BLOCK)
}

/// Returns the size of the additional entry for a name that does not fit into the header. It holds the name and a zero
/// byte.
fn long_name(name: &Path) -> u64 {
    let length = name.as_os_str().len();
    if length > SHORT_NAME { BLOCK + padded(length as u64 + 1) } else { 0 }
}

fn list(root: &Path, below: &Path, entries: &mut Vec<PathBuf>) -> Result<(), ArchiveError> {
    for entry in std::fs::read_dir(root.join(below))? {
        let entry = entry?;
        let path = below.join(entry.file_name());
        let is_above_kept = Path::new(KEPT).starts_with(&path);
        let is_beside_kept = Path::new(KEPT).parent() == Some(below) && !is_above_kept;
        let is_left_out = LEFT_OUT.iter().any(|name| entry.file_name() == *name) && !is_above_kept;
        if is_left_out || is_beside_kept {
            continue;
        }
        if entry.file_type()?.is_dir() {
            list(root, &path, entries)?;
        }
        entries.push(path);
        if entries.len() > MAX_ENTRIES {
            return Err(ArchiveError::TooManyFiles);
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
            return Err(ArchiveError::NotPlain {
                path: path.display().to_string(),
                what: "link out of the directory, or with `..` after a name",
            });
        }
        header.set_entry_type(EntryType::Symlink);
        header.set_mode(0o777);
        tar.append_link(&mut header, path, target)?;
    } else if data.is_file() {
        header.set_entry_type(EntryType::Regular);
        header.set_mode(if data.permissions().mode() & 0o100 == 0 { 0o644 } else { 0o755 });
        header.set_size(data.len());
        // A file that grows during the read must not shift the entries after it.
        tar.append_data(&mut header, path, File::open(&file)?.take(data.len()))?;
    } else {
        return Err(ArchiveError::NotPlain { path: path.display().to_string(), what: "device, pipe or socket" });
    }
    Ok(())
}

/// Unpacks an image layout from an uncompressed tar file. An image layout may be larger than a module.
pub(crate) fn unpack_plain(archive: &Path, into: &Path) -> Result<(), ArchiveError> {
    unpack_from(File::open(archive)?, MAX_IMAGE_BYTES, into)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use freehold_runner::kinds::archive::unpack;

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
    fn the_size_of_the_tar_is_known_before_it_is_made() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().join("m");
        module(&root);
        for (length, size) in [(99, 0), (100, 1), (101, 511), (102, 512), (255, 513)] {
            let name = "n".repeat(length);
            fs::write(root.join(&name), vec![b'x'; size]).unwrap();
            symlink(&name, root.join(format!("link-{length}"))).unwrap();
            fs::create_dir(root.join(format!("d{}", "n".repeat(length - 1)))).unwrap();
        }
        let packed = directory.path().join("packed");

        let expected = bytes(&root).unwrap();
        pack(&root, &packed).unwrap();

        let mut tar = Vec::new();
        io::copy(&mut flate2::read::GzDecoder::new(File::open(&packed).unwrap()), &mut tar).unwrap();
        assert_eq!(expected, tar.len() as u64);
    }

    #[test]
    fn a_link_out_of_the_directory_is_not_packed() {
        let directory = tempfile::tempdir().unwrap();
        let from = directory.path().join("m");
        module(&from);
        symlink("../../../outside", from.join("modules/a/out")).unwrap();

        let error = pack(&from, &directory.path().join("a")).unwrap_err();

        let message = "`modules/a/out` is a link out of the directory, or with `..` after a name; an archive may contain only \
                    files, directories and links that stay inside of it";
        assert_eq!(error.to_string(), message);
    }
}
