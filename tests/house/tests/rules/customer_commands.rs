//! A command of `freehold customer` has one name: its file or folder and its type carry the name that a customer types.

use super::{read, top};

/// Commands that stand in the file of another command, with the reason.
const OTHER_FILES: [(&str, &str, &str); 7] = [
    ("Reject", "approve", "both write a decision about a plan"),
    ("LiftHold", "hold", "it undoes a hold"),
    ("Pause", "stop", "it sets one parameter of the install stack"),
    ("Resume", "stop", "it undoes a pause"),
    ("RevokeSessions", "stop", "it sets one parameter of the install stack"),
    ("Close", "stop", "it sets one parameter of the install stack"),
    ("Open", "stop", "it undoes a close"),
];

/// The folders with the files of the commands.
const FOLDERS: [&str; 2] = ["cli/src/customer", "cli/src/customer/log"];

#[test]
fn a_command_for_customers_has_the_name_of_its_file_and_of_its_type() {
    let text = read(&top().join("cli/src/customer/mod.rs"));
    let commands = commands(&text);

    let wrong: Vec<String> = commands.iter().filter_map(|command| wrong_name(command)).collect();

    assert!(commands.len() >= 20, "cli/src/customer/mod.rs was read wrongly: {commands:?}");
    // With another name, the command would not be called as its type is.
    assert!(!text.contains("name = \""), "a variant of `CustomerCommand` has the name that is typed");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_command_in_the_file_of_another_one_has_a_reason() {
    let text = read(&top().join("cli/src/customer/mod.rs"));

    let unused: Vec<&str> = OTHER_FILES
        .into_iter()
        .filter(|(name, file, _)| !commands(&text).contains(&format!("{name}({file}::{name})")))
        .map(|(name, ..)| name)
        .collect();

    assert!(unused.is_empty(), "these are not in such a file; remove them from OTHER_FILES: {unused:?}");
}

#[test]
fn a_command_whose_file_or_type_has_another_name_is_found() {
    for wrong in ["Windows(windows::ShowWindows)", "Stopped(stop_check::Stopped)", "Asked(askers::Asked)", "Gone(gone)"]
    {
        assert!(wrong_name(wrong).is_some(), "{wrong}");
    }
    for right in ["Windows(windows::Windows)", "Audit(audit::AuditCommand)", "Reject(approve::Reject)"] {
        assert_eq!(wrong_name(right), None, "{right}");
    }
}

/// Returns the variants of `CustomerCommand`, such as `Gone(gone::Gone)`.
fn commands(text: &str) -> Vec<String> {
    let variants = text.split("enum CustomerCommand {\n").nth(1).and_then(|rest| rest.split("\n}\n").next());
    let lines = variants.unwrap_or_default().lines().map(str::trim);
    lines
        .filter(|line| line.starts_with(char::is_uppercase))
        .map(|line| line.trim_end_matches(',').to_owned())
        .collect()
}

/// Returns what is wrong with a variant of `CustomerCommand`, if its command, file and type have different names.
fn wrong_name(variant: &str) -> Option<String> {
    let parts = variant.strip_suffix(')').and_then(|rest| rest.split_once('('));
    let Some((name, (file, of_type))) = parts.and_then(|(name, path)| Some((name, path.split_once("::")?))) else {
        return Some(format!("`{variant}` is not `Name(name::Name)`"));
    };
    let other = OTHER_FILES.iter().find(|(other, ..)| *other == name).map(|(_, file, _)| (*file).to_owned());
    let expected = other.unwrap_or_else(|| snake_case(name));
    let paths = [format!("{file}.rs"), format!("{file}/mod.rs")];
    let is_there = FOLDERS.iter().any(|folder| paths.iter().any(|path| top().join(folder).join(path).exists()));
    if file != expected || !is_there {
        return Some(format!("`{name}` is in `{file}.rs`; put it into `{expected}.rs`"));
    }
    let has_name = of_type == name || of_type.strip_suffix("Command") == Some(name);
    (!has_name).then(|| format!("`{name}` has the type `{of_type}`; name it `{name}`"))
}

/// Returns `lift_hold` for `LiftHold`.
fn snake_case(name: &str) -> String {
    let mut words = String::new();
    for letter in name.chars() {
        if letter.is_ascii_uppercase() && !words.is_empty() {
            words.push('_');
        }
        words.push(letter.to_ascii_lowercase());
    }
    words
}
