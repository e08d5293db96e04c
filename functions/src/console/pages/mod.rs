//! The pages of the console: each is made of answers of the API, and knows neither a session nor the network.

pub(crate) mod apps;
pub(crate) mod install_parts;
pub(crate) mod installs;
pub(crate) mod job;
pub(crate) mod members;
pub(crate) mod messages;
pub(crate) mod policies;
pub(crate) mod version;
pub(crate) mod view;
pub(crate) mod workflow;
