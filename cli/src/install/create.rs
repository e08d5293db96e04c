//! `freehold install create`: creates an install.

use std::collections::BTreeMap;

use freehold_protocol::api::{CreateInstallRequest, InstallCreated};

use super::{Create, release, toggles};
use crate::app::labels_text;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::inputs::sealing::refuse_sensitive;
use crate::inputs::{by_name, refuse_reserved};

impl Create {
    pub(super) async fn run(&self, context: &Context) -> Result<()> {
        refuse_reserved(&self.install)?;
        let inputs = by_name(&self.inputs)?;
        let labels = self.labels()?;
        let api = context.api().await?;
        refuse_sensitive(&api, &self.app, &self.install, &inputs).await?;
        let body = CreateInstallRequest {
            install: self.install.clone(),
            app: self.app.clone(),
            account: self.account.clone(),
            region: self.region.clone(),
            unknown_region: self.unknown_region,
            inputs,
            toggles: toggles::by_name(&self.on, &self.off)?,
            approval_option: self.approval_option.option(),
            release: release::of_new(self.pin.as_ref(), self.channel.as_ref()),
            labels: Some(labels).filter(|labels| !labels.is_empty()),
        };
        let created: InstallCreated = api.post(&["v1", "installs"], &body).await?;
        context.out.show(&created, |created| {
            let install = &self.install;
            // A repeated request gets the same response. An install with a version has been deployed already, so the
            // customer does not need the template.
            if created.install.version.is_some() {
                let changed = if self.labels.is_empty() {
                    "nothing was changed".to_owned()
                } else {
                    format!("its labels are {}, and nothing else was changed", labels_text(&created.install.own_labels))
                };
                return format!(
                    "install `{install}` exists already ({}); {changed}\nnext: freehold install show {install}",
                    created.install.state
                );
            }
            format!(
                "install `{install}` is created ({}); workflow {} continues when the install's runner announces itself\nnext: freehold install stack {install} -o {install}.yaml",
                created.install.state, created.workflow
            )
        })
    }

    /// Returns the labels by key. Two values of one key are an error.
    fn labels(&self) -> Result<BTreeMap<String, String>> {
        let mut all = BTreeMap::new();
        for (key, value) in &self.labels {
            if all.insert(key.clone(), value.clone()).is_some() {
                return Err(Error::invalid(format!("label `{key}` is given twice; give it once")));
            }
        }
        Ok(all)
    }
}
