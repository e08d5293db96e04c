//! The page about what Freehold promises has a row for each fault, with how it is shown and by which tests.

use super::evidence::{mistakes, rows};
use super::{read, top};

const PAGE: &str = "docs/guarantees.md";
const FAULTS: u32 = 34;
/// How a row is shown.
const WAYS: [&str; 4] = ["real", "proxy", "part", "simulated"];

#[test]
fn each_fault_has_a_row_that_says_how_it_is_shown_by_tests_that_exist() {
    let page = read(&top().join(PAGE));
    let rows = rows(&page, "#");
    let expected: Vec<String> = (1..=FAULTS).map(|number| number.to_string()).collect();
    let mut wrong: Vec<String> = rows.iter().flat_map(|row| mistakes(row)).collect();
    let unknown = rows.iter().filter(|row| !WAYS.contains(&row[2]) || !row[3].starts_with('`'));
    wrong.extend(unknown.map(|row| format!("{}: says none of {WAYS:?} with a test", row[0])));

    assert_eq!(rows.iter().map(|row| row[0]).collect::<Vec<_>>(), expected);
    assert!(wrong.is_empty(), "{PAGE}:\n{}", wrong.join("\n"));
}

#[test]
fn the_page_counts_its_rows_by_how_they_are_shown() {
    let page = read(&top().join(PAGE));
    let rows = rows(&page, "#");

    for way in WAYS {
        let line = format!("- **{way}** ({}): ", rows.iter().filter(|row| row[2] == way).count());
        assert!(page.contains(&line), "{PAGE} has no line `{line}`");
    }
}
