//! A tool image that is unpacked on this machine: the root file system that programs of a job see. This module does not
//! fetch images.

mod layer;
mod path;

use std::collections::BTreeMap;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use freehold_protocol::Digest;
use serde::Deserialize;

pub(crate) use layer::{Layer, LayerError, MAX_PACKED, unpack};
pub(crate) use path::follow;

use crate::unpacked_trees::{UnpackedTree, UnpackedTrees};

/// The store of unpacked images below the state directory.
const STORE: &str = "images";
/// The parts of an unpacked image: its root file system, and its config as the registry has it.
pub(crate) const ROOT: &str = "root";
pub(crate) const CONFIG: &str = "config.json";
/// The `PATH` in a box, unless the image of the job sets one.
pub(crate) const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// An unpacked image. It stays on the machine while this value exists.
#[derive(Debug, Clone)]
pub struct ToolImage {
    digest: Digest,
    tree: Arc<UnpackedTree>,
    environment: BTreeMap<String, String>,
}

/// The config of an image, as far as it matters for a job (OCI image specification 1.1, "Image Configuration").
#[derive(Debug, Default, Deserialize)]
pub(crate) struct ImageConfig {
    #[serde(default)]
    pub(crate) os: String,
    #[serde(default)]
    pub(crate) architecture: String,
    #[serde(default)]
    config: Option<ContainerConfig>,
}

#[derive(Debug, Default, Deserialize)]
struct ContainerConfig {
    #[serde(default, rename = "Env")]
    env: Option<Vec<String>>,
}

/// Returns the images that are unpacked below `state_dir`.
pub(crate) fn store(state_dir: &Path) -> io::Result<UnpackedTrees> {
    UnpackedTrees::open(state_dir.join(STORE))
}

impl ToolImage {
    /// Returns the image `digest`, if it is unpacked below `state_dir`.
    pub(crate) fn find(state_dir: &Path, digest: &Digest) -> io::Result<Option<Self>> {
        store(state_dir)?.find(digest)?.map(|tree| Self::open(digest, tree)).transpose()
    }

    /// Returns the image in `tree`.
    pub(crate) fn open(digest: &Digest, tree: UnpackedTree) -> io::Result<Self> {
        let config: ImageConfig = serde_json::from_slice(&std::fs::read(tree.path.join(CONFIG))?)?;
        let variables = config.config.unwrap_or_default().env.unwrap_or_default();
        let split = |one: &String| one.split_once('=').map(|(name, value)| (name.to_owned(), value.to_owned()));
        let environment = variables.iter().filter_map(split).collect();
        Ok(Self { digest: digest.clone(), tree: Arc::new(tree), environment })
    }

    pub(crate) const fn digest(&self) -> &Digest {
        &self.digest
    }

    /// Returns the directory that becomes the root of a box.
    pub(crate) fn root(&self) -> PathBuf {
        self.tree.path.join(ROOT)
    }

    /// Returns the variables that the image sets.
    pub(crate) const fn environment(&self) -> &BTreeMap<String, String> {
        &self.environment
    }

    /// Returns where the file is on this machine that a box with the image has at `path`. `hidden` are the paths at
    /// which the box has files of its own.
    pub(crate) fn file(&self, path: &Path, hidden: &[PathBuf]) -> io::Result<PathBuf> {
        path::follow_in_box(&self.root(), path, hidden)
    }

    /// Returns where a box finds the first of `names` that the image has on its `PATH`.
    pub(crate) fn find_program(&self, names: &[&str]) -> Option<PathBuf> {
        let directories = self.environment.get("PATH").map_or(PATH, String::as_str);
        let root = self.root();
        let is_program = |path: &PathBuf| {
            let found = path::follow(&root, path, |_| Err(io::ErrorKind::NotFound.into()));
            let data = found.and_then(|found| found.symlink_metadata());
            data.is_ok_and(|data| data.is_file() && data.permissions().mode() & 0o111 != 0)
        };
        names.iter().find_map(|name| {
            let paths = directories.split(':').map(|directory| Path::new(directory).join(name));
            paths.filter(|path| path.is_absolute()).find(is_program)
        })
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn image(config: &str, make: impl Fn(&Path)) -> (tempfile::TempDir, ToolImage) {
        let directory = tempfile::tempdir().unwrap();
        let digest = Digest::of(b"image");
        let tree = store(directory.path()).unwrap().find_or_unpack(&digest, |into| {
            std::fs::create_dir(into.join(ROOT))?;
            std::fs::write(into.join(CONFIG), config)?;
            make(&into.join(ROOT));
            Ok::<_, io::Error>(())
        });
        let image = ToolImage::open(&digest, tree.unwrap()).unwrap();
        (directory, image)
    }

    fn program(path: &Path) {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, "x").unwrap();
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }

    #[test]
    fn programs_are_found_on_the_path_of_the_image_and_links_stay_in_it() {
        let config = r#"{ "config": { "Env": ["PATH=/opt/bin:relative:/bin", "A=b=c"] } }"#;
        let (_directory, image) = image(config, |root| {
            program(&root.join("usr/bin/helm"));
            program(&root.join("opt/tools/kubectl-1.30"));
            symlink("usr/bin", root.join("bin")).unwrap();
            std::fs::create_dir_all(root.join("opt/bin")).unwrap();
            symlink("/opt/tools/kubectl-1.30", root.join("opt/bin/kubectl")).unwrap();
            // The machine has these; the image does not.
            symlink("/bin/sh", root.join("opt/bin/sh")).unwrap();
            symlink("/../../../../../../bin/ls", root.join("opt/bin/ls")).unwrap();
        });

        assert_eq!(image.find_program(&["kustomize", "kubectl"]), Some("/opt/bin/kubectl".into()));
        assert_eq!(image.find_program(&["helm"]), Some("/bin/helm".into()));
        assert_eq!(image.find_program(&["sh", "ls"]), None);
        assert_eq!(image.environment().get("A").map(String::as_str), Some("b=c"));
    }

    #[test]
    fn an_image_without_a_config_of_its_own_has_the_usual_path() {
        let (_directory, image) = image(r#"{ "config": null }"#, |root| program(&root.join("usr/local/bin/tofu")));

        assert_eq!(image.find_program(&["terraform", "tofu"]), Some("/usr/local/bin/tofu".into()));
    }
}
