//! Converts an error of the argument parser to an error of the command.

use clap::error::ErrorKind;

use super::Error;

/// Returns the error about arguments that the parser refused. It is printed as JSON.
pub(crate) fn usage(error: &clap::Error) -> Error {
    let text = error.render().to_string();
    let first = text.split("\n\n").next().unwrap_or_default().trim();
    let message = match error.kind() {
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand | ErrorKind::MissingSubcommand => {
            "a command is missing".to_owned()
        }
        _ => first.strip_prefix("error: ").unwrap_or(first).split_whitespace().collect::<Vec<_>>().join(" "),
    };
    let tip = text.lines().find_map(|line| line.trim_start().strip_prefix("tip: "));
    let usage = text.split("\nUsage: ").nth(1).and_then(|rest| rest.split("\n\n").next());
    let usage = usage.map(|lines| lines.split_whitespace().collect::<Vec<_>>().join(" "));
    let way_out = match (tip, usage) {
        (Some(tip), _) => tip.to_owned(),
        (None, Some(usage)) => format!("usage: {}", usage.replace(" --json", "")),
        (None, None) => "see `freehold --help`".to_owned(),
    };
    Error { message, ..Error::invalid("").or(way_out) }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use crate::args::Cli;

    fn object(args: &[&str]) -> String {
        let error = Cli::try_parse_from([&["freehold"], args].concat()).unwrap_err();
        super::usage(&error).to_json()["error"].to_string()
    }

    #[test]
    fn wrong_usage_is_an_error_like_any_other() {
        insta::assert_snapshot!(object(&["app", "check"]), @r#"{"code":"invalid","exit_code":2,"message":"the following required arguments were not provided: <DIR>","way_out":"usage: freehold app check <DIR>"}"#);
        insta::assert_snapshot!(object(&["deplo"]), @r#"{"code":"invalid","exit_code":2,"message":"unrecognized subcommand 'deplo'","way_out":"a similar subcommand exists: 'deploy'"}"#);
        insta::assert_snapshot!(object(&["install", "show", "Globex"]), @r#"{"code":"invalid","exit_code":2,"message":"invalid value 'Globex' for '<INSTALL>': `Globex` is not an install name; expected 2 to 20 lower-case letters, digits or single dashes, starting with a letter","way_out":"see `freehold --help`"}"#);
        let create = object(&["install", "create", "globex"]);
        assert!(
            create.contains(
                "usage: freehold install create [OPTIONS] --app <NAME> --account <ID> --region <REGION> <INSTALL>"
            ),
            "{create}"
        );
        insta::assert_snapshot!(object(&["install"]), @r#"{"code":"invalid","exit_code":2,"message":"a command is missing","way_out":"usage: freehold install [OPTIONS] <COMMAND>"}"#);
    }
}
