"""The groups of figures: which program counts what, how it is built, and its short form for `make test`."""

import os
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TARGET = Path(os.environ.get("CARGO_TARGET_DIR") or ROOT / "target")
DEBUG = TARGET / "debug"


@dataclass(frozen=True)
class Group:
    """One program and the figures that it prints. Words such as `{seed}` in a command are options of `run`."""

    name: str
    about: str
    takes: str
    command: str
    # The same program with so few attempts that `make test` can afford it; its figures are checked and not written.
    # Empty when another step of `make test` is the short form.
    short: str
    # The folder of the program, and of its short form where that is another.
    folder: Path = DEBUG
    short_folder: Path | None = None
    build: tuple = ()
    short_build: tuple | None = None
    # Programs on PATH without which a short form is skipped.
    needs: tuple = ()
    # A folder without which the group is skipped.
    folder_needed: Path | None = None

    @property
    def program(self):
        return self.command.split()[0]

    def builds(self, is_short):
        return self.build if not is_short or self.short_build is None else self.short_build

    def words(self, is_short, options):
        return [word.format(**options) for word in (self.short if is_short else self.command).split()]

    def path(self, is_short):
        return (self.short_folder if is_short and self.short_folder else self.folder) / self.program


CARGO = "cargo build --quiet"

# Rows whose command is not the one that their group runs now, each with the reason; they go when the group runs again.
OF_ANOTHER_COMMAND = {
    **dict.fromkeys(
        ("deploys.faulty", "deploys.lost", "deploys.doubled", "deploys.stale", "deploys.repeated"),
        "100 deploys, and not 500, which take an hour of a machine that does nothing else",
    ),
    **dict.fromkeys(
        ("stack.combinations", "stack.guarded", "stack.mutants_killed"),
        "the command did not name its seed yet, which was 1 as it is now",
    ),
}
WORKSPACE = (f"{CARGO} --workspace --bins", "infra/package --local")

GROUPS = (
    Group(
        "model",
        "every state of the job protocol within bounds, and seeded bugs that break a rule there",
        "2 min",
        "model-figures",
        "model-figures --short",
        # Nothing else asks for the feature `mutants`. The other crate is named for its features: see its Cargo.toml.
        build=(
            f"{CARGO} -p freehold-model -p freehold-features --features freehold-model/mutants --bin model-figures",
        ),
    ),
    Group(
        "deploys",
        "whole deploys on local clouds while calls fail, processes are killed and one side is cut off",
        "30 min, estimated",
        "faulty-deploys --deploys {deploys} --seed {seed}",
        "faulty-deploys --deploys 1 --cells 1 --seed {seed}",
        build=WORKSPACE,
        needs=("bwrap",),
    ),
    Group(
        "faults",
        "each of the 34 faults of docs/guarantees.md, with real programs, at points that are spread over the work",
        "60 min, estimated",
        "fault-classes --tries {tries} --seed {seed}",
        "fault-classes --tries 1 --cells 5 --skip-missing --seed {seed}",
        build=WORKSPACE,
        needs=("bwrap",),
    ),
    Group(
        "triggers",
        "whole lives of installs whose app has every trigger, while each message is delivered up to three times",
        "2 min",
        "trigger-figures --lives {lives} --seed {seed}",
        "trigger-figures --lives 5 --seed {seed}",
        folder=DEBUG / "examples",
        # The other crate is named for its features: see its Cargo.toml.
        build=(f"{CARGO} -p freehold-app -p freehold-features --example trigger-figures",),
    ),
    Group(
        "rollbacks",
        "histories of installs with roll backs, and whether what runs after each of them is what ran before",
        "1 min",
        "rollback-figures --histories {histories} --seed {seed}",
        "rollback-figures --histories 10 --seed {seed}",
        folder=DEBUG / "examples",
        # The other crate is named for its features: see its Cargo.toml.
        build=(f"{CARGO} -p freehold-app -p freehold-features --example rollback-figures",),
    ),
    Group(
        "drift",
        "resources that are changed behind Freehold's back, and whether a check finds exactly these",
        "2 min",
        "drift-figures --checks {checks} --seed {seed}",
        "drift-figures --checks 2 --seed {seed}",
        build=WORKSPACE,
        needs=("bwrap", "terraform|tofu"),
    ),
    Group(
        "artifacts",
        "artifacts, statements and grants that were tampered with and have to be refused",
        "2 min",
        "tampered-artifacts --tamperings {tamperings} --seed {seed}",
        "tampered-artifacts --tamperings 100 --seed {seed}",
        build=WORKSPACE[:1],
    ),
    Group(
        "audit",
        "audit chains that machines write while calls fail and processes crash, and copies that were tampered with",
        "2 min",
        "audit-figures --faults 10000 --tamperings 1000 --seed {seed}",
        "audit-figures --faults 300 --tamperings 100 --seed {seed}",
        build=WORKSPACE[:1],
    ),
    Group(
        "canaries",
        "credentials that a job prints in ten spellings and that must not leave by its log",
        "5 min",
        "canaries --canaries {canaries} --seed {seed}",
        "canaries --canaries 20 --seed {seed}",
        build=WORKSPACE[:1],
    ),
    Group(
        "secrets",
        "secrets of an app that its jobs print and that must not reach the vendor, or a list of processes",
        "2 min",
        "tests/figures/secrets",
        # The scenario `cloud_secrets` is among the Rust tests.
        "",
        folder=ROOT,
        build=WORKSPACE,
        needs=("bwrap",),
    ),
    Group(
        "fuzz",
        "broken app configs and templates that nothing may crash on",
        "10 min",
        "fuzz-figures --inputs {inputs} --seed {seed}",
        "fuzz-figures --inputs 500 --seed {seed}",
        folder=TARGET / "fuzz",
        short_folder=DEBUG,
        build=(f"{CARGO} --profile fuzz --package freehold-fuzz",),
        short_build=WORKSPACE[:1],
    ),
    Group(
        "api",
        "requests made from the API's own document, to real functions on the local cloud",
        "10 min",
        "tests/api/run --seed {seed}",
        "tests/api/run --short --seed {seed}",
        folder=ROOT,
        build=WORKSPACE,
    ),
    Group(
        "browser",
        "every page of the console in a browser, as five people see it, on the local cloud",
        "2 min",
        "tests/console/run",
        "tests/console/run",
        folder=ROOT,
        build=WORKSPACE,
        needs=("chromium", "npm"),
    ),
    Group(
        "windows",
        "decisions about change windows in 20 time zones, and whether Python's time zones say the same",
        "2 min",
        "tests/figures/windows --times 10000 --seed {seed}",
        "tests/figures/windows --times 500 --seed {seed}",
        folder=ROOT,
        build=(f"{CARGO} -p freehold-windows -p freehold-features --example window-decisions",),
    ),
    Group(
        "approvals",
        "tamperings of approved plans with real bytes, and whether the runner applies one of them",
        "1 min",
        "approval-figures 1800 {seed}",
        "approval-figures 180 {seed}",
        folder=DEBUG / "examples",
        build=(f"{CARGO} -p freehold-runner -p freehold-features --example approval-figures",),
    ),
    Group(
        "access",
        "decisions of the API about drawn members, policies and requests, and whether Cedar decides the same",
        "15 min, estimated",
        "tests/figures/access {decisions} {seed}",
        "tests/figures/access 2000 {seed}",
        folder=ROOT,
    ),
    Group(
        "console",
        "hostile texts in every field that pages show, and every route with ids that the sender may not see",
        "20 min, estimated",
        "tests/figures/console {payloads} {seed}",
        "tests/figures/console 12 {seed}",
        folder=ROOT,
    ),
    Group(
        "iam",
        "decisions of an IAM simulator about what the templates permit",
        "5 min",
        "tests/iam/run --tenants 5 --installs 2",
        "tests/iam/run",
        folder=ROOT,
        needs=("node", "npm"),
    ),
    Group(
        "iam-mutants",
        "statements that are made to permit more, and whether a decision of the simulator notices",
        "2 min",
        "tests/iam/mutants",
        "tests/iam/mutants --drawn 8 --seed {seed}",
        folder=ROOT,
        needs=("node", "npm"),
    ),
    Group(
        "escapes",
        "ways out of a job's box, and whether its walls refuse them, as root and as two ordinary users",
        "3 min",
        "tests/escapes/run",
        "tests/escapes/run --short",
        folder=ROOT,
        build=WORKSPACE[:1],
        needs=("bwrap", "unshare", "setpriv", "ip"),
    ),
    Group(
        "stack",
        "install stacks in combinations of their switches",
        "10 min",
        "tests/stacks/run --generated 20 --each 2000 --guarded 8 --linted 20 --mutants --seed {seed}",
        "tests/stacks/run --real 3 --generated 2 --each 48 --guarded 1 --mutants --seed {seed}",
        folder=ROOT,
    ),
    Group(
        "templates",
        "hostile templates that the checks of install stacks have to refuse",
        "6 min",
        "tests/hostile/run --seed {seed}",
        "tests/hostile/run --types 40 --changes 40 --guarded 4 --seed {seed}",
        folder=ROOT,
    ),
    Group(
        "policies",
        "random policies that are asked about random plans, here and of OPA",
        "10 min",
        "tests/policies/run --policies {policies} --plans {plans} --seed {seed}",
        "tests/policies/run --policies 10 --plans 5 --seed {seed}",
        folder=ROOT,
        build=WORKSPACE[:1],
    ),
    Group(
        "apps",
        "public apps that are run from the sync to the teardown, and how much of them is real",
        "60 min on busy cores",
        "tests/apps/run --figures --page docs/apps.md --results target/apps.jsonl",
        # Two small apps are among the tests of `tests/apps`, which `make test` runs.
        "",
        folder=ROOT,
        needs=("bwrap", "terraform|tofu"),
        folder_needed=Path(os.environ.get("FREEHOLD_SHARED") or ROOT / "../shared") / "appconfigs",
    ),
)
