//! The way out of a job's box: a proxy by host name and tunnels to fixed hosts, which run in the runner's process.
//!
//! The box has no network of its own. It holds listeners that the runner made inside the box's network namespace, and
//! [`Egress::serve`] answers them from outside. A job resolves no names: the names of its requests are resolved here, after
//! a [`Rule`] permitted them, and the connection goes to the very address that was checked.
//!
//! | listener | what comes out | checked |
//! |---|---|---|
//! | [`Way::Proxy`] | `CONNECT host:port`, and `http://` requests in absolute form | rule, address, SNI on port 443, `Host` |
//! | [`Way::Pair`] | bytes, to one `host:port` that the contract names | address |
//! | [`Way::Endpoint`] | bytes, to one `host:port` that the runner's own configuration names | nothing |
//!
//! What is not seen: the `Host` header inside of TLS, and the inner name of an encrypted ClientHello. Behind the runner's own
//! proxy ([`Upstream`]) names are resolved by that proxy, and so the address is checked there or nowhere; NO_PROXY names
//! what the runner connects to itself.

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

pub use address::{Forbidden, check_address};
pub use count::Totals;
pub use egress::{Egress, Serving, Way};
pub use host::{Destination, Host, HostError};
pub use limits::Limits;
pub use network::{Network, SystemNetwork};
pub use refusal::{Refusal, RefusalSink};
pub use rule::{Protocol, Rule, RuleError, Rules};
pub use upstream::Upstream;
