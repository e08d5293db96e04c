"""The principals and resources that the threat model names as evidence are in the world, which is asked about them."""

import fnmatch
import re
import unittest

import templates
from world import World

PAGE = templates.ROOT / "docs/threat-model.md"
# A cell names this program, and in brackets the principals and resources whose decisions show the protection.
EVIDENCE = re.compile(r"`tests/iam/run` \(([^)]*)\)")


def names_in(text):
    """Returns the names in brackets behind the program; `*` stands for the rest of a name."""
    return [name for cell in EVIDENCE.findall(text) for name in re.findall(r"`([^`]+)`", cell)]


class ThreatModel(unittest.TestCase):
    def test_each_principal_and_resource_that_it_names_is_asked_about(self):
        world = World(1, 1)
        known = {name.rpartition("/")[2] for name in (*world.principals, *world.resources)}

        named = names_in(PAGE.read_text())
        absent = [name for name in named if not fnmatch.filter(known, name)]

        self.assertGreater(len(named), 15, "the page was read wrongly")
        self.assertEqual(absent, [], f"the world of {PAGE.name} has none of these")

    def test_names_of_other_programs_and_words_without_quotes_are_left_out(self):
        cells = "`a/run` (`x`), `tests/iam/run` (`off-*`, `session`) | `tests/iam/run` (the prefix) | `b`"

        self.assertEqual(names_in(cells), ["off-*", "session"])


if __name__ == "__main__":
    unittest.main()
