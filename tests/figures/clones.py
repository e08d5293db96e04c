"""Finds runs of equal lines between two places of the code."""

import collections
import re
from dataclasses import dataclass

RUN = 6
# An alternative of a pattern in Rust stands in every `match` that names all variants, which the house wants.
_PASSED_OVER = re.compile(
    r"^(//.*|#.*|\| [A-Z]\w*::[^=]*|use .*|import .*|from .* import .*|mod \w+;|pub mod \w+;|[\W_]*|else|end)$"
)


@dataclass(frozen=True)
class Clone:
    """A run of equal lines, counted without the skipped lines, and the two places (path, line) where it begins."""

    lines: int
    places: tuple
    covers: frozenset  # (path, line) of each line at both places


def is_code(path, kind):
    """Returns whether a file is searched: code and templates, but no generated or golden file."""
    if kind in ("generated", "lock files", "golden data, fixtures, seeds"):
        return False
    return path.endswith((".rs", ".py", ".sh", ".mjs", ".js", ".yaml", ".yml", ".guard")) or "." not in path


def clones(files):
    """Returns the clones of the files (path to text), the longest first."""
    lines = {path: _telling(text) for path, text in files.items()}
    windows = collections.defaultdict(list)
    for path, numbered in lines.items():
        for at in range(len(numbered) - RUN + 1):
            windows[tuple(text for _, text in numbered[at : at + RUN])].append((path, at))
    pairs = {(a, b) for places in windows.values() for i, a in enumerate(places) for b in places[i + 1 :]}
    found = [_grown(lines, a, b) for a, b in pairs if _begins(lines, a, b)]
    return sorted((clone for clone in found if clone), key=lambda clone: (-clone.lines, clone.places))


def covered(found):
    """Returns how many lines of the files stand in a clone."""
    return len(frozenset().union(*(clone.covers for clone in found)))


def _telling(text):
    stripped = ((number, line.strip()) for number, line in enumerate(text.splitlines(), 1))
    return [(number, line) for number, line in stripped if not _PASSED_OVER.match(line)]


def _begins(lines, a, b):
    return not (a[1] and b[1] and lines[a[0]][a[1] - 1][1] == lines[b[0]][b[1] - 1][1])


def _grown(lines, a, b):
    """Returns the whole run that begins at two places. The run at `a` ends before `b`, so that they do not overlap."""
    one, other = lines[a[0]][a[1] :], lines[b[0]][b[1] :]
    if a[0] == b[0]:
        one = one[: b[1] - a[1]]
    length = next(
        (at for at, (x, y) in enumerate(zip(one, other, strict=False)) if x[1] != y[1]), min(len(one), len(other))
    )
    if length < RUN:
        return None
    covers = {(a[0], line) for line, _ in one[:length]} | {(b[0], line) for line, _ in other[:length]}
    return Clone(length, ((a[0], one[0][0]), (b[0], other[0][0])), frozenset(covers))
