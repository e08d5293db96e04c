"""The types of resources that `freehold app check` knows are those of cfn-lint's specifications of all regions.

FREEHOLD_UPDATE=1 tests/infra/run test_resource_types      writes the list anew
"""

import os
import unittest
from importlib.metadata import version
from pathlib import Path

from cfnlint.helpers import REGIONS
from cfnlint.schema.manager import PROVIDER_SCHEMA_MANAGER

ROOT = Path(__file__).resolve().parents[3]
LIST = ROOT / "crates" / "appconfig" / "src" / "inspect" / "cloudformation" / "resource-types.txt"


def text():
    """Returns the list: a line for each service with the names of its types."""
    types = {name for region in REGIONS for name in PROVIDER_SCHEMA_MANAGER.get_resource_types(region)}
    services = {}
    for name in sorted(types):
        organisation, service, kind = name.split("::")
        if organisation == "AWS":
            services.setdefault(service, []).append(kind)
    lines = [f"{service} {' '.join(kinds)}\n" for service, kinds in services.items()]
    return f"cfn-lint {version('cfn-lint')}\n{''.join(lines)}"


class ResourceTypes(unittest.TestCase):
    def test_the_list_is_that_of_cfn_lint(self):
        found = text()
        if os.environ.get("FREEHOLD_UPDATE"):
            LIST.write_text(found)

        self.assertEqual(LIST.read_text(), found, "write the list anew with FREEHOLD_UPDATE=1")


if __name__ == "__main__":
    unittest.main()
