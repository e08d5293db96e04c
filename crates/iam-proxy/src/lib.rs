//! An IAM endpoint for a job (`AWS_ENDPOINT_URL_IAM`). With this endpoint, modules that were not written for Freehold
//! run unchanged under the install's boundary: new roles get the install's boundary, path and tags, reads show none of
//! them that the module did not ask for, and a role must not trust principals outside of the account.

mod answer;
mod clusters;
mod conceal;
mod held_policies;
mod home;
mod install;
mod json;
mod ownership;
mod plan;
mod proxy;
mod query;
mod record;
mod refusal;
mod rules;
mod server;
mod services;
mod trust;
mod upstream;
mod xml;

pub use clusters::cluster_issuers;
pub use home::{DOMAINS, Home, dns_suffix};
pub use install::{Install, OWNER_TAG};
pub use proxy::{ClusterOwner, Proxy};
pub use record::{Change, Recorder, Stage, Used};
pub use server::{Connections, serve};
pub use trust::{Stranger, Trust, issuers, trust};
pub use upstream::{Endpoint, Upstream};
