//! Apps: how one begins, is built, gets its versions and loses what nobody uses.

mod build_machine;
mod init;
mod prune;
mod versions;
mod webhooks;
