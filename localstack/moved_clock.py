"""A clock that is ahead of the true one by what a file says (libfaketime), for the cloud and all that it starts."""

import os
import select
import sys
import time
from pathlib import Path


def variables(file):
    """Returns the environment variables of this clock; none when there is no file."""
    if not file:
        return {}
    found = next(Path("/usr/lib").glob("*/faketime/libfaketime.so.1"), None)
    if not found:
        sys.exit("`--clock` needs libfaketime; install the package `faketime`")
    return {
        "LD_PRELOAD": str(found),
        "FAKETIME_TIMESTAMP_FILE": str(file.absolute()),
        "FAKETIME_NO_CACHE": "1",
        # How long something takes is measured truly.
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
    }


def mend_sleep():
    """Lets this process sleep under such a clock: Python 3.11 sleeps until a time, which libfaketime gets wrong."""
    if "FAKETIME_TIMESTAMP_FILE" in os.environ:
        time.sleep = lambda secs: select.select([], [], [], secs)
