//! Faults between the functions and their table.

use super::cell::{Begun, Cell};
use super::class::{Point, Tried, declare};

declare! {
    10 "DynamoDB throttles" throttled [];
    11 "a conditional write fails, or its answer is lost" lost_writes [];
    12 "a transaction conflicts" conflicts [];
}

/// Three requests in ten are throttled, or half of them, for a whole deploy.
async fn throttled(cell: &mut Cell, point: Point) -> anyhow::Result<Tried> {
    let share = point.of(&["0.3", "0.5"]);
    cell.on_functions(&format!("dynamodb.* {share} throttle"))?;
    once_right(cell).await
}

/// A write is done and its answer is lost in every try of the call: of one write of the deploy after the other.
async fn lost_writes(cell: &mut Cell, point: Point) -> anyhow::Result<Tried> {
    let operation = point.of(&["TransactWriteItems", "UpdateItem", "TransactWriteItems"]);
    let fault = if point.round(3).is_multiple_of(2) { "drop-answer" } else { "truncate" };
    let skip = point.round(3);
    cell.on_functions(&format!("dynamodb.{operation} 1 {fault} skip={skip} times=1 stubborn"))?;
    once_right(cell).await
}

/// Another writer is always there first, for one call or for as many as its function tries.
async fn conflicts(cell: &mut Cell, point: Point) -> anyhow::Result<Tried> {
    let (skip, times) = (point.number % 10, point.of(&[1, 3, 8]));
    cell.on_functions(&format!("dynamodb.TransactWriteItems 1 conflict skip={skip} times={times} stubborn"))?;
    once_right(cell).await
}

/// Deploys while the rules hold that were set, and checks that everything is right.
pub(super) async fn once_right(cell: &mut Cell) -> anyhow::Result<Tried> {
    let begun = cell.deploy().await?;
    ends_right(cell, &begun).await
}

/// Waits for the end of work that began while the rules hold, and checks that everything is right.
pub(super) async fn ends_right(cell: &mut Cell, begun: &Begun) -> anyhow::Result<Tried> {
    let ended = cell.ended(begun).await;
    let hit = cell.hits() > 0;
    cell.calm();
    ended?;
    cell.succeeds(begun).await?;
    Ok(Tried::when(hit))
}
