"""A folder of a test."""

import tempfile
import unittest
from pathlib import Path


class WithFolder(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="freehold-apps-")
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
