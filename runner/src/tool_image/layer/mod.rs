//! Unpacks the layers of an image, one over the other (OCI image specification 1.1, "Image Layer Filesystem
//! Changeset").
//!
//! Owners, times and special modes are left out, because a job has one user and no privilege. The directories that a
//! box has of its own, such as `/dev`, are left out too.

use std::cell::{Cell, RefCell};
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{OpenOptionsExt as _, symlink};
use std::path::{Component, Path, PathBuf};

use flate2::read::MultiGzDecoder;
use tar::{Archive, Entry, EntryType};

use crate::files;
use crate::tool_image::path::follow;

/// The maximum size of all layers together, as the registry has them, in bytes.
pub(crate) const MAX_PACKED: u64 = 4 << 30;
/// The maximum size of an unpacked image, in bytes, and the maximum number of its entries.
const MAX_BYTES: u64 = 12 << 30;
const MAX_ENTRIES: u64 = 500_000;
/// The maximum size of the description of one entry, such as its long name, in bytes: `tar` holds the description in
/// memory.
const MAX_HEADER: u64 = 1 << 20;

/// The directories that a box has of its own.
const OWN: [&str; 3] = ["dev", "proc", "sys"];
/// The prefix of the name of a whiteout, which removes an entry of the layers below, and the name of an opaque
/// whiteout, which removes all their entries in a directory.
const WHITEOUT: &[u8] = b".wh.";
const OPAQUE: &[u8] = b".wh..wh..opq";

/// One layer, fetched and verified.
#[derive(Debug)]
pub(crate) struct Layer {
    pub(crate) file: PathBuf,
    pub(crate) media_type: String,
}

/// The reason why a layer cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LayerError {
    #[error("entry `{0}` is not a path inside of the image")]
    Escapes(String),
    #[error("entry `{0}` is neither a file, a directory nor a link; build the image without it")]
    NotPlain(String),
    #[error("the image holds more than {MAX_BYTES} bytes or {MAX_ENTRIES} files")]
    TooLarge,
    #[error("an entry has a name and attributes of more than {MAX_HEADER} bytes")]
    LongHeader,
    #[error("the job that needs the image no longer waits for it")]
    NotWanted,
    #[error("a layer has the type `{0}`; push the image with layers that are packed by gzip")]
    Compression(String),
    #[error("the disk of `state_dir` is full; make it larger, or remove what does not belong there")]
    DiskFull,
    #[error("the layer cannot be unpacked")]
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

/// The number of bytes and of entries that may still be unpacked from an image.
struct Budget {
    bytes: u64,
    entries: u64,
}

/// Unpacks `layers`, the lowest first, into the empty directory `root`, for as long as the image is `wanted`.
pub(crate) fn unpack(layers: &[Layer], root: &Path, wanted: impl Fn() -> bool) -> Result<(), LayerError> {
    let mut left = Budget { bytes: MAX_BYTES, entries: MAX_ENTRIES };
    let mut directories = MAX_ENTRIES;
    let check_wanted = || if wanted() { Ok(()) } else { Err(LayerError::NotWanted) };
    for (index, layer) in layers.iter().enumerate() {
        if index > 0 {
            // The removals of a layer apply to the layers below it. They come before the layer's own entries, in
            // whatever order its archive has them.
            for_each(layer, &mut Budget { bytes: MAX_BYTES, entries: MAX_ENTRIES }, |_, path| {
                check_wanted()?;
                remove_below(root, path)
            })?;
        }
        for_each(layer, &mut left, |entry, path| {
            check_wanted()?;
            write(root, entry, path, &mut directories)
        })?;
    }
    Ok(())
}

type Source = Box<dyn Read>;

/// A reader of a layer that reads no more bytes than the limits permit.
struct Limited {
    source: RefCell<Source>,
    /// The number of bytes that may still be read from the layer.
    bytes: Cell<u64>,
    /// The number of bytes that may still be read until the next header ends.
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
    left: &mut Budget,
    mut with: impl FnMut(&mut Entry<'_, &Limited>, &Path) -> Result<(), LayerError>,
) -> Result<(), LayerError> {
    let source = RefCell::new(open(layer)?);
    let limited = Limited { source, bytes: Cell::new(left.bytes), header: Cell::new(MAX_HEADER) };
    // The bytes of the files have a limit too, because a sparse file has more bytes than its part of the layer.
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

/// Returns the path of an entry without the leading slash. Refuses a path that leads upwards.
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

/// If the entry at `path` is a whiteout, removes what it names from the lower layers.
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

/// Writes the entry at `path`, and replaces an existing entry. Makes missing directories above it, at most
/// `directories`.
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
mod tests;
