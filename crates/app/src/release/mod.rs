//! Releases and channels: name a version with its artifacts, move a channel to it, and bring the installs that follow
//! the channel there.

pub mod create_release;
pub mod follow_channel;
pub mod move_channel;
