//! The sign-in with a code on another device.

use freehold_sign_in::{Device, Issuer, Tokens};
use tokio::time::Instant;

use crate::error::Result;
use crate::output::{clean, note};
use crate::progress::{Progress, or_stopped};

pub(super) async fn sign_in(issuer: &Issuer) -> Result<Tokens> {
    let device = issuer.device().await?;
    note(&format!("open {} on any device, and enter the code {}", clean(&device.page), clean(&device.user_code)));
    if let Some(page) = &device.page_with_code {
        note(&format!("this page has the code already: {}", clean(page)));
    }
    let message = "nobody is signed in; run `freehold login --device` again".to_owned();
    or_stopped(tokens(issuer, device), message).await
}

/// Asks the issuer in its own pace until somebody has entered the code.
async fn tokens(issuer: &Issuer, mut device: Device) -> Result<Tokens> {
    let (progress, end) = (Progress::start(), Instant::now() + device.valid);
    loop {
        let left = end.saturating_duration_since(Instant::now()).as_secs();
        progress.now(format!("waiting until the code is entered; it is valid for {left} s"));
        tokio::time::sleep(device.interval).await;
        match issuer.poll(&mut device).await? {
            Some(tokens) => return Ok(tokens),
            None if Instant::now() >= end => return Err(freehold_sign_in::Error::CodeExpired.into()),
            None => {}
        }
    }
}
