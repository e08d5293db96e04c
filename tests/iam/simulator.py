"""The IAM simulator: one process of `decide.mjs`, and the known answers that it has to give."""

import argparse
import json
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

from templates import ROOT

CANARY = Path(__file__).resolve().with_name("canary.json")
PLACE = ROOT / "target" / "iam"


class Simulator:
    def __init__(self):
        self.world = None
        self.process = subprocess.Popen(
            ["node", "decide.mjs"], cwd=PLACE, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end()

    def decide(self, world, questions):
        """Returns for each question whether IAM allows it."""
        write = self.process.stdin.write
        if world is not self.world:
            self.world = world
            write(json.dumps({"principals": world.principals, "resources": world.resources}) + "\n")
        for who, what, action, context, _ in questions:
            write(json.dumps({"who": who, "what": what, "action": action, "context": context}) + "\n")
        write('{"end": true}\n')
        self.process.stdin.flush()
        answers = self.process.stdout.readline().strip()
        if len(answers) != len(questions):
            sys.exit("the simulator ended; the lines above say why")
        return [answer == "1" for answer in answers]

    def wrong(self, world, questions):
        """Returns the questions whose decisions are not as `expectations.py` lists them."""
        answers = self.decide(world, questions)
        return [question for question, allowed in zip(questions, answers, strict=True) if allowed != question[-1]]

    def wrong_decisions(self, world, questions):
        """Returns the decisions that are not as `expectations.py` lists them, as sentences."""
        return [
            f"{who} {'may not' if expected else 'may'} {action} on {what}"
            for who, what, action, _, expected in self.wrong(world, questions)
        ]

    def wrong_canaries(self):
        """Returns the cases of `canary.json`, documented by AWS, that the simulator decides otherwise."""
        return [case["what"] for case in json.loads(CANARY.read_text()) if self._decide_case(case) != case["allowed"]]

    def _decide_case(self, case):
        account = "111111111111"
        role = {
            "kind": "role",
            "account": account,
            "role": "p",
            "identity": case.get("identity", []),
            "boundary": case.get("boundary", []),
        }
        resource = {
            "arn": case["resource"],
            "account": case.get("account", account),
            "policy": case.get("policy"),
        }
        world = argparse.Namespace(
            principals={"p": {"kind": "anonymous"} if case.get("anonymous") else role}, resources={"r": resource}
        )
        [allowed] = self.decide(world, [("p", "r", case["action"], case.get("context", {}), None)])
        return allowed

    def end(self):
        # A simulator that has failed has closed its end; its own message says why.
        with suppress(BrokenPipeError):
            self.process.stdin.close()
        self.process.wait()
