"""Tests of the verdict: a run that counted the wrong things must not look well."""

import contextlib
import io
import unittest
import unittest.mock
from collections import Counter

import closed

from programs import Failed

GOOD = Counter(dict.fromkeys(closed.NEEDED, 2))


def judge(counts, known=closed.NEEDED):
    with contextlib.redirect_stdout(io.StringIO()):
        return closed.judge(counts, known)


class Verdict(unittest.TestCase):
    def test_the_summary_counts_requests_and_endpoints(self):
        summary = judge(GOOD, closed.NEEDED | {"kms"})

        self.assertEqual(summary, "14 requests to 7 of 8 endpoints, none to anything else")

    def test_a_service_without_an_endpoint_is_named(self):
        with self.assertRaisesRegex(Failed, "no VPC endpoint for eks, which"):
            judge(GOOD + Counter(eks=1))

    def test_requests_that_were_not_counted_are_named(self):
        with self.assertRaisesRegex(Failed, "no request to ecr.dkr was counted"):
            judge(Counter({name: count for name, count in GOOD.items() if name != "ecr.dkr"}))

    def test_an_open_network_is_refused(self):
        with contextlib.ExitStack() as stack:
            listener = stack.enter_context(closed.socket.create_server(("127.0.0.1", 0)))
            stack.enter_context(unittest.mock.patch.object(closed, "OUTSIDE", [listener.getsockname()]))
            with self.assertRaisesRegex(Failed, "is reachable"):
                closed.nothing_else_is_reachable()


if __name__ == "__main__":
    unittest.main()
