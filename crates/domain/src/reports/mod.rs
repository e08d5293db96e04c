//! The control plane's decisions about reports: the queue that an install sends them to, how many of them it handles,
//! and the newest audit record that they name.

pub mod budget;
pub mod head;
pub mod shards;
