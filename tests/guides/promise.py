"""Compares what a command printed with what a guide shows.

`...` stands for any text, on a line of its own for any number of lines. `<NAME>` stands for a word, which is the same
wherever the guides have that name. How wide the gap between two words is does not matter. Empty lines do not count, and
neither do lines of progress, which a command prints only when it takes long.
"""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PLACEHOLDER = re.compile(r"(\.\.\.|<[A-Z][A-Z0-9_]*>)")


def compare(promised, printed, known):
    """Returns the values of all names and None; or None and the first promised line that was not found."""
    found, values, at = _lines(printed), dict(known), 0
    segments = _segments(_lines(promised))
    for number, segment in enumerate(segments):
        first, last = number == 0, number == len(segments) - 1
        starts = range(at, len(found) - len(segment) + 1)
        if last:
            starts = starts[-1:] if not first else starts[:1] if len(found) == len(segment) else []
        elif first:
            starts = starts[:1]
        matches = ((start, _match(segment, found[start:], values)) for start in starts)
        at, bound = next(((start + len(segment), bound) for start, bound in matches if bound is not None), (0, None))
        if bound is None:
            return None, _missed(segment, found, values)
        values = bound
    return values, None


def _segments(lines):
    """Returns the lines between the `...` lines."""
    segments = [[]]
    for line in lines:
        if line == "...":
            segments.append([])
        else:
            segments[-1].append(line)
    return segments


def _match(segment, found, values):
    """Returns the values of the names when the first lines that were found are the segment's, otherwise None."""
    values = dict(values)
    for wanted, line in zip(segment, found, strict=False):
        holds = re.fullmatch(_pattern(wanted, values), line)
        if not holds:
            return None
        values.update(holds.groupdict())
    return values


def _missed(segment, found, values):
    for wanted in segment:
        if not any(re.fullmatch(_pattern(wanted, values), line) for line in found):
            return wanted
    return segment[0] if segment else "no more lines"


def _pattern(line, values):
    pattern, here = "", set()
    for part in PLACEHOLDER.split(line):
        name = part.strip("<>")
        if part == "...":
            pattern += ".*"
        elif not PLACEHOLDER.fullmatch(part):
            pattern += re.escape(part)
        elif name in values:
            pattern += re.escape(values[name])
        else:
            pattern += f"(?P={name})" if name in here else f"(?P<{name}>\\S+)"
            here.add(name)
    return pattern


def _lines(text):
    lines = (re.sub(r"\s+", " ", line).strip() for line in text.splitlines())
    return [line for line in lines if line and not _PROGRESS.fullmatch(line)]


def _progress():
    """Returns the pattern of lines that a command prints only when it takes longer than two seconds."""
    sources = (ROOT / "cli/src").rglob("*.rs")
    pattern = r'\bprogress\s*\.now\(\s*(?:format!\(\s*)?"((?:[^"\\]|\\.)*)"'
    texts = sorted({text for source in sources for text in re.findall(pattern, source.read_text())})
    return re.compile("|".join(re.sub(r"\\\{[^}]*\\\}", ".*", re.escape(text)) for text in texts))


_PROGRESS = _progress()
