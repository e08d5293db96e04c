"""The rows that are over their gate and are known to be, each with the reason and where it is mended.

A row in here does not fail `make bench`. A row in here that is back under its gate does, so that this list stays true:
take it out then. A row of EITHER_WAY may be over or under, because the machine decides: how fast it is, which pages of
a program its kernel keeps, and how much memory Go takes for its number of cores.
"""

_START = (
    "5.1 ms, and 5.7 in a box, on a machine where the job's own shell takes 1.5 ms; on a faster one 3.1 without a box. "
    "Decision 0035 says what the box costs"
)
_COPY = "the whole builder is compared with skopeo; the copy itself takes what the rows of its memory say"
KNOWN = {
    "order sent to job started, p50, no sandbox": _START,
    "order sent to job started, p50, bubblewrap": _START,
    "idle runner, memory": "9.7 MB are pages of the program's file, which the kernel can drop; the heap has 1 MB",
    "image copy, one layer of 200 MiB, memory against skopeo": _COPY,
    "image copy, 4 new MiB of 84, memory against skopeo": _COPY,
}
EITHER_WAY = {
    "order sent to job started, p50, no sandbox",
    "order sent to job started, p50, bubblewrap",
    "idle runner, memory",
    "image copy, one layer of 200 MiB, memory against skopeo",
    "image copy, 4 new MiB of 84, memory against skopeo",
}
