"""The parts of `infra/dist` that need no release build: checksums, their signature, the comparison of two builds."""

import contextlib
import importlib.machinery
import importlib.util
import io
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

ROOT = Path(__file__).resolve().parents[2]


def _load():
    loader = importlib.machinery.SourceFileLoader("infra_dist", str(ROOT / "infra/dist"))
    spec = importlib.util.spec_from_loader(loader.name, loader)
    module = importlib.util.module_from_spec(spec)
    with mock.patch.object(sys, "dont_write_bytecode", True):
        loader.exec_module(module)
    return module


dist = _load()


def _write(out, files):
    for name, text in files.items():
        path = out / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


class Release(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.out = self.folder / "dist"
        _write(self.out, {"arm64/freehold": "a program", "arm64/functions/api.zip": "a zip"})

    def done(self, *command):
        return subprocess.run(command, cwd=self.out, capture_output=True, text=True)

    def test_the_checksums_are_those_of_every_file(self):
        dist._write_sums(self.out)

        self.assertEqual(0, self.done("sha256sum", "--check", "--strict", "SHA256SUMS").returncode)
        self.assertEqual(2, len((self.out / "SHA256SUMS").read_text().splitlines()))
        _write(self.out, {"arm64/freehold": "another program"})
        self.assertEqual(1, self.done("sha256sum", "--check", "--strict", "SHA256SUMS").returncode)

    def test_the_signature_is_of_the_key_that_was_given_and_of_these_checksums(self):
        key, public = self.folder / "key.pem", self.folder / "key.pub"
        self.done("openssl", "genpkey", "-algorithm", "ed25519", "-out", key)
        self.done("openssl", "pkey", "-in", key, "-pubout", "-out", public)
        verify = ("openssl", "pkeyutl", "-verify", "-rawin", "-pubin", "-inkey", public)
        verify = (*verify, "-in", "SHA256SUMS", "-sigfile", "SHA256SUMS.sig")

        dist._write_sums(self.out)
        dist._sign(self.out / "SHA256SUMS", key)

        self.assertEqual(0, self.done(*verify).returncode)
        _write(self.out, {"SHA256SUMS": "other checksums\n"})
        self.assertNotEqual(0, self.done(*verify).returncode)

    def again(self, files):
        """Compares the release with a second one of these files; returns the exit code and what was printed."""

        def release(_source, _target, _architectures, out):
            _write(out, files)

        printed = io.StringIO()
        with (
            mock.patch.object(dist, "_release", release),
            mock.patch.object(dist, "_run"),
            contextlib.redirect_stdout(printed),
            contextlib.redirect_stderr(printed),
        ):
            code = dist._again(["arm64"], self.out)
        return code, printed.getvalue()

    def test_a_second_build_of_the_same_bytes_is_well(self):
        code, printed = self.again({"arm64/freehold": "a program", "arm64/functions/api.zip": "a zip"})

        self.assertEqual(0, code)
        self.assertIn("2 of 2 files have the same bytes", printed)

    def test_another_byte_or_file_in_the_second_build_fails_by_name(self):
        for files, name in (
            ({"arm64/freehold": "a Program", "arm64/functions/api.zip": "a zip"}, "arm64/freehold"),
            ({"arm64/freehold": "a program"}, "arm64/functions/api.zip"),
        ):
            code, printed = self.again(files)

            self.assertEqual(1, code)
            self.assertIn(f"`{name}` has other bytes", printed)


class Ci(unittest.TestCase):
    def test_the_ci_of_a_release_builds_it_twice_and_that_of_a_change_says_that_it_does_not(self):
        made = subprocess.run(["make", "--dry-run", "dist", "AGAIN=1"], cwd=ROOT, capture_output=True, text=True)
        of_release, of_change = ((ROOT / ".ci" / name).read_text() for name in ("release", "run"))

        self.assertRegex(made.stdout, "infra/dist +--again")
        self.assertIn("\nmake dist AGAIN=1\n", of_release)
        self.assertNotIn("make dist\n", of_change)
        self.assertRegex(of_change, r"release builds: not built here, `\.ci/release` .*NOT_CHECKED")


if __name__ == "__main__":
    unittest.main()
