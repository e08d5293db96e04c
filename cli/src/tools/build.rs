//! `freehold tools build`: fetches, checks and packs everything on the list.

use serde_json::json;

use super::entry::layer;
use super::fetch::Fetcher;
use super::layout::Layout;
use super::list::List;
use super::{Build, IMAGE};
use crate::context::Context;
use crate::error::Result;
use crate::output::bytes;
use crate::progress::Progress;

impl Build {
    pub(super) async fn run(&self, context: &Context) -> Result<()> {
        let (list, fetcher, progress) = (List::read(&self.dir)?, Fetcher::new()?, Progress::start());
        let image = self.dir.join(IMAGE);
        let mut layout = Layout::new(&self.dir, &image)?;
        let (mut count, mut size) = (0, 0);
        for platform in &list.platforms {
            let mut layers = Vec::new();
            for item in list.of(platform) {
                progress.now(format!("adding {} for {platform}", item.name));
                let about = |error: crate::error::Error| error.within(format!("item `{}`", item.name));
                let fetched = fetcher.fetch_verified(&self.dir, item).await.map_err(about)?;
                let made = layer(item, fetched).map_err(about)?;
                size += made.size;
                count += 1;
                layers.push(made);
            }
            layout.add(platform, &list.env, layers)?;
        }
        let digest = layout.finish(&image)?;
        drop(progress);
        let result = json!({ "image": digest, "directory": image, "layers": count, "bytes": size });
        context.out.show(&result, |_| {
            let (shown, size) = (image.display(), bytes(size));
            format!("wrote image {digest} to `{shown}`: {count} layers, {size}\n\nnext:\n  freehold app sync, then freehold build")
        })
    }
}
