//! `freehold install enable`: permits workflows and grants of artifacts for a disabled install again.

use freehold_client::calls;
use freehold_protocol::api::InstallView;

use super::Enable;
use crate::context::Context;
use crate::error::Result;

impl Enable {
    pub(super) async fn run(&self, context: &Context) -> Result<()> {
        let view: InstallView = context.api().await?.send(calls::enable_install(&self.install)).await?;
        context.out.show(&view, |view| format!("install {} is enabled", view.install))
    }
}
