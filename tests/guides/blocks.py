"""Reads a guide: the fenced blocks below each heading, in order."""

from dataclasses import dataclass

KINDS = ("sh", "sh background", "sh elsewhere", "keys", "text")


class Unreadable(Exception):
    """Why a guide cannot be run."""


@dataclass
class Block:
    place: str
    kind: str
    exit: int
    text: str
    # Why it is not run; empty for a block that is.
    reason: str = ""


def read(path):
    """Returns a dict from each heading to its blocks; a block that the test would pass over is refused."""
    sections, heading, fence, before, prose = {}, None, None, "", ""
    for number, line in enumerate(path.read_text().splitlines(), 1):
        place = f"{path.name}:{number}"
        if fence is not None:
            if line.startswith("```"):
                sections[heading].append(fence)
                fence, prose = None, ""
            else:
                fence.text += line + "\n"
        elif line.startswith("#"):
            heading = line.lstrip("#").strip()
            if heading in sections:
                raise Unreadable(f"{place}: the heading `{heading}` is there twice")
            sections[heading], prose = [], ""
        elif line.startswith("```"):
            fence = _opened(place, line, heading, prose)
        elif line.startswith(("    ", "\t")) and not before.strip():
            raise Unreadable(f"{place}: an indented block is not run; use a fence such as `sh` or `sh elsewhere`")
        elif line.lstrip().startswith(("```", "~~~")):
            raise Unreadable(f"{place}: this fence is not run; begin the line with three backticks")
        else:
            prose += f" {line}"
        before = line
    if fence is not None:
        raise Unreadable(f"{fence.place}: the block has no end")
    return sections


def _opened(place, line, heading, prose):
    """Returns the block that `line` begins, below `heading` and after `prose`."""
    info, _, reason = line.removeprefix("```").partition(": ")
    words = info.split()
    exits = [word.removeprefix("exit=") for word in words if word.startswith("exit=")]
    kind = " ".join(word for word in words if not word.startswith("exit="))
    if kind not in KINDS:
        raise Unreadable(f"{place}: a block is one of `{'`, `'.join(KINDS)}`, and not `{kind}`")
    if (kind == "sh elsewhere") != bool(reason.strip()):
        raise Unreadable(f"{place}: say why the block is not run, as in `sh elsewhere: needs another machine`")
    if heading is None:
        raise Unreadable(f"{place}: the block is below no heading")
    if exits and f"exit code {exits[0]}" not in prose:
        raise Unreadable(f"{place}: no reader sees the fence; say `exit code {exits[0]}` after the block before it")
    return Block(place, kind, int(exits[0]) if exits else 0, "", reason.strip())
