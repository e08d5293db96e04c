//! The keys of metadata, inputs, secrets, installs and branches.

use crate::kinds::spec::Holds::{Any, File, Flag, Scalars, Table, Tables, Template, Text, Texts, Whole, Word};
use crate::kinds::spec::{Key, may, must};

use super::components::REPO;

pub(super) const METADATA: &[Key] = &[
    must("version", Text).doc("The version of the config format: `v2`"),
    may("display_name", Text).doc("The app's name for people, which `freehold app show` shows"),
    may("description", Text).doc("A description of the app in one line, which `freehold app show` shows"),
    may("slack_webhook_url", Text).doc("An address to which another tool sends messages").never(
        "Freehold never contacts it; `freehold subscription add` subscribes a mailbox, a URL or a queue to \
             notifications",
    ),
    may("readme", File).doc(
        "Markdown for people: the text itself or `./path` of a file. `freehold app readme` prints it as it is: \
         expressions in it are not evaluated",
    ),
    may("label_colors", Any)
        .doc("Colours of labels by key, such as `env = \"#ff5733\"`")
        .never("Freehold shows labels without colours"),
    may("default_labels", Scalars).doc(
        "Labels of every install of the app, by key, such as `team = \"shop\"`; at most 4 KiB in all. The labels of \
         the latest version apply to all installs at once, whichever version they have. An install's own label with \
         the same key takes precedence. `freehold install list` shows the labels, and `--label` chooses by them",
    ),
    may("onboarding", Any)
        .doc("The entry of the app in a catalogue of another tool")
        .never("Freehold has no catalogue of apps"),
    KUBERNETES_CONTEXT_LIST,
];

const KUBERNETES_CONTEXT_LIST: Key = may("kubernetes_context", Tables(KUBERNETES_CONTEXT))
    .doc("Clusters that components create, each with a name by which other components deploy into it");

pub(super) const KUBERNETES_CONTEXTS: &[Key] = &[KUBERNETES_CONTEXT_LIST];

const KUBERNETES_CONTEXT: &[Key] = &[
    must("name", Text).filled().doc("The name that components write under `kubernetes_context`; unique in the app"),
    must("component", Text).doc("The component whose outputs describe the cluster"),
];

pub(super) const GROUP: &[Key] = &[
    must("name", Text).filled().doc("The name that inputs write under `group`; unique in the app"),
    may("description", Text).doc(
        "What the group's inputs are about, for people. The JSON Schema of `freehold app inputs` has it, for forms of \
         your own",
    ),
    may("display_name", Text).doc("The group's heading in the install stack and in forms; its name if absent"),
];

pub(super) const INPUT_TYPES: &[&str] = &["string", "number", "list", "json", "bool", "yaml", "hcl"];

pub(super) const INPUT: &[Key] = &[
    must("name", Text)
        .doc("The name by which templates read the answer: `{{ .nuon.inputs.inputs.<name> }}`; unique in the app"),
    must("display_name", Text).doc("The question's heading in forms"),
    must("description", Text).doc("What the answer is used for"),
    must("group", Text).doc("The name of a `[[group]]`"),
    may("default", Any).doc("The answer when an install gives none; it has to fit `type`"),
    may("required", Flag).doc("Whether an install needs an answer; default `false`"),
    may("sensitive", Flag).doc("Whether only the runner reads the answer and nothing shows it; default `false`"),
    may("type", Word(INPUT_TYPES)).doc("The type of the answer; default `string`"),
    may("internal", Flag).doc(
        "Whether forms leave the question out; default `false`. The JSON Schema of `freehold app inputs` marks such an input \
         with `x-freehold-internal`, for forms of your own. The only form of Freehold is the install stack, which asks for \
         the inputs with `user_configurable`",
    ),
    may("user_configurable", Flag)
        .doc("Whether the customer answers, as a parameter of the install stack; default `false`: the vendor answers"),
    may("source", Word(&["vendor", "customer"]))
        .doc("The older form of `user_configurable`: who answers; default `vendor`"),
];

pub(super) const INPUTS: &[Key] = &[
    may("group", Tables(GROUP)).doc("Groups, in the order in which forms show them"),
    may("input", Tables(INPUT)).doc("Questions to the vendor or the customer"),
    may("source", Text).doc("One more file of groups and inputs: `./path`, as in `sources`"),
    may("sources", Texts).doc("More files of groups and inputs: `./path`, where `*` matches any part of a name"),
];

pub(super) const SECRET: &[Key] = &[
    must("name", Text).doc(
        "The name by which templates read the secret: `{{ .nuon.secrets.<name> }}`, and its ARN as \
         `{{ .nuon.install_stack.outputs.<name>_arn }}`; unique in the app",
    ),
    may("display_name", Text).doc("The question's heading in the install stack; the name if absent"),
    must("description", Text).doc("What the secret is used for"),
    may("required", Flag)
        .doc("Whether the customer has to give a value; default `false`. Not with `auto_generate` or `default`"),
    may("auto_generate", Flag)
        .doc("Whether the install stack generates a random value; default `false`. Not with `required` or `default`"),
    may("format", Word(&["", "base64"])).doc(
        "The encoding of the value: plain (`\"\"`, the default) or `base64`, which is decoded for the copy in a \
         cluster",
    ),
    may("default", Text)
        .doc("A default value. It has no effect: an app version never contains it, so the customer enters the value"),
    may("user_configurable", Flag).doc(
        "Whether the customer enters the value: `true` for a secret that is not generated, and `false` with \
         `auto_generate`. Another value has no effect",
    ),
    may("kubernetes_sync", Flag)
        .doc("Whether the sandbox's cluster gets a copy, under the key `value`; default `false`"),
    may("kubernetes_secret_namespace", Template).doc("The namespace of the copy; needed by `kubernetes_sync`"),
    may("kubernetes_secret_name", Template).doc("The name of the copy; needed by `kubernetes_sync`"),
    may("kubernetes_sync_targets", Any)
        .doc("Several copies, each with a namespace, a name and a key of its own")
        .never("a secret has one copy, under the key `value` (`kubernetes_sync`); an action can make others from it"),
];

pub(super) const SECRETS: &[Key] =
    &[may("secret", Tables(SECRET)).doc("Values that only the customer's account holds")];

pub(super) const INSTALL: &[Key] = &[
    must("name", Text).doc("The install's name; unique in the app"),
    may("approval_option", Word(&["approve-all", "auto", "prompt"])).doc(
        "Whether plans wait for a person (`prompt`) or not (`approve-all`, `auto`); when absent, a new install has \
         `approve-all`, and a sync does not change the setting of an existing install",
    ),
    may("labels", Scalars).doc(
        "The install's own labels, by key, such as `env = \"production\"`; at most 4 KiB in all. A sync replaces all \
         own labels of the install by these, and does not change them when this key is absent",
    ),
    may("aws_account", Table(&[must("region", Text).doc("The region to install into, such as `eu-west-1`")]))
        .doc("The place of the install in AWS"),
    may("azure_account", Table(&[may("location", Text).doc("The location, such as `westeurope`")]))
        .doc("The place of the install in Azure")
        .never("installs are in AWS; name the region in `[aws_account]`"),
    may(
        "gcp_account",
        Table(&[
            may("project_id", Text).doc("The project to install into"),
            may("region", Text).doc("The region, such as `europe-west1`"),
        ]),
    )
    .doc("The place of the install in Google Cloud")
    .never("installs are in AWS; name the region in `[aws_account]`"),
    may("inputs", Any).doc(
        "The answers, by the name of the input, each as a string; in one table or in several (`[[inputs]]`). An input \
         that no file answers keeps its value. Answers to sensitive inputs and to inputs that the customer answers are \
         left out",
    ),
    may("component_toggles", Any).doc(
        "Whether each toggleable component is part of the install, by component; unlisted components do not change",
    ),
    may("app_branch", Text)
        .doc("The branch of the app that the install follows")
        .never("let the install follow a channel (`freehold install release INSTALL --channel NAME`)"),
    may("stack_overrides", Any)
        .doc("How the stack of the install differs from the stack of the app")
        .never("all installs of a version have one stack; the customer sets its parameters"),
];

pub(super) const INSTALLS_SOURCE: &[Key] = &[
    may("connected_repo", Table(REPO)).doc("The private repository with the files of installs"),
    may("public_repo", Table(REPO)).doc("The public repository with the files of installs"),
];

pub(super) const BRANCH: &[Key] = &[
    may("name", Text).doc("The branch's name, for people"),
    may("connected_repo", Table(REPO)).doc("The private repository that the branch follows").never(FOLLOWS),
    may("public_repo", Table(REPO)).doc("The public repository that the branch follows").never(FOLLOWS),
    may("installs_directory", Text)
        .doc("The directory with the files of installs")
        .never("`freehold install sync` reads `installs/`"),
    may("install_groups", Tables(INSTALL_GROUP))
        .doc("Installs that are deployed together, one group after another")
        .never(
            "let the installs of each group follow a channel (`freehold install release INSTALL --channel GROUP`), and \
             move one channel after another (`freehold channel move`)",
        ),
    may("preview", Table(PREVIEW)).doc("What a preview of a change does").never(
        "in the vendor's CI, `freehold app diff DIR` shows what a change would deploy; to try it, deploy it to an \
         install of your own",
    ),
    may("run", Any)
        .doc("Settings of a branch's runs")
        .never("the vendor's CI starts each step, with settings of its own"),
    may("post_deploy_runbooks", Texts).doc(
        "Runbooks that run in an install after each deploy of all components, in this order and with the defaults of \
         their inputs",
    ),
    may("ignore_changes_regex", Text)
        .doc("A regular expression; when it matches the path of every changed file, the change deploys nothing")
        .never(
            "leave the paths out in the vendor's CI; a deploy runs only the parts that changed, and a sync of the same \
             content makes no version",
        ),
    may("send_statuses_on_ignore", Flag)
        .doc("Whether an ignored change still gets a commit status; default `false`")
        .never("the vendor's CI sets the statuses of commits"),
];

const FOLLOWS: &str = "Freehold watches no repository; a job of the vendor's CI on this branch runs `freehold app \
                       sync`, `build`, `release create` and `channel move`";

const INSTALL_GROUP: &[Key] = &[
    must("name", Text).doc("The group's name; unique in the branch"),
    may("order", Whole).doc("The place of the group in the order: the lowest number goes first; default `0`"),
    may("install_ids", Texts).doc("The installs of the group, by id"),
    may("install_names", Texts).doc("The installs of the group, by name"),
    may("label_selector", Any)
        .doc("Labels that the installs of the group have; not with `install_ids` or `install_names`"),
    may("default", Flag).doc("Whether the group takes every install that no other group names; default `false`"),
    may("use_for_previews", Flag).doc("Whether previews use this group; default `false`"),
    may("auto_approve_on_policies_passing", Flag)
        .doc("Whether a plan is approved without a person when it passes every policy; default `false`"),
];

const PREVIEW: &[Key] = &[
    may("mode", Word(&["plan-only", "apply", "build-only"])).doc("The last step of a preview; default `plan-only`"),
    may("install_id", Text).doc("The install that previews are made on, by id"),
    may("install_name", Text).doc("The install that previews are made on, by name"),
    may("label_selector", Any).doc("Labels of the install that previews are made on"),
    may("set_statuses", Flag).doc("Whether previews set commit statuses; default `true`"),
    may("comment", Flag).doc("Whether previews comment on the pull request; default `true`"),
    may("ignore_drafts", Flag).doc("Whether drafts of pull requests have no previews"),
    may("react", Flag).doc("Whether previews react to the comment that asks for them"),
];

/// The keys of a page for customers: texts and links. They do not change what is deployed.
pub(super) const INSTALLER: &[Key] = &[
    may("name", Text).doc("The installer's name"),
    may("description", Text).doc("What the installer is for"),
    may("documentation_url", Text).doc("A link to the documentation"),
    may("community_url", Text).doc("A link to the community"),
    may("homepage_url", Text).doc("A link to the homepage"),
    may("github_url", Text).doc("A link to the page on GitHub"),
    may("logo_url", Text).doc("A link to the logo, which is an image"),
    may("demo_url", Text).doc("A link to a demo"),
    may("post_install_markdown", File).doc("Markdown that is shown after an install"),
    may("footer_markdown", File).doc("Markdown at the foot of the page"),
    may("copyright_markdown", File).doc("Markdown with the copyright, at the foot of the page"),
    may("apps", Texts).doc("The apps that the installer offers"),
];
