//! Every trigger of the config format starts its action once for each event, in the life of one install.

use crate::support::events::{Count, life};

/// Returns the triggers whose action did not run once for each event.
fn wrong(counts: &[Count]) -> Vec<&Count> {
    counts.iter().filter(|count| count.ran != count.happened).collect()
}

#[tokio::test]
async fn each_trigger_starts_its_action_once_for_each_event() {
    let counts = life(None).await;

    assert_eq!(counts.len(), 30);
    assert!(wrong(&counts).is_empty(), "{:?}", wrong(&counts));
}

#[tokio::test]
async fn messages_in_any_order_and_up_to_three_times_start_each_action_as_often() {
    for seed in 0..4 {
        let counts = life(Some(seed)).await;

        assert!(wrong(&counts).is_empty(), "seed {seed}: {:?}", wrong(&counts));
    }
}
