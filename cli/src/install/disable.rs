//! `freehold install disable`: stops serving an install.

use freehold_client::calls;
use freehold_protocol::api::{InstallView, ReasonRequest};

use super::Disable;
use crate::context::Context;
use crate::error::Result;

impl Disable {
    pub(super) async fn run(&self, context: &Context) -> Result<()> {
        let body = ReasonRequest { reason: self.reason.clone() };
        let view: InstallView = context.api().await?.send(calls::disable_install(&self.install, &body)).await?;
        context.out.show(&view, |view| {
            let why = view.disabled.as_deref().unwrap_or_default();
            format!("install {0} is disabled: {why}\n\nto enable it again: freehold install enable {0}", view.install)
        })
    }
}
