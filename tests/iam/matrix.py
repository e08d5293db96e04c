"""Decides every (principal, action, resource) of a world, and shows that each widened statement would be noticed."""

import argparse
import copy
import json
import subprocess
import sys
from pathlib import Path

import world
from world import templates

HERE = Path(__file__).resolve().parent
PLACE = templates.ROOT / "target" / "iam"


class Simulator:
    """One process of the simulator."""

    def __init__(self):
        self.process = subprocess.Popen(
            ["node", "decide.mjs"], cwd=PLACE, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def decide(self, made, questions):
        """Returns for each question whether it is allowed."""
        write = self.process.stdin.write
        write(json.dumps({"principals": made.principals, "resources": made.resources}) + "\n")
        for who, what, action, context, _ in questions:
            write(json.dumps({"who": who, "what": what, "action": action, "context": context}) + "\n")
        write('{"end": true}\n')
        self.process.stdin.flush()
        answers = self.process.stdout.readline().strip()
        if len(answers) != len(questions):
            sys.exit("the simulator ended; the lines above say why")
        return [answer == "1" for answer in answers]

    def end(self):
        self.process.stdin.close()
        self.process.wait()


def wrong(made, simulator, questions):
    """Returns what is decided otherwise than it has to be."""
    answers = simulator.decide(made, questions)
    return [
        f"{who} {'may' if answer else 'may not'} {action} on {what}"
        for (who, what, action, _, expected), answer in zip(questions, answers)
        if answer != expected
    ]


def canary(simulator):
    """Returns which known answers the simulator gets wrong: what it says of the rest is worth nothing then."""
    found = []
    for case in json.loads((HERE / "canary.json").read_text()):
        made = argparse.Namespace(
            principals={
                "p": {
                    "kind": "role",
                    "account": "111111111111",
                    "role": "p",
                    "identity": case.get("identity", []),
                    "boundary": case.get("boundary", []),
                }
            },
            resources={
                "r": {
                    "arn": case["resource"],
                    "account": case.get("account", "111111111111"),
                    "policy": case.get("policy"),
                }
            },
        )
        if case.get("anonymous"):
            made.principals["p"] = {"kind": "anonymous"}
        [allowed] = simulator.decide(made, [("p", "r", case["action"], case.get("context", {}), None)])
        if allowed != case["allowed"]:
            found.append(case["what"])
    return found


def figure(name, value, attempted, passed):
    print(json.dumps({"name": name, "value": value, "attempted": attempted, "passed": passed, "seed": 0}), flush=True)


# ---- widened statements ----------------------------------------------------------------------------------------------


def holders(template):
    """Returns the path of every list of statements, with the resource that has it."""
    for name, resource in template["Resources"].items():
        properties = resource["Properties"]
        if resource["Type"] == "AWS::IAM::Role":
            yield name, "trust", properties["AssumeRolePolicyDocument"]["Statement"]
            for policy in properties.get("Policies", []) if isinstance(properties.get("Policies"), list) else []:
                if isinstance(policy.get("PolicyDocument"), dict):
                    yield name, "identity", policy["PolicyDocument"]["Statement"]
        for key in ("PolicyDocument", "KeyPolicy", "RepositoryPolicyText"):
            if key in properties and resource["Type"] != "AWS::IAM::Role":
                yield name, key, properties[key]["Statement"]


KINDS = ("dropped", "action", "resource", "condition", "principal", "switch")


def sides(statement):
    """Returns the statements of which one is chosen by a condition, or the one that there is, each with how to put another
    in its place."""
    if "Fn::If" not in statement:
        return [(statement, lambda changed: changed)]
    condition, *chosen = statement["Fn::If"]

    def instead(at):
        return lambda changed: [
            {"Fn::If": [condition, *chosen[:at], *(changed or [{"Ref": "AWS::NoValue"}]), *chosen[at + 1 :]]}
        ]

    return [(side, instead(at)) for at, side in enumerate(chosen) if "Ref" not in side]


def widened(statement, kind):
    """Returns the statement when it lets more through in this way: `[]` when it is gone; nothing when it cannot be."""
    if statement["Effect"] == "Deny":
        return [] if kind == "dropped" else None
    action = templates.as_list(statement["Action"])[0]
    without = {key: value for key, value in statement.items() if key != "Condition"}
    wide = f"{action.split(':')[0]}:*"
    changed = {
        "action": statement["Action"] not in ("*", wide) and {**statement, "Action": wide},
        "resource": statement.get("Resource", "*") != "*" and {**statement, "Resource": "*"},
        "condition": "Condition" in statement and without,
        "principal": statement.get("Principal", "*") != "*" and {**statement, "Principal": {"AWS": "*"}},
        # A role that is off lets nobody in: this one does not know of its switch.
        "switch": isinstance(statement["Effect"], dict) and {**statement, "Effect": "Allow"},
    }.get(kind)
    return [changed] if changed else None


def mutants(template):
    """Returns each statement that can be widened: who has it, where, its number, which side of a condition, and how."""
    for name, key, statements in holders(template):
        for at, statement in enumerate(statements):
            for side, (bare, _) in enumerate(sides(statement)):
                for kind in KINDS:
                    if widened(bare, kind) is not None:
                        yield name, key, (at, side), kind, bare.get("Sid", "")


def lets_everybody_in(template):
    """Returns whether some statement names everybody. What holds such a one is its condition alone, so that no principal of
    another kind could tell; the checks of the templates find it (`tests/infra`, `freehold install verify-template`)."""
    named = (
        bare.get("Principal")
        for _, _, statements in holders(template)
        for statement in statements
        for bare, _ in sides(statement)
        if bare["Effect"] != "Deny"
    )
    return any(
        principal == "*" or isinstance(principal, dict) and "*" in templates.as_list(principal.get("AWS", []))
        for principal in named
    )


def changing(of, name, key, at, kind):
    """Returns what widens that one statement wherever the template is used."""

    def change(which, template):
        if which == of:
            [statements] = [found for n, k, found in holders(template) if (n, k) == (name, key)]
            bare, instead = sides(statements[at[0]])[at[1]]
            statements[at[0] : at[0] + 1] = instead(widened(bare, kind))
        return template

    return change


MODES = {"provision", "maintenance", "deprovision", "bare-mode", "base-alone", "off-mode", "old-session"}
# Whose decisions a statement can change: kinds of principals by who has the policy, kinds of resources by whose policy it is.
HOLDERS = {
    **{f"{logical}Role": {kind} for kind, logical in world.ROLES.items()},
    "RunnerRole": {"runner"},
    "LogDelivery": {f"{name}-machine" for name in templates.DEFINITIONS},
    "Base": MODES,
    "Limits": MODES,
    "Boundary": MODES,
}
OWNERS = {"BuildQueuePolicy": {"build-queue"}, "Repository": {"registry"}, "SigningKey": {"root-key"}, "Key": {"key"}}


def concerned(made, name, key, who, what):
    """Returns whether a statement of `name` can have to do with a question; of two tenants alike one is asked about."""
    principal, resource = made.principals[who], made.resources[what]
    if key == "trust":
        return resource["kind"] in (
            "runner-role",
            "runner-role-elsewhere",
            "mode-role",
            "off-mode-role",
            "function-role",
            "machine-role",
            "build-role",
        )
    if principal.get("t", 0) != 0:
        return False
    if name in OWNERS:
        return resource["kind"] in OWNERS[name]
    return principal["kind"] in HOLDERS.get(name, {principal["kind"]})


def main():
    parser = argparse.ArgumentParser(prog="tests/iam/run", description=__doc__)
    parser.add_argument("--tenants", type=int, default=2)
    parser.add_argument("--installs", type=int, default=2, help="of each tenant")
    parser.add_argument(
        "--mutants", action="store_true", help="widen every statement in turn; prints those that nothing noticed"
    )
    args = parser.parse_args()
    simulator = Simulator()
    known = canary(simulator)
    if known:
        sys.exit("the simulator does not answer as AWS documents:\n" + "\n".join(known))
    made = world.World(args.tenants, args.installs)
    questions = list(world.questions(made))
    found = wrong(made, simulator, questions)
    print("".join(f"wrong: {one}\n" for one in found[:50]), end="")
    figure("iam.decisions", len(questions), len(questions), len(questions) - len(found))
    figure("iam.wrong", len(found), len(questions), len(questions) - len(found))
    if args.mutants:
        killed, alive = 0, []
        for of, template in (
            ("tenant", templates.tenant()),
            ("install", templates.parse(templates.install_text(PROVISION_POLICIES="[]"))),
        ):
            for name, key, at, kind, sid in mutants(template):
                change = changing(of, name, key, at, kind)
                if kind == "principal" and lets_everybody_in(change(of, copy.deepcopy(template))):
                    killed += 1
                    continue
                made = world.World(2, 2 if of == "install" else 1, change)
                if wrong(
                    made, simulator, [one for one in world.questions(made) if concerned(made, name, key, *one[:2])]
                ):
                    killed += 1
                else:
                    alive.append(f"alive: {of} {name} {key} {at} {sid}: {kind}")
        print("".join(f"{one}\n" for one in alive), end="")
        figure("iam.mutants_killed", killed, killed + len(alive), killed)
    simulator.end()
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
