//! The outgoing connections of a job in a box: a proxy that permits hosts by name, and tunnels to fixed hosts. Both run
//! in the runner's process.
//!
//! The box has no network connection of its own. The runner creates listeners inside the box's network namespace, and
//! [`Egress::serve`] serves them from outside. A job does not resolve names itself. This crate resolves the names of
//! its requests after a [`Rule`] permitted them, and connects only to an address that it checked.
//!
//! | listener | traffic | checks |
//! |---|---|---|
//! | [`Way::Proxy`] | `CONNECT host:port`, and `http://` requests in absolute form | rule, address, SNI on port 443, `Host` |
//! | [`Way::Pair`] | bytes, to one `host:port` that the rules permit | rule, address, SNI on port 443 |
//! | [`Way::Endpoint`] | bytes, to one `host:port` that the runner's own configuration names | nothing |
//!
//! A name may resolve to an address of a private network only if [`Rules::inside`] marks the name. The proxy also
//! permits the hosts that [`AccountHosts`] finds in the customer's account.
//!
//! Two things stay invisible: the `Host` header inside TLS, and the inner name of an encrypted ClientHello. When the
//! runner itself uses a proxy ([`Upstream`]), that proxy resolves the names, so only the proxy can check their
//! addresses. The runner connects directly to the hosts in NO_PROXY.

mod account;
mod address;
mod count;
mod egress;
mod forward;
mod gate;
mod headers;
mod host;
mod limits;
mod network;
mod proxy;
mod refusal;
mod rule;
mod server_name;
mod tunnel;
mod upstream;

pub use account::AccountHosts;
pub use address::{Forbidden, Scope, check_address};
pub use count::Totals;
pub use egress::{Egress, Serving, Way};
pub use host::{Destination, Host, HostError};
pub use limits::Limits;
pub use network::{Network, SystemNetwork};
pub use refusal::{Refusal, RefusalSink};
pub use rule::{Protocol, Rule, RuleError, Rules};
pub use upstream::Upstream;
