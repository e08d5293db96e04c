//! Shows the root file system of an image in a box, without what the box has of its own.

use std::io;
use std::path::{Path, PathBuf};

use super::Options;

/// What a box makes itself, whatever an image has there.
const OWN: [&str; 10] = [
    "/proc",
    "/dev",
    "/sys",
    "/tmp",
    "/run/freehold",
    "/etc/passwd",
    "/etc/group",
    "/etc/nsswitch.conf",
    "/etc/resolv.conf",
    "/etc/hosts",
];

impl Options {
    /// Shows each entry of the image at `root`, read-only. A directory that has to hold something else too, which `others`
    /// name, is made in the box, and its entries are shown one by one: nothing can be mounted in a directory that is
    /// read-only.
    pub(super) fn image(&mut self, root: &Path, others: &[PathBuf]) -> io::Result<()> {
        let taken: Vec<PathBuf> = OWN.iter().map(PathBuf::from).chain(others.iter().cloned()).collect();
        self.entries(root, Path::new("/"), &taken)
    }

    fn entries(&mut self, root: &Path, directory: &Path, taken: &[PathBuf]) -> io::Result<()> {
        let mut names = Vec::new();
        for entry in std::fs::read_dir(on_disk(root, directory))? {
            names.push(entry?.file_name());
        }
        names.sort();
        for inside in names.iter().map(|name| directory.join(name)) {
            let path = on_disk(root, &inside);
            let data = path.symlink_metadata()?;
            if taken.contains(&inside) {
                continue;
            }
            if data.is_symlink() {
                let target = path.read_link()?;
                self.directories_of(&inside);
                self.add(&["--symlink", &target.display().to_string(), &inside.display().to_string()]);
            } else if data.is_dir() && taken.iter().any(|other| other.starts_with(&inside)) {
                self.entries(root, &inside, taken)?;
            } else {
                self.show_as(&path, &inside);
            }
        }
        Ok(())
    }
}

fn on_disk(root: &Path, inside: &Path) -> PathBuf {
    root.join(inside.strip_prefix("/").unwrap_or(inside))
}
