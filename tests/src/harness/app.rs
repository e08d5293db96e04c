//! App configs for tests: the demo app with an image beside it, and a small one that needs no build.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use freehold_protocol::Digest;
use serde_json::{Value, json};

use crate::workspace::workspace_root;

const IMAGE: &str = "application/vnd.oci.image";

/// Copies the demo app into `parent` and gives it an image with one layer for each of `layer_bytes`.
///
/// # Errors
/// When files cannot be written.
pub fn demo(parent: &Path, layer_bytes: &[usize]) -> anyhow::Result<PathBuf> {
    let app = parent.join("demo");
    copy(&workspace_root()?.join("examples/demo"), &app)?;
    image(&app.join("image"), layer_bytes)?;
    Ok(app)
}

/// Copies the demo app with its cluster into `parent`, and gives it an image as [`demo`] does.
///
/// # Errors
/// When files cannot be written.
pub fn demo_with_cluster(parent: &Path, layer_bytes: &[usize]) -> anyhow::Result<PathBuf> {
    let app = demo(parent, layer_bytes)?;
    copy(&workspace_root()?.join("examples/demo-cluster"), &app)?;
    Ok(app)
}

/// Writes an app whose only content is the action `say`, which ends at once.
///
/// # Errors
/// When files cannot be written.
pub fn small(parent: &Path) -> anyhow::Result<PathBuf> {
    let app = parent.join("small");
    let role = |mode: &str| {
        let name = format!("name = \"{{{{ .nuon.install.id }}}}-{mode}\"");
        format!("type = \"{mode}\"\n{name}\ndisplay_name = \"{mode}\"\ndescription = \"does nothing\"\n")
    };
    write(&app, "metadata.toml", "version = \"v2\"\ndisplay_name = \"Small\"\ndescription = \"one action\"\n")?;
    write(&app, "permissions/provision.toml", &role("provision"))?;
    write(&app, "permissions/maintenance.toml", &role("maintenance"))?;
    let action = "name = \"say\"\ntimeout = \"1m\"\n\n[[triggers]]\ntype = \"manual\"\n\n\
                  [[steps]]\nname = \"say\"\ncommand = \"echo said\"\n";
    write(&app, "actions/say.toml", action)?;
    Ok(app)
}

/// Writes a file of the app in `directory`, with the folders above it.
///
/// # Errors
/// When it cannot be written.
pub fn write(directory: &Path, file: &str, text: &str) -> anyhow::Result<()> {
    let path = directory.join(file);
    std::fs::create_dir_all(path.parent().context("a file without a folder")?)?;
    std::fs::write(&path, text).with_context(|| format!("writing `{}`", path.display()))
}

/// Exchanges `old` for `new` in a file of an app.
///
/// # Errors
/// When it cannot be written, or has no such text.
pub fn edit(directory: &Path, file: &str, old: &str, new: &str) -> anyhow::Result<()> {
    let text = std::fs::read_to_string(directory.join(file))?;
    anyhow::ensure!(text.contains(old), "`{file}` has no `{old}`");
    write(directory, file, &text.replace(old, new))
}

fn copy(from: &Path, to: &Path) -> anyhow::Result<()> {
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let path = entry?.path();
        let name = path.file_name().context("an entry without a name")?;
        if path.is_file() {
            std::fs::copy(&path, to.join(name))?;
        } else if name != "image" {
            copy(&path, &to.join(name))?;
        }
    }
    Ok(())
}

/// Writes an OCI image layout (OCI image specification 1.1, `image-layout`) whose layers do not compress.
fn image(layout: &Path, layer_bytes: &[usize]) -> anyhow::Result<()> {
    let blob = |bytes: &[u8], kind: &str| -> anyhow::Result<Value> {
        let digest = Digest::of(bytes);
        write_bytes(&layout.join("blobs/sha256").join(digest.hex()), bytes)?;
        Ok(json!({"mediaType": format!("{IMAGE}.{kind}"), "digest": digest, "size": bytes.len()}))
    };
    let (mut layers, mut ids) = (Vec::new(), Vec::new());
    for (number, size) in layer_bytes.iter().enumerate() {
        let layer = tar(&format!("layer-{number}"), &noise(number as u64, *size))?;
        ids.push(Digest::of(&layer));
        layers.push(blob(&layer, "layer.v1.tar")?);
    }
    let config = json!({
        "architecture": "amd64", "os": "linux", "config": {}, "rootfs": {"type": "layers", "diff_ids": ids},
    });
    let config = blob(config.to_string().as_bytes(), "config.v1+json")?;
    let kind = format!("{IMAGE}.manifest.v1+json");
    let manifest = json!({"schemaVersion": 2, "mediaType": kind, "config": config, "layers": layers});
    let manifest = blob(manifest.to_string().as_bytes(), "manifest.v1+json")?;
    let index = json!({
        "schemaVersion": 2, "mediaType": format!("{IMAGE}.index.v1+json"), "manifests": [manifest],
    });
    write_bytes(&layout.join("index.json"), index.to_string().as_bytes())?;
    write_bytes(&layout.join("oci-layout"), br#"{"imageLayoutVersion":"1.0.0"}"#)
}

fn write_bytes(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    std::fs::create_dir_all(path.parent().context("a file without a folder")?)?;
    std::fs::write(path, bytes).with_context(|| format!("writing `{}`", path.display()))
}

fn tar(name: &str, content: &[u8]) -> anyhow::Result<Vec<u8>> {
    let mut archive = tar::Builder::new(Vec::new());
    let mut header = tar::Header::new_ustar();
    header.set_size(content.len() as u64);
    header.set_mode(0o644);
    archive.append_data(&mut header, name, content)?;
    Ok(archive.into_inner()?)
}

/// Returns pseudo-random bytes, which are the same for the same seed.
fn noise(seed: u64, size: usize) -> Vec<u8> {
    let mut bytes = vec![0; size];
    fastrand::Rng::with_seed(seed).fill(&mut bytes);
    bytes
}
