//! The arguments of `freehold`, and the dispatch to the chosen command.

use std::ffi::OsString;

use clap::{CommandFactory, Parser, Subcommand};
use clap_complete::Shell;

use crate::context::{Context, Global};
use crate::error::{EXIT_CODES, Result};
use crate::{
    access, action, app, artifact, build, channel, check, contract, cost, customer, deploy, doctor, drift, health,
    history, install, job, lineage, login, member, policy, release, runbook, subscription, support, teardown, tenant,
    tools, webhook, workflow,
};

const EXAMPLES: &str = "\
From nothing to a running install. In the vendor's account:
  # in a clone of Freehold: writes a release to target/dist; on x86_64, the
  # arm64 build needs `rustup target add aarch64-unknown-linux-gnu` and the
  # package gcc-aarch64-linux-gnu
  make dist
  # freehold and freehold-builder of that release, here for x86_64
  export PATH=\"$PWD/target/dist/x86_64:$PATH\"
  freehold tenant deploy --name acme \\
      --functions target/dist/arm64/functions \\
      --build-runner-principal arn:aws:iam::111111111111:role/builders \\
      --runner-url https://example.com/freehold-runner --runner-sha256 HEX
  export FREEHOLD_TENANT=acme
  # registers the build runner, and prints the role that it must have
  freehold tenant build-runner
  # with the credentials of that role; keep it running
  freehold-builder run --config build-runner.toml
  # an app to start from
  freehold app init my-app
  # an image with the programs that its jobs run, such as Terraform, which
  # the machine of an install stack does not have. `tools init` writes the
  # list of them; before `tools pin`, make the archives that a comment in
  # my-app/tools/tools.toml names
  freehold tools init ./my-app
  freehold tools pin ./my-app/tools
  freehold tools build ./my-app/tools
  # a version of the app, and its artifacts
  freehold app sync ./my-app
  freehold build my-app
  freehold install create globex --app my-app \\
      --account 222222222222 --region eu-west-1
  # writes the template, which you send to the customer
  freehold install stack globex -o globex.yaml

In the customer's account, with the customer's credentials. The customer gets
the program freehold from the vendor, who has it in target/dist, and puts it
on PATH; for a runner outside EC2 also freehold-runner:
  freehold customer verify-template globex.yaml
  freehold install launch globex --template globex.yaml
  # only for a runner outside EC2; then also pass `launch` the option
  # `--parameter RunnerPrincipal=ARN` with the user or role of the runner
  freehold install runner-config globex
  freehold-runner run --config globex-runner.toml

In the vendor's account again. The first deploy starts automatically when
the runner has announced itself; these commands show it:
  freehold install show globex
  freehold workflow list globex

Later, to deploy a new version of the app:
  freehold app sync ./my-app
  freehold build my-app
  # exits with 1 when the customer has to agree to new permissions first
  freehold contract diff globex
  # optional: a name for the version, to which an install can be pinned
  freehold release create my-app --name 2026.11
  freehold deploy globex

Without `--build-runner-principal`, only EC2 instances may assume the build
runner's role. Without `--runner-url` and `--runner-sha256`, the install stack
starts no machine, and the customer runs the runner outside EC2. Without
`freehold tools`, jobs run the programs of the runner's machine. The guides
below docs/guides explain each step.";

/// Run your product inside your customers' AWS accounts, without a key to any of them.
#[derive(Debug, Parser)]
#[command(
    name = "freehold",
    version,
    arg_required_else_help = true,
    after_help = format!("{EXAMPLES}\n\n{EXIT_CODES}"),
)]
pub(crate) struct Cli {
    #[command(flatten)]
    global: Global,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// The control plane in your own account.
    Tenant(Tenant),
    /// App configs and their versions.
    #[command(subcommand)]
    App(app::AppCommand),
    Build(build::Build),
    /// Apps in customers' accounts.
    #[command(subcommand)]
    Install(install::InstallCommand),
    Deploy(deploy::Deploy),
    Teardown(teardown::Teardown),
    /// Follow and cancel deploys, teardowns, builds and runs of actions.
    #[command(subcommand)]
    Workflow(workflow::WorkflowCommand),
    /// The jobs of a workflow, which runners execute, and their logs.
    #[command(subcommand)]
    Job(job::JobCommand),
    /// Run the actions of an app in a customer's account, such as a health check.
    #[command(subcommand)]
    Action(action::ActionCommand),
    /// Run the runbooks of an app, which are sequences of steps, in a customer's account.
    #[command(subcommand)]
    Runbook(runbook::RunbookCommand),
    /// Find changes in a customer's account that Freehold did not make.
    #[command(subcommand)]
    Drift(drift::DriftCommand),
    /// Check whether the components of an install are healthy.
    #[command(subcommand)]
    Health(health::HealthCommand),
    /// Report the results of checks that a deploy waits for.
    #[command(subcommand)]
    Check(check::CheckCommand),
    History(history::History),
    Cost(cost::Cost),
    /// Send people notifications by mail, by HTTPS or into a queue.
    #[command(subcommand)]
    Subscription(subscription::SubscriptionCommand),
    /// Let programs outside of AWS, such as CI jobs, start work in the tenant with signed calls.
    #[command(subcommand)]
    Webhook(webhook::WebhookCommand),
    /// The people and IAM principals who may use the tenant, and their groups.
    #[command(subcommand)]
    Member(member::MemberCommand),
    /// The policies that decide who may do what in the tenant.
    #[command(subcommand)]
    Access(access::AccessCommand),
    Whoami(member::Whoami),
    /// Named versions of an app with their artifacts; a release never changes.
    #[command(subcommand)]
    Release(release::ReleaseCommand),
    /// Named pointers to releases. Installs that follow a channel get each release that the channel moves to.
    #[command(subcommand)]
    Channel(channel::ChannelCommand),
    /// The permissions of versions in a customer's account, and the terms that customers accepted.
    #[command(subcommand)]
    Contract(contract::ContractCommand),
    /// Policies in Rego, which runners evaluate before they change anything.
    #[command(subcommand)]
    Policy(policy::PolicyCommand),
    /// OCI artifacts that builds made.
    #[command(subcommand)]
    Artifact(artifact::ArtifactCommand),
    /// The image that jobs run their programs in.
    #[command(subcommand)]
    Tools(tools::ToolsCommand),
    Lineage(Box<lineage::LineageArgs>),
    /// For customers: answer questions about an install with your own AWS credentials, and stop the vendor's access.
    #[command(subcommand, args = Global::of_customer(), after_help = customer::questions())]
    Customer(customer::CustomerCommand),
    /// Make a redacted file about an install for the vendor's support, and open it.
    #[command(subcommand, args = Global::of_customer())]
    Support(support::SupportCommand),
    Login(login::Login),
    Logout(login::Logout),
    Doctor(doctor::Doctor),
    /// Print a shell completion script.
    #[command(after_help = "\
Examples:
  freehold completions bash > ~/.local/share/bash-completion/completions/freehold
  freehold completions zsh > ~/.zfunc/_freehold
  freehold completions fish > ~/.config/fish/completions/freehold.fish")]
    Completions {
        /// The shell.
        shell: Shell,
    },
}

/// The control plane in your own account.
#[derive(Debug, clap::Args)]
struct Tenant {
    /// AWS region of the tenant; the same as `--aws-region`.
    #[arg(long, global = true, value_name = "REGION")]
    region: Option<String>,
    #[command(subcommand)]
    command: tenant::TenantCommand,
}

/// Returns whether arguments that the parser refused contain `--json`.
pub(crate) fn wants_json(args: impl Iterator<Item = OsString>) -> bool {
    args.take_while(|arg| arg != "--").any(|arg| arg == "--json")
}

/// Returns `args` without the options behind the subcommand `help`: the parser reads each word there as a subcommand,
/// and refuses `freehold help --help`.
pub(crate) fn without_options_of_help(args: Vec<OsString>, root: &clap::Command) -> Vec<OsString> {
    let mut command = root;
    for (at, arg) in args.iter().enumerate().skip(1) {
        let word = arg.to_string_lossy();
        if word == "help" && command.has_subcommands() {
            let is_option = |arg: &OsString| arg.to_string_lossy().starts_with('-');
            return args
                .into_iter()
                .enumerate()
                .filter(|(i, arg)| *i <= at || !is_option(arg))
                .map(|(_, arg)| arg)
                .collect();
        }
        match command.find_subcommand(word.as_ref()) {
            Some(sub) => command = sub,
            None if word.starts_with('-') => {}
            None => break,
        }
    }
    args
}

impl Cli {
    /// Runs the command.
    pub(crate) async fn run(self) -> Result<()> {
        let context = Context::new(self.global);
        match self.command {
            Command::Tenant(tenant) => tenant.command.run(&context.in_region(tenant.region)?).await,
            Command::App(command) => command.run(&context).await,
            Command::Build(command) => command.run(&context).await,
            Command::Install(command) => command.run(&context).await,
            Command::Deploy(command) => command.run(&context).await,
            Command::Teardown(command) => command.run(&context).await,
            Command::Workflow(command) => command.run(&context).await,
            Command::Job(command) => command.run(&context).await,
            Command::Action(command) => command.run(&context).await,
            Command::Webhook(command) => command.run(&context).await,
            Command::Member(command) => command.run(&context).await,
            Command::Access(command) => command.run(&context).await,
            Command::Whoami(command) => command.run(&context).await,
            Command::Runbook(command) => command.run(&context).await,
            Command::Drift(command) => command.run(&context).await,
            Command::Health(command) => command.run(&context).await,
            Command::Check(command) => command.run(&context).await,
            Command::History(command) => command.run(&context).await,
            Command::Cost(command) => command.run(&context).await,
            Command::Subscription(command) => command.run(&context).await,
            Command::Release(command) => command.run(&context).await,
            Command::Channel(command) => command.run(&context).await,
            Command::Contract(command) => command.run(&context).await,
            Command::Policy(command) => command.run(&context),
            Command::Artifact(command) => command.run(&context).await,
            Command::Tools(command) => command.run(&context).await,
            Command::Lineage(command) => command.run(&context).await,
            Command::Customer(command) => command.run(&context, Self::command()).await,
            Command::Support(command) => command.run(&context).await,
            Command::Login(command) => command.run(&context).await,
            Command::Logout(command) => command.run(&context).await,
            Command::Doctor(command) => command.run(&context).await,
            Command::Completions { shell } => {
                let mut script = Vec::new();
                clap_complete::generate(shell, &mut Self::command(), "freehold", &mut script);
                crate::output::print_exactly(&String::from_utf8_lossy(&script));
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_arguments_are_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_command_has_a_sentence_of_help() {
        fn walk(command: &clap::Command, path: &str) {
            for sub in command.get_subcommands().filter(|sub| sub.get_name() != "help") {
                let path = format!("{path} {}", sub.get_name());
                assert!(sub.get_about().is_some(), "{path} has no help");
                walk(sub, &path);
            }
        }

        walk(&Cli::command(), "freehold");
    }

    #[test]
    fn every_argument_has_a_sentence_of_help() {
        fn walk(command: &clap::Command, path: &str, without: &mut Vec<String>) {
            let silent = command.get_arguments().filter(|argument| argument.get_help().is_none());
            without.extend(silent.map(|argument| format!("{path} {}", argument.get_id())));
            for sub in command.get_subcommands().filter(|sub| sub.get_name() != "help") {
                walk(sub, &format!("{path} {}", sub.get_name()), without);
            }
        }
        let mut without = Vec::new();

        walk(&Cli::command(), "freehold", &mut without);

        assert_eq!(without, Vec::<String>::new());
    }

    #[test]
    fn wrong_names_are_refused_while_arguments_are_read() {
        let error = Cli::try_parse_from(["freehold", "install", "show", "Globex"]).unwrap_err();

        assert_eq!(error.exit_code(), 2);
        assert!(error.to_string().contains("is not an install name"), "{error}");
    }

    #[test]
    fn global_options_stand_anywhere() {
        for args in [
            ["freehold", "--json", "--tenant", "acme", "app", "list"],
            ["freehold", "app", "list", "--json", "--tenant", "acme"],
        ] {
            assert!(Cli::try_parse_from(args).is_ok(), "{args:?}");
        }
    }

    /// Returns the page that `args` print on a terminal of `width` columns.
    fn page(args: &[&str], width: usize) -> String {
        let root = Cli::command();
        let words = std::iter::once("freehold").chain(args.iter().copied()).map(OsString::from).collect();
        let words = without_options_of_help(words, &root);
        let message = crate::output::fitted(root.term_width(width), width).try_get_matches_from(words).unwrap_err();
        assert!(!message.use_stderr(), "{args:?}: {message}");
        message.to_string()
    }

    #[test]
    fn a_customers_command_has_no_option_of_the_tenants_api() {
        let customers = page(&["customer", "asked", "--help"], 80);

        assert!(!customers.contains("--api") && !customers.contains("--idempotency-key"), "{customers}");
        assert!(customers.contains("Name of the vendor"), "{customers}");
        assert!(page(&["install", "show", "--help"], 80).contains("--api"));
        for words in [
            ["freehold", "--tenant", "acme", "customer", "asked", "globex"],
            ["freehold", "customer", "asked", "globex", "--tenant", "acme"],
        ] {
            let global = Cli::try_parse_from(words).unwrap().global;
            assert_eq!(Context::new(global).named_tenant().unwrap().unwrap().as_str(), "acme", "{words:?}");
        }
    }

    #[test]
    fn help_about_help_is_the_help() {
        for (args, same) in [
            (&["help", "--help"][..], &["--help"][..]),
            (&["help", "-h"], &["--help"]),
            (&["help", "--json"], &["--help"]),
            (&["help", "app", "init", "--help"], &["app", "init", "--help"]),
            (&["install", "help", "--help"], &["install", "--help"]),
        ] {
            assert_eq!(page(args, 80), page(same, 80), "{args:?}");
        }
        let kept: Vec<OsString> = ["freehold", "install", "show", "help", "--json"].map(OsString::from).into();
        assert_eq!(without_options_of_help(kept.clone(), &Cli::command()), kept);
    }

    #[test]
    fn every_page_of_help_has_one_layout_and_fits_the_terminal() {
        fn walk(command: &clap::Command, path: &[&str], width: usize) {
            let help = page(&[path, &["--help"]].concat(), width);
            assert!(!help.contains("see a summary"), "{path:?} has a layout of its own: {help}");
            for line in help.lines() {
                let wide = line.chars().count();
                assert_eq!(line.trim_end(), line, "{path:?} at {width}");
                let is_one_word = line.split_whitespace().filter(|word| *word != "\\").count() == 1;
                let is_usage = width < 80 && line.starts_with("Usage: ");
                assert!(wide <= width || is_one_word || is_usage, "{path:?} at {width}: {line}");
                let is_prose = !line.starts_with([' ', '-']) && help.lines().next() != Some(line);
                assert!(wide <= 120 || !is_prose, "{path:?} at {width}: {line}");
            }
            for sub in command.get_subcommands() {
                walk(sub, &[path, &[sub.get_name()]].concat(), width);
            }
        }
        for width in [60, 80, 200] {
            walk(&Cli::command(), &[], width);
        }
    }

    /// Returns the examples in a help text: commands of `freehold`, without what explains them.
    fn examples(help: &str) -> Vec<String> {
        let whole = help.replace("\\\n", " ");
        let commands = whole.lines().filter_map(|line| line.strip_prefix("  freehold "));
        let bare = |command: &str| {
            let end = [" | ", " > ", " && ", "   "].iter().filter_map(|mark| command.find(mark)).min();
            command.split_at(end.unwrap_or(command.len())).0.trim().to_owned()
        };
        // Explained ones have their text some spaces further right, continued ones were indented.
        commands
            .map(|command| bare(&command.replace("      --", "--")))
            .filter(|command| !command.contains('"'))
            .collect()
    }

    #[test]
    fn every_example_of_the_help_is_a_command() {
        fn walk(command: &clap::Command, found: &mut Vec<String>) {
            found.extend(examples(&command.get_after_help().map(ToString::to_string).unwrap_or_default()));
            command.get_subcommands().for_each(|sub| walk(sub, found));
        }
        let mut found = Vec::new();
        walk(&Cli::command(), &mut found);

        assert!(found.len() > 60, "{found:?}");
        for example in found {
            let words = example.split_whitespace().take_while(|word| !word.starts_with('#'));
            // The files that hold the values of examples are not here.
            let words = words
                .map(|word| word.split_once("=@").map_or_else(|| word.to_owned(), |(name, _)| format!("{name}=1")))
                .map(|word| match word.as_str() {
                    "HEX" => "0".repeat(64),
                    "KEY" => "iojj3XQJ8ZX9UtstPLpdcspnCb8dlBIb83SIAbQPb1w=".to_owned(),
                    _ => word,
                });
            let parsed = Cli::try_parse_from(std::iter::once("freehold".to_owned()).chain(words));
            assert!(parsed.is_ok(), "{example}: {}", parsed.unwrap_err());
        }
    }

    #[test]
    fn every_command_has_an_example() {
        fn walk(command: &clap::Command, path: &str, missing: &mut Vec<String>) {
            let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            if !command.has_subcommands() && !help.lines().any(|line| line.starts_with("  freehold ")) {
                missing.push(path.to_owned());
            }
            for sub in command.get_subcommands().filter(|sub| sub.get_name() != "help") {
                walk(sub, &format!("{path} {}", sub.get_name()), missing);
            }
        }
        let mut missing = Vec::new();
        walk(&Cli::command(), "freehold", &mut missing);

        assert!(missing.is_empty(), "{missing:#?}");
    }

    #[test]
    fn the_way_from_nothing_to_a_running_install_has_every_step() {
        let steps = [
            "tenant deploy",
            "tenant build-runner",
            "app init",
            "tools init",
            "tools pin",
            "tools build",
            "app sync",
            "build my-app",
            "install create",
            "install stack",
            "customer verify-template",
            "install launch",
            "install runner-config",
            "workflow list globex",
            "contract diff globex",
            "release create my-app",
            "deploy globex",
        ];
        let found = examples(EXAMPLES);
        let (first_install, later) = EXAMPLES.split_once("\nLater, ").unwrap();

        let missing: Vec<_> = steps.iter().filter(|step| !found.iter().any(|one| one.starts_with(**step))).collect();

        assert!(missing.is_empty(), "{missing:?}");
        assert!(first_install.contains("The first deploy starts automatically"), "{first_install}");
        assert!(!first_install.contains("freehold deploy ") && later.contains("freehold deploy "), "{later}");
        assert!(EXAMPLES.lines().all(|line| line.chars().count() < 80), "a line is too long for a terminal");
        let words =
            ["--functions", "--build-runner-principal", "--runner-url", "--runner-sha256", "export PATH=", "on PATH"];
        for word in words {
            assert!(EXAMPLES.contains(word), "{word}");
        }
    }
}
