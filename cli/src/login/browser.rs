//! The sign-in in a browser of this machine, which returns to an address on loopback.

use std::process::{Command, Stdio};
use std::time::Duration;

use freehold_sign_in::{Issuer, Tokens};
use url::Url;

use super::loopback::Loopback;
use crate::error::{Error, Result};
use crate::output::note;
use crate::progress::{Progress, or_stopped};

/// How long the command waits for the browser.
const PATIENCE: Duration = Duration::from_secs(300);

pub(super) async fn sign_in(issuer: &Issuer) -> Result<Tokens> {
    let loopback = Loopback::open().await?;
    let begun = issuer.begin(&loopback.redirect()?)?;
    let advice =
        if open(&begun.url) { "sign in in your browser; if none has opened, open" } else { "to sign in, open" };
    note(&format!("{advice} {}", begun.url));
    let progress = Progress::start();
    progress.now("waiting for the browser");
    let late = || {
        Error::failed(format!("the browser did not return within {} minutes", PATIENCE.as_secs() / 60))
            .or("run `freehold login` again, or `freehold login --no-browser` if the browser is on another machine")
    };
    let wait = async {
        let callback = tokio::time::timeout(PATIENCE, loopback.callback(&begun.attempt)).await;
        callback.unwrap_or_else(|_| Err(late()))
    };
    let callback = or_stopped(wait, "nobody is signed in; run `freehold login` again".to_owned()).await?;
    let tokens = issuer.finish(&begun.attempt, callback.query()).await.map_err(Error::from);
    callback.answer(tokens.as_ref().err()).await;
    tokens
}

/// Opens a page in the browser of this machine; returns whether a program for it started.
fn open(page: &Url) -> bool {
    let program = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    let mut command = Command::new(program);
    command.arg(page.as_str()).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().is_ok()
}
