//! Shows the root file system of an image in a box, except for the directories and files that the box has of its own.

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};

use super::Options;
use crate::tool_image::follow;

impl Options {
    /// Shows each entry of the image at `root`, read-only, except for those at the paths `taken`. A directory above
    /// one of these paths is made in the box, and its entries are shown one by one, because nothing can be mounted in a
    /// read-only directory. If the image has a link in the place of such a directory, the box still gets a directory:
    /// `bwrap` would follow the link, even to the machine's own files.
    pub(super) fn image(&mut self, root: &Path, taken: &[PathBuf]) -> io::Result<()> {
        self.entries(root, root, Path::new("/"), taken)
    }

    /// Shows the entries of `on_disk`, a directory of the image, in the directory `inside` of the box.
    fn entries(&mut self, root: &Path, on_disk: &Path, inside: &Path, taken: &[PathBuf]) -> io::Result<()> {
        let mut names = Vec::new();
        for entry in std::fs::read_dir(on_disk)? {
            names.push(entry?.file_name());
        }
        names.sort();
        for (path, inside) in names.iter().map(|name| (on_disk.join(name), inside.join(name))) {
            if taken.contains(&inside) {
                continue;
            }
            if taken.iter().any(|other| other.starts_with(&inside)) {
                if let Some(directory) = directory(root, &path) {
                    self.entries(root, &directory, &inside, taken)?;
                }
            } else if path.is_symlink() {
                let target = path.read_link()?;
                self.directories_of(&inside);
                self.add(&[OsStr::new("--symlink"), target.as_os_str(), inside.as_os_str()]);
            } else {
                self.show_as(&path, &inside);
            }
        }
        Ok(())
    }
}

/// Returns the directory to which `path` leads inside of the image.
fn directory(root: &Path, path: &Path) -> Option<PathBuf> {
    let missing = |_: &Path| Err(io::ErrorKind::NotFound.into());
    let found = follow(root, path.strip_prefix(root).ok()?, missing).ok()?;
    found.is_dir().then_some(found)
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStrExt as _;
    use std::os::unix::fs::symlink;

    use super::super::hidden_paths::hidden;
    use super::*;
    use crate::sandbox::users::JobUser;

    /// The options that show the image which `make` fills, in words.
    fn options(others: &[&str], make: impl Fn(&Path)) -> Vec<Vec<u8>> {
        let image = tempfile::tempdir().unwrap();
        make(image.path());
        let mut options = Options::empty();
        options.image(image.path(), &hidden(others.iter().map(PathBuf::from))).unwrap();
        options.etc(&JobUser::Same).unwrap();
        options.bytes.split(|byte| *byte == 0).map(<[u8]>::to_vec).collect()
    }

    fn has(options: &[Vec<u8>], words: &[&[u8]]) -> bool {
        options.windows(words.len()).any(|found| found.iter().zip(words).all(|(found, word)| found == word))
    }

    #[test]
    fn no_link_of_an_image_is_where_the_box_makes_something() {
        let found = options(&["/var/lib/freehold/providers"], |root| {
            std::fs::create_dir_all(root.join("usr/etc")).unwrap();
            std::fs::write(root.join("usr/etc/mark"), "x").unwrap();
            symlink("/oldroot/tmp", root.join("run")).unwrap();
            symlink("usr/etc", root.join("etc")).unwrap();
            symlink("/proc/self/root/var", root.join("var")).unwrap();
            symlink("/oldroot/tmp", root.join("harmless")).unwrap();
        });

        for place in ["/run", "/etc", "/var"] {
            assert!(found.windows(3).all(|one| one[0] != b"--symlink" || one[2] != place.as_bytes()), "{place}");
        }
        assert!(has(&found, &[b"--symlink", b"/oldroot/tmp", b"/harmless"]), "nothing is made below it");
        assert!(found.iter().any(|word| word == b"/etc/mark"), "what the link leads to in the image is shown");
    }

    #[test]
    fn no_image_says_what_the_loader_of_the_first_process_loads() {
        let found = options(&[], |root| {
            std::fs::create_dir(root.join("etc")).unwrap();
            std::fs::write(root.join("etc/ld.so.preload"), "/evil.so").unwrap();
        });

        assert!(!found.iter().any(|word| word.ends_with(b"ld.so.preload")));
    }

    #[test]
    fn a_name_that_is_not_utf8_stays_as_it_is() {
        let name = OsStr::from_bytes(b"n\xff\n--bind");
        let found = options(&[], |root| {
            std::fs::write(root.join(name), "x").unwrap();
            symlink(name, root.join("link")).unwrap();
        });

        assert!(has(&found, &[b"--symlink", name.as_bytes(), b"/link"]));
        assert!(found.contains(&[b"/", name.as_bytes()].concat()));
    }
}
