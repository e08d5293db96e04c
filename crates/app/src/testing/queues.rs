//! The queues in memory: they record their messages.

use async_trait::async_trait;

use super::lock::lock;
use super::memory::Memory;
use crate::messages::{DispatchMessage, GrantMessage};
use crate::ports::{OrdersQueue, Outbox, PortError};

#[async_trait]
impl Outbox for Memory {
    async fn dispatch(&self, messages: &[DispatchMessage]) -> Result<(), PortError> {
        self.faults.run("dispatch", || lock(&self.dispatched).extend_from_slice(messages))
    }

    async fn request_grant(&self, message: &GrantMessage) -> Result<(), PortError> {
        self.faults.run("request_grant", || lock(&self.grants).push(message.clone()))
    }
}

#[async_trait]
impl OrdersQueue for Memory {
    async fn send(&self, queue_url: &str, group: &str, dedup: &str, body: &str) -> Result<(), PortError> {
        self.faults.run("send", || {
            let mut orders = lock(&self.orders);
            if !orders.iter().any(|(url, _, known, _)| url == queue_url && known == dedup) {
                orders.push((queue_url.to_owned(), group.to_owned(), dedup.to_owned(), body.to_owned()));
            }
        })
    }
}
