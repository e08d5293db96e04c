"""Judges the rows by their gates, prints the table, and ends with what is over and whether that is known."""

import math
import statistics
from dataclasses import dataclass, replace

from programs import NOT_ASKED
from rows import NEVER

# A measured row moves from run to run: it is back under its gate when it is a tenth under.
BACK = 0.9


@dataclass(frozen=True)
class Line:
    """One line of the table; `verdict` is `ok`, `over`, `known`, `back`, `dev build`, `lost`, `skipped` or nothing."""

    what: str
    gate: str = ""
    aim: str = ""
    measured: str = "-"
    verdict: str = ""
    detail: str = ""

    def words(self):
        """Returns the columns."""
        text = {"over": "OVER", "known": "over, known", "back": "BACK UNDER ITS GATE", "lost": "LOST"}.get(
            self.verdict, self.verdict
        )
        if self.verdict == "skipped":
            text = f"skipped: {self.detail}"
        return self.what, self.gate, self.aim, self.measured, text


def judge(rows, results, known):
    """Returns a line for each row. `known` has the rows that may be over their gate."""
    medians = {name: statistics.median(values) for name, values in results.values.items()}
    return [_line(row, medians, results, known) for row in rows] + [
        Line(what, verdict="skipped", detail=reason) for what, reason in NEVER
    ]


def report(lines, known, skip):
    """Prints the table and what fails, and passes to `skip` each row that has a reason; returns the exit code."""
    head = Line("what", "gate", "aim", "measured")
    columns = [line.words() for line in [head, *lines]]
    widths = [max(len(words[at]) for words in columns) for at in range(4)]
    print()
    for first, *others, last in columns:
        numbers = (word.rjust(width) for word, width in zip(others, widths[1:], strict=True))
        print("  ".join([first.ljust(widths[0]), *numbers, last]).rstrip())
    failures = [text for line in lines if (text := _failure(line))]
    failures += [f"`{what}` in tests/bench/known.py is not a row" for what in known if what not in _names(lines)]
    print(f"\nbench: {_count(lines, 'over')} over their gate, {_count(lines, 'known')} known to be")
    for line in lines:
        if line.verdict in ("known", "dev build"):
            print(f"  {line.what}: {line.measured}, gate {line.gate}; {line.detail}", flush=True)
    for line in lines:
        if line.verdict == "skipped" and line.detail != NOT_ASKED:
            skip(f"bench, {line.what}", line.detail)
    for failure in failures:
        print(f"  FAILED {failure}")
    return 1 if failures else 0


def _line(row, medians, results, known):
    line = Line(row.what, row.shown_gate(), row.aim)
    reasons = {name: results.reason(name) for name in row.names if name not in results.values}
    lost = [name for name, reason in reasons.items() if reason is None]
    if lost:
        return replace(line, verdict="lost", detail=f"its measure printed neither `{lost[0]}` nor why not")
    if reasons:
        return replace(line, verdict="skipped", detail=next(iter(reasons.values())))
    value = row.value(medians)
    verdict, detail = _verdict(row, value, results, known)
    return replace(line, measured=row.show(value), verdict=verdict, detail=detail)


def _verdict(row, value, results, known):
    if row.gate is None:
        return "", ""
    of = known.get(row.what)
    if math.isnan(value) or value > row.gate:
        if of and value <= of.most:
            return "known", of.reason
        built = next((program for name, program in results.dev_builds.items() if _is_of(row, name)), None)
        if built:
            return "dev build", f"not judged: {built} is a dev build; `tests/bench/run --release` builds what ships"
        return "over", ""
    back = row.gate if row.counted else row.gate * BACK
    return ("back", "") if of and not of.either_way and value <= back else ("ok", "")


def _failure(line):
    if line.verdict == "over":
        return f"{line.what}: {line.measured}, gate {line.gate}"
    if line.verdict == "back":
        return f"{line.what}: {line.measured} is back under its gate {line.gate}; take it out of tests/bench/known.py"
    if line.verdict == "lost":
        return f"{line.what}: {line.detail}; mend the measure, or take the row out of tests/bench/rows.py"
    return ""


def _is_of(row, name):
    return any(of.startswith(f"{name}.") for of in row.names)


def _count(lines, verdict):
    return sum(line.verdict == verdict for line in lines)


def _names(lines):
    return {line.what for line in lines}
