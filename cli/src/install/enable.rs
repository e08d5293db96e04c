//! `freehold install enable`: permits workflows and grants of artifacts for a disabled install again.

use freehold_protocol::api::InstallView;
use serde_json::json;

use super::Enable;
use crate::context::Context;
use crate::error::Result;

impl Enable {
    pub(super) async fn run(&self, context: &Context) -> Result<()> {
        let path = ["v1", "installs", self.install.as_str(), "enable"];
        let view: InstallView = context.api().await?.post(&path, &json!({})).await?;
        context.out.show(&view, |view| format!("install {} is enabled", view.install))
    }
}
