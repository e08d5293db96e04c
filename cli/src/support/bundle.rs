//! `freehold support bundle`: lists what a vendor's support needs about an install, and writes it into one file.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use clap::Args;
use freehold_protocol::sealing::SealingKey;
use freehold_protocol::{AccountId, InstallId, TenantName, Timestamp};
use freehold_sealing::seal_bundle;
use serde::Serialize;

use super::archive::{self, LIST};
use super::entry::{Entry, Missing, Parts};
use super::key::sealing_key;
use super::sources;
use crate::confirm::Effect;
use crate::context::Context;
use crate::customer::OwnInstall;
use crate::error::{Error, Result};
use crate::output::{Output, Table, bytes, clean, note};
use crate::{clock, confirm, file};

/// The format of the list in a bundle.
const FORMAT: u32 = 1;
/// The advice about the file with the output of the runner's check.
const DOCTOR: &str = "on the runner's machine, write it with `freehold-runner doctor --config FILE > doctor.txt`, or if the \
                      stack made the machine, with `/opt/freehold/freehold-runner doctor --stack NAME > doctor.txt`";
const NEVER: &str = "Never in a bundle: values of Secrets Manager and of hidden parameters, signed orders, plans, Terraform \
                     states, and anything that does not belong to this install.";

const WRITE: Effect = Effect {
    verb: "writes",
    refused: "nothing was written",
    way_out: "pass `--yes` to write the file, or `--list` only to see what would be in it",
};

/// For customers: write a file for the vendor's support, redacted and listed before it is written.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  freehold support bundle globex --tenant acme --list
  freehold support bundle globex --tenant acme
  freehold support bundle globex --tenant acme --to PEg8g7YPVPd6lDAJR7EXZWbwN5Csi5CoTTVDqsV+Nyo=
  freehold support bundle globex --tenant acme --doctor doctor.txt --out globex.tar.gz --yes

Uses your own AWS credentials, calls no service of the vendor, and sends nothing. The bundle contains the state of the
stack, its newest events, the change windows, the accepted contract, the machines, the newest audit records and reports,
and the logs of the last jobs: `tar tzf FILE` lists them, and `bundle.json` in it says what each is. What cannot be read is
listed with the reason, and the bundle is written without it.

Everything that has the shape of a secret is redacted: long runs of letters and digits that are not words, dumps of bytes,
private keys, credentials in URLs, and what follows a name such as `password=`. A secret that looks like a word is not
found: read the files before you send them.

With `--to`, the bundle is sealed to a key of the vendor's support, and only the vendor can read it, with `freehold support
open`. Get the key from the vendor in a way that you trust. Without `--to`, the file is a gzipped tar, and anybody who
gets it can read it. On this machine only you can read the file, and it is written completely or not at all.

Exit code 0 also when a part of the bundle could not be read; `--json` lists it in `missing`.")]
pub(crate) struct Bundle {
    /// Name of the install, which is read with your own AWS credentials; `--tenant` names the vendor's tenant.
    install: InstallId,
    /// Seal the bundle to this key of the vendor's support (base64), which `freehold support key create` prints.
    #[arg(long, value_name = "KEY", value_parser = sealing_key)]
    to: Option<SealingKey>,
    /// The file to write; by default, a name with the install and the time in this directory.
    #[arg(short, long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// The output of `freehold-runner doctor`, to be put into the bundle.
    #[arg(long, value_name = "FILE")]
    doctor: Option<PathBuf>,
    /// Show what would be in the bundle, and write nothing.
    #[arg(long, conflicts_with_all = ["yes", "out", "to"])]
    list: bool,
    /// Write the file without a question.
    #[arg(long)]
    yes: bool,
}

/// The list of a bundle, which is also its first file.
#[derive(Debug, Serialize)]
struct Listing {
    format: u32,
    made_at: Timestamp,
    /// The version of the command.
    version: &'static str,
    tenant: TenantName,
    install: InstallId,
    account: AccountId,
    region: String,
    entries: Vec<Entry>,
    /// What could not be read, with the reasons.
    missing: Vec<Missing>,
}

/// The result of the command, as `--json` prints it.
#[derive(Debug, Serialize)]
struct Written<'a> {
    file: &'a Path,
    bytes: usize,
    /// The key that the bundle is sealed to.
    #[serde(skip_serializing_if = "Option::is_none")]
    sealed_to: Option<&'a SealingKey>,
    #[serde(flatten)]
    listing: &'a Listing,
}

impl Bundle {
    pub(crate) async fn run(&self, context: &Context) -> Result<()> {
        let now = clock::now()?;
        let doctor = self.doctor.as_deref().map(|path| file::read_text(path, DOCTOR)).transpose()?;
        let own = OwnInstall::find(context, &self.install).await?;
        let file = self.out.clone().unwrap_or_else(|| self.default_file(&own, now));
        file::must_be_free(&file)?;
        let Parts { entries, missing, .. } = sources::collect(&own, doctor.as_deref(), now).await?;
        let listing = Listing {
            format: FORMAT,
            made_at: now,
            version: env!("CARGO_PKG_VERSION"),
            tenant: own.tenant.clone(),
            install: own.install.clone(),
            account: own.account.clone(),
            region: crate::aws::region(&own.config),
            entries,
            missing,
        };
        if self.list {
            return context.out.show(&listing, |listing| listing.render(context.out));
        }
        if !(self.yes && context.out.is_json()) {
            note(&format!("{}\n", listing.render(context.out)));
        }
        let how = self.to.as_ref().map_or_else(|| "not sealed".to_owned(), |key| format!("sealed to the key {key}"));
        confirm::consent(&format!("Write it to `{}`, {how}?", file.display()), self.yes, WRITE)?;
        let content = self.content(&listing)?;
        file::create_secret(&file, &content)?;
        let written = Written { file: &file, bytes: content.len(), sealed_to: self.to.as_ref(), listing: &listing };
        context.out.show(&written, |written| written.render(&how))
    }

    /// Returns the name of the file, if the user does not name one.
    fn default_file(&self, own: &OwnInstall, now: Timestamp) -> PathBuf {
        let at = i64::try_from(now.as_millis()).ok().and_then(|millis| jiff::Timestamp::from_millisecond(millis).ok());
        let at = at.map(|at| at.strftime("%Y%m%dT%H%M%SZ").to_string()).unwrap_or_default();
        let end = if self.to.is_some() { ".sealed" } else { "" };
        PathBuf::from(format!("{}--{}-support-{at}.tar.gz{end}", own.tenant, own.install))
    }

    /// Returns the bytes of the file: the archive, sealed if there is a key.
    fn content(&self, listing: &Listing) -> Result<Vec<u8>> {
        let list = serde_json::to_vec_pretty(listing);
        let list = list.map_err(|error| Error::internal(format!("cannot write JSON: {error}")))?;
        let entries = listing.entries.iter().map(|entry| (entry.name.as_str(), entry.content.as_slice()));
        let files: Vec<(&str, &[u8])> = std::iter::once((LIST, list.as_slice())).chain(entries).collect();
        let archive = archive::pack(&files, listing.made_at)?;
        let Some(key) = &self.to else { return Ok(archive) };
        seal_bundle(&archive, key).map_err(|error| {
            Error::invalid(format!("cannot seal the bundle to `{key}`: {error}"))
                .or("pass the key that `freehold support key create` printed at the vendor")
        })
    }
}

impl Listing {
    fn render(&self, out: Output) -> String {
        let mut table = Table::new(&["ENTRY", "SIZE", "REDACTED", "WHAT IT IS"]);
        for entry in &self.entries {
            let size = bytes(entry.bytes.try_into().unwrap_or(u64::MAX));
            let cut = if entry.is_cut { " (older ones left out)" } else { "" };
            table.row([entry.name.clone(), size, entry.redacted.to_string(), format!("{}{cut}", entry.about)]);
        }
        let mut text = out.table(&table);
        if !self.missing.is_empty() {
            text.push_str("\n\nNot in the bundle:");
            for one in &self.missing {
                let _ = write!(text, "\n- {}: {}", one.what, clean(&one.reason));
            }
        }
        format!("{text}\n\n{NEVER}")
    }
}

impl Written<'_> {
    fn render(&self, how: &str) -> String {
        let size = bytes(self.bytes.try_into().unwrap_or(u64::MAX));
        let next = match self.sealed_to {
            Some(_) => "Send the file to the vendor, who opens it with `freehold support open`.",
            None => "Read it before you send it: anybody who gets the file can read it. `--to KEY` seals a bundle.",
        };
        format!("wrote `{}` ({size}, {how})\n{next}", self.file.display())
    }
}
