//! The sign-in in a browser of another machine: the person pastes the address at which the browser ends.

use std::io::BufRead as _;

use freehold_sign_in::{Issuer, Tokens};
use url::Url;

use super::loopback::redirect_without_listener;
use crate::error::{Error, Result};
use crate::output::note;

pub(super) async fn sign_in(issuer: &Issuer) -> Result<Tokens> {
    let begun = issuer.begin(&redirect_without_listener()?)?;
    note(&format!("open {}", begun.url));
    note(
        "After the sign-in, the browser shows that it cannot open a page at `localhost`. Copy the address of this \
         page, paste it here, and press Enter:",
    );
    let mut line = String::new();
    let read = std::io::stdin().lock().read_line(&mut line);
    read.map_err(|e| Error::invalid(format!("cannot read the address from stdin: {e}")).or("paste it, or pipe it"))?;
    // The address has the code, so no message contains it.
    let page: Url = line.trim().parse().map_err(|_| not_an_address())?;
    let query = page.query().ok_or_else(not_an_address)?;
    Ok(issuer.finish(&begun.attempt, query).await?)
}

fn not_an_address() -> Error {
    Error::invalid("this is not the address of a page after a sign-in")
        .or("copy the whole address, which begins with `http://localhost`, and run `freehold login --no-browser` again")
}
