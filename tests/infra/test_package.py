"""What `infra/package --local` puts into the zips of functions, and how it keeps them unpacked for the local cloud."""

import hashlib
import importlib.machinery
import importlib.util
import os
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path
from unittest import mock

INFRA = Path(__file__).resolve().parents[2] / "infra"


def _load():
    loader = importlib.machinery.SourceFileLoader("infra_package", str(INFRA / "package"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    with mock.patch.object(sys, "dont_write_bytecode", True), mock.patch.object(sys, "path", [str(INFRA), *sys.path]):
        loader.exec_module(module)
    return module


package = _load()


class UnwindTables(unittest.TestCase):
    def test_a_program_without_them_has_its_length_and_runs(self):
        whole = Path(sys.executable).resolve().read_bytes()
        with tempfile.TemporaryDirectory() as place:
            program = Path(place) / "program"
            program.write_bytes(package.function_zip.without_unwind_tables(whole))
            program.chmod(0o755)
            environment = {**os.environ, "PYTHONHOME": sys.base_prefix}

            ran = subprocess.run([program, "-c", "print(6 * 7)"], env=environment, capture_output=True, text=True)

            changed = program.read_bytes()
        self.assertEqual((ran.stdout, ran.returncode), ("42\n", 0), ran.stderr)
        self.assertEqual(len(changed), len(whole))
        self.assertGreater(changed.count(0), whole.count(0))

    def test_what_is_not_a_program_is_refused(self):
        with self.assertRaisesRegex(SystemExit, "not a 64-bit ELF program"):
            package.function_zip.without_unwind_tables(b"#!/bin/sh\n")


class LocalZips(unittest.TestCase):
    def setUp(self):
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.out = Path(place.name)
        self.unpacked = self.out / "unpacked"

    def pack(self, name, program):
        """Makes the zip of a function again; returns its digest."""
        (self.out / "program").write_bytes(program)
        package.function_zip.write(self.out / "program", self.out / f"{name}.zip", level=1)
        return hashlib.sha256((self.out / f"{name}.zip").read_bytes()).hexdigest()

    def test_each_zip_has_its_program_in_a_folder_named_after_its_digest(self):
        digests = {self.pack("api", b"one"): b"one", self.pack("sweep", b"two"): b"two"}

        package.unpack(self.out, ["api", "sweep"])

        found = {folder.name: (folder / "bootstrap").read_bytes() for folder in self.unpacked.iterdir()}
        self.assertEqual(found, digests)
        modes = {(folder / "bootstrap").stat().st_mode & 0o777 for folder in self.unpacked.iterdir()}
        self.assertEqual(modes, {0o555})

    def test_a_zip_that_stayed_the_same_is_not_unpacked_again(self):
        same = self.pack("api", b"one")
        package.unpack(self.out, ["api"])
        before = (self.unpacked / same / "bootstrap").stat().st_ino

        package.unpack(self.out, ["api"])

        self.assertEqual((self.unpacked / same / "bootstrap").stat().st_ino, before)

    def test_programs_and_drafts_are_removed_a_day_after_their_last_use(self):
        yesterday = time.time() - package.UNPACKED_SECS - 60
        first = self.pack("api", b"one")
        package.unpack(self.out, ["api"])
        for name in ["unused", "unused.1", "used.1"]:
            (self.unpacked / name).mkdir()
        for name in [first, "unused", "unused.1"]:
            os.utime(self.unpacked / name, (yesterday, yesterday))
        package.unpack(self.out, ["api"])
        second = self.pack("api", b"two")

        package.unpack(self.out, ["api"])

        self.assertEqual({folder.name for folder in self.unpacked.iterdir()}, {first, second, "used.1"})

    def test_symbols_of_a_program_are_left_out_and_a_script_is_packed_as_it_is(self):
        source, program, script = (self.out / name for name in ("source.c", "program", "script"))
        source.write_text(
            "int a_name_of_a_function(void) { return 0; } int main(void) { return a_name_of_a_function(); }"
        )
        subprocess.run(["cc", "-o", program, source], check=True)
        script.write_text("#!/bin/sh\n")
        place = self.out / "place"
        place.mkdir()

        packed = [package.without_symbols(file, place) for file in (program, script)]

        self.assertIn(b"a_name_of_a_function", program.read_bytes())
        self.assertNotIn(b"a_name_of_a_function", packed[0].read_bytes())
        self.assertEqual(subprocess.run([packed[0]]).returncode, 0)
        self.assertEqual(packed[1], script)


if __name__ == "__main__":
    unittest.main()
