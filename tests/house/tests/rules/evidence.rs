//! Reads the tables of pages that name what shows each row, and checks that it is there.

use super::{read, top};

/// Returns the rows of the table of `page` whose header begins with the cell `first`. Each has four cells.
pub(super) fn rows<'a>(page: &'a str, first: &str) -> Vec<Vec<&'a str>> {
    let header = format!("| {first} |");
    let table = page.lines().skip_while(|line| !line.starts_with(&header)).skip(2);
    table.take_while(|line| line.starts_with("| ")).map(cells).collect()
}

fn cells(row: &str) -> Vec<&str> {
    let cells: Vec<&str> = row.trim_matches('|').split(" | ").map(str::trim).collect();
    assert_eq!(cells.len(), 4, "a row has four cells: {row}");
    cells
}

/// Returns what is wrong with the tests of a row. Its last cell has paths, each with the names of tests behind a colon,
/// or with none if the path is of a program; and names of figures.
pub(super) fn mistakes(row: &[&str]) -> Vec<String> {
    let (name, evidence) = (row[0], row[3]);
    let (open, tests): (Vec<_>, Vec<_>) = evidence.split("; ").partition(|part| part.starts_with("open"));
    if open.is_empty() && !evidence.contains('`') {
        return vec![format!("{name}: names no test and is not open")];
    }
    tests.into_iter().flat_map(part_mistakes).map(|what| format!("{name}: {what}")).collect()
}

fn part_mistakes(part: &str) -> Vec<String> {
    let mut words = part.split('`').skip(1).step_by(2);
    if part.contains("among the [figures](figures.md)") {
        let figures = read(&top().join("docs/figures.md"));
        let absent = words.filter(|name| !figures.contains(&format!("\n| `{name}` |")));
        return absent.map(|name| format!("`{name}` is not a figure")).collect();
    }
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
/// named otherwise than tests. Below `tests/src/faults`, a fault that the file declares counts as one.
fn has_test(path: &str, text: &str, name: &str) -> bool {
    if path.ends_with(".py") {
        return text.contains(&format!("def {name}("));
    }
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    if path.starts_with("tests/src/faults/") {
        return lines.iter().any(|line| line.ends_with("];") && line.contains(&format!("\" {name} [")));
    }
    lines.iter().enumerate().any(|(number, line)| {
        let is_named = line.strip_prefix("async ").unwrap_or(line).starts_with(&format!("fn {name}("));
        let mut attributes = lines[..number].iter().rev().take_while(|line| line.starts_with("#["));
        is_named && attributes.any(|line| line.starts_with("#[test]") || line.starts_with("#[tokio::test"))
    })
}

#[test]
fn a_test_is_found_by_its_name_in_its_file() {
    let rust = "fn help() {}\n#[tokio::test]\n#[cfg(unix)]\nasync fn it_holds() {}\n    #[test]\n    fn both() {}\n";

    assert!(has_test("a.rs", rust, "it_holds") && has_test("a.rs", rust, "both"));
    assert!(!has_test("a.rs", rust, "help") && !has_test("a.rs", rust, "it_hold"));
    let faults = "declare! {\n    7 \"reports arrive out of order\" out_of_order [];\n}\nasync fn help() {}\n";
    let is_declared = |name| has_test("tests/src/faults/reports.rs", faults, name);
    assert!(is_declared("out_of_order") && !is_declared("help") && !is_declared("out"));
    assert!(has_test("a.py", "    def test_it(self):\n", "test_it") && !has_test("a.py", "def test_it(): 1", "test"));
}

#[test]
fn a_row_without_tests_or_with_wrong_ones_is_found() {
    let found = |evidence: &str| mistakes(&["C1", "was", "holds", evidence]);

    assert_eq!(found("open: an issue"), [""; 0]);
    assert_eq!(found("`tests/iam/run`"), [""; 0]);
    assert_eq!(found("`model.violations` among the [figures](figures.md): none"), [""; 0]);
    assert_eq!(found("`no.figure` among the [figures](figures.md)"), ["C1: `no.figure` is not a figure"]);
    assert_eq!(found("nothing"), ["C1: names no test and is not open"]);
    assert_eq!(
        found("`tests/house/tests/rules/evidence.rs`"),
        ["C1: names no test of `tests/house/tests/rules/evidence.rs`"]
    );
    assert_eq!(found("`tests/none.rs`: `a`"), ["C1: `tests/none.rs` is not there"]);
    assert_eq!(
        found("`tests/house/tests/rules/evidence.rs`: `no_such_test`"),
        ["C1: `tests/house/tests/rules/evidence.rs` has no test `no_such_test`"]
    );
}

#[test]
fn the_rows_of_one_table_are_read() {
    let page = "| x | y |\n|---|---|\n| 1 | 2 |\n\n| # | a | b | c |\n|---|---|---|---|\n| 1 | 2 | 3 | 4 |\n\n| 5 |\n";

    assert_eq!(rows(page, "#"), [["1", "2", "3", "4"]]);
}
