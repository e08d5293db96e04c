//! Signs people in at an issuer of OpenID Connect: with a browser and PKCE, or with a code on another device. Also
//! renews, revokes and keeps their tokens.
//!
//! ```no_run
//! use freehold_sign_in::{Issuer, Settings, discovery_base};
//!
//! # async fn sign_in(http: reqwest::ClientBuilder, query: &str) -> Result<(), Box<dyn std::error::Error>> {
//! let issuer = "https://cognito-idp.eu-west-1.amazonaws.com/eu-west-1_abc".to_owned();
//! let endpoint = std::env::var("AWS_ENDPOINT_URL").ok();
//! let discovery_base = discovery_base(&issuer, endpoint.as_deref());
//! let settings = Settings { issuer, client_id: "abc".to_owned(), discovery_base };
//! let issuer = Issuer::discover(http, settings).await?;
//!
//! // Send the browser to `url`, and keep the attempt, sealed, until the browser is back with `query`.
//! let begun = issuer.begin(&"http://localhost:8976/callback".parse()?)?;
//! println!("open {}", begun.url);
//! let tokens = issuer.finish(&begun.attempt, query).await?;
//! println!("{} is signed in", tokens.identity.subject);
//!
//! // Before the access token expires. Keep the result: the refresh token before may be refused from then on.
//! let tokens = issuer.refresh(&tokens).await?;
//! issuer.revoke(&tokens).await?;
//! # Ok(())
//! # }
//! ```
//!
//! The crate makes its requests with the caller's HTTP client, and checks signatures with ring.

mod attempt;
mod device;
mod discovery;
mod error;
mod http;
mod identity;
mod issuer;
mod keys;
mod secret;
mod store;
mod tokens;

pub use attempt::{Attempt, Begun};
pub use device::Device;
pub use discovery::{discovery_base, is_private};
pub use error::{Error, IdTokenError, Refusal};
pub use issuer::{Issuer, Settings};
pub use secret::Secret;
pub use store::{Login, Store, StoreError};
pub use tokens::{Identity, Tokens};
