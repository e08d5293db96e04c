//! The tenant's table: its rows, with a file for each noun, and typed reads and writes.
//!
//! | pk | sk | what |
//! |---|---|---|
//! | `apps` | app | the app's latest version |
//! | `app#<app>` | `version#<digest>`, `number#<newest first>` | app versions and their order |
//! | `app#<app>` | `build#<build>` | builds and their artifacts |
//! | `app#<app>` | `release#<name>` | releases |
//! | `app#<app>` | `channel#<name>`, `follower#<channel>#<install>` | channels, and the installs that follow them |
//! | `app#<app>` | `terms#<digest>`, `contract#<version>` | terms that customers accept, and signed contracts |
//! | `installs` | install | the list of installs |
//! | `install#<install>` | `state`, `contact`, `component#<c>`, `workflow#<time>#<id>`, `ran`, `secrets`, `leftovers`, `notice#<key>`, `refused#<message>` | the install |
//! | `install#<install>` | `health#<c>`, `check#<c>#<check>` | the health of components, and the results of required checks |
//! | `install#<install>` | `budget`, `sender#<role>` | how many reports it may send, and the roles that sent them |
//! | `install#<install>`, `reports` | `unbelievable` | how many messages that are not authentic were kept |
//! | `install#<install>` | `changes` | when the customer lets changes start, as the runner announced it |
//! | `install#<install>` | `roles` | the roles that the customer has switched on, as the runner announced them |
//! | `install#<install>` | `licence` | the newest licence, signed |
//! | `install#<install>` | `strangers` | the roles of the app that trust a stranger, as the runner reported them |
//! | `install#<install>` | `role-runs` | the runs of actions that switches of roles started, as far as they count |
//! | `install#<install>` | `skipped#<action>` | the newest run of an action, by cron or by the switch of a role, that the install refused |
//! | `install#<install>` | `not-followed` | why the install does not have the release of its channel yet |
//! | `install#<install>` | `run#<time>#<id>`, `run` | its runs of runbooks, and the one that has not ended |
//! | `webhooks` | webhook | webhooks: their keys, and what a call starts |
//! | `webhook-keys` | key | the webhook that has the key |
//! | `run#<id>` | `state` | a run of a runbook, and its steps |
//! | `forgetting` | install | installs whose rows are being removed, for `sweep` |
//! | `queue_turns` | install | installs whose orders queue is to be closed or opened, for `sweep` |
//! | `gone` | `installs` | the number of installs that were deleted or forgotten |
//! | `name#<name>` | `prefix` | reserved names: prefixes of the names of installs |
//! | `workflow#<id>` | `state`, `graph#<digest>` | the workflow, and its nodes as they were planned |
//! | `open` | workflow | workflows that have not ended |
//! | `next-sweep` | `<second>#<workflow>` | when `sweep` handles a workflow the next time |
//! | `due` | `<minute>#<install>#run#<action>`, `...#schedules`, `...#drift`, `...#health`, `...#runbook#<run>`, `...#after-deploy#<workflow>#<at>`, `...#roll-back#<workflow>`, `...#channel#<app>#<channel>`, `...#follow`, `...#roles#<time>`, `...#runner-away`, `...#notify#<id>` | tasks that are due at a minute |
//! | `token#<workflow>` | phase | task tokens: only `accept-report` and `sweep` can read them |
//! | `job#<id>` | `state`, `log#<fence>#<seq>`, `refused#<message>`, `sending#<dispatch>` | the job |
//! | `grant#<job>` | grant, `refused#<message>` | the used grants of a job |
//! | `reports` | `shards`, `shard#<number>`, `budget` | the reports queues and the installs of each; the budget of all unknown roles |
//! | `sender#<role>` | `install`, `budget`, `unknown` | the install of a known role; the budget of an unknown role; the count of reports with unknown keys |
//! | `text#<digest>` | `state` | a text that many signed orders have in common |
//! | `members` | member | members, and who is invited |
//! | `principal#<who>` | `member` | the member that a principal is |
//! | `invitations` | digest | invitations, by the digest of their codes |
//! | `access` | `policies`, `last-change` | the policies that decide who may do what; the last change of access |
//! | `requests`, or that of an app, install, workflow, job, run | `request#<digest>` | a request with its key, and its answer |
//!
//! [`evidence`] describes the rows of signed messages and the index of artifacts.

mod app;
mod build;
mod change;
mod contract;
mod due_tasks;
pub mod evidence;
mod forgotten_installs;
mod grant;
mod graph;
mod install;
mod job;
mod record;
mod refusal;
mod release;
mod reporting;
mod runbook;
mod text;
mod version;
mod workflow;

pub use app::{AppRecord, app, app_key, app_pk, unknown_app};
pub use build::build_key;
pub(crate) use change::contended;
pub use change::{Decided, TRIES, change};
pub use contract::{
    ContractInEnvelope, ContractRecord, LicenceRecord, TermsRecord, contract_key, known_terms, licence_key,
    signed_contract, terms_key,
};
pub use due_tasks::{Due, DueWhat, SKIPPED_PREFIX, SkippedRun, due, skipped_key};
pub use forgotten_installs::{Forgetting, GoneInstalls, forgetting_key, gone_installs};
pub use grant::{BurntGrant, grant_key, grants_pk};
pub use graph::{find_workflow, graph_write, put_workflow, unknown_workflow, workflow, workflow_pk};
pub use install::{
    ChangeTimesRecord, CheckRecord, Contact, CopiedSecrets, DeployedRecord, HEALTH_PREFIX, HealthRecord, InstallEntry,
    LeftoversRecord, QUEUE_TURNS, QueueTurn, RanRecord, RoleRunsRecord, RoleSwitchesRecord, StrangerTrustsRecord,
    changes_key, check_key, contact_key, copied_secrets_key, deployed, deployed_among, deployed_key, health_key,
    install, install_entry_key, install_key, install_pk, leftovers_key, name_prefixes, parts, prefix_key, ran_key,
    reported_checks, reserved_install, role_runs_key, role_switches_key, sandbox_outputs, stranger_trusts_key,
};
pub use job::{LogRecord, Sending, job, job_key, job_pk, sending_key, unknown_job};
pub use record::{PAGE, Record, Stored, WriterId, load, load_all, load_all_stored, parse, put, put_until};
pub use refusal::{
    NOTICE_SECS, Refused, RetiredNotice, TRACE_TTL_SECS, Unbelievable, UnknownReports, notice_key, store_refusal,
    unbelievable_key, unknown_reports_key,
};
pub use release::{
    Follower, NotFollowed, ReleaseRecord, channel, channel_key, channels, count_followers, followers, not_followed_key,
    release, release_key,
};
pub use reporting::{
    BudgetRecord, Budgeted, INSTALL_SENDERS_PREFIX, InstallSender, KnownSender, budget_key, known_sender_key,
    report_shard_key, report_shards_key,
};
pub use runbook::{OpenRun, RUNS_PREFIX, RunEntry, find_run, next_run_write, open_run_key, run, run_key, run_writes};
pub use version::{Document, VersionEntry, VersionRecord, version_key};
pub use workflow::{
    NextSweep, OpenWorkflow, Phase, TaskToken, WorkflowEntry, due_sweeps, moved_sweep, open_key, sweep_soon_writes,
    token_key, token_pk,
};
