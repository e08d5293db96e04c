//! A table in which somebody else acts between two calls of a use case.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use freehold_app::ports::{Committed, Key, PortError, Row, Store, Write};
use freehold_app::testing::Memory;
use futures_util::future::BoxFuture;

/// What somebody else does.
type Act = Box<dyn Fn() -> BoxFuture<'static, ()> + Send + Sync>;

/// The table of `memory`. Before the call with the number `at`, from 0, somebody else acts.
pub(crate) struct Interleaved {
    pub(crate) memory: Arc<Memory>,
    pub(crate) at: usize,
    pub(crate) act: Act,
    calls: AtomicUsize,
}

impl Interleaved {
    pub(crate) fn new(memory: Arc<Memory>, at: usize, act: Act) -> Self {
        Self { memory, at, act, calls: AtomicUsize::new(0) }
    }

    async fn before(&self) {
        if self.calls.fetch_add(1, Ordering::Relaxed) == self.at {
            (self.act)().await;
        }
    }
}

#[async_trait]
impl Store for Interleaved {
    async fn get(&self, key: &Key) -> Result<Option<Row>, PortError> {
        self.before().await;
        self.memory.get(key).await
    }

    async fn query(&self, pk: &str, prefix: &str, after: Option<&str>, limit: u32) -> Result<Vec<Row>, PortError> {
        self.before().await;
        self.memory.query(pk, prefix, after, limit).await
    }

    async fn commit(&self, writes: Vec<Write>) -> Result<Committed, PortError> {
        self.before().await;
        self.memory.commit(writes).await
    }
}
