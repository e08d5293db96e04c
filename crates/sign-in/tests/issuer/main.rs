//! Sign-ins at a small issuer that really signs its tokens, and logins in real files.

#![cfg(test)]

mod browser;
mod client;
mod device;
mod logins;
mod server;
mod tokens;
