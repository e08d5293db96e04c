"""Reads the tracked files of one revision and returns the kind of each file."""

import re
import subprocess
from pathlib import Path

import rust_text

ROOT = Path(__file__).resolve().parents[2]

# The first pattern that matches a path gives its kind.
_KINDS = [
    (r"\.(pub|sig|png|snap)$|^LICENSE$|proptest-regressions/", "golden data, fixtures, seeds"),
    (r"\.lock$|package-lock\.json$", "lock files"),
    (
        r"^docs/(openapi\.json|(permissions|app-config|figures)\.md)$|^statemachines/.*\.asl\.json$|/resource-types\.txt$",
        "generated",
    ),
    (r"^crates/(model|fuzz)/.*\.rs$", "model and fuzz"),
    (
        r"/golden/.*(?<!\.rs)$|/seeds/|^crates/.*/tests/.*\.(json|ya?ml|toml)$|^tests/figures/(ledger|steps)/",
        "golden data, fixtures, seeds",
    ),
    (r"^tests/.*\.rs$", "tests/ Rust"),
    (r"/tests/.*\.rs$|(^|/)(tests|[a-z_]+_tests)\.rs$|/benches/", "Rust tests of the crates"),
    # Programs that only tests and figures start, and doubles that no program of the product contains.
    (
        r"/examples/.*\.rs$|^crates/app/src/(memory|testing)\b|^crates/skips/src/|^crates/policy/src/bin/",
        "test programs and doubles",
    ),
    (r"\.rs$", "product Rust"),
    (r"^crates/(policy/src/.*\.rego|access/src/.*\.cedar(schema)?)$", "product policies"),
    (r"^infra/.*\.(yaml|json|guard)$|^statemachines/", "templates, state machines, guard rules"),
    (
        r"^(tests|localstack|infra|docs|\.ci)/.*\.(py|sh|mjs|js)$|^(tests|localstack|infra)/([a-z_]+/)*[a-z_]+$|^\.ci/",
        "Python, shell and JS",
    ),
    (r".", "prose, config, examples"),
]


def kind_of(path):
    """Returns the kind of a file by its path, as a heading of the count by kind."""
    return next(kind for pattern, kind in _KINDS if re.search(pattern, path))


class Tree:
    """The files of a revision: path and text. Binary files are left out."""

    def __init__(self, revision):
        self.commit = _git("rev-parse", "--short", revision).decode().strip()
        self.files = dict(sorted(_read(revision)))
        self._blanked = {}
        self.only_tests = self._test_files()

    def kind(self, path):
        """Returns the kind of a file; a module that only tests have is a test."""
        if path.endswith(".asl.json") and "statemachines/source.yaml" not in self.files:
            return kind_of("statemachines/source.yaml")  # before the machines had one source, people wrote them
        kind = kind_of(path)
        return "Rust tests of the crates" if kind == "product Rust" and path in self.only_tests else kind

    def code(self, path):
        """Returns a Rust file with comments and strings as blanks."""
        if path not in self._blanked:
            self._blanked[path] = rust_text.blanked(self.files[path])
        return self._blanked[path]

    def product(self):
        """Returns the paths of the product's Rust files."""
        return [path for path in self.files if self.kind(path) == "product Rust"]

    def _test_files(self):
        found = set()
        for path in self.files:
            if path.endswith(".rs"):
                names = rust_text.test_modules(self.code(path))
                found |= {file for name in names for file in self._files_of(path, name)}
        return found

    def _files_of(self, path, name):
        folder, _, file = path.rpartition("/")
        if file not in ("lib.rs", "main.rs", "mod.rs"):
            folder = f"{folder}/{file.removesuffix('.rs')}"
        return [
            other
            for other in self.files
            if other == f"{folder}/{name}.rs" or (other.startswith(f"{folder}/{name}/") and other.endswith(".rs"))
        ]


def _read(revision):
    listing = _git("ls-tree", "-r", "-z", "--format=%(objecttype) %(objectname) %(path)", revision).decode()
    entries = [line.split(" ", 2) for line in listing.split("\0") if line.startswith("blob ")]
    ids = "".join(f"{name}\n" for _, name, _ in entries).encode()
    out, at = _git("cat-file", "--batch", input=ids), 0
    for _, _, path in entries:
        head = out.index(b"\n", at)
        size = int(out[at:head].split()[2])
        content = out[head + 1 : head + 1 + size]
        at = head + 1 + size + 1
        if b"\0" not in content:
            yield path, content.decode(errors="replace")


def _git(*arguments, **more):
    return subprocess.run(["git", *arguments], cwd=ROOT, check=True, stdout=subprocess.PIPE, **more).stdout
