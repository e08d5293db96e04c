//! The page about the review of the first version has a test for each finding, or says that it is open.

use super::evidence::{mistakes, rows};
use super::{read, top};

const PAGE: &str = "docs/findings.md";
/// The numbers of critical, high and medium findings.
const FINDINGS: [(char, u32); 3] = [('C', 4), ('H', 10), ('M', 16)];

#[test]
fn each_finding_has_a_row_with_tests_that_exist_or_is_open() {
    let page = read(&top().join(PAGE));
    let rows = rows(&page, "finding");
    let expected =
        FINDINGS.iter().flat_map(|(letter, last)| (1..=*last).map(move |number| format!("{letter}{number}")));
    let (numbered, others): (Vec<_>, Vec<_>) = rows.iter().partition(|row| !row[0].starts_with("low: "));

    let mut wrong: Vec<String> = rows.iter().flat_map(|row| mistakes(row)).collect();

    assert!(!others.is_empty(), "{PAGE} has no row that begins with `low: `");
    assert_eq!(numbered.iter().map(|row| row[0]).collect::<Vec<_>>(), expected.collect::<Vec<_>>());
    wrong.sort();
    assert!(wrong.is_empty(), "{PAGE}:\n{}", wrong.join("\n"));
}
