"""The test of the guides can fail: what it compares, and what it refuses to read."""

import tempfile
import unittest
from pathlib import Path

import blocks
import guides
import journey
import promise

from programs import ROOT


class Promise(unittest.TestCase):
    def holds(self, promised, printed, known=None):
        return promise.compare(promised, printed, known or {})[0]

    def test_the_same_lines_hold_whatever_their_gaps(self):
        self.assertEqual(self.holds("a  b\nc", "a b\n\nc\n"), {})

    def test_another_line_less_or_more_does_not_hold(self):
        for printed in ("a", "a\nb\nc", "x\na\nb", "a\nx", ""):
            self.assertIsNone(self.holds("a\nb", printed), printed)

    def test_progress_of_a_slow_command_is_passed_over(self):
        printed = "`a`: no errors\nmaking the version\napp `a` is"
        self.assertEqual(self.holds("`a`: no errors\napp `a` is", printed), {})
        self.assertIsNone(self.holds("`a`: no errors\napp `a` is", printed.replace("the version", "trouble")))

    def test_dots_are_any_text_and_any_lines(self):
        self.assertEqual(self.holds("...\nb ...\n...", "a\nb 12\nc\nd"), {})
        self.assertEqual(self.holds("...\nb\n...\nb", "b\nb"), {})
        self.assertIsNone(self.holds("...\nb\n...\nb", "a\nb"))
        self.assertIsNone(self.holds("a\n...\nc", "x\na\nc"))

    def test_a_name_is_the_same_word_everywhere(self):
        self.assertEqual(self.holds("...\nid <ID>\n...", "x\nid 7\ny"), {"ID": "7"})
        self.assertIsNone(self.holds("id <ID>", "id 7", {"ID": "8"}))
        self.assertIsNone(self.holds("<ID> and <ID>", "7 and 8"))

    def test_the_line_that_was_missed_is_named(self):
        self.assertEqual(promise.compare("...\nwanted\n...", "other", {}), (None, "wanted"))


class Blocks(unittest.TestCase):
    def read(self, text):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "guide.md"
            path.write_text(text)
            return blocks.read(path)

    def test_a_block_has_its_kind_its_exit_code_and_its_place(self):
        [block] = self.read("# One\nIt ends with exit\ncode 4:\n\n```sh exit=4\nfalse\n```\n")["One"]
        self.assertEqual((block.kind, block.exit, block.text, block.place), ("sh", 4, "false\n", "guide.md:5"))

    def test_a_reader_is_told_of_an_exit_code_right_before_its_block(self):
        sentence = "It ends with exit code 4:\n"
        block = "```sh exit=4\nfalse\n```\n"
        for text in (f"# One\n{block}", f"{sentence}# One\n{block}", f"# One\n{sentence}{block}{block}"):
            with self.assertRaises(blocks.Unreadable):
                self.read(text)

    def test_a_block_that_is_not_run_has_a_reason(self):
        [block] = self.read("# One\n```sh elsewhere: needs a browser\nls\n```\n")["One"]
        self.assertEqual((block.kind, block.reason), ("sh elsewhere", "needs a browser"))

    def test_what_would_be_passed_over_is_refused(self):
        for text in (
            "# One\n```sh elsewhere\nls\n```\n",
            "# One\n```sh: needs a browser\nls\n```\n",
            "# One\n```bash\nls\n```\n",
            "# One\n```\nls\n```\n",
            "# One\n# One\n",
            "# One\n```sh\nls\n",
            "```sh\nls\n```\n",
            "# One\n\n    ls\n",
            "# One\n\n\tls\n",
            "# One\n\n ```sh\nls\n ```\n",
            "# One\n\n- an item\n  ```sh\n  ls\n  ```\n",
            "# One\n\n~~~sh\nls\n~~~\n",
            "# One\n\n  ~~~sh\nls\n  ~~~\n",
        ):
            with self.assertRaises(blocks.Unreadable):
                self.read(text)

    def test_a_line_that_continues_an_item_is_not_a_block(self):
        self.assertEqual(self.read("# One\n\n- an item\n    that continues\n"), {"One": []})


class Turns(unittest.TestCase):
    def test_every_section_of_every_page_has_its_turn(self):
        taken = [(page, heading) for page, sections in guides.turns() for heading, _ in sections]

        wanted = [(page, heading) for page, path in guides.PAGES.items() for heading in blocks.read(path)]
        self.assertEqual(sorted(taken), sorted(wanted))
        self.assertIn(("api", "Read a log"), taken)


class Local(unittest.TestCase):
    def test_the_guide_says_what_is_typed_beside_its_commands(self):
        page = " ".join((ROOT / "docs/guides/customer.md").read_text().split())
        command = "freehold customer verify-template globex.yaml"

        typed = journey.as_typed(command)

        self.assertIn(command, page)
        self.assertEqual(typed.split(), [*command.split()[:3], "--local", "globex.yaml"])
        self.assertIn("add `--local` to each `verify-template`", page)


if __name__ == "__main__":
    unittest.main()
