"""The properties of resources that `freehold app check` knows are those of cfn-lint's resource schemas.

FREEHOLD_UPDATE=1 tests/infra/run test_resource_schemas      writes the table anew
"""

import os
import unittest

from resource_schemas import compressed, decompressed, table
from test_resource_types import LIST

TABLE = LIST.parent / "resource-schemas.zlib"


class ResourceSchemas(unittest.TestCase):
    def test_the_table_is_that_of_cfn_lint(self):
        found = table()
        if os.environ.get("FREEHOLD_UPDATE"):
            TABLE.write_bytes(compressed(found))

        # Versions of zlib compress differently, so the texts are compared.
        self.assertEqual(decompressed(TABLE.read_bytes()), found, "write the table anew with FREEHOLD_UPDATE=1")


if __name__ == "__main__":
    unittest.main()
