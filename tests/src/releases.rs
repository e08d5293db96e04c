//! Releases of the runner for tests: a program in the folder of an architecture, with signed checksums.

use std::path::Path;
use std::process::Command;

use anyhow::Context as _;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ed25519_dalek::{Signer as _, SigningKey};
use freehold_protocol::Digest;

/// The name of this machine's architecture in a release.
pub const ARCHITECTURE: &str = if cfg!(target_arch = "aarch64") { "arm64" } else { std::env::consts::ARCH };

/// Returns the key number `number` that signs releases, in base64: its public half.
pub fn public_key(number: u8) -> String {
    STANDARD.encode(key(number).verifying_key().as_bytes())
}

fn key(number: u8) -> SigningKey {
    SigningKey::from_bytes(&[number; 32])
}

/// Writes a release with `program` as the runner into `folder`, signed by the key number `number`; returns the folder.
///
/// # Errors
/// When it cannot be written.
pub fn write(folder: &Path, program: &[u8], number: u8) -> anyhow::Result<String> {
    let path = format!("{ARCHITECTURE}/freehold-runner");
    std::fs::create_dir_all(folder.join(ARCHITECTURE))?;
    std::fs::write(folder.join(&path), program)?;
    let sums = format!("{}  {path}\n", Digest::of(program).hex());
    std::fs::write(folder.join("SHA256SUMS.sig"), key(number).sign(sums.as_bytes()).to_bytes())?;
    std::fs::write(folder.join("SHA256SUMS"), sums)?;
    Ok(folder.display().to_string())
}

/// Returns the program `built` without its symbols and with `name` at its end: another program that does the same.
///
/// # Errors
/// When the program cannot be read.
pub fn another(built: &Path, folder: &Path, name: &str) -> anyhow::Result<Vec<u8>> {
    let stripped = folder.join("freehold-runner.stripped");
    let done = Command::new("strip").arg("-o").arg(&stripped).arg(built).status();
    let path = if done.is_ok_and(|status| status.success()) { stripped.as_path() } else { built };
    let program = std::fs::read(path).with_context(|| format!("reading `{}`", path.display()))?;
    Ok([program, name.as_bytes().to_vec()].concat())
}
