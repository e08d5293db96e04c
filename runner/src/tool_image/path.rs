//! Follows a path of an image on this machine. A link leads to its target inside of the image, as it does in a box.
//! A box hides some paths of the image behind files of its own.

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
pub(crate) fn follow(root: &Path, path: &Path, make: impl FnMut(&Path) -> io::Result<()>) -> io::Result<PathBuf> {
    walk(root, path, |_, _| Ok(()), make)
}

/// Returns where the file is on this machine that a box with the image at `root` has at `path`, with all links
/// followed. `hidden` are the paths at which the box has files of its own. A path that leads through one of them is
/// refused, and so is a path through a link above one of them, because the box has a directory in the place of the
/// link.
pub(super) fn follow_in_box(root: &Path, path: &Path, hidden: &[PathBuf]) -> io::Result<PathBuf> {
    let check = |here: &Path, is_link: bool| {
        let here = Path::new("/").join(here);
        if hidden.iter().any(|hidden| *hidden == here || is_link && hidden.starts_with(&here)) {
            let here = here.display();
            return Err(io::Error::other(format!("at `{here}` a job has other files than the image")));
        }
        Ok(())
    };
    walk(root, path, check, |_| Err(io::ErrorKind::NotFound.into()))
}

/// Follows `path`, and calls `check` for each part of it and of its links: with the path of the part, relative to
/// `root`, and whether the part is a link.
fn walk(
    root: &Path,
    path: &Path,
    check: impl Fn(&Path, bool) -> io::Result<()>,
    mut make: impl FnMut(&Path) -> io::Result<()>,
) -> io::Result<PathBuf> {
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
        let here = inside.join(name);
        let next = root.join(&here);
        let data = next.symlink_metadata();
        check(&here, data.as_ref().is_ok_and(|data| data.is_symlink()))?;
        match data {
            Ok(data) if data.is_symlink() => {
                links += 1;
                if links > MAX_LINKS {
                    return Err(io::Error::other("it has too many links"));
                }
                waiting.extend(steps(&next.read_link()?));
            }
            Ok(_) => inside = here,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                make(&next)?;
                inside = here;
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

    #[test]
    fn a_path_that_a_box_hides_is_not_followed_into_the_image() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path();
        for file in ["opt/tool", "workspace/tool", "usr/state/providers/tool", "usr/state/own"] {
            std::fs::create_dir_all(root.join(file).parent().unwrap()).unwrap();
            std::fs::write(root.join(file), "x").unwrap();
        }
        symlink("/opt/tool", root.join("workspace/out")).unwrap();
        symlink("../workspace/tool", root.join("opt/link")).unwrap();
        symlink("usr/state", root.join("state")).unwrap();
        let hidden = ["/workspace", "/state/providers", "/proc"].map(PathBuf::from);
        let follow = |path: &str| follow_in_box(root, Path::new(path), &hidden);

        assert_eq!(follow("/opt/../opt/tool").unwrap(), root.join("opt/tool"));
        assert_eq!(follow("/usr/state/own").unwrap(), root.join("usr/state/own"));
        for path in ["/workspace/tool", "/workspace/out", "/opt/link", "/state/providers/tool", "/proc/self/root"] {
            let refused = follow(path).unwrap_err().to_string();
            assert!(refused.ends_with("a job has other files than the image"), "{path}: {refused}");
        }
        assert_eq!(follow("/opt/absent").unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}
