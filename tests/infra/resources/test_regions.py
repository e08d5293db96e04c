"""`freehold install create` takes the regions that cfn-lint knows, and each has the partition that botocore names."""

import json
import re
import unittest
from pathlib import Path

import botocore
from cfnlint.helpers import REGIONS

CRATES = Path(__file__).resolve().parents[3] / "crates"
SOURCE = CRATES / "domain/src/region.rs"
PARTITIONS = CRATES / "protocol/src/ids/partition.rs"
OF_BOTOCORE = Path(botocore.__file__).parent / "data/partitions.json"


class Regions(unittest.TestCase):
    def test_the_regions_are_those_of_cfn_lint(self):
        known = re.search(r"REGIONS: \[&str; \d+\] = \[(.*?)\];", SOURCE.read_text(), re.S)

        self.assertEqual(re.findall(r'"([a-z0-9-]+)"', known[1]), sorted(REGIONS))

    def test_each_region_is_in_the_partition_that_botocore_names(self):
        ours = re.findall(
            r'name: "([a-z-]+)", region_prefix: "([a-z-]*)", dns_suffix: "([a-z0-9.-]+)"', PARTITIONS.read_text()
        )
        ours.sort(key=lambda row: not row[1])
        theirs = json.loads(OF_BOTOCORE.read_text())["partitions"]

        for region in REGIONS:
            found = next((name, suffix) for name, prefix, suffix in ours if region.startswith(prefix))
            wanted = [
                (one["id"], one["outputs"]["dnsSuffix"]) for one in theirs if re.search(one["regionRegex"], region)
            ]
            self.assertEqual([found], wanted, region)
        self.assertEqual({row[0] for row in ours}, {one["id"] for one in theirs})
