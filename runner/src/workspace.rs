//! Opens files of a workspace in which a job's programs have run. The runner does this outside any box, so files that a
//! program left must not mislead or block it: it follows no link, waits for no pipe, and reads only regular files with
//! a single name and a bounded size.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, fchmod, mkdirat, openat, statat, unlinkat};
use rustix::io::Errno;

/// The maximum size, in bytes, of a document that the runner reads, such as a manifest or a program's output.
pub(crate) const MAX_DOCUMENT: u64 = 256 * 1024 * 1024;

/// The flags that open a directory on the path to a file. `PATH`: the directory need not be readable. `NOFOLLOW`: it
/// must not be a link.
const DIRECTORY: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
/// The flags that open a directory to read the names in it.
const LIST: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
/// The flags that open a file to read it. `NONBLOCK`: a pipe without a writer would block the runner. `NOCTTY`: a
/// terminal would become the runner's own.
const READ: OFlags =
    OFlags::RDONLY.union(OFlags::NOFOLLOW).union(OFlags::NONBLOCK).union(OFlags::NOCTTY).union(OFlags::CLOEXEC);
const CREATE: OFlags =
    OFlags::WRONLY.union(OFlags::CREATE).union(OFlags::EXCL).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// The reason why a file of a workspace is not read or written.
#[derive(Debug, thiserror::Error)]
pub(crate) enum WorkspaceError {
    #[error("`{0}` is gone")]
    Gone(String),
    #[error("`{0}` is not a regular file with one name: a program of the job has put a link or something else there")]
    NotPlain(String),
    #[error("`{name}` has {size} bytes; the runner reads at most {most}")]
    TooLarge { name: String, size: u64, most: u64 },
    #[error("`{name}` cannot be read or written")]
    Io {
        name: String,
        #[source]
        source: io::Error,
    },
}

/// The kind of a new file. Only a program is executable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Document,
    Program,
}

/// Opens the file `name` below `workspace`. Fails when the file has more than `most` bytes.
pub(crate) async fn open(workspace: &Path, name: impl AsRef<Path>, most: u64) -> Result<File, WorkspaceError> {
    let name = name.as_ref().to_owned();
    blocking(workspace, name, move |workspace, name| open_plain(workspace, name, most)).await
}

/// Returns the bytes of the file `name` below `workspace`. Fails when the file has more than `most` bytes.
pub(crate) async fn read(workspace: &Path, name: impl AsRef<Path>, most: u64) -> Result<Vec<u8>, WorkspaceError> {
    let name = name.as_ref().to_owned();
    blocking(workspace, name, move |workspace, name| read_plain(workspace, name, most)).await
}

/// Returns the names of the files below the directory `name` of `workspace`, relative to this directory. Fails when the
/// directory has more than `most` entries, or an entry that is neither a directory nor a regular file.
pub(crate) async fn files_below(
    workspace: &Path,
    name: impl AsRef<Path>,
    most: usize,
) -> Result<Vec<PathBuf>, WorkspaceError> {
    let name = name.as_ref().to_owned();
    blocking(workspace, name, move |workspace, name| list_plain(workspace, name, most)).await
}

/// Returns a UTF-8 text of at most [`MAX_DOCUMENT`] bytes, like [`read`].
pub(crate) async fn read_text(workspace: &Path, name: impl AsRef<Path>) -> Result<String, WorkspaceError> {
    let name = name.as_ref();
    let not_text = |error| failed(name)(io::Error::new(io::ErrorKind::InvalidData, error));
    String::from_utf8(read(workspace, name, MAX_DOCUMENT).await?).map_err(not_text)
}

/// Writes a new file `name` below `workspace`, and creates missing directories above it. An existing file of that name
/// is removed first.
pub(crate) async fn write(
    workspace: &Path,
    name: impl AsRef<Path>,
    text: impl Into<Vec<u8>>,
    kind: Kind,
) -> Result<(), WorkspaceError> {
    let (name, text) = (name.as_ref().to_owned(), text.into());
    blocking(workspace, name, move |workspace, name| write_new(workspace, name, &text, kind).map_err(failed(name)))
        .await
}

/// Runs blocking file operations on another thread, so that the async loop can renew leases meanwhile.
async fn blocking<T: Send + 'static>(
    workspace: &Path,
    name: PathBuf,
    work: impl FnOnce(&Path, &Path) -> Result<T, WorkspaceError> + Send + 'static,
) -> Result<T, WorkspaceError> {
    let (workspace, shown) = (workspace.to_owned(), name.clone());
    let done = tokio::task::spawn_blocking(move || work(&workspace, &name)).await;
    done.unwrap_or_else(|error| Err(failed(&shown)(io::Error::other(error))))
}

fn open_plain(workspace: &Path, name: &Path, most: u64) -> Result<File, WorkspaceError> {
    let open = || -> io::Result<File> {
        let (directory, last) = directory_of(workspace, name, false)?;
        Ok(File::from(openat(directory, last, READ, Mode::empty())?))
    };
    let file = open().map_err(failed(name))?;
    let data = file.metadata().map_err(failed(name))?;
    // A hard link may name a file outside the workspace. A job that runs as the runner's own user can create such a
    // link.
    if !data.is_file() || data.nlink() != 1 {
        return Err(WorkspaceError::NotPlain(name.display().to_string()));
    }
    if data.len() > most {
        return Err(WorkspaceError::TooLarge { name: name.display().to_string(), size: data.len(), most });
    }
    Ok(file)
}

fn read_plain(workspace: &Path, name: &Path, most: u64) -> Result<Vec<u8>, WorkspaceError> {
    let mut bytes = Vec::new();
    open_plain(workspace, name, most)?.take(most).read_to_end(&mut bytes).map_err(failed(name))?;
    Ok(bytes)
}

fn list_plain(workspace: &Path, name: &Path, most: usize) -> Result<Vec<PathBuf>, WorkspaceError> {
    let (mut files, mut waiting, mut seen) = (Vec::new(), vec![PathBuf::new()], 0);
    while let Some(below) = waiting.pop() {
        let here: PathBuf = name.components().chain(below.components()).collect();
        let found = entries(workspace, &here, most).map_err(failed(&here))?;
        seen += found.len();
        if seen > most {
            return Err(failed(name)(io::Error::other(format!("it has more than {most} entries"))));
        }
        for (entry, kind) in found {
            let path = below.join(entry);
            match kind {
                FileType::Directory => waiting.push(path),
                FileType::RegularFile => files.push(path),
                _ => return Err(WorkspaceError::NotPlain(name.join(path).display().to_string())),
            }
        }
    }
    Ok(files)
}

/// Returns the first entries of a directory, and no more than one beyond `most`.
fn entries(workspace: &Path, name: &Path, most: usize) -> io::Result<Vec<(OsString, FileType)>> {
    let (above, last) = directory_of(workspace, name, false)?;
    let directory = openat(above, last, LIST, Mode::empty())?;
    let mut found = Vec::new();
    for entry in Dir::read_from(&directory)? {
        let entry = entry?;
        let name = entry.file_name();
        if name == c"." || name == c".." {
            continue;
        }
        let data = statat(&directory, name, AtFlags::SYMLINK_NOFOLLOW)?;
        found.push((OsStr::from_bytes(name.to_bytes()).to_owned(), FileType::from_raw_mode(data.st_mode)));
        if found.len() > most {
            break;
        }
    }
    Ok(found)
}

fn write_new(workspace: &Path, name: &Path, text: &[u8], kind: Kind) -> io::Result<()> {
    let (directory, last) = directory_of(workspace, name, true)?;
    match unlinkat(&directory, last, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => {}
        Err(error) => return Err(error.into()),
    }
    let mode = Mode::from_raw_mode(if kind == Kind::Program { 0o755 } else { 0o644 });
    let mut file = File::from(openat(&directory, last, CREATE, mode)?);
    fchmod(&file, mode)?;
    file.write_all(text)
}

/// Returns the directory of `name` below `workspace`, and the last part of `name`. When `makes` is true, creates
/// missing directories.
fn directory_of<'a>(workspace: &Path, name: &'a Path, makes: bool) -> io::Result<(OwnedFd, &'a OsStr)> {
    let leads_out = || io::Error::new(io::ErrorKind::InvalidInput, "it is outside of the workspace");
    let parts: Option<Vec<&OsStr>> = name
        .components()
        .map(|part| match part {
            Component::Normal(part) => Some(part),
            Component::Prefix(_) | Component::RootDir | Component::CurDir | Component::ParentDir => None,
        })
        .collect();
    let parts = parts.ok_or_else(leads_out)?;
    let (last, above) = parts.split_last().ok_or_else(leads_out)?;
    let mut directory = openat(CWD, workspace, DIRECTORY, Mode::empty())?;
    for part in above {
        match makes.then(|| mkdirat(&directory, *part, Mode::from_raw_mode(0o755))) {
            None | Some(Ok(()) | Err(Errno::EXIST)) => {}
            Some(Err(error)) => return Err(error.into()),
        }
        directory = openat(&directory, *part, DIRECTORY, Mode::empty())?;
    }
    Ok((directory, last))
}

fn failed(name: &Path) -> impl FnOnce(io::Error) -> WorkspaceError {
    let name = name.display().to_string();
    move |source| match source.raw_os_error().map(Errno::from_raw_os_error) {
        Some(Errno::NOENT) => WorkspaceError::Gone(name),
        // A link, a socket, a directory, or a path through a file that is not a directory.
        Some(Errno::LOOP | Errno::NOTDIR | Errno::NXIO | Errno::ISDIR) => WorkspaceError::NotPlain(name),
        _ => WorkspaceError::Io { name, source },
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};
    use std::os::unix::net::UnixListener;
    use std::time::Duration;

    use super::*;

    /// A workspace, and a file of the runner beside it.
    fn world() -> (tempfile::TempDir, PathBuf, PathBuf) {
        let state = tempfile::tempdir().unwrap();
        let (workspace, key) = (state.path().join("workspace"), state.path().join("runner.key"));
        std::fs::create_dir(&workspace).unwrap();
        std::fs::write(&key, "key").unwrap();
        (state, workspace, key)
    }

    /// A pipe would be waited for without an end, so every answer has a deadline.
    async fn answer(workspace: &Path, name: &str) -> String {
        let read = tokio::time::timeout(Duration::from_secs(10), read(workspace, name, 8)).await;
        read.unwrap().map_or_else(|error| error.to_string(), |bytes| String::from_utf8(bytes).unwrap())
    }

    #[tokio::test]
    async fn only_a_plain_file_with_one_name_is_read() {
        let (_state, workspace, key) = world();
        std::fs::create_dir(workspace.join("module")).unwrap();
        std::fs::write(workspace.join("module/plan.bin"), "plan").unwrap();
        symlink(&key, workspace.join("link")).unwrap();
        symlink(key.parent().unwrap(), workspace.join("directory")).unwrap();
        symlink("/dev/zero", workspace.join("zero")).unwrap();
        std::fs::hard_link(&key, workspace.join("name")).unwrap();
        rustix::fs::mkfifoat(CWD, workspace.join("pipe"), Mode::RWXU).unwrap();
        let _socket = UnixListener::bind(workspace.join("socket")).unwrap();

        assert_eq!(answer(&workspace, "module/plan.bin").await, "plan");
        for name in ["link", "directory/runner.key", "zero", "name", "pipe", "socket", "module"] {
            assert!(answer(&workspace, name).await.contains("is not a regular file"), "{name}");
        }
        assert!(answer(Path::new("/dev"), "zero").await.contains("is not a regular file"));
        for name in ["../runner.key", "/etc/passwd", "module/../../runner.key", ""] {
            assert!(answer(&workspace, name).await.contains("cannot be read or written"), "{name}");
        }
        assert_eq!(answer(&workspace, "none").await, "`none` is gone");
    }

    #[tokio::test]
    async fn a_file_that_is_too_large_is_not_read() {
        let (_state, workspace, _) = world();
        File::create(workspace.join("huge")).unwrap().set_len(1 << 40).unwrap();

        assert_eq!(answer(&workspace, "huge").await, "`huge` has 1099511627776 bytes; the runner reads at most 8");
    }

    #[tokio::test]
    async fn only_plain_files_are_listed_and_not_too_many() {
        let (_state, workspace, key) = world();
        std::fs::create_dir_all(workspace.join("package/docs")).unwrap();
        std::fs::write(workspace.join("package/program"), "x").unwrap();
        std::fs::write(workspace.join("package/docs/text"), "x").unwrap();
        symlink("package", workspace.join("link")).unwrap();
        let mut found = files_below(&workspace, "package", 3).await.unwrap();
        found.sort();
        let refused =
            async |name: &str, most: usize| files_below(&workspace, name, most).await.unwrap_err().to_string();

        assert_eq!(found, ["docs/text", "program"].map(PathBuf::from));
        assert!(refused("package", 2).await.contains("`package` cannot be read"));
        assert_eq!(refused("none", 3).await, "`none` is gone");
        symlink(key, workspace.join("package/docs/key")).unwrap();
        for (name, culprit) in [("package", "package/docs/key"), ("link", "link")] {
            let why = refused(name, 9).await;
            assert!(why.contains("is not a regular file") && why.contains(culprit), "{why}");
        }
    }

    #[tokio::test]
    async fn what_is_written_replaces_a_link_and_leaves_what_it_leads_to() {
        let (state, workspace, key) = world();
        symlink(&key, workspace.join("step-2")).unwrap();
        std::fs::hard_link(&key, workspace.join("name")).unwrap();
        rustix::fs::mkfifoat(CWD, workspace.join("pipe"), Mode::RWXU).unwrap();
        symlink(state.path(), workspace.join("directory")).unwrap();

        for name in ["step-2", "name", "pipe", "new/deep/file"] {
            write(&workspace, name, "script", Kind::Program).await.unwrap();
            let data = workspace.join(name).symlink_metadata().unwrap();
            assert!(data.is_file() && data.permissions().mode() & 0o777 == 0o755, "{name}");
        }
        let through = write(&workspace, "directory/runner.key", "script", Kind::Document).await;

        assert!(through.unwrap_err().to_string().contains("is not a regular file"));
        assert_eq!(std::fs::read_to_string(&key).unwrap(), "key");
    }
}
