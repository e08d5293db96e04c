//! Makes the layer of one item: the unchanged archive, or an archive with one file.

use std::fs::File;
use std::io::{self, Read, Seek as _, Write};

use flate2::read::MultiGzDecoder;
use flate2::{Compression, GzBuilder};
use freehold_protocol::Digest;
use sha2::{Digest as _, Sha256};
use tar::{Archive, Builder, EntryType, Header};
use zip::ZipArchive;

use super::fetch::Fetched;
use super::list::{Item, Kind};
use crate::error::{Error, Result, ResultExt};

/// The maximum size of a program, in bytes.
const MAX_BYTES: u64 = 1 << 30;
/// The compression level of layers. The level never changes, so that a list always gives the same bytes.
const LEVEL: u32 = 6;

/// One layer of an image.
pub(super) struct Layer {
    pub(super) file: File,
    pub(super) digest: Digest,
    pub(super) size: u64,
    /// The digest of the unpacked tar.
    pub(super) unpacked: Digest,
}

/// Returns the layer of `item`; `fetched` are the item's checked bytes.
pub(super) fn layer(item: &Item, fetched: Fetched) -> Result<Layer> {
    let (mut file, digest, size) = match item.kind {
        Kind::Tree => (fetched.file, fetched.digest, fetched.size),
        Kind::Program => packed(item, fetched)?,
    };
    let unpacked = unpacked_digest(&file).map_err(|error| {
        Error::invalid(format!(
            "it is not a gzipped tar: {error}; pack it as a gzipped tar, because its kind is `tree`"
        ))
    })?;
    file.rewind().doing("read a temporary file")?;
    Ok(Layer { file, digest, size, unpacked })
}

fn packed(item: &Item, fetched: Fetched) -> Result<(File, Digest, u64)> {
    let program = program(item, fetched)?;
    let mut file = tempfile::tempfile().doing("make a temporary file")?;
    let gzip = GzBuilder::new().mtime(0).write(&mut file, Compression::new(LEVEL));
    let written = write(item, &program, gzip);
    written.doing("pack the layer")?;
    let digest = hashed(&mut file).doing("read the layer")?;
    let size = file.metadata().doing("read the layer")?.len();
    Ok((file, digest, size))
}

fn write(item: &Item, program: &[u8], to: impl Write) -> io::Result<()> {
    let mut tar = Builder::new(to);
    let mut header = Header::new_ustar();
    header.set_entry_type(EntryType::Regular);
    header.set_size(program.len() as u64);
    header.set_mode(if item.is_program() { 0o755 } else { 0o644 });
    header.set_mtime(0);
    header.set_uid(0);
    header.set_gid(0);
    tar.append_data(&mut header, item.path().trim_start_matches('/'), program)?;
    tar.into_inner()?.flush()
}

/// Returns the bytes of the program: all fetched bytes, or one member of the fetched archive.
fn program(item: &Item, mut fetched: Fetched) -> Result<Vec<u8>> {
    let Some(member) = &item.member else { return all(&mut fetched.file).doing("read a temporary file") };
    let mut magic = [0; 2];
    let is_zip = fetched.file.read_exact(&mut magic).is_ok() && magic == *b"PK";
    fetched.file.rewind().doing("read a temporary file")?;
    let found = if is_zip { of_zip(&fetched.file, member) } else { of_tar(&fetched.file, member) };
    let found = found.map_err(|error| match error.kind() {
        io::ErrorKind::FileTooLarge => Error::invalid(format!("file `{member}` of it cannot be used: {error}")),
        _ => Error::invalid(format!("it is neither a zip nor a gzipped tar: {error}"))
            .or("remove `member` if it is the program itself"),
    })?;
    found.ok_or_else(|| Error::invalid(format!("it has no file `{member}`; correct `member`")))
}

fn of_zip(file: &File, member: &str) -> io::Result<Option<Vec<u8>>> {
    let mut archive = ZipArchive::new(file)?;
    match archive.by_name(member) {
        Ok(mut entry) => all(&mut entry).map(Some),
        Err(zip::result::ZipError::FileNotFound) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

fn of_tar(file: &File, member: &str) -> io::Result<Option<Vec<u8>>> {
    for entry in Archive::new(MultiGzDecoder::new(file)).entries()? {
        let mut entry = entry?;
        let is_it = entry.path()?.to_str().is_some_and(|path| path.trim_start_matches("./") == member);
        if is_it && entry.header().entry_type() == EntryType::Regular {
            return all(&mut entry).map(Some);
        }
    }
    Ok(None)
}

fn all(from: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.take(MAX_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_BYTES {
        let message = format!("it has more than {MAX_BYTES} bytes");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, message));
    }
    Ok(bytes)
}

/// Returns the digest of the tar in `file`, after reading it to its end.
fn unpacked_digest(mut file: &File) -> io::Result<Digest> {
    file.rewind()?;
    let mut tar = MultiGzDecoder::new(file);
    for entry in Archive::new(&mut tar).entries()? {
        entry?;
    }
    file.rewind()?;
    digest_of(MultiGzDecoder::new(file))
}

fn hashed(file: &mut File) -> io::Result<Digest> {
    file.rewind()?;
    digest_of(&mut *file)
}

fn digest_of(mut from: impl Read) -> io::Result<Digest> {
    let mut hash = Sha256::new();
    let mut chunk = vec![0; 1 << 16];
    while let read @ 1.. = from.read(&mut chunk)? {
        hash.update(chunk.get(..read).unwrap_or_default());
    }
    let hex = freehold_protocol::digest::hex(hash.finalize().as_slice());
    format!("sha256:{hex}").parse().map_err(io::Error::other)
}
