//! The table of a dishonest vendor's lies names, for each lie that the runner follows, tests that show why it does no
//! harm.

use super::evidence::mistakes;
use super::{read, top};

const REASONS: &str = "runner/src/identity/order_claims/tests/reasons.rs";
/// The words before the tests of a reason.
const TESTS: &str = "shown_by: \"";

#[test]
fn each_reason_why_a_lie_does_no_harm_names_tests_that_exist() {
    let text = read(&top().join(REASONS));
    let reasons = reasons(&text);

    let wrong: Vec<String> =
        reasons.iter().flat_map(|(name, evidence)| mistakes(&[name.as_str(), "", "", evidence.as_str()])).collect();

    assert_eq!(reasons.len(), text.matches(": Reason =").count(), "{REASONS} was read wrongly: {reasons:?}");
    assert!(reasons.len() > 20, "{REASONS} was read wrongly: {reasons:?}");
    assert!(wrong.is_empty(), "{REASONS}:\n{}", wrong.join("\n"));
}

/// Returns the name and the tests of each reason.
fn reasons(text: &str) -> Vec<(String, String)> {
    let constants = text.split("const ").skip(1).filter_map(|rest| rest.split_once(": Reason ="));
    let found = constants.filter_map(|(name, rest)| {
        let (_, tests) = rest.split_once(TESTS)?;
        let (tests, _) = tests.split_once('"')?;
        // A text may continue on the next line.
        let lines: Vec<&str> = tests.split("\\\n").map(str::trim_start).collect();
        Some((name.to_owned(), lines.concat()))
    });
    found.collect()
}

#[test]
fn a_reason_is_read_over_several_lines() {
    let text = "pub(super) const A: Reason = Reason {\n    why: \"x\",\n    shown_by: \"`a.rs`: `b`, \\\n       `c`\",\n};\n\
                pub(super) const B: Reason = Reason { why: \"y\", shown_by: \"`tests/iam/run`\" };\n";

    let expected = [("A", "`a.rs`: `b`, `c`"), ("B", "`tests/iam/run`")];
    assert_eq!(reasons(text), expected.map(|(name, tests)| (name.to_owned(), tests.to_owned())));
}
