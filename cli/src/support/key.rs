//! `freehold support key`: makes the key to which customers seal their bundles, and shows its public half.

use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use clap::{Args, Subcommand};
use freehold_protocol::sealing::SealingKey;
use freehold_sealing::OpeningKey;
use serde::Serialize;
use zeroize::Zeroizing;

use crate::context::Context;
use crate::error::{Error, Result};
use crate::{file, random};

/// The beginning of a key file. The private key follows, in base64.
const MARK: &str = "freehold-support-key v1 ";
/// The size of a key, in bytes.
const KEY_BYTES: usize = 32;
/// The maximum size of a key file, in bytes.
const MAX_BYTES: u64 = 1024;
const WAY_OUT: &str = "pass the file that `freehold support key create` wrote";

#[derive(Debug, Subcommand)]
pub(crate) enum KeyCommand {
    Create(Create),
    Show(Show),
}

/// For vendors: make a key to which customers seal their support bundles.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  freehold support key create support.key

Writes the private key into the file, which only you can read, and prints the public key. Give the public key to your
customers, who pass it as `--to` to `freehold support bundle`. Whoever has the file can open every bundle that is sealed to
the key: keep it where your support's secrets are, such as in Secrets Manager, and remove the file from this machine. There is
no copy: without the file, nobody can open the bundles.")]
pub(crate) struct Create {
    /// The file to write.
    file: PathBuf,
}

/// For vendors: show the public key of a key file.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  freehold support key show support.key")]
pub(crate) struct Show {
    /// The file that `freehold support key create` wrote.
    file: PathBuf,
}

/// A public key, as `--json` prints it.
#[derive(Debug, Serialize)]
struct Shown<'a> {
    key: &'a SealingKey,
}

impl KeyCommand {
    pub(crate) fn run(&self, context: &Context) -> Result<()> {
        match self {
            Self::Create(args) => args.run(context),
            Self::Show(args) => args.run(context),
        }
    }
}

impl Create {
    fn run(&self, context: &Context) -> Result<()> {
        let bytes = Zeroizing::new(random::bytes::<KEY_BYTES>()?);
        let text = Zeroizing::new(STANDARD.encode(*bytes));
        let text = Zeroizing::new(format!("{MARK}{}\n", *text));
        file::create_secret(&self.file, text.as_bytes())?;
        let key = OpeningKey::from_bytes(&bytes).sealing_key();
        context.out.show(&Shown { key: &key }, |shown| {
            format!("wrote `{}`; give this public key to your customers:\n{}", self.file.display(), shown.key)
        })
    }
}

impl Show {
    fn run(&self, context: &Context) -> Result<()> {
        let key = opening_key(&self.file)?.sealing_key();
        context.out.show(&Shown { key: &key }, |shown| shown.key.to_string())
    }
}

/// Returns the key in a file. An error does not quote the file, which may contain a secret.
pub(super) fn opening_key(path: &Path) -> Result<OpeningKey> {
    let text = Zeroizing::new(file::read_text_at_most(path, MAX_BYTES, WAY_OUT)?);
    let read = || {
        let bytes = Zeroizing::new(STANDARD.decode(text.trim().strip_prefix(MARK)?).ok()?);
        let bytes: &[u8; KEY_BYTES] = bytes.as_slice().try_into().ok()?;
        Some(OpeningKey::from_bytes(bytes))
    };
    read().ok_or_else(|| Error::invalid(format!("`{}` is not a key file", path.display())).or(WAY_OUT))
}

/// Parses a public key on the command line.
pub(super) fn sealing_key(text: &str) -> Result<SealingKey, String> {
    SealingKey::try_from(text.to_owned()).map_err(|error| format!("{error}; `freehold support key create` prints it"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_a_key_file_is_refused_without_its_text() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("support.key");
        for text in ["", "hunter2", "freehold-support-key v1 aHVudGVyMg==", "freehold-support-key v2 AAAA"] {
            std::fs::write(&path, text).unwrap();

            let error = opening_key(&path).unwrap_err();

            assert_eq!(error.to_string(), format!("`{}` is not a key file; {WAY_OUT}", path.display()));
        }
    }

    #[test]
    fn the_key_of_the_example_in_the_help_is_one() {
        assert!(sealing_key("PEg8g7YPVPd6lDAJR7EXZWbwN5Csi5CoTTVDqsV+Nyo=").is_ok());
        assert!(sealing_key("PEg8").unwrap_err().contains("not an X25519 public key"));
    }
}
