//! Adds a tip to an error about a subcommand that does not exist: the command that does what the user wants.

use clap::error::{ContextKind, ContextValue, Error, ErrorKind};

const INSTALL: &str = "`freehold install show INSTALL` shows the state of an install, and `freehold tenant status` that of the \
                       tenant";
const LOG: &str = "`freehold job logs JOB` prints a log; `freehold workflow list INSTALL` and `freehold workflow show WORKFLOW` \
                   name the jobs";
const ACTION: &str =
    "`freehold app show APP` lists the actions of an app, and `freehold workflow list INSTALL` their runs";
const LISTS: &str = "`freehold app list` lists the apps, `freehold install list` the installs, and `freehold workflow list \
                     INSTALL` the workflows of an install";

/// The tips: a command, words that people try after it, and the tip for them.
const TIPS: [(&str, &[&str], &str); 14] = [
    ("freehold", &["status", "state"], INSTALL),
    ("freehold", &["logs", "log"], LOG),
    ("freehold", &["list", "ls", "show"], LISTS),
    ("freehold", &["run"], "`freehold action run INSTALL ACTION` runs an action"),
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
    ("freehold workflow", &["status"], "`freehold workflow show WORKFLOW` shows the state of a workflow"),
    ("freehold workflow", &["logs", "log"], LOG),
    (
        "freehold app",
        &["status"],
        "`freehold app show APP` shows an app, and `freehold install list` the state of installs",
    ),
];

/// Returns `error` with a tip, if it is about a subcommand that has one. The tip replaces the parser's own suggestion.
pub(crate) fn with_tip(mut error: Error) -> Error {
    if let Some(tip) = tip(&error) {
        error.remove(ContextKind::SuggestedSubcommand);
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
    }
    error
}

fn tip(error: &Error) -> Option<&'static str> {
    let ErrorKind::InvalidSubcommand = error.kind() else { return None };
    let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidSubcommand) else { return None };
    let Some(ContextValue::StyledStr(usage)) = error.get(ContextKind::Usage) else { return None };
    // The usage is `Usage: freehold action [OPTIONS] <COMMAND>`.
    let usage = usage.to_string();
    let words = usage.trim_start_matches("Usage:").split_whitespace();
    let command = words.take_while(|word| !word.starts_with(['[', '<', '-'])).collect::<Vec<_>>().join(" ");
    let found = TIPS.iter().find(|(of, words, _)| *of == command && words.contains(&word.as_str()));
    found.map(|(_, _, tip)| *tip)
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory as _, Parser as _};

    use super::*;
    use crate::args::Cli;

    fn shown(args: &[&str]) -> String {
        let error = Cli::try_parse_from([&["freehold"], args].concat()).unwrap_err();
        with_tip(error).to_string()
    }

    #[test]
    fn each_tip_is_for_a_word_that_is_not_a_command() {
        for (command, words, tip) in TIPS {
            for word in words {
                let path: Vec<&str> = command.split(' ').skip(1).chain([*word, "globex"]).collect();

                let shown = shown(&path);

                assert!(shown.contains(&format!("tip: {tip}")), "{command} {word}: {shown}");
                assert_eq!(shown.matches("tip: ").count(), 1, "{shown}");
            }
        }
    }

    #[test]
    fn the_commands_in_the_tips_exist() {
        let has = |words: &mut dyn Iterator<Item = &str>| {
            let mut command = Cli::command();
            for word in words.take_while(|word| word.chars().all(|c| c.is_ascii_lowercase())) {
                let Some(sub) = command.find_subcommand(word) else { return false };
                command = sub.clone();
            }
            !command.has_subcommands()
        };
        for (_, _, tip) in TIPS {
            let named: Vec<&str> = tip.split('`').filter(|part| part.starts_with("freehold ")).collect();

            assert!(!named.is_empty(), "{tip}");
            for command in named {
                assert!(has(&mut command.split(' ').skip(1)), "{command}");
            }
        }
    }

    #[test]
    fn other_mistakes_keep_the_suggestion_of_the_parser() {
        let shown = shown(&["deplo"]);

        assert!(shown.contains("tip: a similar subcommand exists: 'deploy'"), "{shown}");
    }
}
