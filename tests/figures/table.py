"""The table of docs/figures.md: each row has the commit and the date of its run."""

import re
from dataclasses import astuple, dataclass

HEAD = "| name | value | attempted | passed | seed | date | commit | command |"
RULE = "|---|---:|---:|---:|---:|---|---|---|"


@dataclass(frozen=True)
class Row:
    name: str
    value: str
    attempted: str
    passed: str
    seed: str
    date: str
    commit: str
    command: str

    @property
    def program(self):
        return self.command.split()[0]

    def __str__(self):
        name, *cells, command = astuple(self)
        return f"| {' | '.join([f'`{name}`', *cells, f'`{command}`'])} |"


def row_of(figure, command, date, commit):
    """Returns the row of a figure as a counter prints it; `possible`, how many could be attempted, is optional."""
    attempted = f"{figure['attempted']:,}"
    if "possible" in figure:
        attempted += f" of {figure['possible']:,}"
    numbers = (f"{figure['value']:,}", attempted, f"{figure['passed']:,}", str(figure["seed"]))
    return Row(figure["name"], *numbers, date, commit, command)


def rows_in(text):
    """Returns the rows of a page."""
    lines = [line for line in text.splitlines() if line.startswith("| `")]
    return [Row(*(cell.strip(" `") for cell in re.split(r"\s\|\s", line.strip("| ")))) for line in lines]


def page(text, rows):
    """Returns the page `text` with `rows` in place of its table."""
    before, _, rest = text.partition(HEAD)
    if not rest:
        raise ValueError(f"the page has no table that begins with `{HEAD}`")
    after = rest.lstrip("\n").split("\n\n", 1)[1]
    return "\n".join([f"{before}{HEAD}", RULE, *map(str, rows)]) + f"\n\n{after}"


def merged(old, new, ran, programs):
    """Returns the rows in the order of `programs`: the new ones of the program that `ran`, the old ones of the others.

    A row of a program that is not among `programs` any more is left out, and so are old rows of a group that failed.
    """
    rows = [row for row in old if row.program != ran] + new
    return sorted((row for row in rows if row.program in programs), key=lambda row: programs.index(row.program))


def not_in(history, rows):
    """Returns the rows whose commit is not in `history`, each as its name and its commit."""
    return [
        f"`{row.name}`: {row.commit}"
        for row in rows
        if not any(commit.startswith(row.commit.removesuffix("+")) for commit in history)
    ]
