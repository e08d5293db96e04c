//! The thirty-four faults of `docs/guarantees.md`, each brought about with real programs: functions, runner, commands and the
//! local cloud. A try makes the fault happen at one point, sees that it happened, and checks what must hold afterwards.

mod calls;
mod cell;
mod class;
mod control_plane;
mod customer;
mod dry_run;
mod hostile;
mod jobs;
mod machines;
mod orders;
mod queues;
mod registry;
mod reports;
mod table;

pub use cell::{APP, Begun, Cell, INSTALL, LIMIT, POLL, states};
pub use class::{Class, Place, Point, Tried, Trying};
pub use queues::Queues;

/// Returns all classes, by number.
pub fn classes() -> Vec<Class> {
    let mut all = [
        orders::CLASSES,
        reports::CLASSES,
        table::CLASSES,
        control_plane::CLASSES,
        machines::CLASSES,
        registry::CLASSES,
        jobs::CLASSES,
        customer::CLASSES,
        hostile::CLASSES,
    ]
    .concat();
    all.sort_by_key(|class| class.number);
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_fault_of_the_page_has_a_class() {
        let numbers: Vec<u32> = classes().iter().map(|class| class.number).collect();

        assert_eq!(numbers, (1..=34).collect::<Vec<_>>());
    }
}
