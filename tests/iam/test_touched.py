"""Which questions a changed policy touches, against the simulator; and which changes are not mutants."""

import random
import unittest

import policies
from matrix import choose, originals
from simulator import Simulator
from statement_mutants import left_out
from touched import Change, Questions

ACCOUNT = "111111111111"
ARNS = (
    f"arn:aws:sqs:eu-west-1:{ACCOUNT}:fh-a--b",
    f"arn:aws:sqs:eu-west-1:{ACCOUNT}:fh-a--b-eu.fifo",
    f"arn:aws:iam::{ACCOUNT}:role/freehold/a--b/x",
    f"arn:aws:iam::{ACCOUNT}:role/freehold/a--b/x:role/a--b--y",
    f"arn:aws:s3:::b/{ACCOUNT}/x",
)
ACTIONS = ("sqs:SendMessage", "sqs:SetQueueAttributes", "iam:PassRole", "iam:CreateRole", "s3:GetObject")
ACTION_PATTERNS = (*ACTIONS, "*", "sqs:*", "sqs:se*", "iam:?assRole", "iam:C*", "s3:Get?bject")
ARN_PATTERNS = (
    *ARNS,
    "*",
    "arn:*:sqs:*:*:fh-a--b*",
    f"arn:aws:sqs:*:{ACCOUNT}:*.fifo",
    "arn:*:iam::*:role/freehold/*",
    "arn:*:iam::*:role/a--b--*",
    "arn:*:iam::*:role/*:*",
    "arn:aws:s3:::b/${aws:PrincipalAccount}/*",
    "arn:aws:s3:::?/*",
)
CONDITIONS = (
    {"StringEquals": {"aws:PrincipalAccount": ACCOUNT}},
    {"StringNotEquals": {"aws:PrincipalAccount": ACCOUNT}},
    {"ArnLike": {"aws:PrincipalArn": "arn:aws:iam::*:role/p"}},
)


class World:
    """One role with an identity policy and a boundary, and resources of which the first queue has a policy."""

    def __init__(self, identity, boundary, policy):
        self.principals = {
            "p": {"kind": "p", "account": ACCOUNT, "role": "p", "identity": [identity], "boundary": [boundary]}
        }
        self.resources = {
            arn: {"arn": arn, "account": ACCOUNT, "policy": policy if arn == ARNS[0] else None} for arn in ARNS
        }


def statement(draw, **more):
    """Draws a statement; one in two has no condition, and one in four names what it is not about."""
    found = {"Effect": draw.choice(("Allow", "Allow", "Deny")), **more}
    found[draw.choice(("Action", "Action", "Action", "NotAction"))] = draw.sample(ACTION_PATTERNS, draw.randint(1, 3))
    key = "Resource" if more else draw.choice(("Resource", "Resource", "Resource", "NotResource"))
    found[key] = draw.sample(ARN_PATTERNS, draw.randint(1, 3))
    if draw.random() < 0.5:
        found["Condition"] = draw.choice(CONDITIONS)
    return found


def changed(draw, policy, **more):
    """Draws a policy that differs in one statement: dropped, another, or with another action, resource or condition."""
    statements = list(policy["Statement"])
    at = draw.randrange(len(statements))
    one, other = statements[at], statement(draw, **more)
    key = draw.choice([*one, "dropped", "another"])
    if key == "dropped":
        statements[at : at + 1] = []
    elif key == "another" or key not in other:
        statements[at] = other
    else:
        statements[at] = {**one, key: other[key]}
    return policies.document(*(statements or [statement(draw, **more)]))


class Touched(unittest.TestCase):
    def test_what_the_simulator_decides_otherwise_is_touched(self):
        draw, everybody = random.Random(1), {"Principal": {"AWS": "*"}}
        questions = Questions(("p", arn, action, {}, None) for arn in ARNS for action in ACTIONS if _fits(action, arn))
        different = untouched = 0
        with Simulator() as simulator:
            for _ in range(400):
                parts = [
                    policies.document(*(statement(draw, **more) for _ in range(3))) for more in ({}, {}, everybody)
                ]
                parts[1]["Statement"].append(policies.allow("*", Resource="*"))
                at = draw.randrange(3)
                others = [*parts[:at], changed(draw, parts[at], **(everybody if at == 2 else {})), *parts[at + 1 :]]
                before, after = World(*parts), World(*others)
                change = Change(before, after)
                was, now = (simulator.decide(world, questions.every) for world in (before, after))
                touched, _ = change.split(questions)
                for place, (one, two) in enumerate(zip(was, now, strict=True)):
                    self.assertTrue(place in touched or one == two, (questions.every[place], parts, others))
                    different += one != two
                    untouched += place not in touched
        # Both happen often enough to say something.
        self.assertGreater(different, 150)
        self.assertGreater(untouched, 1000)

    def test_only_what_differs_in_a_list_of_actions_or_resources_touches(self):
        before = policies.document(policies.allow(["sqs:SendMessage", "iam:PassRole"], Resource="*"))
        after = policies.document(policies.allow(["sqs:*", "iam:PassRole"], Resource="*"))
        change = Change(*(World(policy, policies.EVERYTHING, None) for policy in (before, after)))

        touched, near = change.split(Questions(("p", ARNS[0], action, {}, None) for action in ACTIONS))

        self.assertEqual([ACTIONS[at] for at in touched], ["sqs:SendMessage", "sqs:SetQueueAttributes"])
        self.assertEqual([ACTIONS[at] for at in near], ["iam:PassRole", "iam:CreateRole", "s3:GetObject"])

    def test_a_world_with_other_roles_is_refused(self):
        one, two = (World(policies.EVERYTHING, policies.EVERYTHING, None) for _ in range(2))
        two.principals["p"]["role"] = "q"

        with self.assertRaisesRegex(ValueError, "p differs in more than its policies"):
            Change(one, two)


class LeftOut(unittest.TestCase):
    def test_these_changes_are_not_mutants(self):
        named = [str(mutant) for name, template in originals().items() for mutant in left_out(name, template)]

        self.assertEqual(
            named,
            [
                "tenant NotificationsDeadLettersPolicy PolicyDocument (0, 0) SentByTheTopic: resource",
                "tenant ApiRole identity (8, 0) SubscriptionsByTheirIds: resource",
                "tenant BuildRunnerRole trust (1, 0) : condition",
                "tenant BuildRunnerRole trust (1, 0) : one more aws:PrincipalAccount",
                "queues OrdersPolicy PolicyDocument (0, 0) RunnerTakesOrders: resource",
                "queues OrdersPolicy PolicyDocument (0, 0) RunnerTakesOrders: principal",
                "queues OrdersPolicy PolicyDocument (0, 0) RunnerTakesOrders: condition",
                "queues OrdersPolicy PolicyDocument (0, 0) RunnerTakesOrders: one more aws:PrincipalArn",
                "queues ReportsPolicy PolicyDocument (0, 0) RunnersSendReports: resource",
            ],
        )


class Drawn(unittest.TestCase):
    def test_the_same_seed_draws_the_same_mutants_and_no_count_draws_all(self):
        places = list(range(3, 500))

        self.assertEqual(choose(places, 8, 1), choose(places, 8, 1))
        self.assertNotEqual(choose(places, 8, 1), choose(places, 8, 2))
        self.assertEqual(choose(places, 8, 1), sorted(set(choose(places, 8, 1))))
        self.assertEqual((choose(places, None, 1), choose(places[:2], 8, 1)), (places, places[:2]))


def _fits(action, arn):
    return action.split(":")[0] == arn.split(":")[2]


if __name__ == "__main__":
    unittest.main()
