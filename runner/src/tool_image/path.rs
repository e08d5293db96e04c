//! Follows a path of an image on this machine. A link leads to its target inside of the image, as it does in a box.

use std::ffi::OsString;
use std::io;
use std::path::{Component, Path, PathBuf};

/// The maximum number of links in one path, as in Linux.
const MAX_LINKS: usize = 40;

enum Step {
    Root,
    Up,
    Name(OsString),
}

/// Returns where `path` of the image at `root` is on this machine, with all links followed. `make` is called for each
/// part that is missing, and may make it. The caller must be the only one that changes the image.
pub(crate) fn follow(root: &Path, path: &Path, mut make: impl FnMut(&Path) -> io::Result<()>) -> io::Result<PathBuf> {
    let (mut waiting, mut links) = (steps(path), 0);
    let mut inside = PathBuf::new();
    while let Some(step) = waiting.pop() {
        let name = match step {
            Step::Root => {
                inside = PathBuf::new();
                continue;
            }
            Step::Up => {
                inside.pop();
                continue;
            }
            Step::Name(name) => name,
        };
        let next = root.join(&inside).join(&name);
        match next.symlink_metadata() {
            Ok(data) if data.is_symlink() => {
                links += 1;
                if links > MAX_LINKS {
                    return Err(io::Error::other("it has too many links"));
                }
                waiting.extend(steps(&next.read_link()?));
            }
            Ok(_) => inside.push(name),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                make(&next)?;
                inside.push(name);
            }
            Err(error) => return Err(error),
        }
    }
    Ok(root.join(inside))
}

/// Returns the steps of `path` in reverse order.
fn steps(path: &Path) -> Vec<Step> {
    let parts = path.components().rev().filter_map(|part| match part {
        Component::RootDir => Some(Step::Root),
        Component::ParentDir => Some(Step::Up),
        Component::Normal(name) => Some(Step::Name(name.to_owned())),
        Component::CurDir | Component::Prefix(_) => None,
    });
    parts.collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn no_link_leads_out_of_the_image() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path();
        std::fs::create_dir_all(root.join("usr/lib")).unwrap();
        symlink("usr/lib", root.join("lib")).unwrap();
        symlink("/lib", root.join("usr/own")).unwrap();
        symlink("../../../../etc", root.join("up")).unwrap();
        symlink("loop", root.join("loop")).unwrap();
        let follow = |path: &str| super::follow(root, Path::new(path), |missing| std::fs::create_dir(missing));

        assert_eq!(follow("usr/own/x/../y").unwrap(), root.join("usr/lib/y"));
        assert_eq!(follow("up/passwd").unwrap(), root.join("etc/passwd"));
        assert_eq!(follow("../../lib").unwrap(), root.join("usr/lib"));
        assert!(follow("loop/x").is_err());
    }
}
