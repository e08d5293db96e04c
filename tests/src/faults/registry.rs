//! Faults of registries, while a deploy copies its artifacts into the install's registry.

use anyhow::{Context as _, ensure};
use aws_sdk_ecr::types::ImageIdentifier;

use super::calls::{self, Calls, Work};
use super::cell::{Cell, INSTALL};
use super::class::{Point, Tried, declare, in_rows};
use super::table::once_right;

declare! {
    18 "the registry is down while an artifact is copied" registry_down [];
    19 "an image is half pushed" half_pushed [];
    20 "a registry gives other bytes than it should" other_bytes [];
}

/// Registries answer with errors, drop every request or never answer: the deploy fails, nothing is applied, and the next one
/// works.
async fn registry_down(cell: &mut Cell, point: Point) -> anyhow::Result<Tried> {
    let fault = point.of(&["error", "drop-request", "throttle", "black-hole:90"]);
    fails_without_effect(cell, &format!("registry.* 1 {fault}")).await
}

/// The connection of each call that uploads something ends at every tenth of its bytes; the deploy copies the rest.
async fn half_pushed(cell: &mut Cell, point: Point) -> anyhow::Result<Tried> {
    const CALLS: [Calls; 2] = [calls::UPLOADS, calls::MANIFESTS];
    let counts = cell.calls_each(&point, Work::CopyingDeploy, CALLS).await?;
    let [tenth, call] = point.among([10, counts.iter().sum()]);
    let (kind, skip) = in_rows(call, &counts).context("nothing is uploaded")?;
    forget_copies(cell).await?;
    cell.fail(CALLS[kind], &format!("cut:{}", tenth * 10), &format!("skip={skip} times=1"))?;
    let tried = once_right(cell).await?;
    let copies = copies(cell).await?;
    ensure!(!copies.is_empty(), "nothing is in the install's registry");
    Ok(tried)
}

/// One bit of each manifest or of each blob is another: nothing of it is used.
async fn other_bytes(cell: &mut Cell, point: Point) -> anyhow::Result<Tried> {
    let what = point.of(&["GetManifest", "GetBlob"]);
    fails_without_effect(cell, &format!("registry.{what} 1 flip")).await
}

/// Deploys while `rules` hold; the deploy must fail and change nothing, and the next one must do it all.
async fn fails_without_effect(cell: &mut Cell, rules: &str) -> anyhow::Result<Tried> {
    forget_copies(cell).await?;
    let before = shown(cell).await?;
    cell.on_runner(rules)?;
    let begun = cell.deploy().await?;
    let ended = cell.ended(&begun).await;
    let hit = cell.hits() > 0;
    cell.calm();
    let workflow = ended?;
    if hit {
        ensure!(workflow.state.as_str() == "failed", "it ended {:?}", workflow.state);
        ensure!(shown(cell).await? == before, "it was applied although the registry failed");
        ensure!(cell.effects_of(&begun).is_empty(), "its action ran");
    }
    let next = cell.deploy().await?;
    cell.succeeds(&next).await?;
    Ok(Tried::when(hit))
}

/// Returns the round that the first component shows.
async fn shown(cell: &Cell) -> anyhow::Result<u64> {
    cell.queues.delay(&cell.world, &cell.install, &format!("{INSTALL}-first")).await
}

/// Removes all images from the install's registry, so that the next deploy copies them again.
pub(super) async fn forget_copies(cell: &Cell) -> anyhow::Result<()> {
    let digests = copies(cell).await?;
    if digests.is_empty() {
        return Ok(());
    }
    let ecr = aws_sdk_ecr::Client::new(&cell.world.administrator(&cell.install.account)?);
    let ids = digests.into_iter().map(|digest| ImageIdentifier::builder().image_digest(digest).build()).collect();
    ecr.batch_delete_image().repository_name(repository(cell)).set_image_ids(Some(ids)).send().await?;
    Ok(())
}

/// Returns the digests of all images in the install's registry.
async fn copies(cell: &Cell) -> anyhow::Result<Vec<String>> {
    let ecr = aws_sdk_ecr::Client::new(&cell.world.administrator(&cell.install.account)?);
    let images = ecr.describe_images().repository_name(repository(cell)).send().await?;
    Ok(images.image_details().iter().filter_map(|image| Some(image.image_digest()?.to_owned())).collect())
}

fn repository(cell: &Cell) -> String {
    format!("fh-{}/{INSTALL}", cell.world.tenant())
}
