//! Adds a tip to an error about a subcommand that does not exist: the command that does what the user wants.

use clap::Command;
use clap::error::{ContextKind, ContextValue, Error, ErrorKind};
use freehold_domain::suggestion::nearest;

const INSTALL: &str = "`freehold install show INSTALL` shows the state of an install, and `freehold tenant status` the \
                       state of the tenant";
const LOG: &str = "`freehold job logs JOB` prints a log; `freehold workflow list INSTALL` and `freehold workflow show WORKFLOW` \
                   name the jobs";
const ACTION: &str =
    "`freehold app show APP` lists the actions of an app, and `freehold workflow list INSTALL` their runs";
const LISTS: &str = "`freehold app list` lists the apps, `freehold install list` the installs, and `freehold workflow list \
                     INSTALL` the workflows of an install";

const NEW_APP: &str =
    "`freehold app init DIR` writes a small app to start from, and `freehold app sync DIR` makes a version of it";
const LEAVE: &str = "`freehold teardown INSTALL` removes what is deployed, `freehold install delete INSTALL` an install in which nothing \
                     ever ran, and `freehold install forget INSTALL` one whose customer has left";
const LOGIN: &str = "`freehold login` signs a person in; without a login, commands use the AWS credentials of this shell, and `freehold \
                     doctor` checks them";
const UPDATE: &str =
    "`freehold deploy INSTALL` deploys a new version of an app, and `freehold tenant deploy` updates the control plane";
const TENANT: &str =
    "`freehold tenant deploy` makes and updates the control plane, and `freehold tenant status` shows it";

/// The tips: a command, wrong words that people try after this command, and the tip for these words.
const TIPS: [(&str, &[&str], &str); 26] = [
    ("freehold", &["status", "state"], INSTALL),
    ("freehold", &["logs", "log"], LOG),
    ("freehold", &["list", "ls", "show"], LISTS),
    ("freehold", &["run"], "`freehold action run INSTALL ACTION` runs an action"),
    ("freehold", &["new"], NEW_APP),
    ("freehold", &["apply", "up"], UPDATE),
    ("freehold", &["update", "upgrade"], UPDATE),
    ("freehold", &["plan", "preview"], "`freehold app diff DIR` shows the parts that a deploy would run"),
    ("freehold", &["rollback"], "`freehold deploy INSTALL --version VERSION` deploys an earlier version"),
    ("freehold", &["remove", "rm", "delete", "uninstall", "down"], LEAVE),
    ("freehold", &["signin", "auth", "configure"], LOGIN),
    ("freehold", &["version"], "`freehold --version` prints the version"),
    (
        "freehold",
        &["runner"],
        "`freehold install runner-config INSTALL` writes the config of a runner, and `freehold-runner run --config FILE` runs it",
    ),
    ("freehold action", &["list", "ls", "show"], ACTION),
    ("freehold action", &["status"], "`freehold workflow list INSTALL` shows the state of each run"),
    ("freehold action", &["logs", "log"], LOG),
    (
        "freehold job",
        &["list", "ls"],
        "`freehold workflow show WORKFLOW` lists the jobs of a workflow, and `freehold workflow list INSTALL` the workflows",
    ),
    ("freehold job", &["status"], "`freehold job show JOB` shows the state of a job"),
    ("freehold install", &["status", "state"], INSTALL),
    ("freehold install", &["logs", "log"], LOG),
    ("freehold install", &["remove", "rm", "uninstall", "destroy"], LEAVE),
    ("freehold tenant", &["create", "init", "update", "upgrade", "show", "list", "ls"], TENANT),
    ("freehold workflow", &["status"], "`freehold workflow show WORKFLOW` shows the state of a workflow"),
    ("freehold workflow", &["logs", "log"], LOG),
    ("freehold app", &["create", "new", "add"], NEW_APP),
    (
        "freehold app",
        &["status"],
        "`freehold app show APP` shows an app, and `freehold install list` the state of installs",
    ),
];
/// The maximum number of commands of one name that a tip lists. A longer list would not help.
const MOST_NAMED: usize = 4;

/// Returns `error` with a tip, if it is about a subcommand that does not exist. The tip replaces the parser's own
/// suggestion, which names commands with only slightly similar names. `root` is the command `freehold`.
pub(crate) fn with_tip(mut error: Error, root: &Command) -> Error {
    if let Some(tip) = tip(&error, root) {
        error.remove(ContextKind::SuggestedSubcommand);
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
    }
    error
}

fn tip(error: &Error, root: &Command) -> Option<String> {
    let ErrorKind::InvalidSubcommand = error.kind() else { return None };
    let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidSubcommand) else { return None };
    let Some(ContextValue::StyledStr(usage)) = error.get(ContextKind::Usage) else { return None };
    // The usage is `Usage: freehold action [OPTIONS] <COMMAND>`.
    let usage = usage.to_string();
    let words = usage.trim_start_matches("Usage:").split_whitespace();
    let words = words.take_while(|word| !word.starts_with(['[', '<', '-']));
    // The usage begins with the file name of this program, which may differ from `freehold`.
    let path: Vec<&str> = std::iter::once("freehold").chain(words.skip(1)).collect();
    let command = path.join(" ");
    let found = TIPS.iter().find(|(of, words, _)| *of == command && words.contains(&word.as_str()));
    let here = path.iter().skip(1).try_fold(root, |command, word| command.find_subcommand(word))?;
    found
        .map(|(_, _, tip)| (*tip).to_owned())
        .or_else(|| of_this_name(word, root))
        .or_else(|| {
            let near = nearest(word, here.get_subcommands().map(Command::get_name))?;
            Some(format!("a similar subcommand exists: '{near}'"))
        })
        .or_else(|| Some(format!("`{command} --help` lists the commands")))
}

/// Returns the tip that names all commands whose last word is `word`, such as `freehold job cancel` for `cancel`.
fn of_this_name(word: &str, root: &Command) -> Option<String> {
    fn walk(command: &Command, path: &str, word: &str, found: &mut Vec<String>) {
        for sub in command.get_subcommands() {
            let path = format!("{path} {}", sub.get_name());
            if sub.get_name() == word {
                found.push(format!("`{path}`"));
            }
            walk(sub, &path, word, found);
        }
    }
    let mut found = Vec::new();
    walk(root, "freehold", word, &mut found);
    match found.as_slice() {
        [] => None,
        [one] => Some(format!("did you mean {one}?")),
        [first @ .., last] if found.len() <= MOST_NAMED => {
            Some(format!("did you mean {} or {last}?", first.join(", ")))
        }
        [..] => None,
    }
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory as _, Parser as _};

    use super::*;
    use crate::args::Cli;

    fn help_of(args: &[&str]) -> String {
        let error = Cli::try_parse_from([&["freehold"], args].concat()).unwrap_err();
        with_tip(error, &Cli::command()).to_string()
    }

    #[test]
    fn each_tip_is_for_a_word_that_is_not_a_command() {
        for (command, words, tip) in TIPS {
            for word in words {
                let path: Vec<&str> = command.split(' ').skip(1).chain([*word, "globex"]).collect();

                let help = help_of(&path);

                assert!(help.contains(&format!("tip: {tip}")), "{command} {word}: {help}");
                assert_eq!(help.matches("tip: ").count(), 1, "{help}");
            }
        }
    }

    #[test]
    fn the_commands_in_the_tips_exist() {
        let has = |words: &mut dyn Iterator<Item = &str>| {
            let mut command = Cli::command();
            let is_word = |word: &&str| word.starts_with(|c: char| c.is_ascii_lowercase());
            for word in words.take_while(is_word) {
                let Some(sub) = command.find_subcommand(word) else { return false };
                command = sub.clone();
            }
            !command.has_subcommands()
        };
        let options = |command: &str| command.split(' ').nth(1).is_some_and(|word| word.starts_with("--"));
        for (_, _, tip) in TIPS {
            let named: Vec<&str> = tip.split('`').filter(|part| part.starts_with("freehold ")).collect();

            assert!(!named.is_empty(), "{tip}");
            for command in named {
                assert!(options(command) || has(&mut command.split(' ').skip(1)), "{command}");
            }
        }
    }

    #[test]
    fn a_typo_is_suggested_and_a_word_that_only_looks_a_little_alike_is_not() {
        let tip = |args: &[&str]| {
            let help = help_of(args);
            help.lines().find_map(|line| line.trim().strip_prefix("tip: ")).unwrap_or_default().to_owned()
        };

        assert_eq!(tip(&["deplo"]), "a similar subcommand exists: 'deploy'");
        assert_eq!(tip(&["install", "launc"]), "a similar subcommand exists: 'launch'");
        assert_eq!(tip(&["help", "deplo"]), "a similar subcommand exists: 'deploy'");
        assert_eq!(tip(&["frobnicate"]), "`freehold --help` lists the commands");
        let renamed = Cli::try_parse_from(["fh", "frobnicate"]).unwrap_err();
        let renamed = with_tip(renamed, &Cli::command()).to_string();
        assert!(renamed.contains("tip: `freehold --help` lists the commands"), "{renamed}");
        assert_eq!(tip(&["install", "help", "frobnicate"]), "`freehold install --help` lists the commands");
    }

    #[test]
    fn the_name_of_a_command_of_another_group_is_found_there() {
        for (args, tip) in [
            (vec!["init"], "did you mean `freehold app init` or `freehold tools init`?"),
            (vec!["help", "init"], "did you mean `freehold app init` or `freehold tools init`?"),
            (vec!["launch", "globex"], "did you mean `freehold install launch`?"),
            (vec!["destroy"], "did you mean `freehold tenant destroy`?"),
            (vec!["install", "deploy"], "did you mean `freehold tenant deploy` or `freehold deploy`?"),
            (vec!["contract", "list"], "`freehold contract --help` lists the commands"),
        ] {
            let help = help_of(&args);

            assert!(help.contains(&format!("tip: {tip}\n")), "{args:?}: {help}");
        }
    }
}
