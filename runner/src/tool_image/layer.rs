//! Unpacks the layers of an image, one over the other (OCI image specification 1.1, "Image Layer Filesystem Changeset").
//!
//! Owners, times and special modes are left out: a job has one user and no privilege. So are the directories that a box
//! has of its own, such as `/dev`.

use std::cell::{Cell, RefCell};
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{OpenOptionsExt as _, symlink};
use std::path::{Component, Path, PathBuf};

use flate2::read::MultiGzDecoder;
use tar::{Archive, Entry, EntryType};

use super::path::follow;
use crate::files;

/// The most bytes of all layers as the registry has them.
pub(crate) const MAX_PACKED: u64 = 4 << 30;
/// The most bytes and entries of an unpacked image.
const MAX_BYTES: u64 = 12 << 30;
const MAX_ENTRIES: u64 = 500_000;
/// The most bytes of what describes one entry, such as its long name: `tar` holds it in memory.
const MAX_HEADER: u64 = 1 << 20;

/// What a box has of its own.
const OWN: [&str; 3] = ["dev", "proc", "sys"];
/// The beginning of the name that removes an entry of the layers below, and the name that removes all of them in a directory.
const WHITEOUT: &[u8] = b".wh.";
const OPAQUE: &[u8] = b".wh..wh..opq";

/// One layer, fetched and verified.
#[derive(Debug)]
pub(crate) struct Layer {
    pub(crate) file: PathBuf,
    pub(crate) media_type: String,
}

/// Why a layer cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LayerError {
    #[error("its entry `{0}` is not a path inside of the image")]
    Escapes(String),
    #[error("its entry `{0}` is neither a file, a directory nor a link; build the image without it")]
    NotPlain(String),
    #[error("the image holds more than {MAX_BYTES} bytes or {MAX_ENTRIES} files")]
    TooLarge,
    #[error("an entry has a name and attributes of more than {MAX_HEADER} bytes")]
    LongHeader,
    #[error("its job no longer waits for it")]
    NotWanted,
    #[error("a layer has the type `{0}`; push the image with layers that are packed by gzip")]
    Compression(String),
    #[error("the disk of `state_dir` is full; make it larger, or remove what does not belong there")]
    DiskFull,
    #[error("it cannot be unpacked")]
    Io(#[source] io::Error),
}

impl From<io::Error> for LayerError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::DiskFull,
            io::ErrorKind::FileTooLarge => Self::TooLarge,
            _ => Self::Io(error),
        }
    }
}

/// What may still be unpacked of an image.
struct Left {
    bytes: u64,
    entries: u64,
}

/// Unpacks `layers`, the lowest first, into the empty directory `root`, for as long as the image is `wanted`.
pub(crate) fn unpack(layers: &[Layer], root: &Path, wanted: impl Fn() -> bool) -> Result<(), LayerError> {
    let mut left = Left { bytes: MAX_BYTES, entries: MAX_ENTRIES };
    let mut directories = MAX_ENTRIES;
    let goes_on = || if wanted() { Ok(()) } else { Err(LayerError::NotWanted) };
    for (index, layer) in layers.iter().enumerate() {
        if index > 0 {
            // What a layer removes belongs to the layers below, wherever in the archive the layer says so.
            for_each(layer, &mut Left { bytes: MAX_BYTES, entries: MAX_ENTRIES }, |_, path| {
                goes_on()?;
                remove_below(root, path)
            })?;
        }
        for_each(layer, &mut left, |entry, path| {
            goes_on()?;
            write(root, entry, path, &mut directories)
        })?;
    }
    Ok(())
}

type Source = Box<dyn Read>;

/// Reads a layer, and no more bytes than it may have.
struct Limited {
    source: RefCell<Source>,
    /// The bytes of all entries, and those until the end of the next header.
    bytes: Cell<u64>,
    header: Cell<u64>,
}

impl Read for &Limited {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let most = self.bytes.get().min(self.header.get());
        let most = usize::try_from(most).map_or(into.len(), |most| most.min(into.len()));
        let read = self.source.borrow_mut().read(into.get_mut(..most).unwrap_or_default())?;
        for left in [&self.bytes, &self.header] {
            left.set(left.get().saturating_sub(read as u64));
        }
        Ok(read)
    }
}

/// Calls `with` for each entry of the layer, with its path in the image.
fn for_each(
    layer: &Layer,
    left: &mut Left,
    mut with: impl FnMut(&mut Entry<'_, &Limited>, &Path) -> Result<(), LayerError>,
) -> Result<(), LayerError> {
    let source = RefCell::new(open(layer)?);
    let limited = Limited { source, bytes: Cell::new(left.bytes), header: Cell::new(MAX_HEADER) };
    // A sparse file has more bytes than the layer.
    let mut content = left.bytes;
    let mut visit = || {
        for entry in Archive::new(&limited).entries()? {
            let mut entry = entry?;
            limited.header.set(u64::MAX);
            left.entries = left.entries.checked_sub(1).ok_or(LayerError::TooLarge)?;
            content = content.checked_sub(entry.size()).ok_or(LayerError::TooLarge)?;
            if entry.header().entry_type() != EntryType::XGlobalHeader {
                let path = plain(&entry.path()?)?;
                let first = path.components().next();
                if first.is_some_and(|first| !OWN.iter().any(|own| first.as_os_str() == *own)) {
                    with(&mut entry, &path)?;
                }
            }
            io::copy(&mut entry, &mut io::sink())?;
            limited.header.set(MAX_HEADER);
        }
        Ok(())
    };
    let visited = visit();
    left.bytes = limited.bytes.get().min(content);
    match (limited.bytes.get(), limited.header.get()) {
        (0, _) => Err(LayerError::TooLarge),
        (_, 0) => Err(LayerError::LongHeader),
        _ => visited,
    }
}

fn open(layer: &Layer) -> Result<Source, LayerError> {
    let file = io::BufReader::new(File::open(&layer.file)?);
    let kind = layer.media_type.as_str();
    if kind.ends_with("+gzip") || kind.ends_with(".tar.gzip") {
        Ok(Box::new(MultiGzDecoder::new(file)))
    } else if kind.ends_with(".tar") {
        Ok(Box::new(file))
    } else {
        Err(LayerError::Compression(kind.to_owned()))
    }
}

/// Returns the path of an entry without its root; an entry that leads upwards is refused.
fn plain(path: &Path) -> Result<PathBuf, LayerError> {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::Normal(name) => plain.push(name),
            Component::CurDir | Component::RootDir => {}
            Component::ParentDir | Component::Prefix(_) => return Err(escapes(path)),
        }
    }
    Ok(plain)
}

fn escapes(path: &Path) -> LayerError {
    LayerError::Escapes(path.display().to_string())
}

fn not_plain(path: &Path) -> LayerError {
    LayerError::NotPlain(path.display().to_string())
}

fn name_of(path: &Path) -> &[u8] {
    path.file_name().map(OsStrExt::as_bytes).unwrap_or_default()
}

/// Removes what the entry at `path` says that the layers below no longer have.
fn remove_below(root: &Path, path: &Path) -> Result<(), LayerError> {
    let name = name_of(path);
    let Some(hidden) = name.strip_prefix(WHITEOUT) else { return Ok(()) };
    let above = follow(root, path.parent().unwrap_or(Path::new("")), |_| Err(io::ErrorKind::NotFound.into()));
    let above = match above {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        other => other?,
    };
    if name == OPAQUE {
        return Ok(files::clear(&above)?);
    }
    if hidden.starts_with(WHITEOUT) {
        return Ok(());
    }
    if matches!(hidden, b"" | b"." | b"..") {
        return Err(escapes(path));
    }
    remove(&above.join(std::ffi::OsStr::from_bytes(hidden)))
}

/// Writes the entry at `path`, in the place of what is there. At most `directories` above it are made.
fn write<R: Read>(root: &Path, entry: &mut Entry<'_, R>, path: &Path, directories: &mut u64) -> Result<(), LayerError> {
    if name_of(path).starts_with(WHITEOUT) {
        return Ok(());
    }
    let make = |missing: &Path| {
        *directories = directories.checked_sub(1).ok_or(io::ErrorKind::FileTooLarge)?;
        std::fs::create_dir(missing)
    };
    let above = follow(root, path.parent().unwrap_or(Path::new("")), make)?;
    let place = above.join(path.file_name().ok_or_else(|| escapes(path))?);
    match entry.header().entry_type() {
        EntryType::Directory => {
            if !place.symlink_metadata().is_ok_and(|data| data.is_dir()) {
                remove(&place)?;
                std::fs::create_dir(&place)?;
            }
        }
        EntryType::Regular | EntryType::Continuous | EntryType::GNUSparse => {
            remove(&place)?;
            let is_program = entry.header().mode()? & 0o111 != 0;
            let mut options = std::fs::OpenOptions::new();
            options.write(true).create_new(true).mode(if is_program { 0o755 } else { 0o644 });
            io::copy(entry, &mut options.open(&place)?)?;
        }
        EntryType::Symlink => {
            remove(&place)?;
            symlink(entry.link_name()?.ok_or_else(|| not_plain(path))?, &place)?;
        }
        EntryType::Link => {
            let target = plain(&entry.link_name()?.ok_or_else(|| not_plain(path))?)?;
            let above =
                follow(root, target.parent().unwrap_or(Path::new("")), |_| Err(io::ErrorKind::NotFound.into()))?;
            let target = above.join(target.file_name().ok_or_else(|| not_plain(path))?);
            if target.symlink_metadata()?.is_dir() {
                return Err(not_plain(path));
            }
            if target != place {
                remove(&place)?;
                std::fs::hard_link(target, &place)?;
            }
        }
        _ => return Err(not_plain(path)),
    }
    Ok(())
}

fn remove(path: &Path) -> Result<(), LayerError> {
    match path.symlink_metadata() {
        Ok(data) if data.is_dir() => Ok(files::remove_tree(path)?),
        Ok(_) => Ok(std::fs::remove_file(path)?),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use tar::{Builder, Header};

    use super::*;

    const TAR: &str = "application/vnd.oci.image.layer.v1.tar";

    type Entries<'a> = &'a [(EntryType, &'a str, &'a str)];

    /// Unpacks layers whose entries have a kind, a path, and the target of a link or the content of a file.
    fn unpack_all(directory: &Path, layers: &[Entries<'_>]) -> Result<PathBuf, LayerError> {
        let root = directory.join("state/root");
        let _ = files::remove_tree(&root);
        std::fs::create_dir_all(&root).unwrap();
        let layers: Vec<Layer> = layers
            .iter()
            .enumerate()
            .map(|(number, entries)| {
                let file = directory.join(format!("layer-{number}"));
                std::fs::write(&file, tar(entries)).unwrap();
                Layer { file, media_type: TAR.to_owned() }
            })
            .collect();
        unpack(&layers, &root, || true).map(|()| root)
    }

    fn tar(entries: Entries<'_>) -> Vec<u8> {
        let mut tar = Builder::new(Vec::new());
        for (kind, path, text) in entries {
            let mut header = Header::new_gnu();
            let body = if *kind == EntryType::Regular { text.as_bytes() } else { b"" };
            header.set_entry_type(*kind);
            header.set_size(body.len() as u64);
            header.set_mode(if path.ends_with("sh") { 0o4755 } else { 0o600 });
            // The test writes the bytes itself: the library refuses to make such archives.
            header.as_mut_bytes()[..path.len()].copy_from_slice(path.as_bytes());
            if *kind != EntryType::Regular {
                header.as_mut_bytes()[157..157 + text.len()].copy_from_slice(text.as_bytes());
            }
            header.set_cksum();
            tar.append(&header, body).unwrap();
        }
        tar.into_inner().unwrap()
    }

    const FILE: EntryType = EntryType::Regular;
    const DIR: EntryType = EntryType::Directory;
    const LINK: EntryType = EntryType::Symlink;
    const HARD: EntryType = EntryType::Link;

    fn read(root: &Path, path: &str) -> Option<String> {
        std::fs::read_to_string(root.join(path)).ok()
    }

    #[test]
    fn a_layer_replaces_adds_and_removes_what_is_below() {
        let directory = tempfile::tempdir().unwrap();
        let below: Entries<'_> = &[
            (DIR, "./", ""),
            (DIR, "./usr", ""),
            (FILE, "./usr/bin/sh", "one"),
            (HARD, "usr/bin/bash", "/usr/bin/sh"),
            (LINK, "bin", "usr/bin"),
            (FILE, "etc/gone", "x"),
            (FILE, "etc/stays", "x"),
            (FILE, "opt/a/b", "x"),
            (FILE, "var/file", "x"),
            (EntryType::Char, "dev/null", ""),
        ];
        let above: Entries<'_> = &[
            // Through the link of the layer below.
            (FILE, "bin/new.sh", "two"),
            (FILE, "usr/bin/sh", "other"),
            (FILE, "etc/.wh.gone", ""),
            // The whole directory is new, although its new file comes first.
            (FILE, "opt/a/c", "new"),
            (FILE, "opt/a/.wh..wh..opq", ""),
            (FILE, "no/such/.wh.file", ""),
            (DIR, "var/file", ""),
            (FILE, "var/file/inside", "x"),
        ];

        let root = unpack_all(directory.path(), &[below, above]).unwrap();

        assert_eq!(read(&root, "usr/bin/new.sh").as_deref(), Some("two"));
        // A hard link is a file of its own when the other name gets another file.
        assert_eq!(
            (read(&root, "usr/bin/sh").unwrap(), read(&root, "usr/bin/bash").unwrap()),
            ("other".into(), "one".into())
        );
        assert!(read(&root, "etc/gone").is_none() && read(&root, "etc/stays").is_some());
        assert!(
            read(&root, "opt/a/b").is_none()
                && read(&root, "opt/a/c").is_some()
                && read(&root, "var/file/inside").is_some()
        );
        assert!(!root.join("dev").exists() && !root.join("etc/.wh.gone").exists());
        let mode = |path: &str| root.join(path).metadata().unwrap().permissions().mode() & 0o7777;
        assert_eq!((mode("usr/bin/sh"), mode("etc/stays")), (0o755, 0o644), "nothing is set-uid or closed");
    }

    #[test]
    fn nothing_is_written_or_removed_outside() {
        let directory = tempfile::tempdir().unwrap();
        let outside = directory.path().join("state/outside");
        std::fs::create_dir(directory.path().join("state")).unwrap();
        std::fs::write(&outside, "kept").unwrap();
        let (up, absolute) = ("../../state", outside.parent().unwrap().display().to_string());
        let refused: [&[Entries<'_>]; 9] = [
            &[&[(FILE, "../outside", "x")]],
            &[&[(FILE, "a/../../outside", "x")]],
            &[&[(HARD, "a", "../outside")]],
            &[&[(HARD, "a", "outside")]],
            &[&[(LINK, "up", up), (HARD, "a", "up/outside")]],
            &[&[(FILE, "a", "x")], &[(FILE, ".wh...", "")]],
            &[&[(FILE, "a", "x")], &[(FILE, ".wh..", "")]],
            &[&[(EntryType::Block, "disk", "")]],
            &[&[(EntryType::Fifo, "pipe", "")]],
        ];
        let harmless: [&[Entries<'_>]; 4] = [
            &[&[(LINK, "up", up)], &[(FILE, "up/outside", "x"), (FILE, "up/.wh.outside", "")]],
            &[&[(LINK, "up", &absolute)], &[(FILE, "up/outside", "x")]],
            &[&[(LINK, "up", up)], &[(FILE, "up/.wh..wh..opq", "")]],
            &[&[(LINK, "outside", "../outside")], &[(FILE, "outside", "x")]],
        ];

        for attack in refused {
            assert!(unpack_all(directory.path(), attack).is_err(), "{attack:?}");
            assert_eq!(std::fs::read_to_string(&outside).unwrap(), "kept", "{attack:?}");
        }
        for attack in harmless {
            unpack_all(directory.path(), attack).unwrap();
            assert_eq!(std::fs::read_to_string(&outside).unwrap(), "kept", "{attack:?}");
        }
    }

    #[test]
    fn a_layer_of_another_kind_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("layer");
        std::fs::write(&file, "hello").unwrap();
        let tried = |media_type: &str| {
            let layer = Layer { file: file.clone(), media_type: media_type.to_owned() };
            unpack(&[layer], &directory.path().join("root"), || true).unwrap_err().to_string()
        };

        assert!(tried("application/vnd.oci.image.layer.v1.tar+zstd").contains("packed by gzip"));
        assert_eq!(tried("application/vnd.oci.image.layer.v1.tar+gzip"), "it cannot be unpacked");
    }

    #[test]
    fn an_image_without_end_is_refused() {
        let mut left = Left { bytes: 2000, entries: 10 };
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("layer");
        std::fs::write(&file, tar(&[(FILE, "a", &"x".repeat(4000))])).unwrap();
        let layer = Layer { file, media_type: TAR.to_owned() };

        let tried = for_each(&layer, &mut left, |entry, path| write(directory.path(), entry, path, &mut 10));

        assert!(matches!(tried, Err(LayerError::TooLarge)));
    }

    /// Writes one layer of `bytes`, and returns what comes of reading it with at most `most` bytes and `directories`.
    fn tried(bytes: &[u8], most: u64, mut directories: u64) -> Result<(), LayerError> {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("layer");
        std::fs::write(&file, bytes).unwrap();
        let layer = Layer { file, media_type: TAR.to_owned() };
        let mut left = Left { bytes: most, entries: 10 };
        let root = directory.path().join("root");
        std::fs::create_dir(&root).unwrap();
        for_each(&layer, &mut left, |entry, path| write(&root, entry, path, &mut directories))
    }

    fn header(kind: EntryType, size: u64) -> Header {
        let mut header = Header::new_gnu();
        header.set_entry_type(kind);
        header.set_size(size);
        header.set_mode(0o644);
        header.set_path("a").unwrap();
        header.set_cksum();
        header
    }

    #[test]
    fn a_header_that_would_fill_the_memory_is_refused_and_a_long_name_is_not() {
        for kind in [EntryType::XHeader, EntryType::GNULongName, EntryType::GNULongLink] {
            let mut tar = Builder::new(Vec::new());
            let long = vec![b'a'; 8 << 20];
            tar.append(&header(kind, long.len() as u64), long.as_slice()).unwrap();
            tar.append(&header(FILE, 0), io::empty()).unwrap();
            let found = tried(&tar.into_inner().unwrap(), MAX_BYTES, 10);
            assert!(matches!(found, Err(LayerError::LongHeader)), "{kind:?}: {found:?}");
        }
        let mut tar = Builder::new(Vec::new());
        for name in ["long/".repeat(100) + "a", "long/".repeat(100) + "b"] {
            tar.append_data(&mut header(FILE, 2 << 20), name, vec![b'x'; 2 << 20].as_slice()).unwrap();
        }
        tried(&tar.into_inner().unwrap(), MAX_BYTES, 100).unwrap();
    }

    #[test]
    fn a_small_layer_makes_no_large_sparse_file() {
        let mut header = header(EntryType::GNUSparse, 0);
        let gnu = header.as_gnu_mut().unwrap();
        gnu.realsize[..11].copy_from_slice(b"00077777777");
        gnu.sparse[0].offset[..11].copy_from_slice(b"00077777777");
        gnu.sparse[0].numbytes[..11].copy_from_slice(b"00000000000");
        header.set_cksum();
        let mut tar = Builder::new(Vec::new());
        tar.append(&header, io::empty()).unwrap();

        let found = tried(&tar.into_inner().unwrap(), 1 << 20, 10);

        assert!(matches!(found, Err(LayerError::TooLarge)), "{found:?}");
    }

    #[test]
    fn a_few_paths_make_no_million_directories() {
        let deep = |name: &str| format!("{name}/{}", "d/".repeat(40));
        let layer = tar(&[(FILE, &(deep("one") + "x"), ""), (FILE, &(deep("two") + "x"), "")]);

        assert!(matches!(tried(&layer, MAX_BYTES, 60), Err(LayerError::TooLarge)));
        tried(&layer, MAX_BYTES, 82).unwrap();
    }

    #[test]
    fn unpacking_ends_when_nobody_waits_for_the_image() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("layer");
        std::fs::write(&file, tar(&[(FILE, "a", "x"), (FILE, "b", "x")])).unwrap();
        let layer = Layer { file, media_type: TAR.to_owned() };
        let root = directory.path().join("root");
        std::fs::create_dir(&root).unwrap();

        let ended = unpack(&[layer], &root, || !root.join("a").exists());

        assert!(matches!(ended, Err(LayerError::NotWanted)));
        assert!(!root.join("b").exists());
    }
}
