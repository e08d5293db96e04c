//! Whole histories of installs, in which each roll back brings back the digests and the values that ran before.

use crate::support::histories::history;

#[tokio::test]
async fn what_runs_after_each_roll_back_of_a_history_is_what_ran_before_it() {
    for seed in 0..6 {
        let all = history(seed, 2).await.unwrap();

        assert_eq!(all.len(), 2);
        for one in all {
            assert_eq!(one.differences, [""; 0], "seed {seed}, {:?}", one.cause);
        }
    }
}
