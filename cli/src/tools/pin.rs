//! `freehold tools pin`: writes the checksums that are missing in the list.

use std::collections::BTreeMap;

use serde_json::json;

use super::Pin;
use super::fetch::Fetcher;
use super::list::{List, write_checksums};
use crate::context::Context;
use crate::error::Result;
use crate::progress::Progress;

impl Pin {
    pub(super) async fn run(&self, context: &Context) -> Result<()> {
        let (list, fetcher, progress) = (List::read(&self.dir)?, Fetcher::new()?, Progress::start());
        let mut found = BTreeMap::new();
        for (index, item) in list.item.iter().enumerate().filter(|(_, item)| item.sha256.is_empty()) {
            progress.now(format!("fetching {}", item.name));
            let fetched = fetcher.any(&self.dir, item).await;
            let fetched = fetched.map_err(|error| error.within(format!("item `{}`", item.name)))?;
            found.insert(index, fetched.digest);
        }
        write_checksums(&self.dir, &found)?;
        drop(progress);
        let named: Vec<(&str, &str)> = found
            .iter()
            .filter_map(|(index, digest)| Some((list.item.get(*index)?.name.as_str(), digest.hex())))
            .collect();
        context.out.show(&json!({ "pinned": named }), |_| {
            if named.is_empty() {
                return "every item has a checksum already".to_owned();
            }
            let lines: Vec<String> = named.iter().map(|(name, digest)| format!("  {digest}  {name}")).collect();
            format!("pinned; compare each with the checksum that its publisher signs:\n{}", lines.join("\n"))
        })
    }
}
