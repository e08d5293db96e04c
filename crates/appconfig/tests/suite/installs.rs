//! Installs and branches that a vendor keeps beside the app.

use std::collections::BTreeMap;

use freehold_appconfig::{Diagnostics, InstallFile};
use freehold_protocol::api::ApprovalOption;

use crate::config::{Config, good};

const TOGGLEABLE: &str =
    "name = \"web\"\ntype = \"container_image\"\ntoggleable = true\n[public]\nimage_url = \"x/web\"\ntag = \"1\"\n";

#[test]
fn installs_and_branches_are_checked_and_no_part_of_the_version() {
    let plain = good().with("components/web.toml", TOGGLEABLE);
    let more = good()
        .with("components/web.toml", TOGGLEABLE)
        .with("installs/a.toml", "name = \"a1\"\napproval_option = \"approve-all\"\n[aws_account]\nregion = \"eu-west-1\"\n[inputs]\nregion = \"x\"\n[component_toggles]\nweb = false\n")
        .with("installs/b.toml", "name = \"b1\"\napproval_option = \"prompt\"\n[azure_account]\nlocation = \"westeurope\"\n[[inputs]]\nregion = \"x\"\n")
        .with("branch.toml", "ignore_changes_regex = '^docs/|\\.md$'\n[[install_groups]]\nname = \"first\"\norder = 1\ninstall_names = [\"a1\"]\nauto_approve_on_policies_passing = true\n[[install_groups]]\nname = \"rest\"\n[install_groups.label_selector]\ntier = \"free\"\n[preview]\nmode = \"build-only\"\n")
        .with("triggers.toml", "[[anything]]\nname = \"x\"\n")
        .with("installer.toml", "name = \"x\"\nnew_key = 1\n");

    let (plain, more) = (plain.load(), more.load());

    assert!(more.warnings.is_empty(), "{}", more.warnings);
    assert_eq!(plain.version.digest().unwrap(), more.version.digest().unwrap());
    assert!(plain.installs.is_empty());
    let web = [("web".parse().unwrap(), false)].into();
    let region: BTreeMap<_, _> = [("region".to_owned(), "x".to_owned())].into();
    let file = |name: &str, place: Option<&str>, option| InstallFile {
        path: format!("installs/{name}.toml"),
        install: format!("{name}1").parse().unwrap(),
        region: place.map(str::to_owned),
        approval_option: Some(option),
        inputs: region.clone(),
        toggles: BTreeMap::new(),
        labels: None,
    };
    let a = InstallFile { toggles: web, ..file("a", Some("eu-west-1"), ApprovalOption::ApproveAll) };
    assert_eq!(more.installs, [a, file("b", None, ApprovalOption::Prompt)]);
}

#[test]
fn an_install_has_the_labels_of_its_file() {
    let labels = |text: &str| {
        let loaded = with_install(text).load();
        assert!(loaded.warnings.is_empty(), "{}", loaded.warnings);
        loaded.installs[0].labels.clone()
    };

    let three = labels("[labels]\ntier = \"free\"\nnode = 3\nshared = true\n").unwrap();

    assert_eq!(
        three.into_iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>(),
        ["node=3", "shared=true", "tier=free"]
    );
    assert_eq!(labels("labels = {}\n"), Some(BTreeMap::new()));
    assert_eq!(labels(""), None);
}

#[test]
fn labels_that_no_install_can_have_are_errors() {
    let long = "x".repeat(5000);
    let config = with_install("[labels]\n\"\" = \"free\"\n")
        .with("installs/b.toml", "name = \"b1\"\nlabels = { tier = [\"free\"] }\n")
        .with("installs/c.toml", "name = \"c1\"\n[labels]\ntier = \"free\\nof charge\"\n")
        .with("installs/d.toml", "name = \"d1\"\n[labels]\n\"env=test\" = true\n")
        .with("metadata.toml", &format!("version = \"v2\"\n[default_labels]\nnote = \"{long}\"\n"));

    let found: Vec<String> =
        config.faults().iter().map(|one| format!("{}:{}: {}", one.file, one.line, one.message)).collect();

    assert_eq!(
        found,
        [
            "installs/a.toml:2: a label has an empty key; give it a key, such as `env` in `env=production`",
            "installs/b.toml:2: `tier` is a list",
            "installs/c.toml:2: the label `tier` has a line break, or another control or invisible character; remove it",
            "installs/d.toml:2: the key `env=test` of a label has a `=` or a `,`; leave it out, because a list of labels is \
             `KEY=VALUE, KEY=VALUE`",
            "metadata.toml:2: the labels have 5004 bytes in all, more than the 4096 that an install stores; \
             shorten them",
        ]
    );
}

#[test]
fn a_region_is_one_of_aws() {
    let regions = ["eu-wset-1", "EU-WEST-1", ""].map(|region| {
        with_install(&format!("[aws_account]\nregion = \"{region}\"\n"))
            .faults()
            .to_string()
            .lines()
            .next()
            .unwrap_or_default()
            .to_owned()
    });

    assert_eq!(
        regions,
        [
            "warning: this release does not know region `eu-wset-1`",
            "error: `EU-WEST-1` is not an AWS region; expected one like `eu-west-1`",
            "error: `` is not an AWS region; expected one like `eu-west-1`",
        ]
    );
}

#[test]
fn what_a_sync_of_installs_does_not_read_is_a_warning() {
    let input = "[[input]]\nname = \"zone\"\ndisplay_name = \"N\"\ndescription = \"d\"\ngroup = \"main\"\nuser_configurable = true\n";
    let config = with_install("[inputs]\nzone = \"x\"\n[labels]\ntier = \"free\"\n")
        .with("inputs/more.toml", input)
        .with("installs/b.toml", "name = \"Not A Name\"\n");

    insta::assert_snapshot!(config.faults(), @r#"
    warning: input `zone` is answered by the customer, so its value is not read from a file
     --> installs/a.toml:3:1
      |
    3 | zone = "x"
      | ^^^^
      |
      = help: remove the value from this file; the customer enters it in the install stack

    warning: `freehold install sync` leaves this install out, because `Not A Name` is not an install name; expected 2 to 20 lower-case letters, digits or single dashes, starting with a letter
     --> installs/b.toml:1:8
      |
    1 | name = "Not A Name"
      |        ^^^^^^^^^^^^
      |
      = help: give the install another name
    "#);
    assert_eq!(config.load().installs.iter().map(|one| one.inputs.len()).collect::<Vec<_>>(), [0]);
}

fn with_install(text: &str) -> Config {
    good().with("installs/a.toml", &format!("name = \"a1\"\n{text}"))
}

#[test]
fn an_install_answers_inputs_that_are_there() {
    let config = with_install("[[inputs]]\nregoin = \"x\"\nregion = 3\n");

    insta::assert_snapshot!(config.faults(), @r#"
    error: there is no input `regoin`
     --> installs/a.toml:3:1
      |
    3 | regoin = "x"
      | ^^^^^^
      |
      = help: did you mean `region`?

    error: input `region` is a number
     --> installs/a.toml:4:10
      |
    4 | region = 3
      |          ^ expected a string, whatever the input's type
    "#);
}

#[test]
fn an_answer_fits_the_input() {
    let input = |name: &str, more: &str| {
        format!("[[input]]\nname = \"{name}\"\ndisplay_name = \"N\"\ndescription = \"d\"\ngroup = \"main\"\n{more}\n")
    };
    let inputs = [
        input("region", ""),
        input("size", "type = \"number\""),
        input("key", "sensitive = true"),
        input("tags", "type = \"json\""),
    ];
    let config = with_install("[inputs]\nsize = \"big\"\nkey = \"k\"\ntags = '{\"a\": }'\n")
        .with("inputs.toml", &format!("[[group]]\nname = \"main\"\n{}", inputs.concat()));

    insta::assert_snapshot!(config.faults(), @r#"
    error: the value of input `size` does not fit its type
     --> installs/a.toml:3:8
      |
    3 | size = "big"
      |        ^^^^^ expected a number

    warning: input `key` is sensitive, so its value is not read from a file
    --> installs/a.toml:4:1
     = help: remove the value from this file; `freehold install inputs` sets it when the install has a runner, or the customer enters it in the install stack

    error: the value of input `tags` is not JSON: expected value
     --> installs/a.toml:5:15
      |
    5 | tags = '{"a": }'
      |               ^ expected valid JSON
    "#);
}

#[test]
fn only_a_toggleable_component_is_left_out() {
    let config = with_install("[component_toggles]\nwbe = false\nnet = false\nweb = \"no\"\n")
        .with("components/web.toml", TOGGLEABLE);

    insta::assert_snapshot!(config.faults(), @r#"
    error: there is no component `wbe`
     --> installs/a.toml:3:1
      |
    3 | wbe = false
      | ^^^
      |
      = help: did you mean `web`?

    error: component `net` is not toggleable: every install has it
     --> installs/a.toml:4:1
      |
    4 | net = false
      | ^^^
      |
     ::: components/net.toml:1:8
      |
    1 | name = "net"
      |        ----- the component
      |
      = help: add `toggleable = true` to the component, or remove this line

    error: `web` is a string
     --> installs/a.toml:5:7
      |
    5 | web = "no"
      |       ^^^^ expected `true` or `false`
    "#);
}

#[test]
fn an_install_has_a_region_and_a_name_of_its_own() {
    let config = with_install("approval_option = \"never\"\n[aws_account]\nregions = \"x\"\n")
        .with("installs/b.toml", "name = \"a1\"\n");

    insta::assert_snapshot!(config.faults(), @r#"
    error: `approval_option` is `never`
     --> installs/a.toml:2:19
      |
    2 | approval_option = "never"
      |                   ^^^^^^^ expected one of `approve-all`, `auto`, `prompt`

    error: key `region` is missing
     --> installs/a.toml:3:1
      |
    3 | [aws_account]
      | ^^^^^^^^^^^^^
      |
      = help: add `region = "..."`

    warning: unknown key `regions`; it has no effect
     --> installs/a.toml:4:1
      |
    4 | regions = "x"
      | ^^^^^^^
      |
      = help: did you mean `region`?

    error: install `a1` is defined twice, in installs/a.toml:1 and here
     --> installs/b.toml:1:8
      |
    1 | name = "a1"
      |        ^^^^
      |
     ::: installs/a.toml:1:8
      |
    1 | name = "a1"
      |        ---- first defined here
      |
      = help: rename one of them, or remove it
    "#);
}

#[test]
fn a_group_of_installs_is_listed_or_selected() {
    let config = good().with(
        "branch.toml",
        "[[install_groups]]\nname = \"a\"\ninstall_ids = [\"x\"]\n[install_groups.label_selector]\ntier = \"free\"\n[[install_groups]]\nname = \"a\"\n",
    );

    insta::assert_snapshot!(config.faults(), @r#"
    error: install group `a` has both `install_ids` and `label_selector`
     --> branch.toml:4:17
      |
    3 | install_ids = ["x"]
      | ----------- the other key
    4 | [install_groups.label_selector]
      |                 ^^^^^^^^^^^^^^
      |
      = help: list installs, or select them by label

    error: install group `a` is defined twice, in branch.toml:2 and here
     --> branch.toml:7:8
      |
    2 | name = "a"
      |        --- first defined here
    ...
    7 | name = "a"
      |        ^^^
      |
      = help: rename one of them, or remove it

    warning: install group `a` has no installs
     --> branch.toml:7:8
      |
    7 | name = "a"
      |        ^^^
      |
      = help: add one of `install_ids`, `install_names`, `label_selector`
    "#);
}

#[test]
fn a_branch_names_runbooks_paths_and_previews_that_can_be() {
    let config = good()
        .with("runbooks/verify.toml", "name = \"verify\"\n[[steps]]\nname = \"s\"\ntype = \"component_deploy\"\ncomponent_name = \"web\"\n")
        .with("branch.toml", "post_deploy_runbooks = [\"verifi\"]\nignore_changes_regex = 'docs/(.*'\n[preview]\nmode = \"plan\"\ninstall_id = \"x\"\ninstall_name = \"y\"\n");

    insta::assert_snapshot!(config.faults(), @r#"
    error: there is no runbook `verifi`
     --> branch.toml:1:25
      |
    1 | post_deploy_runbooks = ["verifi"]
      |                         ^^^^^^^^
      |
      = help: did you mean `verify`?

    error: not a regular expression: unclosed group
     --> branch.toml:2:30
      |
    2 | ignore_changes_regex = 'docs/(.*'
      |                              ^ expected an expression over paths, such as `^docs/|\.md$`

    error: `mode` is `plan`
     --> branch.toml:4:8
      |
    4 | mode = "plan"
      |        ^^^^^^ expected one of `plan-only`, `apply`, `build-only`

    error: the preview has both `install_id` and `install_name`
     --> branch.toml:6:1
      |
    5 | install_id = "x"
      | ---------- the other key
    6 | install_name = "y"
      | ^^^^^^^^^^^^
      |
      = help: keep one of them
    "#);
}

const VERIFY: &str = "name = \"verify\"\n[[inputs]]\nname = \"ticket\"\nrequired = true\ndefault = \"none\"\n[[steps]]\nname = \"s\"\ntype = \"component_deploy\"\ncomponent_name = \"web\"\n";

/// Returns the findings in files of branches, with their lines.
fn in_branches(found: &Diagnostics) -> Vec<String> {
    let of_branches = found.iter().filter(|one| one.file.starts_with("branch"));
    of_branches.map(|one| format!("{}:{}: {}", one.file, one.line, one.message)).collect()
}

#[test]
fn the_runbooks_after_a_deploy_are_part_of_the_version_in_their_order() {
    let config = good()
        .with("runbooks/verify.toml", VERIFY)
        .with("runbooks/warm.toml", &VERIFY.replace("verify", "warm"))
        .with("branches/main.toml", "name = \"main\"\npost_deploy_runbooks = [\"warm\", \"verify\"]\n")
        .with("branches/next.toml", "name = \"next\"\npost_deploy_runbooks = [\"warm\", \"verify\"]\n")
        .with("branches/other.toml", "name = \"other\"\npost_deploy_runbooks = []\n");

    let version = config.load().version;

    let names: Vec<&str> = version.post_deploy_runbooks.iter().map(|name| name.as_str()).collect();
    assert_eq!(names, ["warm", "verify"]);
}

#[test]
fn a_runbook_that_cannot_run_by_itself_is_refused_after_a_deploy() {
    let action =
        "name = \"a\"\n[[inputs]]\nname = \"ticket\"\nrequired = true\n[[steps]]\nname = \"s\"\ncommand = \"./x.sh\"\n";
    let look = "name = \"look\"\n[[inputs]]\nname = \"ticket\"\n[[steps]]\nname = \"s\"\ntype = \"action\"\naction_name = \"a\"\n";
    let list = "post_deploy_runbooks = [\n\"verify\",\n\"fix\",\n\"look\",\n\"idle\",\n]\n";
    let config = good()
        .with("actions/a.toml", action)
        .with("runbooks/verify.toml", VERIFY)
        .with("runbooks/fix.toml", &VERIFY.replace("verify", "fix").replace("default = \"none\"\n", ""))
        .with("runbooks/look.toml", look)
        .with("runbooks/idle.toml", "name = \"idle\"\n")
        .with("branch.toml", list);

    let found = config.faults();

    assert!(found.has_errors());
    assert_eq!(
        in_branches(&found),
        [
            "branch.toml:3: runbook `fix` requires input `ticket`, and nobody gives inputs to a run after a deploy",
            "branch.toml:4: action `a` requires input `ticket`, and nobody gives inputs to a run after a deploy",
            "branch.toml:5: runbook `idle` has no steps",
        ]
    );
}

#[test]
fn a_runbook_is_named_once_after_a_deploy_and_a_list_has_at_most_twenty() {
    let twice = "post_deploy_runbooks = [\n\"verify\",\n\"warm\",\n\"verify\",\n]\n";
    let many: String = (1..=21).map(|at| format!("\"r{at}\",")).collect();
    let config = |list: &str| {
        let config = good()
            .with("runbooks/verify.toml", VERIFY)
            .with("runbooks/warm.toml", &VERIFY.replace("verify", "warm"))
            .with("branch.toml", list);
        (1..=21).fold(config, |config, at| {
            config.with(&format!("runbooks/r{at}.toml"), &VERIFY.replace("verify", &format!("r{at}")))
        })
    };

    let (twice, many) = (config(twice).faults(), config(&format!("post_deploy_runbooks = [{many}]\n")).faults());

    assert!(twice.has_errors() && many.has_errors());
    assert_eq!(in_branches(&twice), ["branch.toml:4: the list names runbook `verify` twice"]);
    assert_eq!(in_branches(&many), ["branch.toml:1: the list names 21 runbooks, more than the maximum of 20"]);
}

#[test]
fn a_runbook_whose_run_is_too_large_is_refused_after_a_deploy() {
    let large = VERIFY.replace("name = \"s\"", &format!("name = \"{}\"", "x".repeat(128 * 1024)));
    let config =
        good().with("runbooks/verify.toml", &large).with("branch.toml", "post_deploy_runbooks = [\"verify\"]\n");

    let found = config.faults();

    assert!(found.has_errors());
    let found = in_branches(&found).join("\n");
    assert!(found.starts_with("branch.toml:1: runbook `verify` makes a run of 139"), "{found}");
    assert!(found.ends_with("bytes, more than the maximum of 131072; split it"), "{found}");
}

#[test]
fn branches_with_different_runbooks_are_refused_by_a_sync_because_a_version_has_one_list() {
    let config = good()
        .with("runbooks/verify.toml", VERIFY)
        .with("runbooks/warm.toml", &VERIFY.replace("verify", "warm"))
        .with("branches/main.toml", "post_deploy_runbooks = [\"verify\"]\n")
        .with("branches/next.toml", "name = \"next\"\npost_deploy_runbooks = [\"verify\", \"warm\"]\n");

    let (synced, checked) = (config.faults(), config.check());

    let expected =
        ["branches/next.toml:2: this branch has other `post_deploy_runbooks`, and an app version has one list of them"];
    assert_eq!(in_branches(&synced), expected);
    assert_eq!(in_branches(&checked), expected);
    assert!(synced.has_errors() && !checked.has_errors());
}
