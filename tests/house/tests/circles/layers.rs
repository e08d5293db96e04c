//! The layers of a crate: a list of its modules in the heading of its root. Each module uses only modules of the lines
//! above its own.

use std::collections::{BTreeMap, BTreeSet};

/// Returns the modules in each line of the list, such as "//! 2. `read`, `table`"; nothing for a root without a list.
pub(crate) fn listed(root: &str) -> Vec<Vec<String>> {
    let lines = root.lines().filter_map(|line| line.strip_prefix("//! ")?.split_once(". "));
    let lines = lines.filter(|(number, _)| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()));
    lines.map(|(_, names)| names.split('`').skip(1).step_by(2).map(str::to_owned).collect()).collect()
}

/// Returns what is wrong with a list of layers; `uses` has each module of the crate, and the modules that it uses.
pub(crate) fn wrong(layers: &[Vec<String>], uses: &BTreeMap<String, BTreeSet<String>>) -> Vec<String> {
    let layer = |module: &str| layers.iter().position(|names| names.iter().any(|name| name == module));
    let absent = uses.keys().filter(|module| layer(module).is_none());
    let gone = layers.iter().flatten().filter(|module| !uses.contains_key(*module));
    let arrows = uses.iter().flat_map(|(module, used)| used.iter().map(move |other| (module, other)));
    let upward = arrows.filter(|(module, other)| {
        layer(module)
            .zip(layer(other))
            .is_some_and(|(layer_of_module, layer_of_other)| layer_of_other >= layer_of_module)
    });

    let absent = absent.map(|module| format!("add `{module}` to the list"));
    let gone = gone.map(|module| format!("`{module}` is in the list, but is not a module"));
    let upward = upward.map(|(module, other)| format!("`{module}` uses `{other}`, which is not in a line above"));
    absent.chain(gone).chain(upward).collect()
}

#[test]
fn a_list_is_read_line_by_line() {
    let root = "//! Use cases in layers:\n//!\n//! 1. `table`\n//! 2. `read`, `part`\n\npub mod part;\n";

    assert_eq!(listed(root), [vec!["table"], vec!["read", "part"]]);
    assert!(listed("//! Use cases, version 1. `table` is the first.\n").is_empty());
}

#[test]
fn a_module_that_uses_one_of_its_own_line_or_below_is_found_and_so_is_one_without_a_line() {
    let uses = [("a", vec!["b"]), ("b", vec!["c"]), ("c", vec!["e"]), ("e", vec![])];
    let uses = uses.map(|(from, to)| (from.to_owned(), to.into_iter().map(str::to_owned).collect())).into();

    let right = wrong(&listed("//! 1. `e`\n//! 2. `c`\n//! 3. `b`\n//! 4. `a`\n"), &uses);
    let found = wrong(&listed("//! 1. `e`\n//! 2. `b`, `c`\n//! 3. `d`\n"), &uses);

    assert_eq!(right, [""; 0]);
    assert_eq!(
        found,
        [
            "add `a` to the list",
            "`d` is in the list, but is not a module",
            "`b` uses `c`, which is not in a line above",
        ]
    );
}
