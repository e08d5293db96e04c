"""Waits for a condition."""

import time


def until(condition, what, deadline_secs):
    """Returns the first true value of `condition()`; fails after the deadline."""
    deadline = time.monotonic() + deadline_secs
    while time.monotonic() < deadline:
        value = condition()
        if value:
            return value
        # A look costs this process and the local cloud up to 10 ms.
        time.sleep(0.1)
    raise AssertionError(f"not within {deadline_secs} s: {what}")
