//! The console: pages for the members of a tenant. It is a client of the HTTP API, which decides about each request by
//! the person's own token. Without a session it can do nothing.

mod attempts;
mod changes;
mod cookies;
mod failure;
mod pages;
mod people;
mod reads;
mod request;
mod response;
mod sealing;
mod server;
mod sessions;
mod sign_in;
#[cfg(test)]
mod tests;

pub use server::Console;
