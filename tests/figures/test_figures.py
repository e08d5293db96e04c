"""The table of docs/figures.md: parts of it are replaced, the rest keeps its dates, and nothing unknown stays."""

import contextlib
import importlib.machinery
import importlib.util
import io
import json
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import rust_text
import table
import tree
from groups import GROUPS, OF_ANOTHER_COMMAND, ROOT, Group

PAGE = (ROOT / "docs/figures.md").read_text()
PROGRAMS = ["first", "second", "third"]


FIGURE = {"value": 1, "attempted": 2, "passed": 2, "seed": 3}


def row(name, command, date="2026-01-01"):
    return table.row_of({**FIGURE, "name": name}, command, date, "0123abc")


class Table(unittest.TestCase):
    def test_a_part_that_runs_replaces_its_rows_and_the_others_keep_their_date_and_commit(self):
        old = [row("a", "first --old"), row("b", "second"), row("c", "first --old")]
        new = [row("a", "first --new", "2026-02-02")]

        rows = table.merged(old, new, "first", PROGRAMS)

        self.assertEqual(rows, [new[0], old[1]])

    def test_a_part_that_fails_without_figures_loses_its_rows(self):
        rows = table.merged([row("a", "first"), row("b", "second")], [], "first", PROGRAMS)

        self.assertEqual(rows, [row("b", "second")])

    def test_a_row_whose_command_no_longer_exists_is_taken_out(self):
        rows = table.merged([row("a", "gone"), row("b", "second")], [row("c", "third")], "third", PROGRAMS)

        self.assertEqual([each.name for each in rows], ["b", "c"])

    def test_rows_are_in_the_order_of_the_groups(self):
        rows = table.merged([row("c", "third"), row("a", "first")], [row("b", "second")], "second", PROGRAMS)

        self.assertEqual([each.name for each in rows], ["a", "b", "c"])

    def test_how_many_could_be_attempted_is_in_the_row(self):
        figure = {"name": "a", "value": 1, "attempted": 2000, "possible": 30000, "passed": 2, "seed": 3}

        self.assertEqual(table.row_of(figure, "first", "today", "0123abc").attempted, "2,000 of 30,000")

    def test_a_row_whose_commit_is_not_in_the_history_is_named(self):
        rows = [table.row_of({**FIGURE, "name": commit}, "a", "today", commit) for commit in ("0123abc+", "0123abd")]

        self.assertEqual(table.not_in(["ffff", "0123abcdef"], rows), ["`0123abd`: 0123abd"])

    def test_a_page_without_the_table_is_refused(self):
        with self.assertRaisesRegex(ValueError, "no table"):
            table.page("# Figures\n", [])


class Text(unittest.TestCase):
    def test_a_brace_in_a_character_does_not_belong_to_the_code(self):
        code = rust_text.blanked("fn f<'a>(text: &'a str) { text.contains(['{', '\\'']); }\nfn g() {}")

        self.assertEqual(code[rust_text.end_of_item(code, 0) :], "\nfn g() {}")


class Kinds(unittest.TestCase):
    def test_a_file_has_the_kind_that_its_path_says(self):
        kinds = {
            "product Rust": ["runner/src/main.rs", "crates/policy/src/lib.rs", "crates/app/src/ports.rs"],
            "test programs and doubles": [
                "runner/examples/approval-figures.rs",
                "crates/app/src/testing/mod.rs",
                "crates/app/src/memory.rs",
                "crates/skips/src/lib.rs",
                "crates/policy/src/bin/policy-asker.rs",
            ],
            "Rust tests of the crates": ["crates/oci/tests/suite/main.rs", "crates/protocol/tests/suite/golden/mod.rs"],
            "tests/ Rust": ["tests/src/harness/mod.rs"],
            "model and fuzz": ["crates/fuzz/src/lib.rs"],
            "product policies": ["crates/policy/src/built_in/no-strangers.rego", "crates/access/src/ready_made.cedar"],
            "generated": ["docs/openapi.json", "statemachines/run-workflow.asl.json"],
            "templates, state machines, guard rules": ["infra/install.guard", "statemachines/source.yaml"],
            "Python, shell and JS": ["infra/dist", "tests/figures/windows", "tests/run", "localstack/cloud", ".ci/run"],
            "lock files": ["Cargo.lock", "localstack/localstack.lock", "tests/iam/package-lock.json"],
            "golden data, fixtures, seeds": [
                "crates/app/golden/install.yaml",
                "crates/fuzz/seeds/files/image/Dockerfile",
                "tests/figures/steps/module/main.tf",
            ],
            "prose, config, examples": ["README.md", "Makefile", "infra/package.in", "examples/queue/inputs.toml"],
        }

        found = {kind: [path for path in paths if tree.kind_of(path) != kind] for kind, paths in kinds.items()}

        self.assertEqual(found, dict.fromkeys(kinds, []))

    def test_every_kind_has_a_file(self):
        read = tree.Tree("HEAD")

        self.assertEqual({kind for _, kind in tree._KINDS} - set(map(read.kind, read.files)), set())

    def test_a_machine_is_a_template_where_it_has_no_source(self):
        read = tree.Tree("HEAD")
        machine = next(path for path in read.files if path.endswith(".asl.json"))
        self.assertEqual(read.kind(machine), "generated")

        del read.files["statemachines/source.yaml"]

        self.assertEqual(read.kind(machine), "templates, state machines, guard rules")


class Clones(unittest.TestCase):
    def test_more_and_fewer_clones_than_known_fail(self):
        lines = "\n".join(f"let a{number} = {number};" for number in range(6))
        read = mock.Mock(files={"a.rs": lines, "b.rs": lines}, product=lambda: ["a.rs", "b.rs"])

        for known, code, advice in ((1, 0, ""), (0, 1, "say it once"), (2, 1, "write 1 in tests/check")):
            printed = io.StringIO()
            with self.subTest(known), contextlib.redirect_stderr(printed):
                self.assertEqual(program("measure").only_known_clones(read, known), code)
                self.assertIn(advice, printed.getvalue())


class Page(unittest.TestCase):
    def test_it_is_as_it_would_be_written_again(self):
        rows = table.rows_in(PAGE)

        self.assertGreater(len(rows), 10)
        self.assertEqual(table.page(PAGE, rows), PAGE)

    def test_every_row_is_of_a_group_and_has_the_date_and_the_commit_of_its_run(self):
        programs = [group.program for group in GROUPS]
        for each in table.rows_in(PAGE):
            with self.subTest(each.name):
                self.assertIn(each.program, programs)
                self.assertRegex(each.date, r"^\d{4}-\d\d-\d\d$")
                self.assertRegex(each.commit, r"^[0-9a-f]{7,}\+?$")

    def test_the_commit_of_every_row_is_in_the_history(self):
        """A `+` behind a commit says that files were changed when it was measured; the commit itself has to exist."""
        if _git("rev-parse", "--is-shallow-repository") != "false":
            self.skipTest("this clone has no whole history, which has the commits of the rows")
        rows = table.rows_in(PAGE)
        gone = table.not_in(_git("rev-list", "HEAD").split(), rows)
        if len(gone) == len(rows):
            self.skipTest("this clone has another history, with no commit of any row")

        self.assertEqual(gone, [], "nobody can look at these commits; run the groups of these rows again")

    def test_a_row_is_of_the_command_that_its_group_runs_or_a_reason_says_why_not(self):
        run = figures_run()
        with mock.patch.object(sys, "argv", ["tests/figures/run"]):
            options = vars(run._arguments())
        commands = {group.program: " ".join(group.words(False, options)) for group in GROUPS}

        others = {each.name for each in table.rows_in(PAGE) if each.command != commands[each.program]}

        self.assertEqual(others - set(OF_ANOTHER_COMMAND), set(), "run their groups again, or correct groups.py")
        self.assertEqual(set(OF_ANOTHER_COMMAND) - others, set(), "groups.py has reasons for rows of its own commands")

    def test_it_says_what_every_row_means(self):
        meaning = PAGE.partition(table.RULE)[2]
        for each in table.rows_in(PAGE):
            # The page names the first and the last one of the 34 faults.
            if each.program == "fault-classes" and each.name.removeprefix("faults.").isdigit():
                continue
            self.assertIn(f"`{each.name}`", meaning.rpartition("| `")[2], each.name)

    def test_every_figure_that_it_describes_has_a_row(self):
        described = figures_described(PAGE)
        rows = {each.name for each in table.rows_in(PAGE)}

        self.assertGreater(len(described), 20)
        self.assertEqual(described - rows, set(), "run their groups")


def _git(*words):
    """Returns what git answers; nothing where there is no clone."""
    done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip()


def figures_described(page):
    """Returns the names at the begin of a sentence that says what a figure means, such as `iam.wrong`."""
    meaning = page.partition(table.RULE)[2].rpartition("| `")[2].partition("\n\n")[2]
    lists = re.findall(r"(?:^- |\. +|\.\n +)((?:`[a-z_]+\.[a-z0-9_]+`(?:, )?(?:\n +)?)+):", meaning, re.MULTILINE)
    return {name for names in lists for name in re.findall(r"`([a-z0-9_.]+)`", names)}


def program(name):
    """Returns a program of `tests/figures` as a module."""
    loader = importlib.machinery.SourceFileLoader(f"figures_{name}", str(ROOT / "tests/figures" / name))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    loader.exec_module(module)
    return module


def figures_run():
    """Returns the program `tests/figures/run` as a module."""
    return program("run")


class Counters(unittest.TestCase):
    def count(self, script):
        progress = io.StringIO()
        with contextlib.redirect_stderr(progress):
            return *figures_run()._count("sh", ["sh", "-c", script], "2026-01-01", "0123abc"), progress.getvalue()

    def test_lines_of_a_counter_that_are_not_figures_are_its_progress(self):
        figure = json.dumps({**FIGURE, "name": "a.b"})

        rows, code, progress = self.count(f"echo half; echo '{figure}'; exit 3")

        self.assertEqual((["a.b"], 3), ([each.name for each in rows], code))
        self.assertIn("half\n", progress)

    def test_a_broken_figure_fails_its_group_and_says_what_is_wrong(self):
        for broken, wrong in (("{half", "JSONDecodeError"), ('{"name": "a.b"}', "KeyError('attempted')")):
            rows, code, progress = self.count(f"echo '{broken}'")

            self.assertEqual(([], 1), (rows, code))
            self.assertIn(wrong, progress)

    def test_the_groups_after_one_that_fails_are_run_and_the_end_names_those_that_failed(self):
        figure = json.dumps({**FIGURE, "name": "a.b"})
        lines = {"first": "{half", "second": figure, "third": "nothing", "fourth": figure}
        with tempfile.TemporaryDirectory() as folder:
            page = Path(folder) / "figures.md"
            page.write_text(PAGE)
            groups = []
            for name, line in lines.items():
                program = Path(folder) / name
                program.write_text(f"#!/bin/sh\necho '{line}'\n")
                program.chmod(0o755)
                group = Group(name, "", "", name, "", folder=Path(folder), build=("false",) * (name == "fourth"))
                groups.append(group)
            run = figures_run()
            words = ["tests/figures/run", "--out", str(page)]
            with (
                Path(folder, "output").open("w+") as output,
                mock.patch.object(run, "GROUPS", groups),
                mock.patch.object(sys, "argv", words),
                contextlib.redirect_stdout(output),
                contextlib.redirect_stderr(output),
            ):
                code = run.main()
            printed = Path(folder, "output").read_text()
            self.assertEqual([each.command for each in table.rows_in(page.read_text())], ["second"])
        self.assertEqual(code, 1)
        self.assertIn("figures: failed: first, third, fourth; the lines above say why", printed)


class Groups(unittest.TestCase):
    def test_a_group_and_its_short_form_are_the_same_program(self):
        for group in GROUPS:
            self.assertIn(group.short.partition(" ")[0], ("", group.program), group.name)

    def test_every_program_of_cargo_is_still_a_program_of_the_workspace(self):
        sources = subprocess.run(
            ["git", "grep", "-hE", "^name = ", "--", "*Cargo.toml"],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for group in GROUPS:
            if "/" not in group.program:
                places = ("tests/src/bin", "crates/*/examples", "runner/examples")
                is_file = any(any(ROOT.glob(f"{place}/{group.program}.rs")) for place in places)
                self.assertTrue(is_file or f'"{group.program}"' in sources, group.program)

    def test_attacks_on_the_box_are_counted_together_and_for_each_user_who_tried_some(self):
        place = importlib.machinery.SourceFileLoader("escapes", str(ROOT / "tests/escapes/escapes.py"))
        escapes = importlib.util.module_from_spec(importlib.util.spec_from_loader(place.name, place))
        place.exec_module(escapes)

        figures = escapes.figures_of({"root": [None, "root: dbus: GOT OUT"], "ordinary": [None], "alone": []})

        counted = [(each["name"], each["value"], each["attempted"], each["passed"]) for each in figures]
        of_root, of_ordinary = ("sandbox.escapes_root", 1, 2, 1), ("sandbox.escapes_ordinary", 0, 1, 1)
        self.assertEqual(counted, [("sandbox.escapes", 1, 3, 2), of_root, of_ordinary])

    def test_help_teaches_every_group(self):
        text = subprocess.run([ROOT / "tests/figures/run", "--help"], capture_output=True, text=True, check=True).stdout
        for group in GROUPS:
            self.assertIn(f"  {group.name} ", text)
        self.assertIn("make figures ONLY=", text)


if __name__ == "__main__":
    unittest.main()
