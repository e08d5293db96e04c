//! The archive of a bundle: a gzipped tar with plain files only, whose names lead nowhere else.

use std::collections::BTreeSet;
use std::io::Read as _;

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use freehold_protocol::Timestamp;
use serde::Serialize;

use crate::error::{Error, Kind, Result, ResultExt as _};
use crate::output::bytes;

/// The first file of an archive, which lists all others.
pub(super) const LIST: &str = "bundle.json";
/// The maximum size of an archive without its compression, in bytes.
const MAX_BYTES: u64 = 64 * 1024 * 1024;
/// The maximum number of characters of a name.
const MAX_NAME: usize = 100;
/// The right of this user alone to read and write a file.
const MODE: u32 = 0o600;

/// A file of an archive.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(super) struct Packed {
    pub(super) name: String,
    pub(super) bytes: u64,
    #[serde(skip)]
    pub(super) content: Vec<u8>,
}

/// Returns an archive with these files, in this order.
pub(super) fn pack(files: &[(&str, &[u8])], now: Timestamp) -> Result<Vec<u8>> {
    let mut tar = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::default()));
    for (name, content) in files {
        if !is_plain(name) {
            // INVARIANT: the names are constants, or consist of ids.
            return Err(Error::internal(format!("`{name}` is not the name of an entry")));
        }
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len().try_into().unwrap_or(u64::MAX));
        header.set_mode(MODE);
        header.set_mtime(now.as_millis() / 1000);
        tar.append_data(&mut header, name, *content).doing("pack the bundle")?;
    }
    tar.into_inner().and_then(GzEncoder::finish).doing("pack the bundle")
}

/// Returns the files of an archive, after a check that they can be written without harm: plain files with plain names, each
/// name once, not too large together, the list first. Another program may find other files in the same bytes, such as in what
/// follows the end of the tar, so only what [`pack`] makes of these files may be written.
///
/// # Errors
/// When it is not such an archive.
pub(super) fn unpack(archive: &[u8]) -> Result<Vec<Packed>> {
    let mut unzipped = Vec::new();
    let read = GzDecoder::new(archive).take(MAX_BYTES + 1).read_to_end(&mut unzipped);
    let size = u64::try_from(read.map_err(|error| broken(&error))?).unwrap_or(u64::MAX);
    if size > MAX_BYTES {
        return Err(refused(format!("it has more than {} when it is unpacked", bytes(MAX_BYTES))));
    }
    let mut tar = tar::Archive::new(unzipped.as_slice());
    let (mut files, mut names) = (Vec::new(), BTreeSet::new());
    for entry in tar.entries().map_err(|error| broken(&error))? {
        let mut entry = entry.map_err(|error| broken(&error))?;
        let name = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
        if !entry.header().entry_type().is_file() || !is_plain(&name) {
            return Err(refused(format!("its entry `{name}` is not a plain file of a support bundle")));
        }
        if !names.insert(name.clone()) {
            return Err(refused(format!("it has two entries `{name}`")));
        }
        let mut content = Vec::new();
        let read = entry.read_to_end(&mut content).map_err(|error| broken(&error))?;
        files.push(Packed { name, bytes: u64::try_from(read).unwrap_or(u64::MAX), content });
    }
    match files.first() {
        Some(first) if first.name == LIST => Ok(files),
        Some(_) | None => Err(refused(format!("its first entry is not `{LIST}`"))),
    }
}

/// Returns whether a name has only lower-case letters, digits and `_.-/`, and no part that is empty or leads elsewhere.
fn is_plain(name: &str) -> bool {
    let is_part = |part: &str| {
        let first = part.bytes().next();
        first.is_some_and(|byte| byte.is_ascii_alphanumeric())
            && part.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'.' | b'-'))
    };
    name.len() <= MAX_NAME && name.split('/').all(is_part)
}

fn broken(error: &std::io::Error) -> Error {
    refused(format!("it cannot be unpacked ({error})"))
}

fn refused(why: String) -> Error {
    Error::quoting(Kind::Failed, format!("this is not a support bundle that can be unpacked without harm: {why}"))
        .or("ask the customer to make it again with `freehold support bundle`")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(name: &str, kind: tar::EntryType) -> Vec<u8> {
        let mut tar = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::default()));
        for (name, kind) in [(LIST, tar::EntryType::Regular), (name, kind)] {
            let mut header = tar::Header::new_gnu();
            header.as_old_mut().name[..name.len()].copy_from_slice(name.as_bytes());
            header.set_entry_type(kind);
            header.set_size(0);
            header.set_cksum();
            tar.append(&header, &b""[..]).unwrap();
        }
        tar.into_inner().unwrap().finish().unwrap()
    }

    #[test]
    fn what_is_packed_is_listed() {
        let files: [(&str, &[u8]); 2] = [(LIST, b"{}"), ("logs/job_0a-1.1.log", b"copied\n")];

        let packed = pack(&files, Timestamp::from_millis(1_000)).unwrap();

        let names: Vec<(String, u64)> = unpack(&packed).unwrap().into_iter().map(|one| (one.name, one.bytes)).collect();
        assert_eq!(names, [(LIST.to_owned(), 2), ("logs/job_0a-1.1.log".to_owned(), 7)]);
    }

    #[test]
    fn a_name_that_leads_elsewhere_is_neither_packed_nor_accepted() {
        for name in ["../x", "/etc/passwd", "logs/../../x", "a//b", "a b", "A", "a\u{1b}[2J", ".ssh/x", "", "é"] {
            assert!(pack(&[(name, &b""[..])], Timestamp::from_millis(0)).is_err(), "{name}");
        }
        for name in ["../x", "/etc/passwd", "logs/../../x", "a b", ".ssh/x"] {
            let error = unpack(&raw(name, tar::EntryType::Regular)).unwrap_err();
            assert_eq!(error.kind().exit_code(), 1);
            assert!(error.to_string().contains("is not a plain file of a support bundle"), "{error}");
        }
    }

    #[test]
    fn links_directories_and_other_archives_are_refused() {
        for kind in [tar::EntryType::Symlink, tar::EntryType::Link, tar::EntryType::Directory, tar::EntryType::Fifo] {
            assert!(unpack(&raw("logs/x", kind)).is_err(), "{kind:?}");
        }
        assert!(unpack(&raw("logs/x", tar::EntryType::Regular)).is_ok());
        let other = pack(&[("a", &b""[..])], Timestamp::from_millis(0)).unwrap();
        assert!(unpack(&other).unwrap_err().to_string().contains("its first entry is not `bundle.json`"));
        assert!(unpack(b"PK").unwrap_err().to_string().contains("it cannot be unpacked"));
        let whole = raw("logs/x", tar::EntryType::Regular);
        assert!(unpack(&whole[..whole.len() / 2]).is_err(), "half of an archive");
        let twice = unpack(&raw(LIST, tar::EntryType::Regular)).unwrap_err();
        assert!(twice.to_string().contains("it has two entries `bundle.json`"), "{twice}");
    }

    #[test]
    fn a_small_archive_with_a_large_file_is_refused() {
        let mut tar = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::default()));
        let mut header = tar::Header::new_gnu();
        header.set_size(MAX_BYTES);
        tar.append_data(&mut header, LIST, std::io::repeat(0).take(MAX_BYTES)).unwrap();
        let bomb = tar.into_inner().unwrap().finish().unwrap();

        let error = unpack(&bomb).unwrap_err().to_string();

        assert!(bomb.len() < 1_000_000 && error.contains("it has more than 64.00 MiB when it is unpacked"), "{error}");
    }

    #[test]
    fn what_follows_the_end_of_an_archive_is_not_unpacked() {
        let archive = pack(&[(LIST, &b"{}"[..])], Timestamp::from_millis(0)).unwrap();
        let more = [archive, raw("../x", tar::EntryType::Regular)].concat();

        let names: Vec<String> = unpack(&more).unwrap().into_iter().map(|one| one.name).collect();

        assert_eq!(names, [LIST]);
    }
}
