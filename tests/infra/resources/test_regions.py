"""The regions that `freehold install create` takes are those that cfn-lint knows."""

import re
import unittest
from pathlib import Path

from cfnlint.helpers import REGIONS

SOURCE = Path(__file__).resolve().parents[3] / "crates/domain/src/region.rs"


class Regions(unittest.TestCase):
    def test_the_regions_are_those_of_cfn_lint(self):
        known = re.search(r"REGIONS: \[&str; \d+\] = \[(.*?)\];", SOURCE.read_text(), re.S)

        self.assertEqual(re.findall(r'"([a-z0-9-]+)"', known[1]), sorted(REGIONS))
