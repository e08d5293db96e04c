"""The rows that are over their gate and are known to be, each with the reason and where it is mended.

A row in here does not fail `make bench`, up to its own limit. A row in here that is back under its gate does, so that
this list stays true: take it out then. One that is `either_way` may be over or under, because the machine decides: how
fast it is, which pages of a program its kernel keeps, and how much memory Go takes for its number of cores.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Known:
    """Why a row is over its gate, and the value from which on it fails all the same."""

    reason: str
    most: float
    either_way: bool = False


_START = (
    "5.1 ms, and 5.7 in a box, on a machine where the job's own shell takes 1.5 ms; on a faster one 3.1 without a box. "
    "Decision 0035 says what the box costs"
)
_COPY = "the whole builder is compared with skopeo; the copy itself takes what the rows of its memory say"
_APPROVED = (
    "the design has one gate, that of a deploy with one order; an approved change has two, one for the plan and one "
    "for the apply. Of the 19 units more, 4 tell people that a plan waits, and about 5 move the workflow's next sweep"
)
_DRIFT = (
    "a check keeps its log and the text of what it found, which a deploy of a stack does not have: 3 units, and more "
    "on a busy machine, which sends the log in more pieces"
)
_MEETINGS = (
    "each transaction that meets another one costs 0.75 units more, and the machine decides how many do; with seven of "
    "ten, the most that we saw, all write units are about 21. Decision 0029 says what is in them"
)
_BATCHES = "how many orders one invoke sends depends on how close to each other plans end and approvals come"
KNOWN = {
    "component deploy, all write units": Known(_MEETINGS, most=21.2, either_way=True),
    "approved change, write units": Known(_APPROVED, most=40),
    "approved change, invokes beside reports": Known(_BATCHES, most=2.6, either_way=True),
    "drift check of a component, write units": Known(_DRIFT, most=24, either_way=True),
    "order sent to job started, p50, no sandbox": Known(_START, most=8, either_way=True),
    "order sent to job started, p50, bubblewrap": Known(_START, most=9, either_way=True),
    "idle runner, memory": Known(
        "9.7 MB are pages of the program's file, which the kernel can drop; the heap has 1 MB", most=16, either_way=True
    ),
    "image copy, one layer of 200 MiB, memory against skopeo": Known(_COPY, most=0.5, either_way=True),
    "image copy, 4 new MiB of 84, memory against skopeo": Known(_COPY, most=0.5, either_way=True),
}
