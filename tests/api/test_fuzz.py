"""The fuzzing of the API can fail: operations that never succeed, and the sums of its rounds."""

import unittest

import fuzz

IDS = {"GET /v1/apps": "ListApps", "POST /v1/installs": "CreateInstall"}


class Succeeds(unittest.TestCase):
    def lines(self, succeeded, known=(), only=None):
        counts = {"succeeded": succeeded, "refusals": {}}
        return [line.split()[0] for line in fuzz.unexpected(counts, IDS, only, dict.fromkeys(known, "why"))]

    def test_an_operation_that_never_succeeded_is_named(self):
        self.assertEqual(self.lines({"GET /v1/apps": 3, "POST /v1/installs": 0}), ["CreateInstall"])
        self.assertEqual(self.lines({"GET /v1/apps": 3}), ["CreateInstall"])
        self.assertEqual(self.lines({"GET /v1/apps": 3}, known=["CreateInstall"]), [])
        self.assertEqual(self.lines({"GET /v1/apps": 3}, only="ListApps"), [])

    def test_a_known_operation_that_succeeds_is_named(self):
        both = {"GET /v1/apps": 1, "POST /v1/installs": 1}
        self.assertEqual(self.lines(both, known=["ListApps"]), ["ListApps"])

    def test_the_last_refusal_says_why_an_operation_never_succeeded(self):
        counts = {"succeeded": {}, "refusals": {"POST /v1/installs": '409 {"error": "busy"}'}}
        [line] = fuzz.unexpected(counts, IDS, "CreateInstall", {})
        self.assertTrue(line.endswith('the last valid request got 409 {"error": "busy"}'), line)

    def test_every_known_operation_and_removal_is_in_the_document(self):
        ids = set(fuzz.operation_ids().values())
        self.assertLessEqual({*fuzz.REMOVALS, *fuzz.NEVER_SUCCEEDS, *fuzz.NEED_TERRAFORM}, ids)

    def test_the_counts_of_two_rounds_are_added(self):
        one = {"cases": 2, "failed": 1, "server_errors": 0, "statuses": {"200": 2}, "operations": {}, "succeeded": {}}
        one["refusals"] = {"GET /v1/apps": "404"}
        other = {**one, "statuses": {"200": 1, "404": 1}, "refusals": {"GET /v1/apps": "409"}}
        total = fuzz.added([one, other])
        self.assertEqual(total["refusals"], {"GET /v1/apps": "409"})
        self.assertEqual((total["cases"], total["failed"]), (4, 2))
        self.assertEqual(total["statuses"], {"200": 3, "404": 1})


if __name__ == "__main__":
    unittest.main()
