"""The verdicts on rows, and when the bench fails."""

import contextlib
import io
import unittest
from unittest import mock

from known import KNOWN, Known
from programs import Results
from rows import MEASURES, NEVER, Row, plain, rows
from table import judge, report


class Verdicts(unittest.TestCase):
    def judged(self, value, known=None, dev=False, counted=True, gate=10):
        """Returns the verdict on one row, the exit code and what was printed."""
        results, known = Results(), known or {}
        results.add("a.b", value)
        if dev:
            results.is_dev_build("a", "the program")
        lines = judge([Row("the row", gate, "", ("a.b",), plain(0), counted=counted)], results, known)
        with contextlib.redirect_stdout(io.StringIO()) as out:
            code = report(lines, known, mock.Mock())
        return lines[0].verdict, code, out.getvalue()

    def test_a_row_within_its_gate_is_ok(self):
        self.assertEqual(("ok", 0), self.judged(10)[:2])

    def test_a_row_over_its_gate_fails_by_name(self):
        verdict, code, text = self.judged(11)

        self.assertEqual(("over", 1), (verdict, code))
        self.assertIn("FAILED the row: 11, gate 10", text)

    def test_a_row_without_a_value_fails(self):
        self.assertEqual(("over", 1), self.judged(float("nan"))[:2])

    def test_a_known_row_over_its_gate_does_not_fail_and_tells_the_reason(self):
        verdict, code, text = self.judged(11, {"the row": Known("the reason", most=20)})

        self.assertEqual(("known", 0), (verdict, code))
        self.assertIn("the row: 11, gate 10; the reason", text)

    def test_a_known_row_that_is_back_under_its_gate_fails(self):
        verdict, code, text = self.judged(10, {"the row": Known("the reason", most=20)})

        self.assertEqual(("back", 1), (verdict, code))
        self.assertIn("take it out of tests/bench/known.py", text)

    def test_a_known_row_that_is_timed_is_back_when_it_is_a_tenth_under(self):
        known = {"the row": Known("the reason", most=20)}

        self.assertEqual(("ok", 0), self.judged(9.5, known, counted=False)[:2])
        self.assertEqual(("back", 1), self.judged(9, known, counted=False)[:2])

    def test_a_dev_build_is_not_judged_when_it_is_over(self):
        self.assertEqual(("dev build", 0), self.judged(11, dev=True)[:2])
        self.assertEqual(("ok", 0), self.judged(9, dev=True)[:2])

    def test_a_row_without_a_gate_is_only_shown(self):
        self.assertEqual(("", 0), self.judged(11, gate=None)[:2])

    def test_a_known_row_that_the_machine_decides_may_be_under_its_gate(self):
        known = {"the row": Known("the reason", most=20, either_way=True)}
        self.assertEqual(("ok", 0), self.judged(1, known, counted=False)[:2])
        self.assertEqual(("known", 0), self.judged(11, known, counted=False)[:2])

    def test_a_known_row_over_its_own_limit_fails(self):
        known = {"the row": Known("the reason", most=20)}
        self.assertEqual(("known", 0), self.judged(20, known)[:2])
        self.assertEqual(("over", 1), self.judged(21, known)[:2])
        self.assertEqual(("over", 1), self.judged(float("nan"), known)[:2])

    def test_a_known_row_that_does_not_exist_fails(self):
        self.assertEqual(1, self.judged(9, {"another row": Known("the reason", most=20)})[1])

    def test_a_row_is_skipped_with_the_reason_of_the_nearest_name(self):
        results = Results()
        results.skip("a", "no program")
        made = [Row("one", 1, "", ("a.b.c",), plain(0)), Row("two", 1, "", ("b.c",), plain(0))]

        lines = judge(made, results, {})

        self.assertEqual(
            [("skipped", "no program"), ("skipped", "not asked for")],
            [(line.verdict, line.detail) for line in lines[:2]],
        )

    def test_a_row_that_was_asked_for_and_has_neither_value_nor_reason_fails_by_name(self):
        results = Results()
        results.ask("a", "c")
        results.add("a.first", 1)
        results.skip("c.second", "no program")
        made = [
            Row("lost", None, "", ("a.b",), plain(0)),
            Row("half lost", 1, "", ("a.first", "a.second"), plain(0)),
            Row("lost beside a skip", 1, "", ("c.second", "c.first"), plain(0)),
            Row("skipped", 1, "", ("c.second",), plain(0)),
        ]

        lines = judge(made, results, {})
        with contextlib.redirect_stdout(io.StringIO()) as out:
            code = report(lines, {}, mock.Mock())

        self.assertEqual(["lost", "lost", "lost", "skipped"], [line.verdict for line in lines[:4]])
        self.assertEqual(1, code)
        for failure in (
            "FAILED lost: its measure printed neither `a.b` nor why not",
            "FAILED half lost: its measure printed neither `a.second` nor why not",
            "FAILED lost beside a skip: its measure printed neither `c.first` nor why not",
        ):
            self.assertIn(failure, out.getvalue())

    def test_a_known_row_without_a_value_fails_too(self):
        results, known = Results(), {"the row": Known("the reason", most=20)}
        results.ask("a")

        [line, *_] = judge([Row("the row", 10, "", ("a.b",), plain(0))], results, known)

        self.assertEqual("lost", line.verdict)

    def test_every_row_that_is_skipped_with_a_reason_is_listed_and_no_other(self):
        results, listed = Results(), {}
        results.skip("a", "no program")
        results.ask("a", "c")
        results.add("c.d", 1)
        made = [Row(name, 1, "", (name,), plain(0)) for name in ("a.b", "b.c", "c.d")]

        with contextlib.redirect_stdout(io.StringIO()):
            report(judge(made, results, {}), {}, listed.__setitem__)

        never = {f"bench, {what}": reason for what, reason in NEVER}
        self.assertEqual({"bench, a.b": "no program", **never}, listed)


class Rows(unittest.TestCase):
    def test_every_row_is_of_a_measure_and_every_measure_has_rows(self):
        first_words = {name.partition(".")[0] for row in rows(200) for name in row.names}

        self.assertEqual(first_words, {word for words in MEASURES.values() for word in words})

    def test_every_known_row_is_a_row_with_a_gate(self):
        gated = {row.what for row in rows(200) if row.gate is not None}

        self.assertEqual(set(), set(KNOWN) - gated)

    def test_the_limit_of_a_known_row_is_above_its_gate(self):
        gates = {row.what: row.gate for row in rows(200)}

        self.assertEqual([], [what for what, known in KNOWN.items() if known.most <= gates[what]])

    def test_every_row_has_a_name_of_its_own(self):
        names = [row.what for row in rows(200)]

        self.assertEqual(len(names), len(set(names)))


if __name__ == "__main__":
    unittest.main()
