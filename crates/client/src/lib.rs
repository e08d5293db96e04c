//! The client of the tenant API: a method for each operation, with the types of [`freehold_protocol::api`].
//!
//! ```no_run
//! use freehold_client::{Client, calls};
//! use freehold_protocol::api::DeployComponentsRequest;
//! use freehold_protocol::{InstallId, TenantName};
//!
//! # async fn deploy() -> Result<(), Box<dyn std::error::Error>> {
//! let config = aws_config::load_defaults(aws_config::BehaviorVersion::latest()).await;
//! let tenant: TenantName = "acme".parse()?;
//! let client = Client::of_tenant(&config, &tenant).await?;
//!
//! // A method for each operation.
//! let install: InstallId = "globex".parse()?;
//! println!("{}", client.show_install(&install).await?.state);
//!
//! // All pages of a list, or one page after another.
//! let apps = client.all(calls::list_apps()).await?.items;
//! println!("{} apps", apps.len());
//! let mut pages = client.pages(calls::list_workflows(&install));
//! while let Some(page) = pages.next().await? {
//!     println!("{} workflows", page.items.len());
//! }
//!
//! // A call is a value. With an idempotency key, the same call may be sent again, also by another process: it starts
//! // the deploy once.
//! let deploy = calls::deploy_components(&install, &DeployComponentsRequest::default()).with_key("release-812");
//! match client.send(&deploy).await {
//!     Ok(started) => println!("{} is started", started.workflow),
//!     Err(error) if error.may_succeed_later() => println!("send it again later: {error}"),
//!     Err(error) => println!("{error} (request {})", error.request_id().unwrap_or("without an id")),
//! }
//! # Ok(())
//! # }
//! ```
//!
//! - Requests are signed with AWS Signature Version 4, by the credentials of the [`SdkConfig`](aws_config::SdkConfig).
//! - A client that [`Client::with_token`] makes sends the token of a person or a pipeline instead.
//! - A request is sent again after an error that may pass: five times with growing pauses, and for up to a minute while
//!   the API still performs an earlier try. All tries carry the same idempotency key.
//! - [`calls`] has the calls as values, [`Error`] what went wrong, and [`Webhook`] the one operation that needs no AWS
//!   credentials.

pub mod calls;

mod call;
mod client;
mod discover;
mod error;
mod http;
mod pages;
mod resolver;
mod retry;
mod sign;
mod token;
mod token_kind;
mod webhook;

pub use call::{Call, Route};
pub use client::Client;
pub use discover::{API_URL, stack_name};
pub use error::{ApiError, Error, GatewayError};
pub use http::{ANSWER, http_builder};
pub use pages::{Paged, Pages};
pub use resolver::lookup_host;
pub use retry::{Backoff, TRIES};
pub use token::{Token, TokenSource};
pub use token_kind::TokenKind;
pub use webhook::Webhook;
