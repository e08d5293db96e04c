"""The golden install stacks keep their invariants whatever their switches say; `tests/stacks` checks other apps."""

import unittest

import invariants
import mutants
import templates


class Combinations(unittest.TestCase):
    def test_the_golden_stacks_keep_every_invariant(self):
        for template in (templates.install(), templates.install_with_inputs(), templates.install_with_network()):
            for parameters in mutants.covering_combinations(template):
                with self.subTest(parameters):
                    self.assertEqual(invariants.check(template, parameters)[1], [])
