//! `freehold install disable` and `enable`.

use freehold_protocol::api::{InstallView, ReasonRequest};
use serde_json::json;

use super::{Disable, Enable};
use crate::context::Context;
use crate::error::Result;

impl Disable {
    pub(super) async fn run(&self, context: &Context) -> Result<()> {
        let path = ["v1", "installs", self.install.as_str(), "disable"];
        let body = ReasonRequest { reason: self.reason.clone() };
        let view: InstallView = context.api().await?.post(&path, &body).await?;
        context.out.show(&view, |view| {
            let why = view.disabled.as_deref().unwrap_or_default();
            format!("install {0} is disabled: {why}\n\nback: freehold install enable {0}", view.install)
        })
    }
}

impl Enable {
    pub(super) async fn run(&self, context: &Context) -> Result<()> {
        let path = ["v1", "installs", self.install.as_str(), "enable"];
        let view: InstallView = context.api().await?.post(&path, &json!({})).await?;
        context.out.show(&view, |view| format!("install {} is enabled", view.install))
    }
}
