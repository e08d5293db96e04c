//! The page about the review of the first version has a test for each finding, or says that it is open.

use super::{read, top};

const PAGE: &str = "docs/findings.md";
/// The numbers of critical, high and medium findings.
const FINDINGS: [(char, u32); 3] = [('C', 4), ('H', 10), ('M', 16)];

#[test]
fn each_finding_has_a_row_with_tests_that_exist_or_is_open() {
    let page = read(&top().join(PAGE));
    let rows: Vec<Vec<&str>> = page.lines().filter(|line| line.starts_with("| ")).skip(1).map(cells).collect();
    let expected =
        FINDINGS.iter().flat_map(|(letter, last)| (1..=*last).map(move |number| format!("{letter}{number}")));
    let (numbered, others): (Vec<_>, Vec<_>) = rows.iter().partition(|row| !row[0].starts_with("low: "));

    let mut wrong: Vec<String> = rows.iter().flat_map(|row| mistakes(row)).collect();

    assert!(!others.is_empty(), "{PAGE} has no row that begins with `low: `");
    assert_eq!(numbered.iter().map(|row| row[0]).collect::<Vec<_>>(), expected.collect::<Vec<_>>());
    wrong.sort();
    assert!(wrong.is_empty(), "{PAGE}:\n{}", wrong.join("\n"));
}

#[test]
fn a_test_is_found_by_its_name_in_its_file() {
    let rust = "fn help() {}\n#[tokio::test]\n#[cfg(unix)]\nasync fn it_holds() {}\n    #[test]\n    fn both() {}\n";

    assert!(has_test("a.rs", rust, "it_holds") && has_test("a.rs", rust, "both"));
    assert!(!has_test("a.rs", rust, "help") && !has_test("a.rs", rust, "it_hold"));
    assert!(has_test("a.py", "    def test_it(self):\n", "test_it") && !has_test("a.py", "def test_it(): 1", "test"));
}

#[test]
fn a_row_without_tests_or_with_wrong_ones_is_found() {
    let found = |shown: &str| mistakes(&["C1", "was", "holds", shown]);

    assert_eq!(found("open: an issue"), [""; 0]);
    assert_eq!(found("`tests/iam/run`"), [""; 0]);
    assert_eq!(found("nothing"), ["C1: names no test and is not open"]);
    assert_eq!(found("`tests/tests/house/findings.rs`"), ["C1: names no test of `tests/tests/house/findings.rs`"]);
    assert_eq!(found("`tests/none.rs`: `a`"), ["C1: `tests/none.rs` is not there"]);
    assert_eq!(
        found("`tests/tests/house/findings.rs`: `no_such_test`"),
        ["C1: `tests/tests/house/findings.rs` has no test `no_such_test`"]
    );
}

fn cells(row: &str) -> Vec<&str> {
    let cells: Vec<&str> = row.trim_matches('|').split(" | ").map(str::trim).collect();
    assert_eq!(cells.len(), 4, "{PAGE}: {row}");
    cells
}

/// Returns what is wrong with the tests of a row. Its last cell has paths, each with the names of tests behind a colon,
/// or with none if the path is of a program.
fn mistakes(row: &[&str]) -> Vec<String> {
    let (finding, shown) = (row[0], row[3]);
    let (open, tests): (Vec<_>, Vec<_>) = shown.split("; ").partition(|part| part.starts_with("open"));
    if open.is_empty() && !shown.contains('`') {
        return vec![format!("{finding}: names no test and is not open")];
    }
    tests.into_iter().flat_map(part_mistakes).map(|what| format!("{finding}: {what}")).collect()
}

fn part_mistakes(part: &str) -> Vec<String> {
    let mut words = part.split('`').skip(1).step_by(2);
    let path = words.next().unwrap_or_default();
    let names: Vec<&str> = words.collect();
    if !top().join(path).is_file() {
        return vec![format!("`{path}` is not there")];
    }
    if names.is_empty() && !path.ends_with("/run") {
        return vec![format!("names no test of `{path}`")];
    }
    let text = read(&top().join(path));
    let absent = names.into_iter().filter(|name| !has_test(path, &text, name));
    absent.map(|name| format!("`{path}` has no test `{name}`")).collect()
}

/// Returns whether a file of Rust or Python has the test `name`. In Python each function counts, because the probes are
/// named otherwise than tests.
fn has_test(path: &str, text: &str, name: &str) -> bool {
    if path.ends_with(".py") {
        return text.contains(&format!("def {name}("));
    }
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    lines.iter().enumerate().any(|(number, line)| {
        let is_named = line.strip_prefix("async ").unwrap_or(line).starts_with(&format!("fn {name}("));
        let mut attributes = lines[..number].iter().rev().take_while(|line| line.starts_with("#["));
        is_named && attributes.any(|line| line.starts_with("#[test]") || line.starts_with("#[tokio::test"))
    })
}
