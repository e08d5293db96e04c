//! A capability has one verb phrase: its operation, route, request, use case, function, machine, command and tests carry it.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{files, read, top};

/// Commands whose words are not those of their operation, with the reason.
const OTHER_COMMANDS: [(&str, &str, &str); 14] = [
    ("AcceptInvitation", "member accept", "an invitation is accepted to become a member"),
    (
        "EnrolBuildRunner",
        "tenant build-runner",
        "it makes the config file of a build runner, and registers the key on the way",
    ),
    ("CancelRun", "runbook cancel", "the commands about runs stand beside the one that starts them"),
    ("ResumeRun", "runbook resume", "the commands about runs stand beside the one that starts them"),
    ("SetApprovals", "install approvals", "it has one word to set, as `install toggles` has those to switch"),
    ("SetInputs", "install inputs", "without `--input` it shows the inputs, as `app inputs` does"),
    ("SetLabels", "install labels", "without `--label` and `--remove` it shows the labels, as `install inputs` does"),
    ("SetLicence", "install set-licence", "a licence has no name of its own, and is named by its install"),
    ("SetPolicies", "access set", "`freehold policy` is about policies in Rego, which runners evaluate"),
    ("SetRelease", "install release", "without an option it shows what the install follows, as `install inputs` does"),
    (
        "SetToggles",
        "install toggles",
        "without `--on`, `--off` and `--default` it shows the toggles, as `install inputs` does",
    ),
    ("SkipNode", "workflow skip", "a node is named by its workflow"),
    ("UpgradeRunner", "install upgrade-runner", "a runner has no name of its own, and is named by its install"),
    ("UploadSource", "app sync", "a source is uploaded only while its app is synced"),
];

/// Reading operations that no command of their words shows, with a command that calls them and the reason.
const OTHER_READS: [(&str, &str, &str); 7] = [
    ("ListArtifacts", "artifact prune", "with `--dry-run` it lists the artifacts and what a prune would do"),
    ("ListRuns", "runbook runs", "the commands about runs stand beside the one that starts them"),
    ("ShowCaller", "whoami", "the known word for the question who one is"),
    ("ShowPolicies", "access show", "`freehold policy` is about policies in Rego, which runners evaluate"),
    ("ShowRun", "runbook show", "the commands about runs stand beside the one that starts them"),
    ("ShowTenant", "tenant build-runner", "a command that needs the tenant's key or queue asks for it on the way"),
    ("ShowTerms", "contract diff", "terms are compared with others, and nobody reads them alone"),
];

/// The route whose last word is not one of its operation, with the reason.
const OTHER_ROUTES: [(&str, &str, &str); 1] = [("SyncApp", "versions", "a sync makes a version of the app")];

/// The machine that no operation is named after, with the reason.
const OTHER_MACHINES: [(&str, &str); 1] =
    [("provision-install", "`CreateInstall` starts it: a person creates an install, the machine provisions it")];

/// The verbs of operations that change nothing.
const VERBS: [&str; 3] = ["show", "list", "render"];

/// The functions that are not use cases, with the reasons.
const OTHER_FUNCTIONS: [(&str, &str); 2] = [
    ("api", "it answers all operations"),
    ("console", "it shows pages to people, and everything that it does is an operation of the API"),
];

/// An operation of the API.
struct Operation {
    /// The operation's name, such as `RunAction`.
    id: String,
    /// The last part of its path, such as `runs`, without the braces of a placeholder.
    route: String,
    path: String,
    /// The name of its request, if it has a body.
    request: Option<String>,
}

#[test]
fn an_operation_that_changes_something_has_a_use_case_and_a_test_of_its_name() {
    let (uses, tests) = (use_cases("src"), use_cases("tests/use_cases"));

    let wrong = all_of(changes().iter().filter_map(|change| {
        let file = words(&change.id).join("_");
        let text = uses.iter().find(|(name, _)| *name == file).map(|(_, text)| text.as_str()).unwrap_or_default();
        let has_type = text.contains(&format!("pub struct {} {{", change.id));
        let has_test = tests.iter().any(|(name, _)| *name == file);
        (!has_type || !has_test)
            .then(|| format!("{}: `{file}.rs` with the type of its name, and a test file", change.id))
    }));

    assert!(wrong.is_empty(), "missing in crates/app:\n{wrong}");
}

#[test]
fn an_operation_that_changes_nothing_has_a_use_case_or_a_function_of_its_name_and_a_test() {
    let (uses, tests) = (use_cases("src"), use_cases("tests"));

    let wrong = all_of(reads().iter().filter_map(|read| {
        let name = words(&read.id).join("_");
        let is_use_case = |(file, text): &(String, String)| {
            let has_type = *file == name && text.contains(&format!("pub struct {} {{", read.id));
            has_type || text.contains(&format!("pub async fn {name}("))
        };
        let is_called = |(_, text): &(String, String)| text.contains(&format!("{name}("));
        (!uses.iter().any(is_use_case) || !tests.iter().any(is_called)).then(|| {
            format!("{}: the function `{name}`, or `{name}.rs` with the type of its name, and a test", read.id)
        })
    }));

    assert!(wrong.is_empty(), "missing in crates/app:\n{wrong}");
}

#[test]
fn the_api_calls_what_has_the_name_of_the_operation() {
    let text = read(&top().join("functions/src/api/operations.rs"));
    let arms: Vec<&str> = text.split("\n            Operation::").skip(1).collect();

    let wrong = all_of(changes().iter().chain(&reads()).filter_map(|operation| {
        let arm = arms.iter().find_map(|arm| arm.strip_prefix(&format!("{} =>", operation.id)));
        let name = words(&operation.id).join("_");
        let calls =
            arm.is_some_and(|arm| [format!(".{name}"), format!("{name}(")].iter().any(|call| arm.contains(call)));
        (!calls).then(|| format!("{}: neither the use case nor the function `{name}`", operation.id))
    }));

    assert!(wrong.is_empty(), "functions/src/api/operations.rs:\n{wrong}");
}

#[test]
fn a_route_ends_with_a_word_of_its_operation() {
    let (changes, reads) = (changes(), reads());

    let breaking = changes.iter().chain(&reads).filter(|operation| {
        let known = words(&operation.id);
        !operation.route.split('-').all(|word| known.iter().any(|one| singular(one) == singular(word)))
    });
    let breaking: BTreeSet<String> =
        breaking.map(|operation| format!("{}: `{}`", operation.id, operation.route)).collect();

    let excepted = OTHER_ROUTES.map(|(id, route, _)| format!("{id}: `{route}`"));
    assert_eq!(breaking, BTreeSet::from(excepted), "left: routes with words of their own; right: OTHER_ROUTES");
}

#[test]
fn a_request_is_named_after_its_operation() {
    let wrong = all_of(changes().iter().filter_map(|change| {
        let request = change.request.as_deref()?;
        // Operations that only ask for a reason share its request.
        (request != format!("{}Request", change.id) && request != "ReasonRequest")
            .then(|| format!("{}: {request}", change.id))
    }));

    assert!(wrong.is_empty(), "requests of another name:\n{wrong}");
}

#[test]
fn an_operation_that_changes_nothing_begins_with_show_list_or_render() {
    let wrong = all_of(reads().iter().filter_map(|Operation { id, .. }| {
        let reads = VERBS.contains(&words(id).first()?.as_str());
        (!reads).then(|| id.clone())
    }));

    assert!(wrong.is_empty(), "operations of GET:\n{wrong}");
}

#[test]
fn an_operation_that_changes_nothing_has_a_command_of_its_noun() {
    let breaking = without_command(reads(), |read, command| {
        let known: Vec<String> = words(&read.id).iter().map(|word| singular(word).to_owned()).collect();
        let parts: Vec<&str> = command.split([' ', '-']).map(singular).collect();
        // The command `app versions` needs no verb, and `install stack` names what the stack belongs to.
        known.iter().any(|word| !VERBS.contains(&word.as_str()) && parts.contains(&word.as_str()))
            && parts.iter().all(|part| known.iter().any(|word| word == part) || read.path.contains(part))
    });

    let excepted = OTHER_READS.map(|(id, ..)| id.to_owned());
    assert_eq!(breaking, BTreeSet::from(excepted), "left: reads without a command of their noun; right: OTHER_READS");
}

#[test]
fn an_operation_that_changes_something_has_a_command_of_its_words() {
    let breaking = without_command(changes(), |change, command| {
        let known: Vec<String> = words(&change.id).iter().map(|word| singular(word).to_owned()).collect();
        let parts: Vec<&str> = command.split([' ', '-']).collect();
        parts.contains(&known[0].as_str()) && parts.iter().all(|part| known.iter().any(|word| word == part))
    });

    let excepted = OTHER_COMMANDS.map(|(id, ..)| id.to_owned());
    assert_eq!(
        breaking,
        BTreeSet::from(excepted),
        "left: changes without a command of their words; right: OTHER_COMMANDS"
    );
}

#[test]
fn a_command_of_an_exception_exists() {
    let commands = commands();

    let gone: Vec<&str> = OTHER_COMMANDS
        .iter()
        .chain(&OTHER_READS)
        .map(|(_, command, _)| *command)
        .filter(|excepted| !commands.iter().any(|command| command == excepted))
        .collect();

    assert!(gone.is_empty(), "`freehold` has none of these commands: {gone:?}");
}

#[test]
fn the_name_of_a_group_is_not_a_command() {
    let commands = commands();

    for group in ["app", "artifact", "tenant", "tenant source", "customer audit"] {
        assert!(!commands.iter().any(|command| command == group), "{group}");
    }
    // `freehold lineage DIGEST` is a command, beside `freehold lineage verify`.
    for command in ["artifact prune", "deploy", "lineage", "lineage verify", "release list", "source add"] {
        assert!(commands.iter().any(|known| known == command), "{command}: {commands:?}");
    }
}

#[test]
fn a_state_machine_is_named_after_an_operation() {
    let template = read(&top().join("infra/tenant.yaml"));
    let named = template.lines().filter_map(|line| line.split_once("StateMachineName: !Sub fh-${TenantName}--"));
    let machines: Vec<&str> = named.map(|(_, name)| name.trim()).collect();
    let changes = changes();

    let of_operations: Vec<String> = changes.iter().map(|change| words(&change.id).join("-")).collect();
    let breaking: BTreeSet<&str> =
        machines.iter().copied().filter(|machine| !of_operations.iter().any(|name| name == machine)).collect();

    let all = template.matches("\n    Type: AWS::StepFunctions::StateMachine\n").count()
        + template.matches("\n    Type: AWS::Serverless::StateMachine\n").count();
    assert!(all >= 5, "infra/tenant.yaml has only {all} machines");
    assert_eq!(machines.len(), all, "of the machines of infra/tenant.yaml, only these have a name: {machines:?}");
    let excepted = OTHER_MACHINES.map(|(name, _)| name);
    assert_eq!(breaking, BTreeSet::from(excepted), "left: machines without an operation; right: OTHER_MACHINES");
}

#[test]
fn a_function_is_named_after_its_use_case() {
    let (uses, tests) = (use_cases("src"), use_cases("tests/use_cases"));
    let functions = files(&top().join("functions/src/bin"), "rs");

    let names = functions.iter().filter_map(|file| file.file_stem()?.to_str());
    let breaking = names.filter(|name| {
        let has = |found: &[(String, String)]| found.iter().any(|(file, _)| *file == name.replace('-', "_"));
        !has(&uses) || !has(&tests)
    });
    let breaking: BTreeSet<&str> = breaking.collect();

    let excepted = OTHER_FUNCTIONS.map(|(name, _)| name);
    assert_eq!(
        breaking,
        BTreeSet::from(excepted),
        "left: functions without a use case and a test of their name; right: OTHER_FUNCTIONS"
    );
}

/// Returns the operations of the API that change something.
fn changes() -> Vec<Operation> {
    operations("post")
}

#[test]
fn an_operation_is_a_get_or_a_post_and_has_a_name() {
    let document: Value = serde_json::from_str(&read(&top().join("docs/openapi.json"))).unwrap();
    let paths = document["paths"].as_object().unwrap();

    let wrong = all_of(paths.iter().flat_map(|(path, methods)| {
        let methods = methods.as_object().unwrap().iter();
        let other = methods.filter(|(method, operation)| {
            !["get", "post"].contains(&method.as_str()) || !operation["operationId"].is_string()
        });
        other.map(move |(method, _)| format!("{method} {path}"))
    }));

    assert!(wrong.is_empty(), "operations that these checks do not see:\n{wrong}");
}

/// Returns the operations of the API that change nothing.
fn reads() -> Vec<Operation> {
    operations("get")
}

/// Returns each operation with this method.
fn operations(method: &str) -> Vec<Operation> {
    let document: Value = serde_json::from_str(&read(&top().join("docs/openapi.json"))).unwrap();
    let paths = document["paths"].as_object().unwrap();
    let found = paths.iter().filter_map(|(path, methods)| {
        let operation = methods.get(method)?;
        Some(Operation {
            id: operation["operationId"].as_str()?.to_owned(),
            route: path.rsplit('/').next()?.trim_matches(['{', '}']).to_owned(),
            path: path.clone(),
            request: operation
                .pointer("/requestBody/content/application~1json/schema/$ref")
                .and_then(Value::as_str)
                .and_then(|name| name.rsplit('/').next())
                .map(str::to_owned),
        })
    });
    let found: Vec<_> = found.collect();
    assert!(found.len() > 10, "docs/openapi.json has only {} operations of {method}", found.len());
    found
}

/// Returns the name and the text of each file in the folders of this part of `crates/app`. A module that is a folder has
/// its folder's name.
fn use_cases(part: &str) -> Vec<(String, String)> {
    let found = files(&top().join("crates/app").join(part), "rs").into_iter().filter_map(|file| {
        let named = if file.ends_with("mod.rs") { file.parent()? } else { file.as_path() };
        Some((named.file_stem()?.to_str()?.to_owned(), read(&file)))
    });
    found.collect()
}

/// Returns the names of the operations for which no command of `freehold` `fits`.
fn without_command(operations: Vec<Operation>, fits: impl Fn(&Operation, &str) -> bool) -> BTreeSet<String> {
    let commands = commands();
    let breaking = operations.into_iter().filter(|one| !commands.iter().any(|command| fits(one, command)));
    breaking.map(|operation| operation.id).collect()
}

/// Returns each command of `freehold`, such as `action run`, as the enumerations of its source name them. The name of a
/// group of commands, such as `artifact`, is left out.
fn commands() -> Vec<String> {
    let texts: Vec<String> = files(&top().join("cli/src"), "rs").iter().map(|file| read(file)).collect();
    let of_groups: Vec<&str> = texts.iter().flat_map(|text| groups(text)).collect();
    let mut commands = Vec::new();
    for text in &texts {
        let Some((before, variants)) = text.split_once("Command {\n") else { continue };
        let Some((_, noun)) = before.rsplit_once("enum ") else { continue };
        let variants = variants.split("\n}\n").next().unwrap_or_default();
        for line in variants.lines().filter_map(|line| line.strip_prefix("    ")) {
            let name: String = line.chars().take_while(char::is_ascii_alphabetic).collect();
            let held = line.trim_end_matches([',', ')', '>']).rsplit([':', '(']).next().unwrap_or_default();
            let is_group = held.ends_with("Command") || of_groups.contains(&held);
            if name.starts_with(char::is_uppercase) && !is_group {
                commands.push(format!("{} {}", words(noun).join("-"), words(&name).join("-")).trim().to_owned());
            }
        }
    }
    assert!(commands.len() > 30, "found only {commands:?} in cli/src");
    commands
}

/// Returns the names of the structs whose arguments include a command, as those of `freehold tenant` do.
fn groups(text: &str) -> Vec<&str> {
    let structs = text.split("struct ").skip(1).filter_map(|part| part.split("\n}\n").next()?.split_once(" {\n"));
    let needs_command = |fields: &str| {
        let field = fields.split_once("#[command(subcommand)]\n").and_then(|(_, field)| field.lines().next());
        field.is_some_and(|field| !field.contains(": Option<"))
    };
    structs.filter(|(_, fields)| needs_command(fields)).map(|(name, _)| name).collect()
}

/// Returns the words of a name, in lower case: `RunAction` has `run` and `action`.
fn words(name: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    for letter in name.chars() {
        match words.last_mut() {
            Some(word) if !letter.is_ascii_uppercase() => word.push(letter),
            _ => words.push(letter.to_ascii_lowercase().to_string()),
        }
    }
    words
}

fn singular(word: &str) -> &str {
    word.strip_suffix('s').filter(|shorter| !shorter.ends_with('s')).unwrap_or(word)
}

fn all_of(wrong: impl Iterator<Item = String>) -> String {
    wrong.collect::<Vec<_>>().join("\n")
}
