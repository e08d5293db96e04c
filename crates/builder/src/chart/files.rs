//! The files of one chart: finds them in a directory as Helm does, and packs them so that the same files give the same
//! bytes.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use flate2::{Compression, GzBuilder};
use tar::{Builder, EntryType, Header};

use super::ignore::Ignore;

/// The maximum size of an unpacked chart, in bytes. Helm has the same limit (Helm 3.17, `MaxDecompressedChartSize`).
const MAX_BYTES: u64 = 100 * 1024 * 1024;
/// The maximum number of files in a chart.
const MAX_FILES: usize = 20_000;
/// The maximum depth of directories. It ends the search when links form a cycle.
const MAX_DEPTH: usize = 32;
/// The maximum size of a file that the builder itself parses, in bytes.
const MAX_TEXT: u64 = 1024 * 1024;

/// The files of a chart: the path on disk, by the path in the chart.
pub(super) type Files = BTreeMap<String, PathBuf>;

/// Finds the files of the chart in `directory`. Follows links, as Helm does, but never out of `root`.
pub(super) fn find(directory: &Path, root: &Path, packaged: bool) -> Result<Files, String> {
    let rules = directory.join(".helmignore");
    let rules = if packaged || !rules.is_file() { String::new() } else { text(&rules)? };
    let root = root.canonicalize().map_err(|error| format!("could not read the source: {error}"))?;
    let mut finder = Finder { root, ignore: Ignore::parse(&rules)?, packaged, files: Files::new(), bytes: 0 };
    finder.look_into(directory, "", 0)?;
    Ok(finder.files)
}

struct Finder {
    root: PathBuf,
    ignore: Ignore,
    /// Whether the chart comes from an archive. `.helmignore` has no effect then.
    packaged: bool,
    files: Files,
    bytes: u64,
}

impl Finder {
    fn look_into(&mut self, directory: &Path, below: &str, depth: usize) -> Result<(), String> {
        let unreadable = |error: std::io::Error| format!("could not read `{below}` of the chart: {error}");
        if depth > MAX_DEPTH {
            return Err(format!("`{below}` nests deeper than {MAX_DEPTH} directories; a link may form a loop"));
        }
        for entry in std::fs::read_dir(directory).map_err(unreadable)? {
            let entry = entry.map_err(unreadable)?;
            let name = entry.file_name();
            let in_chart = |name: &str| if below.is_empty() { name.to_owned() } else { format!("{below}/{name}") };
            let name = name.to_str().ok_or_else(|| {
                let path = in_chart(&name.to_string_lossy());
                format!("the name of the file `{path}` of the chart is not UTF-8; rename it")
            })?;
            let path = in_chart(name);
            let file = entry.path().canonicalize();
            let file = file.map_err(|_| {
                format!(
                    "`{path}` of the chart is a link to a file that does not exist; remove the link, or add the file"
                )
            })?;
            if path == ".git" || !self.packaged && self.ignore.ignores(&path, file.is_dir()) {
                continue;
            }
            if !file.starts_with(&self.root) {
                return Err(format!(
                    "`{path}` of the chart is a symbolic link to a file outside the source; replace the link with the file"
                ));
            }
            if file.is_dir() {
                self.look_into(&file, &path, depth + 1)?;
            } else {
                self.add(path, file)?;
            }
        }
        Ok(())
    }

    fn add(&mut self, path: String, file: PathBuf) -> Result<(), String> {
        let data = file.metadata().map_err(|error| format!("could not read `{path}` of the chart: {error}"))?;
        if !data.is_file() {
            return Err(format!(
                "`{path}` of the chart is neither a file nor a directory; remove it, or name it in `.helmignore`"
            ));
        }
        self.bytes += data.len();
        self.files.insert(path, file);
        if self.bytes > MAX_BYTES || self.files.len() > MAX_FILES {
            return Err(format!(
                "the chart has more than {MAX_BYTES} bytes or {MAX_FILES} files; name in `.helmignore` what is not part \
                 of it"
            ));
        }
        Ok(())
    }
}

/// Returns the text of a file that describes the chart.
pub(super) fn text(file: &Path) -> Result<String, String> {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let mut text = String::new();
    let read = File::open(file).and_then(|file| file.take(MAX_TEXT + 1).read_to_string(&mut text));
    match read {
        Ok(bytes) if bytes as u64 > MAX_TEXT => Err(format!("`{name}` is larger than {MAX_TEXT} bytes")),
        Ok(_) => Ok(text),
        Err(error) => Err(format!("could not read `{name}`: {error}")),
    }
}

/// Packs `files` below `name` into a new file at `into`, sorted and without times, owners or other data of the machine.
pub(super) fn pack(name: &str, files: &Files, into: &Path) -> std::io::Result<()> {
    // 255 means an unknown operating system (RFC 1952): the bytes must not depend on the machine.
    let gzip = GzBuilder::new().mtime(0).operating_system(255).write(File::create(into)?, Compression::new(6));
    let mut tar = Builder::new(gzip);
    for (path, file) in files {
        let file = File::open(file)?;
        let size = file.metadata()?.len();
        let mut header = Header::new_gnu();
        header.set_entry_type(EntryType::Regular);
        header.set_mode(0o644);
        header.set_mtime(0);
        header.set_uid(0);
        header.set_gid(0);
        header.set_size(size);
        // A file that grows during the read must not shift the entries after it.
        tar.append_data(&mut header, format!("{name}/{path}"), file.take(size))?;
    }
    tar.into_inner()?.finish()?.sync_all()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn links_inside_are_followed_and_links_outside_are_refused() {
        let root = tempfile::tempdir().unwrap();
        let chart = root.path().join("charts/web");
        fs::create_dir_all(chart.join("templates")).unwrap();
        fs::create_dir_all(root.path().join("shared")).unwrap();
        fs::write(root.path().join("shared/labels.tpl"), "x").unwrap();
        fs::write(chart.join("notes.txt"), "x").unwrap();
        fs::write(chart.join(".helmignore"), "*.txt\n").unwrap();
        symlink("../../shared", chart.join("shared")).unwrap();

        let files = find(&chart, root.path(), false).unwrap();
        let outside = find(&chart, &chart, false);
        symlink(".", chart.join("templates/again")).unwrap();
        let circle = find(&chart, root.path(), false);

        assert_eq!(files.keys().collect::<Vec<_>>(), [".helmignore", "shared/labels.tpl"]);
        assert!(outside.unwrap_err().contains("outside the source"));
        assert!(circle.unwrap_err().contains("may form a loop"));
    }
}
