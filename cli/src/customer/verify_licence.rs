//! `freehold customer verify-licence`: verifies the licence of an install, without a network or an account.

use std::path::PathBuf;

use clap::Args;
use freehold_protocol::envelope::PublicKey;
use freehold_protocol::licence::Licence;
use freehold_protocol::{InstallId, KeyId, Timestamp};
use serde::Serialize;

use super::answer::Answer;
use crate::clock;
use crate::context::Context;
use crate::error::{Error, Kind, Result};
use crate::job::plain;
use crate::output::{Part, Table, clean, time};

/// The way out when the file is not a licence.
const WAY_OUT: &str = "pass the text that the app gets as `.nuon.install.licence`";

/// Check the vendor's signature of an install's licence, without a network or an account.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  freehold customer verify-licence licence.json --root-key 11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=
  freehold customer verify-licence licence.json --root-key KEY --install globex --json

The file has the text that the app gets as `.nuon.install.licence`. The key is the output `TenantKey` of the install
stack. Exit code 1 when the signature is not valid, or when the licence belongs to another install than `--install`. A
licence that is over has exit code 0, and the output says so: the app decides what follows from it.")]
pub(crate) struct VerifyLicence {
    /// The file with the signed licence.
    file: PathBuf,
    /// The tenant's root key, base64.
    #[arg(long, value_name = "KEY")]
    root_key: PublicKey,
    /// The install to which the licence must belong.
    #[arg(long, value_name = "INSTALL")]
    install: Option<InstallId>,
}

/// A verified licence as `--json` prints it.
#[derive(Debug, Serialize)]
struct Verified {
    root_key: KeyId,
    /// Whether the licence is over now.
    over: bool,
    licence: Licence,
}

impl VerifyLicence {
    pub(super) fn run(&self, context: &Context) -> Result<()> {
        let bytes = crate::file::read(&self.file, WAY_OUT)?;
        let opened = Licence::open_under(bytes.trim_ascii(), &self.root_key);
        let checked = opened.and_then(|licence| {
            let install = self.install.as_ref().unwrap_or(&licence.install);
            licence.check_install(&licence.tenant, install).map(|()| licence)
        });
        let licence = checked.map_err(|error| {
            Error::quoting(Kind::Failed, format!("`{}` is not a valid licence: {error}", self.file.display()))
                .or("do not use this licence; ask the vendor for it again, and for the tenant's public key")
        })?;
        let valid = "the signature is valid under the root key that you passed";
        answer(licence, self.root_key.key_id(), (clock::now()?, valid))?.print(context.out)
    }
}

/// Returns a licence whose signature was verified. `valid` is the sentence about its signature.
pub(super) fn answer(licence: Licence, root_key: KeyId, (now, valid): (Timestamp, &str)) -> Result<Answer> {
    let verified = Verified { root_key, over: licence.is_over(now), licence };
    Answer::new(&verified, vec![Part::Table(table(&verified)), Part::Text(valid.to_owned())])
}

fn table(verified: &Verified) -> Table {
    let licence = &verified.licence;
    let mut table = Table::new(&["LICENCE", ""]);
    let mut add = |name: &str, value: String| table.row([name.to_owned(), value]);
    add("install", format!("{} of tenant {}", licence.install, licence.tenant));
    add("app", licence.app.to_string());
    add("number", licence.serial.to_string());
    add("set", time(licence.issued_at));
    let end = licence.not_after.map_or_else(|| "none".to_owned(), time);
    let over = if verified.over { "; the licence is over" } else { "" };
    add("end", format!("{end}{over}"));
    if licence.withdrawn {
        add("withdrawn", "yes".to_owned());
    }
    for (name, value) in &licence.facts {
        add(&clean(&format!("fact {name}")), clean(&plain(value)));
    }
    table
}
