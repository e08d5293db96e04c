"""What can be drawn: every form of a comment and of a message that a person may read."""

import importlib.machinery
import importlib.util
import unittest

import rust_text
import tree
from groups import ROOT


def program():
    """Returns the program `tests/figures/draw` as a module."""
    loader = importlib.machinery.SourceFileLoader("figures_draw", str(ROOT / "tests/figures/draw"))
    draw = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    loader.exec_module(draw)
    return draw


class Source:
    """One file of Rust, one template, one policy and one page."""

    def __init__(self, rust="", template="", policy="", page="", **others):
        files = {"src/a.rs": rust, "infra/tenant.yaml": template, "crates/policy/src/a.rego": policy, "docs/a.md": page}
        self.files = files | {"docs/permissions.md": "A page that a program wrote."} | others

    def product(self):
        return ["src/a.rs"]

    def kind(self, path):
        return tree.kind_of(path)

    def code(self, path):
        return rust_text.blanked(self.files[path])


def messages(rust):
    return [(kind, text) for _, _, kind, text in program().messages(Source(rust))]


class Messages(unittest.TestCase):
    def test_two_words_of_an_error_of_a_call_are_a_message(self):
        for code in (
            'bail!("no tenant")',
            'ensure!(one == two, "no tenant")',
            'anyhow!("no tenant")',
            'read().context("no tenant")',
            'find().ok_or("no tenant")',
            'Err("no tenant".into())',
        ):
            with self.subTest(code):
                self.assertEqual(messages(f"fn f() {{ {code} }}"), [("error", "no tenant")])

    def test_errors_help_and_logs_are_known_by_what_is_around_them(self):
        self.assertEqual(messages('#[error("no tenant")] struct E;'), [("error", "no tenant")])
        self.assertEqual(messages('#[clap(about = "lists tenants")] struct A;'), [("help", "lists tenants")])
        self.assertEqual(messages('fn f() { Command::new("a").after_help("see docs") }'), [("help", "see docs")])
        self.assertEqual(messages('fn f() { warn!(job.id = %id, "not found") }'), [("log", "not found")])
        self.assertEqual(messages("#[derive(Args)] struct A { /// Its name.\n name: String }"), [("help", "Its name.")])

    def test_the_reason_of_a_lint_is_not_a_message(self):
        for attribute in ("expect", "allow", "deny"):
            with self.subTest(attribute):
                self.assertEqual(messages(f'#[{attribute}(unused, reason = "serde passes a reference")] struct A;'), [])

    def test_a_long_text_of_sentences_is_a_message_and_a_document_is_none(self):
        prose = "Exits:\\n  0  all of it was done\\n  1  the request has failed\\n  2  an argument was wrong\\n  3  no"
        document = "a: one two\\nb:\\n  c: d\\n  e: f\\n  g: h\\ni: j"

        self.assertEqual([kind for kind, _ in messages(f'const A: &str = "{prose}";')], ["text"])
        self.assertEqual(messages(f'const A: &str = "{document}";'), [])

    def test_descriptions_of_a_template_are_messages(self):
        template = "A:\n  Description: One line.\nB:\n  Description: >-\n    Two\n    lines.\n  Type: String\n"

        found = program().messages(Source(template=template))

        self.assertEqual([(line, text) for _, line, _, text in found], [(2, "One line."), (4, "Two lines.")])

    def test_what_a_policy_says_of_a_change_is_a_message(self):
        policy = 'deny contains msg if {\n\tmsg := sprintf(\n\t\t"%s: not here", [a])\n}\nmsg := "no"\n'

        found = program().messages(Source(policy=policy))

        self.assertEqual([(line, text) for _, line, _, text in found], [(3, "%s: not here"), (5, "no")])


class Sentences(unittest.TestCase):
    def test_sentences_of_texts_lists_and_cells_are_drawn_and_code_is_not(self):
        page = """# A heading of a page

One sentence of
a text. And another one comes.

- An item of a list, with
  a second line.

| a word | a cell of the table |
|---|---|
| `tests/figures/draw --seed 7` | [the guide](guides/of-the-vendor.md) |
| label of two | `crates/app/src/a_file_of_four.rs` with tests |

```sh
not a sentence of the page
```
"""

        found = program().sentences(Source(page=page))

        self.assertEqual(
            [(line, text) for _, line, _, text in found],
            [
                (3, "One sentence of a text."),
                (3, "And another one comes."),
                (6, "An item of a list, with a second line."),
                (9, "a cell of the table"),
            ],
        )

    def test_pages_beside_the_sources_are_drawn_and_a_page_of_a_fuzzer_is_not(self):
        text = "One sentence of this page."
        pages = ["CHANGELOG.md", "README.md", "localstack/README.md", "crates/fuzz/seeds/files/readme.md"]

        found = program().sentences(Source(**dict.fromkeys(pages, text)))

        self.assertEqual([path for path, *_ in found], pages[:3])


class Tests(unittest.TestCase):
    def test_what_only_tests_have_is_not_drawn_and_what_follows_it_is(self):
        for tests in ("#[cfg(test)]", '#[cfg(all(test, feature = "schema"))]'):
            fields = f"{tests} /// Of a test.\n seed: u8, /// Of a field.\n b: u8"
            rust = f"struct A {{ {fields} }}\n{tests} mod t {{ /// No.\n }}"
            with self.subTest(tests):
                self.assertEqual([text for *_, text in program().comments(Source(rust))], ["Of a field."])


class Comments(unittest.TestCase):
    def test_every_form_is_drawn(self):
        policy = "package a\n\n# Of a\n# policy.\na := 1\n"
        rust = "//! Of the file.\n/// Of a function.\nfn f() {} // behind code\n/* in a\nblock */\n"

        found = program().comments(
            Source(rust, "# Of a\n# template{{/* but not this */}}\nA: b # not alone\n#!/bin/sh\n", policy)
        )

        self.assertEqual(
            [text for *_, text in found],
            ["Of the file.", "Of a function.", "behind code", "in a block */", "Of a template", "Of a policy."],
        )
