//! `freehold support open`: opens a sealed bundle with the vendor's key.

use std::path::{Path, PathBuf};

use clap::Args;
use freehold_sealing::OpenBundleError;
use serde::Serialize;

use super::archive::{Packed, pack, unpack};
use super::key::opening_key;
use crate::context::Context;
use crate::error::{Error, Kind, Result};
use crate::output::{Output, Table, bytes};
use crate::{clock, file};

/// The end of the name of a sealed bundle.
const SEALED: &str = ".sealed";
const WAY_OUT: &str = "pass the file that `freehold support bundle --to KEY` wrote at the customer";

/// For vendors: open a sealed bundle of a customer.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  freehold support open acme--globex-support-20261130T225055Z.tar.gz.sealed --key support.key
  aws secretsmanager get-secret-value --secret-id support-key --query SecretString --output text \\
      | freehold support open globex.sealed --key /dev/stdin --out globex.tar.gz

Writes the files that the customer sealed into a gzipped tar, which only you can read, and lists them. A bundle that was
changed, is sealed to another key, or has a file with a name that leads elsewhere is refused, and nothing is written. The seal
does not say who made the bundle: everybody who has the public key can seal one.

Exit code 1 when the bundle was changed or cannot be unpacked without harm, 2 when it is sealed to another key, 4 when the
file exists.")]
pub(crate) struct Open {
    /// The sealed bundle.
    file: PathBuf,
    /// The file that `freehold support key create` wrote.
    #[arg(long, value_name = "FILE")]
    key: PathBuf,
    /// The file to write; by default, the name of the sealed bundle without `.sealed`.
    #[arg(short, long, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// The opened bundle, as `--json` prints it.
#[derive(Debug, Serialize)]
struct Opened<'a> {
    file: &'a Path,
    entries: Vec<Packed>,
}

impl Open {
    pub(crate) fn run(&self, context: &Context) -> Result<()> {
        let to = self.to()?;
        let sealed = file::read(&self.file, WAY_OUT)?;
        let key = opening_key(&self.key)?;
        let archive = key.open_bundle(&sealed).map_err(|error| self.refused(&error))?;
        let entries = unpack(&archive)?;
        let files: Vec<(&str, &[u8])> =
            entries.iter().map(|entry| (entry.name.as_str(), entry.content.as_slice())).collect();
        file::create_secret(&to, pack(&files, clock::now()?)?)?;
        context.out.show(&Opened { file: &to, entries }, |opened| opened.render(context.out))
    }

    /// Returns the file to write.
    fn to(&self) -> Result<PathBuf> {
        let shown = self.file.to_string_lossy();
        let default = || {
            let path = shown.strip_suffix(SEALED).filter(|path| !path.is_empty()).map(PathBuf::from);
            path.ok_or_else(|| {
                Error::invalid(format!("the name `{shown}` does not end with `{SEALED}`"))
                    .or("name the file to write with `--out FILE`")
            })
        };
        let to = self.out.clone().map_or_else(default, Ok)?;
        file::must_be_free(&to)?;
        Ok(to)
    }

    fn refused(&self, error: &OpenBundleError) -> Error {
        let (kind, way_out) = match error {
            OpenBundleError::NotSealed => (Kind::Invalid, WAY_OUT),
            OpenBundleError::OtherKey(_) => {
                (Kind::Invalid, "pass the file of that key; `freehold support key show FILE` prints the key of a file")
            }
            OpenBundleError::Changed => (Kind::Failed, "ask the customer to send it again"),
        };
        Error::quoting(kind, format!("`{}` cannot be opened: {error}", self.file.display())).or(way_out)
    }
}

impl Opened<'_> {
    fn render(&self, out: Output) -> String {
        let mut table = Table::new(&["ENTRY", "SIZE"]);
        for entry in &self.entries {
            table.row([entry.name.clone(), bytes(entry.bytes)]);
        }
        format!("{}\n\nwrote `{}`", out.table(&table), self.file.display())
    }
}
