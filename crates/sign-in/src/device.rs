//! The sign-in of a machine without a browser: a code that the person enters on another device (RFC 8628).

use std::time::Duration;

use serde::Deserialize;

use crate::error::Error;
use crate::issuer::Issuer;
use crate::secret::Secret;
use crate::tokens::Tokens;

/// The pause between two questions when the issuer names none (RFC 8628, section 3.2).
const INTERVAL_SECS: u64 = 5;
/// By how much the pause grows when the issuer asks for it (RFC 8628, section 3.5).
const SLOWER: Duration = Duration::from_secs(5);

/// A code to enter on another device, and where.
#[derive(Debug)]
pub struct Device {
    /// The code that the person enters.
    pub user_code: String,
    /// The page to open on the other device.
    pub page: String,
    /// The page with the code in its address, when the issuer has one.
    pub page_with_code: Option<String>,
    /// How long the code can be entered.
    pub valid: Duration,
    /// The pause before the next [`Issuer::poll`].
    pub interval: Duration,
    code: Secret,
}

#[derive(Deserialize)]
struct DeviceAnswer {
    device_code: Secret,
    user_code: String,
    verification_uri: String,
    #[serde(default)]
    verification_uri_complete: Option<String>,
    expires_in: u64,
    #[serde(default)]
    interval: Option<u64>,
}

impl Issuer {
    /// Asks for a code that the person enters on another device.
    ///
    /// # Errors
    /// NoDevice, Refused, and the errors of a request.
    pub async fn device(&self) -> Result<Device, Error> {
        let url = self.document.device.as_ref();
        let url = url.ok_or_else(|| Error::NoDevice(self.settings.issuer.clone()))?;
        let scopes = self.scopes();
        let form = [("client_id", self.settings.client_id.as_str()), ("scope", scopes.as_str())];
        let answer: DeviceAnswer = self.http.post(url, &form).await?.read()?;
        Ok(Device {
            user_code: answer.user_code,
            page: answer.verification_uri,
            page_with_code: answer.verification_uri_complete,
            valid: Duration::from_secs(answer.expires_in),
            interval: Duration::from_secs(answer.interval.unwrap_or(INTERVAL_SECS)),
            code: answer.device_code,
        })
    }

    /// Asks once whether the person has entered the code. Returns `None` while they have not; the caller waits for
    /// [`Device::interval`] before it asks again.
    ///
    /// # Errors
    /// Refused, CodeExpired, IdToken, and the errors of a request.
    pub async fn poll(&self, device: &mut Device) -> Result<Option<Tokens>, Error> {
        let form = [
            ("grant_type", "urn:ietf:params:oauth:grant-type:device_code"),
            ("device_code", device.code.expose()),
            ("client_id", self.settings.client_id.as_str()),
        ];
        let answer = self.http.post(&self.document.token, &form).await?;
        match answer.refusal() {
            None => self.tokens(answer, None).await.map(Some),
            Some(Error::Refused(refusal)) => match refusal.code.as_str() {
                "authorization_pending" => Ok(None),
                "slow_down" => {
                    device.interval += SLOWER;
                    Ok(None)
                }
                "expired_token" => Err(Error::CodeExpired),
                _ => Err(Error::Refused(refusal)),
            },
            Some(other) => Err(other),
        }
    }
}
