//! Every seeded mistake breaks a rule.

use crate::bounds::Bounds;
use crate::bug::Bug;
use crate::explore::hunt;

#[test]
fn every_seeded_mistake_breaks_a_rule() {
    let mut survivors = Vec::new();

    for bug in Bug::ALL {
        let found = hunt(Bounds::ground_of(bug));
        for (rule, steps) in &found.broken {
            println!("{bug:?} breaks \"{rule}\" in {} steps, after {} worlds", steps.len(), found.unique);
        }
        if found.broken.is_empty() {
            survivors.push(bug);
        }
    }

    assert_eq!(survivors, []);
}
