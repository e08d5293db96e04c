//! Each row of the tables about attackers names probes and tests that exist.

use super::{files, read, top};

const PAGE: &str = "docs/threat-model.md";
/// The column that names the probes and tests. It is the last one.
const COLUMN: &str = "| shown by |";
/// A program whose names in brackets are those of a principal or a resource of its world, and not of a test:
/// `tests/iam/test_threat_model.py` compares them with the world.
const WORLD: &str = "tests/iam/run";

#[test]
fn each_row_about_an_attacker_names_probes_and_tests_that_exist() {
    let page = read(&top().join(PAGE));
    let probes = probes();

    let cells = evidence(&page);
    let wrong: Vec<String> = cells.iter().flat_map(|cell| mistakes(cell, &probes)).collect();

    assert!(probes.len() > 100, "the probes were read wrongly: {probes:?}");
    assert!(cells.len() > 70, "{PAGE} was read wrongly: it has {} rows", cells.len());
    assert!(wrong.is_empty(), "{PAGE}:\n{}", wrong.join("\n"));
}

/// Returns the last cell of each row of the tables with the column.
fn evidence(page: &str) -> Vec<&str> {
    let tables = page.split("\n\n").filter(|part| part.lines().next().is_some_and(|head| head.ends_with(COLUMN)));
    let rows = tables.flat_map(|table| table.lines().skip(2));
    rows.map(|row| row.trim_matches('|').rsplit(" | ").next().unwrap_or_default().trim()).collect()
}

/// Returns the names of all probes, as `tests/escapes/run` prints them.
fn probes() -> Vec<String> {
    let texts = files(&top().join("tests/escapes/probes"), "py").into_iter().map(|file| read(&file));
    let name = |line: &str| Some(line.strip_prefix("def ")?.strip_suffix("(facts):")?.replace('_', "-"));
    texts.flat_map(|text| text.lines().filter_map(name).collect::<Vec<_>>()).collect()
}

/// Returns what is wrong with the names in a cell: a name in brackets is that of a test in the file before it, and any
/// other is that of a probe. Where `...` or `*` stands, a name continues. A row without a test says why.
fn mistakes(cell: &str, probes: &[String]) -> Vec<String> {
    if cell.is_empty() {
        return vec!["a row does not say what shows its protection, or why nothing does".to_owned()];
    }
    let (mut file, mut depth, mut wrong) = ("", 0, Vec::new());
    let words: Vec<&str> = cell.split('`').collect();
    for pair in words.chunks(2) {
        let &[text, word] = pair else { break };
        depth += text.matches('(').count();
        depth -= text.matches(')').count().min(depth);
        if word.contains('/') {
            file = word;
        } else if depth > 0 && file != WORLD {
            let place = top().join(file);
            let name = word.trim_matches('.');
            if !place.is_file() || !read(&place).contains(name) {
                wrong.push(format!("`{file}` has no test `{word}`"));
            }
        } else if depth == 0 && !word.contains('.') && !probes.iter().any(|probe| matches(word, probe)) {
            wrong.push(format!("there is no probe `{word}`"));
        }
    }
    wrong
}

/// Returns whether a probe has a name that may begin or end with `*`.
fn matches(pattern: &str, probe: &str) -> bool {
    match (pattern.strip_prefix('*'), pattern.strip_suffix('*')) {
        (Some(end), _) => probe.ends_with(end),
        (None, Some(begin)) => probe.starts_with(begin),
        (None, None) => probe == pattern,
    }
}

#[test]
fn a_probe_or_a_test_that_is_not_there_is_found() {
    let probes = ["metadata-v4".to_owned(), "memory-of-init".to_owned()];
    let found = |cell: &str| mistakes(cell, &probes);

    assert_eq!(found("`metadata-*`, `*-of-init`, and others in `kernel.py` of `tests/escapes/probes`"), [""; 0]);
    assert_eq!(found("`tests/iam/run` (`their-*`), the figure `approvals.tampered_refused`"), [""; 0]);
    assert_eq!(found(""), ["a row does not say what shows its protection, or why nothing does"]);
    assert_eq!(found("`metadata-v6`"), ["there is no probe `metadata-v6`"]);
    let own = "tests/house/tests/rules/threat_model.rs";
    assert_eq!(found(&format!("`{own}` (`a_probe_or_a_test_...`)")), [""; 0]);
    let absent = ["no_such", "_name"].concat();
    assert_eq!(found(&format!("`{own}` (`{absent}...`)")), [format!("`{own}` has no test `{absent}...`")]);
}

#[test]
fn the_last_cells_of_the_right_tables_are_read() {
    let page = "text\n\n| x | shown by |\n|---|---|\n| a | `b`, c |\n| d | |\n\n| x | y |\n|---|---|\n| e | f |\n";

    assert_eq!(evidence(page), ["`b`, c", ""]);
}
